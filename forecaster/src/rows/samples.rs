//! Windows with what came after them, row by row.

use super::choice::{Candidate, Choice};
use super::{Features, Source};
use crate::fit::FitError;
use crate::orglinear::learned_series;
use datasets::{HourRange, Panel, window};
use std::collections::BTreeMap;
use vocab::SeriesId;

/// Rows above this are thinned: hours of a long history resemble each other.
const ROWS_MOST: usize = 80_000;
/// Rows of other clusters' series, at most: a quarter of the own ones.
const BORROWED_MOST: usize = ROWS_MOST / 4;
/// Deviations of series below this, in GPUs, count as this.
const LEAST_SCALE_GPUS: f64 = 1.0;

/// The training data of models of rows.
pub struct Samples {
    /// `[rows, features]`.
    pub rows: Vec<f32>,
    /// `[step][row]`, as differences to the last value in deviations.
    pub targets: Vec<Vec<f64>>,
    /// Deviation of the row's series, in GPUs.
    pub scales: Vec<f64>,
    /// How many series there are, with rows or without.
    pub series: usize,
    features: usize,
}

/// Series that can be learned, the largest deviation last, with their deviations in GPUs over the training part.
///
/// # Errors
/// The history cannot be read.
pub fn sized_series(what: &Source<'_>) -> Result<Vec<(SeriesId, f64)>, FitError> {
    let mut series = Vec::new();
    what.history.each(&mut |panel| {
        let until = panel.index_of(what.split.train.to).unwrap_or(0);
        let scale = |place: usize| {
            let one = &panel.series()[place];
            let measured = one.demand_gpus()[..until].iter().zip(one.measured()).filter(|(_, measured)| **measured);
            (one.id().clone(), series_scale_gpus(measured.map(|(gpus, _)| *gpus)))
        };
        series.extend(learned_series(panel, what.split.train, &what.spec).into_iter().map(scale));
    })?;
    series.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    Ok(series)
}

