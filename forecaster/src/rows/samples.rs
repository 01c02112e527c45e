//! Windows with what came after them, row by row.

use super::choice::{Candidate, Choice};
use super::{Features, Source, days_off};
use crate::fit::FitError;
use crate::orglinear::learned_series;
use datasets::{HourRange, Panel, window};
use std::collections::BTreeMap;
use vocab::{HourStart, SeriesId};

/// Rows above this are thinned: hours of a long history resemble each other.
pub(super) const ROWS_MOST: usize = 80_000;
/// Rows of other clusters' series, at most: a quarter of the own ones.
const BORROWED_MOST: usize = ROWS_MOST / 4;
/// How often a row with a day that departs from the week counts where it begins or ends: few rows show that, fewer than a leaf
/// of a tree has. Chosen on generated holidays.
const CROSSINGS_COUNT: usize = 4;
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
    /// Of each row, whether a day that departs from the week begins or ends between issue time and targets.
    pub(super) crossings: Vec<bool>,
    features: usize,
}

/// The series that a model of rows learns, and their calendar.
pub struct Learned {
    /// The largest deviation last, with their deviations in GPUs over the training part.
    pub series: Vec<(SeriesId, f64)>,
    /// Whether the history has days that depart from the week, such as holidays, at least two.
    pub days_off: bool,
}

