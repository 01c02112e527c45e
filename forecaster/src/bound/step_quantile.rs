//! The quantile of one step of a forecast at any rate.

use crate::gaussian;
use vocab::{GuaranteeRate, QUANTILE_LEVELS, StepForecast};

/// The last exported quantile below p, and how far p lies beyond it in deviations of a Gaussian.
///
/// A model exports quantiles at few levels, and they are not those of its Gaussian: demand that stands still for days and then
/// jumps has a small deviation and a large 0.95 quantile. Between two of them the quantile is linear in deviations, as that of a Gaussian is; beyond
/// the outermost it goes on as steeply as there, and no less steeply than the Gaussian. So it never falls with p, is the exported one
/// at its level, and that of the Gaussian where the exported ones are.
pub(super) struct StepQuantile {
    /// Of the pair of exported quantiles around p, or nearest to it.
    pair: usize,
    /// From the first one of the pair to p, in deviations.
    beyond: f64,
    /// Between the two.
    apart: f64,
}

impl StepQuantile {
    pub(super) fn at(rate: GuaranteeRate) -> Self {
        let levels = QUANTILE_LEVELS.map(gaussian::quantile);
        let at = gaussian::quantile(rate.as_f64());
        let pair = (1..levels.len() - 1).rev().find(|pair| levels[*pair] <= at).unwrap_or(0);
        // Exactly none at an exported level.
        let beyond = if (QUANTILE_LEVELS[pair] - rate.as_f64()).abs() < 1e-9 { 0.0 } else { at - levels[pair] };
        Self { pair, beyond, apart: levels[pair + 1] - levels[pair] }
    }

    /// In GPUs, never below zero.
    pub(super) fn gpus(&self, step: &StepForecast) -> f64 {
        let [first, second] = [step.quantiles_gpus[self.pair], step.quantiles_gpus[self.pair + 1]];
        let part = self.beyond / self.apart;
        let gpus = if (part - 1.0).abs() < 1e-9 {
            second
        } else if (0.0..1.0).contains(&part) {
            first + part * (second - first)
        } else {
            let steepest = ((second - first) / self.apart).max(step.stddev_gpus);
            let end = if part < 0.0 { first } else { second };
            end + (self.beyond - if part < 0.0 { 0.0 } else { self.apart }) * steepest
        };
        gpus.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(step: &StepForecast, p: f64) -> f64 {
        StepQuantile::at(GuaranteeRate::new(p).unwrap()).gpus(step)
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
            assert_eq!(QUANTILE_LEVELS.map(|p| gpus(&step, p)), quantiles_gpus);
            let all: Vec<f64> = (1..1_000).map(|rate| gpus(&step, f64::from(rate) / 1_000.0)).collect();
            assert!(all.is_sorted(), "{quantiles_gpus:?}");
            assert!(stddev_gpus == 0.0 || all[998] > all[949], "{quantiles_gpus:?}");
        }
    }
}
