//! Causes of a forecast's move: Shapley values of groups of features.

use super::Blend;
use crate::predict::{Predict, PredictError};
use crate::rows::{FeatureGroup, OUTPUTS};
use datasets::window::Window;
use vocab::{DemandForecast, QUANTILE_LEVELS};

/// Coalitions of groups that are asked at once.
const GROUPS: usize = FeatureGroup::ALL.len();

/// The part of a group of features in each quantile of one step, in GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contribution {
    /// The group.
    pub group: FeatureGroup,
    /// At the levels of [`QUANTILE_LEVELS`].
    pub quantiles_gpus: [f64; QUANTILE_LEVELS.len()],
}

/// One step, taken apart: last value + usual change + contributions = the model's prediction, before quantiles that cross are
/// drawn together and demand below zero is cut.
#[derive(Debug, Clone, PartialEq)]
pub struct StepExplanation {
    /// The mean prediction of the windows compared with, less their last values.
    pub usual_gpus: [f64; QUANTILE_LEVELS.len()],
    /// In the order of [`FeatureGroup::ALL`].
    pub contributions: Vec<Contribution>,
}

/// A forecast with what moved it.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The forecast that is explained.
    pub forecast: DemandForecast,
    /// Last value before the forecast, in GPUs.
    pub last_gpus: f64,
    /// One explanation for each step.
    pub steps: Vec<StepExplanation>,
}

impl Blend {
    /// Compares the forecast of a window with those of other windows of the same series: how much does each group of
    /// features add when its values are this window's instead of theirs? Shapley values over the groups (Lundberg and Lee
    /// 2017), exact: every one of the 2⁸ coalitions is asked, averaged over the other windows.
    ///
    /// # Errors
    /// A window is of another length, its series unknown, or there is none to compare with.
    pub fn explain(&self, window: &Window<'_>, others: &[Window<'_>]) -> Result<Explanation, PredictError> {
        let forecast = self.predict(std::slice::from_ref(window))?.remove(0);
        let (own, anchors) = self.rows(std::slice::from_ref(window))?;
        let (rows, _) = self.rows(others)?;
        if rows.is_empty() {
            return Err(PredictError::OtherLookback { have: 0, need: self.lookback_hours });
        }
        let predicted = self.coalitions(&own, &rows);
        let scale_gpus = anchors[0].scale_gpus;
        let steps = (0..self.horizon.steps()).map(|step| taken_apart(&predicted, step, scale_gpus)).collect();
        Ok(Explanation { forecast, last_gpus: window.last_gpus(), steps })
    }

    /// The prediction of the model, on average over `rows`, where the groups in the bits of a coalition are `own`:
    /// `[coalition][step × OUTPUTS]`.
    fn coalitions(&self, own: &[f32], rows: &[f32]) -> Vec<Vec<f64>> {
        let groups = self.features.groups();
        let number = |group: FeatureGroup| FeatureGroup::ALL.iter().position(|one| *one == group).unwrap_or(0);
        let bits: Vec<u32> = groups.iter().map(|group| 1 << number(*group)).collect();
        let count = (rows.len() / self.features.count()) as f64;
        let of_coalition = |coalition: u32| {
            let mut mixed = rows.to_vec();
            for row in mixed.chunks_exact_mut(self.features.count()) {
                for ((value, own), bit) in row.iter_mut().zip(own).zip(&bits) {
                    if coalition & bit != 0 {
                        *value = *own;
                    }
                }
            }
            let mut sums = vec![0.0; self.horizon.steps() * OUTPUTS];
            self.say(&mixed).each_row(|_, steps| {
                sums.iter_mut().zip(steps.as_flattened()).for_each(|(sum, value)| *sum += value);
            });
            sums.iter().map(|sum| sum / count).collect()
        };
        (0..1_u32 << GROUPS).map(of_coalition).collect()
    }
}

fn taken_apart(predicted: &[Vec<f64>], step: usize, scale_gpus: f64) -> StepExplanation {
    // The quantiles follow the mean among the outputs of a step.
    let at = |coalition: usize, level: usize| predicted[coalition][step * OUTPUTS + 1 + level] * scale_gpus;
    let of_group = |(place, group): (usize, FeatureGroup)| {
        let mut quantiles_gpus = [0.0; QUANTILE_LEVELS.len()];
        for coalition in (0..predicted.len()).filter(|coalition| coalition & (1 << place) == 0) {
            let weight = weight(coalition.count_ones() as usize);
            for (level, sum) in quantiles_gpus.iter_mut().enumerate() {
                *sum += weight * (at(coalition | 1 << place, level) - at(coalition, level));
            }
        }
        Contribution { group, quantiles_gpus }
    };
    StepExplanation {
        usual_gpus: std::array::from_fn(|level| at(0, level)),
        contributions: FeatureGroup::ALL.into_iter().enumerate().map(of_group).collect(),
    }
}

/// The share of the orders of groups in which exactly those of a coalition of this size come before one that is not in it:
/// k! (n − k − 1)! / n!.
fn weight(size: usize) -> f64 {
    let factorial = |number: usize| (1..=number).product::<usize>() as f64;
    factorial(size) * factorial(GROUPS - size - 1) / factorial(GROUPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_groups_do_apart_is_theirs_and_what_they_do_together_is_shared() {
        // 3 by the first group, 5 by the second, and 2 more where both are there.
        let value = |coalition: usize| {
            let (first, second) = (coalition & 1 != 0, coalition & 2 != 0);
            3.0 * f64::from(u8::from(first))
                + 5.0 * f64::from(u8::from(second))
                + 2.0 * f64::from(u8::from(first && second))
        };
        let predicted: Vec<_> = (0..1 << GROUPS).map(|coalition| vec![value(coalition); OUTPUTS]).collect();
        let apart = taken_apart(&predicted, 0, 10.0);
        let medians: Vec<f64> = apart.contributions.iter().map(|one| one.quantiles_gpus[0]).collect();
        assert!((medians[0] - 40.0).abs() < 1e-9 && (medians[1] - 60.0).abs() < 1e-9, "{medians:?}");
        assert!(medians[2..].iter().all(|one| one.abs() < 1e-9));
    }
}
