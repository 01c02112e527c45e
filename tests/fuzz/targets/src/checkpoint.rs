//! Trained models as rows of bytes.

use crate::is_one_line;
use datasets::{Calendar, Panel, PanelBuilder};
use forecaster::checkpoint::{load, save};
use forecaster::forecast;
use safetensors::SafeTensors;
use sha2::{Digest, Sha256};
use std::sync::OnceLock;
use vocab::{ClusterName, HourStart, Organization, PoolId, SeriesId};

/// Bytes that are loaded are saved as what is loaded as the same, and forecast or say why not.
///
/// A digest keeps damaged bytes out. The code behind it is tested, too: the bytes are loaded as they are, and under a
/// digest of their own.
pub fn checkpoint(data: &[u8]) {
    loaded(data);
    if let Some(sealed) = sealed(data) {
        loaded(&sealed);
    }
}

fn loaded(bytes: &[u8]) {
    let trained = match load(bytes) {
        Ok(trained) => trained,
        Err(fault) => return is_one_line(&fault.to_string()),
    };
    let saved = save(&trained, "fuzz").expect("what was loaded can be saved");
    let again = load(&saved).expect("what was saved is loaded");
    assert!(save(&again, "fuzz").expect("what was loaded can be saved") == saved, "it is saved as other bytes");
    if let Err(fault) = forecast(&trained, panel(), panel().end()) {
        is_one_line(&fault.to_string());
    }
}

/// The same bytes with the digest that they should have; none where they are no file of tensors, or one without digest.
fn sealed(data: &[u8]) -> Option<Vec<u8>> {
    let (header_bytes, header) = SafeTensors::read_metadata(data).ok()?;
    let metadata = header.metadata().as_ref()?.get("headroom")?;
    let file = SafeTensors::deserialize(data).ok()?;
    let mut tensors = file.tensors();
    tensors.sort_by(|one, other| one.0.cmp(&other.0));
    let mut hash = Sha256::new_with_prefix(metadata);
    for (name, view) in tensors.iter().filter(|(name, _)| name != "sha256") {
        hash.update(format!("{name} {:?} {:?}\n", view.dtype(), view.shape()));
        hash.update(view.data());
    }
    let digest = hash.finalize();
    let place = header.info("sha256")?.data_offsets;
    let from = 8 + header_bytes + place.0;
    let mut sealed = data.to_vec();
    let old = sealed.get_mut(from..8 + header_bytes + place.1)?;
    (old.len() == digest.len()).then(|| old.copy_from_slice(&digest))?;
    Some(sealed)
}

/// Ten days of three organizations with a daily wave each.
#[must_use]
pub fn panel() -> &'static Panel {
    static PANEL: OnceLock<Panel> = OnceLock::new();
    PANEL.get_or_init(|| {
        let calendar = Calendar::parse("Asia/Shanghai", Calendar::WEEKDAYS).expect("a calendar");
        let start = HourStart::from_unix_s(1_588_262_400).expect("on the grid");
        let end = start.plus_hours(240);
        let mut builder = PanelBuilder::new(ClusterName::parse("earth").expect("a name"), calendar, start, end);
        let pool = PoolId::parse("earth:V100").expect("a pool");
        for (place, name) in (0_u32..).zip(["a", "b", "c"]) {
            let id = SeriesId { pool: pool.clone(), organization: Organization::parse(name).expect("a name") };
            for hour in 0..240_u32 {
                let wave = (f64::from(hour) / 24.0 * std::f64::consts::TAU + f64::from(place)).sin();
                let at = start.plus_hours(i64::from(hour));
                builder.push(&id, at, (20.0 + 8.0 * wave).round()).expect("in its range");
            }
        }
        builder.finish().expect("whole")
    })
}