/// Series that can be learned.
///
/// # Errors
/// The history cannot be read.
pub fn learned(what: &Source<'_>) -> Result<Learned, FitError> {
    let (mut series, mut days_off) = (Vec::new(), false);
    what.history.each(&mut |panel| {
        let place = |hour| panel.index_of(hour).unwrap_or(0);
        let until = place(what.split.train.to);
        days_off |= days_off::are_in(panel, place(what.split.train.from)..place(what.split.validation.to));
        let scale = |place: usize| {
            let one = &panel.series()[place];
            let measured = one.demand_gpus()[..until].iter().zip(one.measured()).filter(|(_, measured)| **measured);
            (one.id().clone(), series_scale_gpus(measured.map(|(gpus, _)| *gpus)))
        };
        series.extend(learned_series(panel, what.split.train, &what.spec).into_iter().map(scale));
    })?;
    series.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    Ok(Learned { series, days_off })
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
        let places = by_id(series);
        let issues = plan.step_groups().issues(issues, what.spec.horizon);
        let candidates = candidates(what, &places, issues)?;
        let rows_most = ROWS_MOST / plan.step_groups().count();
        let choice = Choice::of(&candidates, issues, rows_most, what.spec.seed);
        let at = |place: usize| RowPlace { place, scale_gpus: series[place].1 };
        let samples = Self::read_all(what, plan, &Reading { places, choice, issues, at: &at }, series.len())?;
        if samples.scales.is_empty() { Err(FitError::NothingMeasured { issues }) } else { Ok(samples) }
    }

    /// The rows of a choice of windows, by issue hour and then by place.
    fn read_all(what: &Source<'_>, plan: &Features, of: &Reading<'_>, series: usize) -> Result<Self, FitError> {
        let one_target = plan.of_one_target();
        let mut samples = Self::empty(what, &one_target, series);
        let mut keys = Keys::new();
        what.history.each(&mut |panel| {
            for (in_panel, one) in panel.series().iter().enumerate() {
                let Some(place) = of.places.get(one.id()).copied() else { continue };
                for number in of.choice.of_place(place, of.issues.hours()) {
                    let issue = of.issues.from.plus_hours(number as i64);
                    let window = Seen { panel, in_panel, issue, number };
                    samples.read(what, &one_target, of.issues, &window, (of.at)(place));
                    keys.resize(samples.scales.len(), (number as u32, place as u32));
                }
            }
        })?;
        Ok(samples.sorted(&keys))
    }

    fn empty(what: &Source<'_>, plan: &Features, series: usize) -> Self {
        let targets = vec![Vec::new(); plan.step_groups().parts(what.spec.horizon)];
        let (rows, scales, crossings) = (Vec::new(), Vec::new(), Vec::new());
        Self { rows, targets, scales, series, crossings, features: plan.count() }
    }

    /// Adds the window of a series with what came after it, where both are whole; where steps are grouped, with one target or a
    /// few of each group.
    fn read(&mut self, what: &Source<'_>, plan: &Features, issues: HourRange, of: &Seen<'_>, at: RowPlace) {
        let (lookback_hours, least_hours) = (what.spec.lookback_hours, what.spec.least_hours());
        let seen = window::at_least(of.panel, of.in_panel, of.issue, lookback_hours, least_hours, what.spec.horizon);
        let Ok(seen) = seen else { return };
        if seen.demand_gpus.len() < what.settings.history_hours_least.min(lookback_hours) {
            return;
        }
        if !plan.step_groups().is_empty() {
            self.read_targets(plan, issues, of, (&seen, at));
            return;
        }
        let came = window::outcome(of.panel, of.in_panel, of.issue, what.spec.horizon);
        if let Some(came) = came.filter(|came| !came.measured.contains(&false)) {
            self.push(plan, &seen, came.demand_gpus, at);
        }
    }

    fn push(&mut self, plan: &Features, seen: &window::Window<'_>, came_gpus: &[f64], at: RowPlace) {
        plan.append(seen, at.scale_gpus, at.place, &mut self.rows);
        self.scales.push(at.scale_gpus);
        self.crossings.push(plan.days_off() && days_off::is_crossed(seen, 0..came_gpus.len()));
        for (targets, gpus) in self.targets.iter_mut().zip(came_gpus) {
            targets.push((gpus - seen.last_gpus()) / at.scale_gpus);
        }
    }

    /// The rows in the order of their keys.
    fn sorted(self, keys: &Keys) -> Self {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        // Rows of one window stay in their order.
        order.sort_by_key(|row| keys[*row]);
        self.picked(&order)
    }

    /// Rows where a day that departs from the week begins or ends count several times.
    #[must_use]
    pub fn with_crossings_counted(self) -> Self {
        if !self.crossings.contains(&true) {
            return self;
        }
        let times = |row: &usize| if self.crossings[*row] { CROSSINGS_COUNT } else { 1 };
        let order: Vec<usize> = (0..self.scales.len()).flat_map(|row| std::iter::repeat_n(row, times(&row))).collect();
        self.picked(&order)
    }

    /// The rows in an order.
    fn picked(self, order: &[usize]) -> Self {
        let picked = |values: &[f64]| order.iter().map(|row| values[*row]).collect();
        let mut rows = Vec::with_capacity(order.len() * self.features);
        for row in order {
            rows.extend_from_slice(&self.rows[row * self.features..][..self.features]);
        }
        Self {
            rows,
            targets: self.targets.iter().map(|targets| picked(targets)).collect(),
            scales: picked(&self.scales),
            crossings: order.iter().map(|row| self.crossings[*row]).collect(),
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
        let series = learned(other)?.series;
        let places = by_id(&series);
        let issues = plan.step_groups().issues(issues, other.spec.horizon);
        let rows_most = rows_most / plan.step_groups().count();
        let choice = Choice::drawn(&candidates(other, &places, issues)?, issues, rows_most, other.spec.seed);
        let at = |theirs: usize| {
            let scale_gpus = series[theirs].1;
            let place = own.partition_point(|known| known.1 < scale_gpus).min(own.len().saturating_sub(1));
            RowPlace { place, scale_gpus }
        };
        let mut rows = Self::read_all(other, plan, &Reading { places, choice, issues, at: &at }, own.len())?;
        self.rows.append(&mut rows.rows);
        self.scales.append(&mut rows.scales);
        self.crossings.append(&mut rows.crossings);
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
pub(super) struct RowPlace {
    pub(super) place: usize,
    pub(super) scale_gpus: f64,
}

/// A window of a series: number of its issue hour in the part, and where it is in a panel.
pub(super) struct Seen<'a> {
    pub(super) panel: &'a Panel,
    pub(super) in_panel: usize,
    pub(super) issue: HourStart,
    pub(super) number: usize,
}

/// Windows to read: places of the series, the windows of each, and where its rows stand.
struct Reading<'a> {
    places: BTreeMap<&'a SeriesId, usize>,
    choice: Choice,
    issues: HourRange,
    at: &'a dyn Fn(usize) -> RowPlace,
}

fn by_id(series: &[(SeriesId, f64)]) -> BTreeMap<&SeriesId, usize> {
    series.iter().enumerate().map(|(place, one)| (&one.0, place)).collect()
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
