//! Online calibration: the recent past corrects what a model says next.
//!
//! A forecast teaches once all its hours are over. Per organization the order statistics of its residuals over a week,
//! half shrunk to those of all organizations, correct the upper quantiles, over long horizons by less; the median follows its own misses in small
//! steps, the mean its recent error, both follow the level at the end of the last hour where demand fell within it, and quantiles of
//! demand in whole GPUs are whole. Per pool residuals of its measured peak make [`Conformal`], from which B_H follows.
//!
//! ```text
//! raw ──► apply ──► issued ──► bounds
//!  └─ kept until its hours are over ──► observe
//! ```

mod apply;
mod bytes;
mod conformal;
mod correction;
mod cursor;
mod experts;
mod fallen;
mod history;
mod linear;
mod long;
mod online;
mod pool;
mod quantiles;
pub(crate) mod reach;
mod recent;
mod residual;
mod returns;
mod seasonal;
mod series;
#[cfg(test)]
mod tests;

pub use bytes::CalibratorError;
pub use conformal::{Centre, Conformal, ConformalHours, mixture_gpus};
pub use experts::{EXPERTS, Expert, Stated};
pub use online::{Issued, Online, Switch, replay};
pub use recent::{Recent, recent};

use cursor::Cursor;
use datasets::{Panel, window};
use fallen::{Fallen, fallen_gpus};
use pool::PoolState;
use quantiles::{Between, Demand, UsualLosses};
use reach::Reach;
use residual::{Counts, WINDOW_HOURS, slot};
use series::{Inputs, LEVELS, Lesson, SeriesState, recorded_steps};
use std::collections::BTreeMap;
use vocab::{DemandForecast, ForecastOrigin, GuaranteeRate, HorizonHours, HourStart, PoolId, SeriesId, StepForecast};

/// Knowledge from the recent past about the forecasts of one cluster: about 1.4 KB a series and 15 KB a pool at 4 h.
///
/// ```
/// use datasets::{Calendar, PanelBuilder};
/// use forecaster::{calibration::Calibrator, gaussian};
/// use vocab::{DemandForecast, ForecastOrigin, HorizonHours, HourStart};
/// use vocab::{Organization, PoolId, QUANTILE_LEVELS, SeriesId, StepForecast};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A week of demand between 40 and 60 GPUs.
/// let series = SeriesId { pool: PoolId::parse("earth:V100")?, organization: Organization::parse("vision")? };
/// let (start, end) = (HourStart::from_unix_s(0)?, HourStart::from_unix_s(168 * 3_600)?);
/// let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS)?;
/// let mut demand = PanelBuilder::new(series.pool.cluster.clone(), calendar, start, end);
/// for hour in 0..168_i32 {
///     demand.push(&series, start.plus_hours(hour.into()), f64::from(40 + hour * 8 % 21))?;
/// }
/// let panel = demand.finish()?;
///
/// // A model that is too sure of itself: 50 GPUs, with a standard deviation of 3.
/// let quantiles_gpus = QUANTILE_LEVELS.map(|p| 50.0 + 3.0 * gaussian::quantile(p));
/// let step = StepForecast { mean_gpus: 50.0, stddev_gpus: 3.0, quantiles_gpus };
/// let raw = |issue| DemandForecast::new(series.clone(), issue, ForecastOrigin::Model, vec![step]);
///
/// let mut calibrator = Calibrator::new(HorizonHours::ONE, true);
/// for issue in (0..168).map(|hour| start.plus_hours(hour)) {
///     calibrator.observe(&panel, issue, &[raw(issue)?]);
/// }
/// let q90 = |forecast: &DemandForecast| forecast.steps()[0].quantiles_gpus[1];
/// let next = [raw(end)?];
/// assert!(q90(&next[0]) < 54.0);
/// assert!((57.0..=62.0).contains(&q90(&calibrator.apply(&panel, &next)[0])));
///
/// // Its state outlives a restart.
/// let restored = Calibrator::from_bytes(&calibrator.to_bytes())?;
/// assert_eq!(restored.apply(&panel, &next), calibrator.apply(&panel, &next));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Calibrator {
    horizon: HorizonHours,
    /// Whether forecasts of organizations are corrected. Pools are followed either way.
    is_correcting: bool,
    newest: Option<HourStart>,
    /// By id.
    series: Vec<SeriesState>,
    /// By id.
    pools: Vec<PoolState>,
    /// How far means and medians follow what demand fell by within the hour before.
    fallen: Fallen,
    /// Residuals of all organizations, at each level; follow from `series`.
    shared: [Counts; 2],
    /// Residuals of all pools, `[hours − 1]`, sorted; follow from `pools`.
    all: Vec<Vec<f32>>,
}

