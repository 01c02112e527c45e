//! The losses that train and choose a network: the CRPS of a Gaussian, and the pinball loss of three quantiles.

use crate::gaussian::{cdf, crps, pdf};
use crate::rows::{OUTPUTS, SPREAD};
use crate::scores::pinball;
use std::f64::consts::PI;
use vocab::QUANTILE_LEVELS;

/// Of the logarithm of a spread, in deviations of the series.
const LOG_SPREAD: std::ops::RangeInclusive<f64> = -6.0..=3.0;
/// Where the logarithm of the spread begins: a third of a deviation.
const LOG_SPREAD_START: f64 = -1.0;

/// The spread that an output stands for.
pub fn spread(output: f32) -> f64 {
    (f64::from(output) + LOG_SPREAD_START).clamp(*LOG_SPREAD.start(), *LOG_SPREAD.end()).exp()
}

/// The same but for rounding, for the registers of the caller.
#[expect(clippy::inline_always, reason = "it is compiled once for each width of registers, in the caller")]
#[inline(always)]
pub fn spread_in_few_steps(output: f32) -> f32 {
    let log = (output + LOG_SPREAD_START as f32).clamp(*LOG_SPREAD.start() as f32, *LOG_SPREAD.end() as f32);
    super::fused::exp_in_few_steps(log)
}

/// Rows of targets, and what each row weighs.
pub struct Targets<'a> {
    /// `[step][row]`, differences to the last value in deviations; what is no number teaches nothing.
    pub steps: &'a [Vec<f64>],
    /// Weight of each row.
    pub weights: &'a [f32],
}

impl Targets<'_> {
    /// Turns outputs `[rows, steps × outputs]` into the derivatives of the weighted mean loss by each of them.
    pub fn gradients(&self, rows: &[usize], outputs: &mut [f32]) {
        let share = 1.0 / rows.len() as f64;
        for (row, outputs) in rows.iter().zip(outputs.chunks_exact_mut(self.steps.len() * OUTPUTS)) {
            let weight = f64::from(self.weights[*row]) * share;
            for (targets, predicted) in self.steps.iter().zip(outputs.chunks_exact_mut(OUTPUTS)) {
                if targets[*row].is_nan() {
                    predicted.fill(0.0);
                    continue;
                }
                let slopes = gradient(targets[*row], predicted);
                predicted.iter_mut().zip(slopes).for_each(|(predicted, slope)| *predicted = (slope * weight) as f32);
            }
        }
    }

    /// Mean losses of CRPS and each quantile, weighted; their geometric mean is what chooses, so that none outweighs the
    /// others.
    pub fn score(&self, outputs: &[f32]) -> f64 {
        let mut sums = [0.0; 1 + QUANTILE_LEVELS.len()];
        for (row, predicted) in outputs.chunks_exact(self.steps.len() * OUTPUTS).enumerate() {
            let weight = f64::from(self.weights[row]);
            for (targets, predicted) in self.steps.iter().zip(predicted.chunks_exact(OUTPUTS)) {
                if targets[row].is_nan() {
                    continue;
                }
                sums[0] += weight * crps(targets[row], f64::from(predicted[0]), spread(predicted[SPREAD]));
                for (place, level) in QUANTILE_LEVELS.into_iter().enumerate() {
                    sums[1 + place] += weight * pinball(targets[row], f64::from(predicted[1 + place]), level);
                }
            }
        }
        sums.iter().map(|sum| sum.max(f64::MIN_POSITIVE).ln()).sum::<f64>() / sums.len() as f64
    }
}

/// Of one step: CRPS by centre and logarithm of the spread (Gneiting and Raftery 2007, Eq. 21), pinball by quantile.
fn gradient(target: f64, predicted: &[f32]) -> [f64; OUTPUTS] {
    let spread = spread(predicted[SPREAD]);
    let z = (target - f64::from(predicted[0])) / spread;
    let mut slopes = [0.0; OUTPUTS];
    slopes[0] = 1.0 - 2.0 * cdf(z);
    slopes[SPREAD] = spread * (2.0 * pdf(z) - 1.0 / PI.sqrt());
    for (place, level) in QUANTILE_LEVELS.into_iter().enumerate() {
        slopes[1 + place] = if target > f64::from(predicted[1 + place]) { -level } else { 1.0 - level };
    }
    slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_the_losses() {
        let predicted = [0.3_f32, 0.1, 0.9, 1.4, 0.2];
        let loss = |predicted: &[f32], target: f64| {
            let quantiles = QUANTILE_LEVELS.into_iter().enumerate();
            crps(target, f64::from(predicted[0]), spread(predicted[SPREAD]))
                + quantiles.map(|(k, level)| pinball(target, f64::from(predicted[1 + k]), level)).sum::<f64>()
        };
        for target in [-1.0, 0.5, 2.0] {
            let slopes = gradient(target, &predicted);
            for (place, slope) in slopes.into_iter().enumerate() {
                let (mut more, mut less) = (predicted, predicted);
                more[place] += 1e-3;
                less[place] -= 1e-3;
                let step = f64::from(more[place] - less[place]);
                let numeric = (loss(&more, target) - loss(&less, target)) / step;
                assert!((slope - numeric).abs() < 1e-3, "{target} {place}: {slope} against {numeric}");
            }
        }
    }

    #[test]
    fn better_outputs_score_lower() {
        let targets = [vec![1.0, -1.0]];
        let targets = Targets { steps: &targets, weights: &[1.0, 1.0] };
        let good = [1.0, 1.0, 1.1, 1.2, -1.0, -1.0, -1.0, -0.9, -0.8, -1.0];
        assert!(targets.score(&good) < targets.score(&[0.0; 10]));
    }
}