/// The deviation of measured demand, as features and targets are divided by it.
pub fn series_scale_gpus(measured_gpus: impl Iterator<Item = f64>) -> f64 {
    let seen: Vec<f64> = measured_gpus.collect();
    let count = seen.len().max(1) as f64;
    let mean = seen.iter().sum::<f64>() / count;
    let variance = seen.iter().map(|gpus| (gpus - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt().max(LEAST_SCALE_GPUS)
}

/// Number of the issue hour and place of the series of each row.
type Keys = Vec<(u32, u32)>;

impl Samples {
    /// The rows of `series` at `issues`, by issue hour and then by place, however the history is cut into parts.
    ///
    /// # Errors
    /// No issue time has all its targets measured, or the history cannot be read.
    pub fn of(
        what: &Source<'_>,
        plan: &Features,
        series: &[(SeriesId, f64)],
        issues: HourRange,
    ) -> Result<Self, FitError> {
        let places: BTreeMap<&SeriesId, usize> =
            series.iter().enumerate().map(|(place, one)| (&one.0, place)).collect();
        let choice = Choice::of(&candidates(what, &places, issues)?, issues, ROWS_MOST, what.spec.seed);
        let mut samples = Self::empty(what, plan, series.len());
        let mut keys = Keys::new();
        what.history.each(&mut |panel| {
            for (in_panel, one) in panel.series().iter().enumerate() {
                let Some(place) = places.get(one.id()).copied() else { continue };
                let row_place = RowPlace { place, scale_gpus: series[place].1 };
                for number in choice.of_place(place, issues.hours()) {
                    let issue = issues.from.plus_hours(number as i64);
                    if samples.read(what, plan, panel, in_panel, issue, row_place) {
                        keys.push((number as u32, place as u32));
                    }
                }
            }
        })?;
        if samples.scales.is_empty() {
            return Err(FitError::NothingMeasured { issues });
        }
        Ok(samples.sorted(&keys))
    }

    fn empty(what: &Source<'_>, plan: &Features, series: usize) -> Self {
        let targets = vec![Vec::new(); what.spec.horizon.steps()];
        Self { rows: Vec::new(), targets, scales: Vec::new(), series, features: plan.count() }
    }

    /// Adds the window of a series and what came after it, where both are whole.
    fn read(
        &mut self,
        what: &Source<'_>,
        plan: &Features,
        panel: &Panel,
        in_panel: usize,
        issue: vocab::HourStart,
        at: RowPlace,
    ) -> bool {
        let (lookback_hours, least_hours) = (what.spec.lookback_hours, what.spec.least_hours());
        let seen = window::at_least(panel, in_panel, issue, lookback_hours, least_hours, what.spec.horizon);
        let came = window::outcome(panel, in_panel, issue, what.spec.horizon);
        let (Ok(seen), Some(came)) = (seen, came) else { return false };
        let is_whole = seen.demand_gpus.len() >= what.settings.history_hours_least.min(lookback_hours)
            && !came.measured.contains(&false);
        if is_whole {
            self.push(plan, &seen, came.demand_gpus, at);
        }
        is_whole
    }

    fn push(&mut self, plan: &Features, seen: &window::Window<'_>, came_gpus: &[f64], at: RowPlace) {
        plan.append(seen, at.scale_gpus, at.place, &mut self.rows);
        self.scales.push(at.scale_gpus);
        for (targets, gpus) in self.targets.iter_mut().zip(came_gpus) {
            targets.push((gpus - seen.last_gpus()) / at.scale_gpus);
        }
    }

    /// The rows in the order of their keys.
    fn sorted(self, keys: &Keys) -> Self {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|row| keys[*row]);
        let picked = |values: &[f64]| order.iter().map(|row| values[*row]).collect();
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in &order {
            rows.extend_from_slice(&self.rows[row * self.features..][..self.features]);
        }
        Self {
            rows,
            targets: self.targets.iter().map(|targets| picked(targets)).collect(),
            scales: picked(&self.scales),
            ..self
        }
    }

    /// Adds rows of the series of other clusters, drawn by size and age, at the same hours. Each stands where a series of its
    /// size does among `own`.
    ///
    /// # Errors
    /// The history of one cannot be read.
    pub fn borrow(
        &mut self,
        what: &Source<'_>,
        plan: &Features,
        own: &[(SeriesId, f64)],
        issues: HourRange,
    ) -> Result<(), FitError> {
        for (number, history) in what.others.iter().enumerate() {
            let seed = what.spec.seed.wrapping_add(1 + number as u64);
            let other =
                Source { history: *history, others: &[], spec: crate::ModelSpec { seed, ..what.spec }, ..*what };
            self.borrow_from(&other, plan, own, issues, BORROWED_MOST / what.others.len())?;
        }
        Ok(())
    }

    fn borrow_from(
        &mut self,
        other: &Source<'_>,
        plan: &Features,
        own: &[(SeriesId, f64)],
        issues: HourRange,
        rows_most: usize,
    ) -> Result<(), FitError> {
        let series = sized_series(other)?;
        let places: BTreeMap<&SeriesId, usize> =
            series.iter().enumerate().map(|(place, one)| (&one.0, place)).collect();
        let choice = Choice::drawn(&candidates(other, &places, issues)?, issues, rows_most, other.spec.seed);
        let mut keys = Keys::new();
        let mut rows = Self::empty(other, plan, own.len());
        other.history.each(&mut |panel| {
            for (in_panel, one) in panel.series().iter().enumerate() {
                let Some(theirs) = places.get(one.id()).copied() else { continue };
                let scale_gpus = series[theirs].1;
                let place = own.partition_point(|known| known.1 < scale_gpus).min(own.len().saturating_sub(1));
                for number in choice.of_place(theirs, issues.hours()) {
                    let issue = issues.from.plus_hours(number as i64);
                    if rows.read(other, plan, panel, in_panel, issue, RowPlace { place, scale_gpus }) {
                        keys.push((number as u32, theirs as u32));
                    }
                }
            }
        })?;
        let mut rows = rows.sorted(&keys);
        self.rows.append(&mut rows.rows);
        self.scales.append(&mut rows.scales);
        self.targets.iter_mut().zip(&mut rows.targets).for_each(|(all, more)| all.append(more));
        Ok(())
    }

    /// Features of a row.
    pub const fn features(&self) -> usize {
        self.features
    }
}

/// The place by size of a row's series, and its deviation.
#[derive(Debug, Clone, Copy)]
struct RowPlace {
    place: usize,
    scale_gpus: f64,
}

/// The first issue hour of each series, by place.
fn candidates(
    what: &Source<'_>,
    places: &BTreeMap<&SeriesId, usize>,
    issues: HourRange,
) -> Result<Vec<Candidate>, FitError> {
    let mut all = vec![Candidate { first: issues.hours() }; places.len()];
    let least_hours = what.spec.least_hours();
    what.history.each(&mut |panel| {
        for one in panel.series() {
            let (Some(place), Some(first)) = (places.get(one.id()), one.first_measured()) else { continue };
            let hours = panel.hour_at(first + least_hours).hours_since(issues.from);
            all[*place] = Candidate { first: usize::try_from(hours).unwrap_or(0).min(issues.hours()) };
        }
    })?;
    Ok(all)
}