/// The correction of the forecast of one organization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesCorrection {
    /// Hours that the correction of each quantile was learned from.
    pub residuals: usize,
    /// The addition to the mean, on average over the steps.
    pub mean_gpus: f64,
    /// The addition to each exported quantile, on average over the steps.
    pub quantiles_gpus: [f64; 3],
}

impl Calibrator {
    /// Issue times that it remembers.
    pub const WINDOW_HOURS: usize = WINDOW_HOURS;

    /// One that has seen nothing, and so changes nothing.
    #[must_use]
    pub fn new(horizon: HorizonHours, is_correcting: bool) -> Self {
        Self {
            horizon,
            is_correcting,
            newest: None,
            series: Vec::new(),
            pools: Vec::new(),
            fallen: Fallen::new(horizon),
            shared: Default::default(),
            all: vec![Vec::new(); horizon.steps()],
        }
    }

    /// Whether forecasts of organizations are corrected.
    #[must_use]
    pub const fn is_correcting(&self) -> bool {
        self.is_correcting
    }

    /// Switches the correction of organizations. What was learned about them is lost; what was about pools stays.
    #[must_use]
    pub fn correcting(self, is_correcting: bool) -> Self {
        let fallen = Fallen::new(self.horizon);
        Self { is_correcting, series: Vec::new(), shared: Default::default(), fallen, ..self }
    }

    /// Hours of the forecasts that it corrects.
    #[must_use]
    pub const fn horizon(&self) -> HorizonHours {
        self.horizon
    }

    /// The last issue time that was learned from.
    #[must_use]
    pub const fn newest_issue(&self) -> Option<HourStart> {
        self.newest
    }

    /// Learns from the model's forecasts at `issue`, before any correction. To be called in the order of issue times, once
    /// all hours of the forecasts are over; an issue time at or before the newest one is not learned from again. Hours
    /// that were not measured teach nothing, nor do forecasts of the cold-start rule.
    pub fn observe(&mut self, panel: &Panel, issue: HourStart, raw: &[DemandForecast]) {
        if self.newest.is_some_and(|newest| newest >= issue) {
            return;
        }
        self.forget(issue);
        let newest = self.newest.replace(issue);
        let raw: Vec<DemandForecast> = raw.iter().map(as_kept).collect();
        if self.is_correcting {
            self.judge_quantiles(panel, issue, &raw);
            self.learn_series(panel, issue, &raw);
        }
        let by_pool = by_pool(&raw, self.horizon);
        self.judge_experts(panel, issue, &by_pool);
        for (id, members) in by_pool {
            let place = self.pools.binary_search_by(|pool| pool.id.cmp(id)).unwrap_or_else(|place| {
                self.pools.insert(place, PoolState::new(id.clone(), self.horizon));
                place
            });
            self.pools[place].learn_history(panel, newest, issue, self.horizon);
            self.pools[place].learn(panel, issue, &members, self.horizon);
        }
        self.settle();
    }

    /// Weighs the experts on each pool's peak by how what they stated at `issue` fared, by what was known then: forecasts
    /// that were issued less than a horizon before had not taught yet.
    fn judge_experts(&mut self, panel: &Panel, issue: HourStart, by_pool: &BTreeMap<&PoolId, Vec<&DemandForecast>>) {
        let horizon = self.horizon;
        let later: Vec<usize> = (1..horizon.steps() as i64).map(|back| slot(issue.plus_hours(-back))).collect();
        let ranked: Vec<_> = self.pools.iter().map(|pool| pool.ranked_without(&later)).collect();
        let all: Vec<Vec<f32>> =
            (0..horizon.steps()).map(|number| merged(ranked.iter().map(|one| &one.sorted[number]))).collect();
        let of_pool = |(place, pool): (usize, &mut PoolState)| {
            let raw = by_pool.get(&pool.id)?;
            let losses = pool.losses(panel, (issue, raw, horizon), (&ranked[place], &all), &later)?;
            Some((place, losses))
        };
        let taught: Vec<_> = self.pools.iter_mut().enumerate().filter_map(of_pool).collect();
        let mean = experts::mean(&taught);
        for (place, losses) in &taught {
            let mixtures = self.pools[*place].mixtures.iter_mut();
            let each = mixtures.zip(losses).zip(&mean).zip(1..);
            each.for_each(|(((one, own), mean), hours)| experts::learn(one, own, mean, hours));
        }
    }

    /// Empties the slots of the issue times after the newest one, up to `issue`.
    fn forget(&mut self, issue: HourStart) {
        let passed = self.newest.map_or(0, |newest| issue.hours_since(newest)).min(WINDOW_HOURS as i64);
        for hour in (0..passed).map(|back| issue.plus_hours(-back)) {
            self.series.iter_mut().for_each(|series| series.forget(hour, &mut self.shared));
            self.pools.iter_mut().for_each(|pool| pool.forget(hour));
        }
    }

