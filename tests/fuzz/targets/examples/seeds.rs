//! `cargo run --package fuzz-targets --example seeds FOLDER`: checkpoints of small models, the first inputs of the target
//! `checkpoint`. They are made again where the format of checkpoints changes.

use forecaster::blend::Settings;
use forecaster::calibration::Switch;
use forecaster::checkpoint::save;
use forecaster::trained::split;
use forecaster::{Fit, ModelKind, ModelSpec, train};
use std::path::PathBuf;
use vocab::{GuaranteeRate, HorizonHours};

/// Those whose bytes are few enough to be kept and mutated.
const KINDS: [ModelKind; 6] = [
    ModelKind::LastValue,
    ModelKind::Seasonal24h,
    ModelKind::AutoEts,
    ModelKind::NLinear,
    ModelKind::DLinear,
    ModelKind::OrgLinearPaper,
];
const MOST_BYTES: usize = 16 * 1_024;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("name the folder to write to"));
    let panel = fuzz_targets::panel();
    for kind in KINDS {
        let spec = ModelSpec { kind, horizon: HorizonHours::new(2).expect("a horizon"), lookback_hours: 24, seed: 3 };
        let split = split(panel, panel.end(), &spec).expect("the panel is long enough");
        let fit = Fit { panel, split, spec, settings: Settings::DEFAULT };
        let trained = train(&fit, GuaranteeRate::GFS, Switch::Auto, &mut |_| ()).expect("it trains").0;
        let bytes = save(&trained, "fuzz").expect("what was trained is saved");
        println!("{kind}: {} bytes", bytes.len());
        if bytes.len() <= MOST_BYTES {
            std::fs::write(folder.join(kind.as_str()), bytes).expect("the folder can be written to");
        }
    }
}
