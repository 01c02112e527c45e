//! Whether far steps may lie on a curve through answered ones.
//!
//! Demand that changes within an hour, each workday at the same time, has a corner that no curve through every third or fourth step
//! knows: on a workday as sharp as a step the curve had eight times the error. So validation asks whether the curve loses more than
//! answers of each step. These cost a renewal two to three times the work, so that a large cluster has them where they gain clearly.

use super::Blend;
use crate::fit::FitError;
use crate::rows::{Source, StepGroups};
use crate::scores::pinball;
use datasets::window::{self, Outcome, Window};
use datasets::{HourRange, Panel};
use vocab::{DemandForecast, QUANTILE_LEVELS};

/// Windows that are asked, at most.
const WINDOWS_MOST: usize = 1_000;
/// A cluster of more series is large.
const SMALL_CLUSTER_SERIES: usize = 1_000;
/// In a large cluster the curve may lose this much more.
const LARGE_CLUSTER_FACTOR: f64 = 1.02;

/// The model, which answers each step where the curve lost more than that on validation.
///
/// # Errors
/// The history cannot be read.
pub(super) fn judged(model: Blend, what: &Source<'_>) -> Result<Blend, FitError> {
    let groups = model.features.step_groups();
    if groups.strides().iter().all(|stride| *stride == 1) {
        return Ok(model);
    }
    let answered: Vec<usize> = groups.answered().flatten().collect();
    let between: Vec<usize> = (0..model.horizon.steps()).filter(|step| !answered.contains(step)).collect();
    let each_step = model.with_groups(groups.clone().with_strides(vec![1; groups.strides().len()]));
    let (mut on_curve_gpus, mut each_step_gpus) = (0.0, 0.0);
    let series = model.series.len();
    what.history.each(&mut |panel| {
        let (places, windows): (Vec<usize>, Vec<Window<'_>>) = windows(panel, what, series).into_iter().unzip();
        // A window that one cannot answer teaches nothing about the curve.
        let (Ok(on_curve), Ok(each)) = (model.of_block(&windows), each_step.of_block(&windows)) else { return };
        for ((place, on_curve), each) in places.iter().zip(&on_curve).zip(&each) {
            let Some(came) = window::outcome(panel, *place, on_curve.issue(), model.horizon) else { continue };
            on_curve_gpus += lost_gpus(&came, on_curve, &between);
            each_step_gpus += lost_gpus(&came, each, &between);
        }
    })?;
    let factor = if series > SMALL_CLUSTER_SERIES { LARGE_CLUSTER_FACTOR } else { 1.0 };
    Ok(if on_curve_gpus > factor * each_step_gpus { each_step } else { model })
}

impl Blend {
    /// The same model with other strides.
    fn with_groups(&self, step_groups: StepGroups) -> Self {
        Self::from_parts(super::Parts { step_groups, ..self.parts() })
    }
}

/// Windows of a part of the history on validation with the places of their series, of all series and hours of the day alike;
/// `series` are those of all parts.
fn windows<'a>(panel: &'a Panel, what: &Source<'_>, series: usize) -> Vec<(usize, Window<'a>)> {
    let HourRange { from, .. } = what.split.validation;
    let hours = what.split.validation.hours();
    let mut stride = (series * hours).div_ceil(WINDOWS_MOST).max(1);
    // One that shares no factor with a day meets each of its hours.
    while stride > 1 && (stride.is_multiple_of(2) || stride.is_multiple_of(3)) {
        stride += 1;
    }
    let (spec, least) = (what.spec, what.settings.history_hours_least.min(what.spec.lookback_hours));
    let all = (0..panel.series().len() * hours).step_by(stride);
    let one = |number: usize| {
        let (place, issue) = (number / hours, from.plus_hours((number % hours) as i64));
        let least_hours = spec.least_hours().max(least);
        let seen = window::at_least(panel, place, issue, spec.lookback_hours, least_hours, spec.horizon);
        Some((place, seen.ok()?))
    };
    all.filter_map(one).collect()
}

/// Pinball losses of some steps, where their demand was measured.
fn lost_gpus(came: &Outcome<'_>, forecast: &DemandForecast, steps: &[usize]) -> f64 {
    let lost = |step: &usize| {
        let quantiles = forecast.steps()[*step].quantiles_gpus.into_iter().zip(QUANTILE_LEVELS);
        quantiles.map(|(predicted, level)| pinball(came.demand_gpus[*step], predicted, level)).sum::<f64>()
    };
    steps.iter().filter(|step| came.measured[**step]).map(lost).sum()
}