    /// Weighs whose upper quantiles each organization is issued by what they lost.
    fn judge_quantiles(&mut self, panel: &Panel, issue: HourStart, raw: &[DemandForecast]) {
        let (shared, horizon, reach) = (self.shared(), self.horizon, Reach::over(self.horizon));
        let between = Between::each(&recorded_steps(horizon));
        let mut known = Cursor::default();
        let mut judged: Vec<(usize, UsualLosses)> = Vec::new();
        for lesson in self.lessons(panel, issue, raw) {
            let Ok(place) = known.find(self.series.len(), |place| &self.series[place].id, lesson.0) else { continue };
            let (state, lesson) = (&mut self.series[place], lesson.1);
            if state.is_known() && lesson.measured.contains(&true) {
                let latest_gpus = lesson.demand.latest_gpus();
                let of = Inputs {
                    horizon,
                    reach: &reach,
                    between: &between,
                    shared,
                    latest_gpus,
                    demand: Some(lesson.demand),
                    fallen: &self.fallen,
                    fallen_gpus: lesson.fallen_gpus,
                };
                let losses = state.losses(&lesson, &of);
                judged.push((place, state.quantiles.in_usual(&losses)));
            }
        }
        let each: Vec<_> = judged.iter().map(|(place, own)| (&self.series[*place].quantiles, own)).collect();
        let all = quantiles::mean(&each);
        for (place, own) in &judged {
            self.series[*place].quantiles.learn(own, &all, horizon);
        }
    }

    fn learn_series(&mut self, panel: &Panel, issue: HourStart, raw: &[DemandForecast]) {
        let (recorded, reach) = (recorded_steps(self.horizon), Reach::over(self.horizon));
        let mut cursor = Cursor::default();
        // The factors of before tell what of a miss is due to a fall.
        let known_before = self.fallen.clone();
        self.fallen.fade();
        for (id, lesson) in self.lessons(panel, issue, raw) {
            let known = cursor.find(self.series.len(), |place| &self.series[place].id, id);
            let known = known.unwrap_or_else(|place| {
                self.series.insert(place, SeriesState::new(id.clone(), self.horizon));
                place
            });
            let state = &mut self.series[known];
            state.teach_falls(&lesson, self.horizon, &mut self.fallen);
            state.learn(issue, &lesson, (&recorded, &reach, &known_before), &mut self.shared);
        }
    }

