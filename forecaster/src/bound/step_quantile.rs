//! The quantile of one step of a forecast at any rate.

use crate::gaussian;
use vocab::{GuaranteeRate, QUANTILE_LEVELS, StepForecast};

/// Exported quantiles at or above this one are those that bounds rest on: medians are lowered where demand fell within the hour.
const FIRST: usize = 1;

/// Where a rate lies among the exported upper quantiles, in deviations of a Gaussian.
///
/// A model exports quantiles at few levels, and they are not those of its Gaussian: demand that stands still for days and then
/// jumps has a small deviation and a large 0.95 quantile. Below the first of them the quantile is the Gaussian's, and no more than that one. Between two of
/// them it is linear in deviations, as a Gaussian's is. Beyond the last it goes on as steeply as before it, and no less steeply than the Gaussian. So
/// it never falls with p, is the exported one at its level, and the Gaussian's where the exported ones are.
pub(super) struct StepQuantile {
    deviations: f64,
    /// Of the first and the last exported upper quantile.
    ends: [f64; 2],
    /// The part of the way from the first to the last; exactly none and the whole at their levels.
    part: f64,
}

impl StepQuantile {
    pub(super) fn at(rate: GuaranteeRate) -> Self {
        let p = rate.as_f64();
        let deviations = gaussian::quantile(p);
        let ends = [FIRST, FIRST + 1].map(|place| gaussian::quantile(QUANTILE_LEVELS[place]));
        let is_level = |place: usize| (QUANTILE_LEVELS[place] - p).abs() < 1e-9;
        let part = match (is_level(FIRST), is_level(FIRST + 1)) {
            (true, _) => 0.0,
            (_, true) => 1.0,
            _ => (deviations - ends[0]) / (ends[1] - ends[0]),
        };
        Self { deviations, ends, part }
    }

    /// In GPUs, never below zero. `mean_gpus` is the mean that bounds rest on.
    pub(super) fn gpus(&self, step: &StepForecast, mean_gpus: f64) -> f64 {
        let [first, last] = [step.quantiles_gpus[FIRST], step.quantiles_gpus[FIRST + 1]];
        let gpus = if self.part < 0.0 {
            (mean_gpus + self.deviations * step.stddev_gpus).min(first)
        } else if self.part < 1.0 {
            first + self.part * (last - first)
        } else {
            let steepness = ((last - first) / (self.ends[1] - self.ends[0])).max(step.stddev_gpus);
            last + if self.part > 1.0 { (self.deviations - self.ends[1]) * steepness } else { 0.0 }
        };
        gpus.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(step: &StepForecast, p: f64) -> f64 {
        StepQuantile::at(GuaranteeRate::new(p).unwrap()).gpus(step, step.mean_gpus)
    }

    #[test]
    fn of_a_gaussian_it_is_the_gaussians_at_every_rate() {
        let of = |p: f64| 40.0 + 5.0 * gaussian::quantile(p);
        let step = StepForecast { mean_gpus: 40.0, stddev_gpus: 5.0, quantiles_gpus: QUANTILE_LEVELS.map(of) };
        for p in [0.1, 0.5, 0.62, 0.8, 0.9, 0.93, 0.95, 0.99, 0.9999] {
            assert!((gpus(&step, p) - of(p)).abs() < 1e-9, "{p}: {}", gpus(&step, p));
        }
    }

    #[test]
    fn it_is_the_exported_one_at_its_level_and_never_falls_with_the_rate() {
        for (stddev_gpus, quantiles_gpus) in
            [(0.44, [4.6, 6.0, 8.0]), (50.0, [30.0, 30.0, 30.0]), (0.0, [0.0, 0.0, 2.0]), (3.0, [1.0, 1.0, 9.0])]
        {
            let step = StepForecast { mean_gpus: 4.6, stddev_gpus, quantiles_gpus };
            assert_eq!([0.9, 0.95].map(|p| gpus(&step, p)), quantiles_gpus[1..]);
            let all: Vec<f64> = (1..1_000).map(|rate| gpus(&step, f64::from(rate) / 1_000.0)).collect();
            assert!(all.is_sorted(), "{quantiles_gpus:?}");
            assert!(stddev_gpus == 0.0 || all[998] > all[949], "{quantiles_gpus:?}");
        }
    }
}
