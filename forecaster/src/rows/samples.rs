//! Windows with what came after them, row by row.

use super::Features;
use crate::fit::{Fit, FitError};
use crate::orglinear::learned_series;
use datasets::{HourRange, window};
use vocab::SeriesId;

/// Rows above this are thinned: hours of a long history resemble each other.
pub(super) const ROWS_MOST: usize = 80_000;
pub(super) const HOURS_PER_DAY: usize = 24;
/// Deviations of series below this, in GPUs, count as this.
const LEAST_SCALE_GPUS: f64 = 1.0;

/// The training data of models of rows.
pub struct Samples {
    /// `[rows, features]`.
    pub rows: Vec<f32>,
    /// `[step][row]`, as differences to the last value in deviations; where steps are grouped `[group][row]`, and no number
    /// for rows of other groups.
    pub targets: Vec<Vec<f64>>,
    /// Deviation of the row's series, in GPUs.
    pub scales: Vec<f64>,
    /// How many series there are, with rows or without.
    pub series: usize,
    pub(super) features: usize,
}

/// Series that can be learned, the largest deviation last, with their deviations in GPUs over the training part.
pub fn sized_series(what: &Fit<'_>) -> Vec<(SeriesId, f64)> {
    let until = what.panel.index_of(what.split.train.to).unwrap_or(0);
    let scale = |place: usize| {
        let one = &what.panel.series()[place];
        let measured = one.demand_gpus()[..until].iter().zip(one.measured()).filter(|(_, measured)| **measured);
        (one.id().clone(), series_scale_gpus(measured.map(|(gpus, _)| *gpus)))
    };
    let learned = learned_series(what.panel, what.split.train, &what.spec);
    let mut series: Vec<_> = learned.into_iter().map(scale).collect();
    series.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    series
}

/// The deviation of measured demand, as features and targets are divided by it.
pub fn series_scale_gpus(measured_gpus: impl Iterator<Item = f64>) -> f64 {
    let seen: Vec<f64> = measured_gpus.collect();
    let count = seen.len().max(1) as f64;
    let mean = seen.iter().sum::<f64>() / count;
    let variance = seen.iter().map(|gpus| (gpus - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt().max(LEAST_SCALE_GPUS)
}

impl Samples {
    /// # Errors
    /// No issue time has all its targets measured.
    pub fn of(
        what: &Fit<'_>,
        plan: &Features,
        series: &[(SeriesId, f64)],
        issues: HourRange,
    ) -> Result<Self, FitError> {
        if !plan.step_groups().is_empty() {
            return Self::drawn(what, &plan.of_one_target(), series, issues);
        }
        let (steps, features) = (what.spec.horizon.steps(), plan.count());
        let targets = vec![Vec::new(); steps];
        let mut samples = Self { rows: Vec::new(), targets, scales: Vec::new(), series: series.len(), features };
        let in_panel = |id: &SeriesId| what.panel.series().binary_search_by(|one| one.id().cmp(id)).ok();
        let places: Vec<Option<usize>> = series.iter().map(|(id, _)| in_panel(id)).collect();
        let every = (issues.hours() * series.len()).div_ceil(ROWS_MOST).max(1);
        for (number, issue) in issues.iter().enumerate() {
            // A thinned day begins at another hour than the one before it, so that all hours of the day remain.
            if !(number + number / HOURS_PER_DAY).is_multiple_of(every) {
                continue;
            }
            for (place, (in_panel, (_, scale_gpus))) in places.iter().zip(series).enumerate() {
                let Some(in_panel) = *in_panel else { continue };
                let (lookback_hours, least_hours) = (what.spec.lookback_hours, what.spec.least_hours());
                let seen =
                    window::at_least(what.panel, in_panel, issue, lookback_hours, least_hours, what.spec.horizon);
                let came = window::outcome(what.panel, in_panel, issue, what.spec.horizon);
                if let (Ok(seen), Some(came)) = (seen, came)
                    && seen.demand_gpus.len() >= what.settings.history_hours_least.min(lookback_hours)
                    && !came.measured.contains(&false)
                {
                    samples.push(plan, &seen, came.demand_gpus, place, *scale_gpus);
                }
            }
        }
        if samples.scales.is_empty() { Err(FitError::NothingMeasured { issues }) } else { Ok(samples) }
    }

    fn push(&mut self, plan: &Features, seen: &window::Window<'_>, came_gpus: &[f64], place: usize, scale_gpus: f64) {
        plan.append(seen, scale_gpus, place, &mut self.rows);
        self.scales.push(scale_gpus);
        for (targets, gpus) in self.targets.iter_mut().zip(came_gpus) {
            targets.push((gpus - seen.last_gpus()) / scale_gpus);
        }
    }

    /// Features of a row.
    pub const fn features(&self) -> usize {
        self.features
    }
}