    /// The outcomes of the forecasts that teach.
    fn lessons<'a>(
        &self,
        panel: &'a Panel,
        issue: HourStart,
        raw: &'a [DemandForecast],
    ) -> impl Iterator<Item = (&'a SeriesId, Lesson<'a>)> + use<'a> {
        let horizon = self.horizon;
        let all = panel.series();
        let mut places = Cursor::default();
        raw.iter().filter(move |one| teaches(one, horizon)).filter_map(move |forecast| {
            let place = places.find(all.len(), |place| all[place].id(), forecast.series()).ok()?;
            let came = window::outcome(panel, place, issue, horizon)?;
            let steps = &forecast.steps()[..horizon.steps()];
            let demand = demand_of(panel, place, issue)?;
            let fallen_gpus = fallen_gpus(panel, place, issue);
            let lesson = Lesson { steps, actual_gpus: came.demand_gpus, measured: came.measured, demand, fallen_gpus };
            Some((forecast.series(), lesson))
        })
    }

    /// Works out what follows from the residuals, and drops series and pools that were not measured for a week.
    fn settle(&mut self) {
        self.series.retain(|series| !series.is_forgotten());
        self.pools.retain(|pool| !pool.is_forgotten());
        let (mut counts, reach) = (Counts::default(), Reach::over(self.horizon));
        if let Some(newest) = self.newest {
            self.series.iter_mut().for_each(|series| series.settle(newest, &reach, &mut counts));
        }
        self.pools.iter_mut().for_each(PoolState::settle);
        for (number, all) in self.all.iter_mut().enumerate() {
            *all = merged(self.pools.iter().map(|pool| pool.sorted(number + 1)));
        }
    }

    /// The order statistics of all organizations, in deviations.
    fn shared(&self) -> [f64; 2] {
        [0, 1].map(|level| self.shared[level].order_statistic(LEVELS[level].1).unwrap_or(0.0))
    }

    /// The state that corrects a forecast, where there is one.
    fn known(&self, forecast: &DemandForecast, cursor: &mut Cursor) -> Option<&SeriesState> {
        let place = cursor.find(self.series.len(), |place| &self.series[place].id, forecast.series()).ok()?;
        Some(&self.series[place]).filter(|state| state.is_known() && teaches(forecast, self.horizon))
    }

    /// The difference that [`Self::apply`] made to a forecast; `None` where it leaves it as it is.
    #[must_use]
    pub fn correction(&self, raw: &DemandForecast, issued: &DemandForecast) -> Option<SeriesCorrection> {
        let state = self.known(raw, &mut Cursor::default())?;
        let pairs = || issued.steps().iter().zip(raw.steps());
        let mean = |sum: f64| sum / raw.steps().len() as f64;
        let quantile = |k: usize| mean(pairs().map(|(one, raw)| one.quantiles_gpus[k] - raw.quantiles_gpus[k]).sum());
        Some(SeriesCorrection {
            residuals: state.residuals(),
            mean_gpus: mean(pairs().map(|(one, raw)| one.mean_gpus - raw.mean_gpus).sum()),
            quantiles_gpus: [0, 1, 2].map(quantile),
        })
    }

    /// For each pool that was learned from, what its measured peaks say of the next one. `raw` are the forecasts before
    /// any correction, at one issue time, and `panel` holds demand up to it; [`bounds`](crate::bound::bounds) takes the result.
    #[must_use]
    pub fn conformal(&self, panel: &Panel, raw: &[DemandForecast], rate: GuaranteeRate) -> BTreeMap<PoolId, Conformal> {
        let of = |(id, members): (&PoolId, Vec<&DemandForecast>)| {
            let recent = recent(panel, id, members.first()?.issue(), self.horizon);
            Some((id.clone(), self.conformal_of(id, &members, &recent, rate, None)?))
        };
        by_pool(raw, self.horizon).into_iter().filter_map(of).collect()
    }

    /// The same for one pool, of whose organizations `members` are all forecasts, and which did [`recent`] before them;
    /// `None` where nothing was learned of it. The experts are asked for these hours alone, where there are `asked` ones: bounds under
    /// [`mixture`](crate::bound::Aggregation::Mixture) are made for no others.
    #[must_use]
    pub fn conformal_of(
        &self,
        pool: &PoolId,
        members: &[&DemandForecast],
        recent: &Recent,
        rate: GuaranteeRate,
        asked: Option<&[HorizonHours]>,
    ) -> Option<Conformal> {
        let place = self.pools.binary_search_by(|known| known.id.cmp(pool)).ok()?;
        let is_whole = members.iter().all(|one| one.steps().len() >= self.horizon.steps());
        is_whole.then(|| self.pools[place].conformal((members, self.horizon), &self.all, (rate, asked), recent))
    }
}

/// Demand of a series of the panel around an issue time; `None` before the panel.
fn demand_of(panel: &Panel, place: usize, issue: HourStart) -> Option<Demand<'_>> {
    let one = &panel.series()[place];
    let (gpus, measured, clock) = (one.demand_gpus(), one.measured(), panel.clock());
    Some(Demand { gpus, measured, issue: panel.index_of(issue)?, clock })
}

/// All of several sorted lists, sorted.
fn merged<'a>(all: impl Iterator<Item = &'a (impl AsRef<[f32]> + ?Sized + 'a)>) -> Vec<f32> {
    let mut merged: Vec<f32> = all.flat_map(AsRef::as_ref).copied().collect();
    merged.sort_unstable_by(f32::total_cmp);
    merged
}

/// A forecast as the ledger of the service keeps it until it is scored, in numbers of 32 bits: what is tested learns from the same
/// numbers as what serves.
fn as_kept(raw: &DemandForecast) -> DemandForecast {
    let round = |gpus: f64| f64::from(gpus as f32);
    let step = |step: &StepForecast| StepForecast {
        mean_gpus: round(step.mean_gpus),
        stddev_gpus: round(step.stddev_gpus),
        quantiles_gpus: step.quantiles_gpus.map(round),
    };
    let steps = raw.steps().iter().map(step).collect();
    DemandForecast::new(raw.series().clone(), raw.issue(), raw.origin(), steps).unwrap_or_else(|_| raw.clone())
}

/// Whether a forecast is the model's own, over the whole horizon.
fn teaches(forecast: &DemandForecast, horizon: HorizonHours) -> bool {
    forecast.origin() == ForecastOrigin::Model && forecast.steps().len() >= horizon.steps()
}

fn by_pool(raw: &[DemandForecast], horizon: HorizonHours) -> BTreeMap<&PoolId, Vec<&DemandForecast>> {
    let mut pools: BTreeMap<&PoolId, Vec<&DemandForecast>> = BTreeMap::new();
    for run in raw.chunk_by(|one, other| one.series().pool == other.series().pool) {
        let members = run.iter().filter(|one| one.steps().len() >= horizon.steps());
        pools.entry(&run[0].series().pool).or_default().extend(members);
    }
    pools
}
