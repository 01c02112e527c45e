//! How fast the models of the Philly list are by GPUs.

use super::commands::ElasticError;
use placement::elastic::Profile;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Twice the largest request of the list.
const GPUS_MOST: u64 = 64;
/// Models of the list that scale linearly. Cornucopia's table 1 counts 176 sublinear jobs of 30,940.
const LINEAR: [&str; 4] = ["alexnet", "inception_v3", "mobilenet_v2", "resnet101"];
/// The one that does not: of the models that the paper could mean, VGG-16 is the one that is published as scaling badly
/// (Horovod: 68 % on 512 GPUs where Inception V3 and ResNet-101 have 90 %).
const SUBLINEAR: &str = "vgg16";
/// GPUs up to which it is linear: its jobs then hold 934 GPUs beyond, where table 1 has 872.
const BOTTLENECK_GPUS: u64 = 5;

/// Thousandths of the speed on one GPU. After the bottleneck the n-th GPU adds bottleneck / n of one.
fn thousandths(bottleneck: u64) -> Vec<u64> {
    let mut sum = 0.0;
    let mut next = |gpus: u64| {
        sum += if gpus <= bottleneck { 1.0 } else { bottleneck as f64 / gpus as f64 };
        (sum * 1_000.0).round() as u64
    };
    (1..=GPUS_MOST).map(&mut next).collect()
}

/// The profiles without a file.
#[must_use]
pub fn made() -> BTreeMap<String, Vec<u64>> {
    let linear = LINEAR.iter().map(|model| ((*model).to_owned(), thousandths(GPUS_MOST)));
    linear.chain([(SUBLINEAR.to_owned(), thousandths(BOTTLENECK_GPUS))]).collect()
}

/// Speeds as a file, with where they come from.
#[must_use]
pub fn text(speeds: &BTreeMap<String, Vec<u64>>) -> String {
    let mut text = format!(
        "# Made by `simulate elastic profiles`; thousandths of the speed on one GPU. Nobody published measurements of these\n\
         # jobs. Cornucopia's table 1 counts 176 sublinear jobs of the 30,940 with 872 GPUs beyond their bottleneck, and names\n\
         # no model. Here {SUBLINEAR} alone is sublinear (Horovod's published scaling: VGG-16 68 %, Inception V3 and ResNet-101\n\
         # 90 %): linear up to {BOTTLENECK_GPUS} GPUs, then the n-th GPU adds {BOTTLENECK_GPUS}/n of one. That makes 222 jobs with 934 GPUs beyond.\n\
         # All others are linear up to {GPUS_MOST} GPUs, twice the largest request.\n\
         model_name,gpus,speed_thousandths\n"
    );
    for (model, speeds) in speeds {
        for (speed, gpus) in speeds.iter().zip(1..) {
            let _ = writeln!(text, "{model},{gpus},{speed}");
        }
    }
    text
}

/// Profiles by model, of a file where one is named.
///
/// # Errors
/// The file cannot be read, or its speeds are none.
pub fn profiles(file: Option<&Path>) -> Result<BTreeMap<String, Arc<Profile>>, ElasticError> {
    let speeds = match file {
        Some(file) => datasets::read::model_speeds(file)?,
        None => made(),
    };
    let profile = |(model, speeds): (String, Vec<u64>)| {
        let multiples = speeds.into_iter().map(|thousandths| thousandths as f64 / 1_000.0).collect();
        let profile = Profile::new(multiples).map_err(|fault| ElasticError::Speeds { model: model.clone(), fault })?;
        Ok((model, Arc::new(profile)))
    };
    speeds.into_iter().map(profile).collect()
}
