//! How the forecasts of one organization are corrected, step by step.

use vocab::StepForecast;

/// Residuals are in predicted deviations, floored here, in GPUs.
const LEAST_DEVIATION_GPUS: f64 = 0.05;
/// Deviations that the mean moves at most: where demand stands still between jumps, the error of one would move it for days by more than
/// the model expects it to move at all.
const ERROR_MOST: f64 = 0.25;

/// How the forecasts of one organization are corrected, in their deviations.
pub struct Correction {
    /// The addition to the median.
    pub median: f64,
    /// How far demand was above the 0.9 quantile lately in most hours, and in nearly all, where it was.
    pub risen: [Option<f64>; 2],
    /// The order statistic of each level, half the organization's own.
    pub upper: [f64; 2],
    /// Part of them that the number of residuals supports,
    pub known: f64,
    /// and part that the horizon does.
    pub part: f64,
}

impl Correction {
    /// The median and the upper quantiles of a step, corrected, and how far the distribution moves where the level has risen.
    pub fn of(&self, step: &StepForecast) -> ([f64; 3], f64) {
        let deviation = deviation(step);
        let [mut q50, mut q90, mut q95] = step.quantiles_gpus;
        // Where the level has risen, demand is where that puts it, and the distribution moves as far as its median does.
        let [upper, centre] =
            self.risen.map(|risen| risen.map_or(f64::NEG_INFINITY, |risen| q90 - q50 + risen * deviation));
        q50 += (self.median * deviation).max(centre);
        let scale = deviation * self.known * self.part;
        q90 += (self.upper[0] * scale).max(upper);
        q95 += (self.upper[1] * scale).max(upper);
        ([q50, q90, q95].map(|quantile| quantile.max(0.0)), centre)
    }
}

/// The part of the recent error of the mean that corrects a step, in GPUs.
pub fn error_of_step_gpus(error_gpus: f64, step: &StepForecast) -> f64 {
    let most = ERROR_MOST * deviation(step);
    error_gpus.clamp(-most, most)
}

/// The predicted deviation of a step, floored, in GPUs.
pub fn deviation(step: &StepForecast) -> f64 {
    step.stddev_gpus.max(LEAST_DEVIATION_GPUS)
}
