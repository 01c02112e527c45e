//! How long models load and save.

use datasets::read::{PhaseRow, ReadError};
use std::collections::BTreeMap;
use std::path::Path;

/// Parameters in bytes, 4 each: the models of the Philly list as torchvision publishes them (61,100,840 of alexnet,
/// 27,161,264 of inception_v3, 3,504,872 of mobilenet_v2, 44,549,160 of resnet101, 138,357,544 of vgg16).
const PARAMETER_BYTES: [(&str, u64); 5] = [
    ("alexnet", 244_403_360),
    ("inception_v3", 108_645_056),
    ("mobilenet_v2", 14_019_488),
    ("resnet101", 178_196_640),
    ("vgg16", 553_430_176),
];
/// A checkpoint holds the parameters and as much of the optimizer: SGD with momentum.
const CHECKPOINT_PARTS: u64 = 2;
/// A job's share of the storage, an assumption: the paper's testbed reads over 40 Gbit/s with 16 GPUs (Lazer §5.1).
const BYTES_PER_MS: u64 = 312_500;
/// Until a process is there to read into: what a restart loses in the public GFS simulator, 40 s, and 60 s above 8 GPUs
/// (BASELINES §2). The paper prints no load times; single futile preemptions of it exceed 100 s (Lazer §4.2).
const START_MS: u64 = 40_000;
const START_LARGE_MS: u64 = 60_000;
/// Before the checkpoint is written, so that saving takes 8 s on average over the five models, as in the paper (Lazer §3.2).
const STOP_MS: u64 = 6_600;
/// Up to so many GPUs a job is not large.
pub const LARGE_ABOVE_GPUS: u32 = 8;
/// Of a model that has no row: the mean of the five.
const OTHER: &str = "*";

/// Phases by model.
#[derive(Debug, Clone)]
pub struct Phases {
    rows: BTreeMap<String, PhaseRow>,
}

impl Default for Phases {
    fn default() -> Self {
        let mean = PARAMETER_BYTES.iter().map(|(_, bytes)| bytes).sum::<u64>() / PARAMETER_BYTES.len() as u64;
        let all = PARAMETER_BYTES.into_iter().chain([(OTHER, mean)]);
        let row = |(model, bytes): (&str, u64)| {
            let moved_ms = bytes * CHECKPOINT_PARTS / BYTES_PER_MS;
            PhaseRow {
                model: model.to_owned(),
                load_ms: START_MS + moved_ms,
                load_large_ms: START_LARGE_MS + moved_ms,
                save_ms: STOP_MS + moved_ms,
            }
        };
        Self { rows: all.map(row).map(|row| (row.model.clone(), row)).collect() }
    }
}

impl Phases {
    /// The built-in table, its rows replaced by those of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(file: Option<&Path>) -> Result<Self, ReadError> {
        let mut phases = Self::default();
        if let Some(file) = file {
            phases.rows.extend(datasets::read::phases(file)?.into_iter().map(|row| (row.model.clone(), row)));
        }
        Ok(phases)
    }

    /// ℓ and p of a job, in milliseconds.
    #[must_use]
    pub fn of(&self, model: &str, gpus: u32) -> (i64, i64) {
        let Some(row) = self.rows.get(model).or_else(|| self.rows.get(OTHER)) else { return (0, 0) };
        let load_ms = if gpus > LARGE_ABOVE_GPUS { row.load_large_ms } else { row.load_ms };
        (load_ms as i64, row.save_ms as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saving_takes_eight_seconds_on_average_and_unknown_models_are_as_the_mean() {
        let phases = Phases::default();
        let saves: i64 = PARAMETER_BYTES.iter().map(|(model, _)| phases.of(model, 1).1).sum();
        assert!((saves / 5).abs_diff(8_000) < 50, "{saves}");
        assert_eq!(phases.of("vgg16", 8), (43_541, 10_141));
        assert_eq!(phases.of("vgg16", 9).0, 63_541);
        assert_eq!(phases.of("bert", 1), (41_406, 8_006));
    }
}
