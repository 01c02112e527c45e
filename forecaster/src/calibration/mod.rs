//! Online calibration: the recent past corrects what a model says next.
//!
//! A forecast teaches once its hours are over: about organizations once all are, about peaks of pools [tier by tier](tiers). Per organization the order statistics of its residuals over a week,
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
mod peaks;
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
mod tiers;

pub use bytes::CalibratorError;
pub use conformal::{Centre, Conformal, ConformalHours, mixture_gpus};
pub use experts::{EXPERTS, Expert, Stated};
pub(crate) use online::played;
pub use online::{Issued, Online, Switch, replay};
pub use peaks::PeakGuesses;
pub use recent::{Recent, recent};

use cursor::Cursor;
use datasets::{Panel, window};
use fallen::{Fallen, fallen_gpus};
use pool::PoolState;
use quantiles::{Between, Demand, UsualLosses};
use reach::Reach;
use residual::{Counts, WINDOW_HOURS};
use series::{Inputs, LEVELS, Lesson, SeriesState, recorded_steps};
use tiers::tiers;
use vocab::{DemandForecast, ForecastOrigin, HorizonHours, HourStart, SeriesId, StepForecast};

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
    /// The last issue time all of whose hours have taught.
    newest: Option<HourStart>,
    /// The last one that has taught about peaks, by tier.
    taught: Vec<Option<HourStart>>,
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
            taught: vec![None; tiers(horizon).len()],
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

    /// The last issue time whose forecasts were learned from as a whole.
    #[must_use]
    pub const fn newest_issue(&self) -> Option<HourStart> {
        self.newest
    }

    /// Learns from the model's forecasts at `issue`, before any correction. To be called in the order of issue times, once
    /// all hours of the forecasts are over; what was learned before, by this or by [`Self::observe_peaks`], is not learned again. Hours
    /// that were not measured teach nothing, nor do forecasts of the cold-start rule.
    pub fn observe(&mut self, panel: &Panel, issue: HourStart, raw: &[DemandForecast]) {
        if self.newest.is_some_and(|newest| newest >= issue) {
            return;
        }
        self.forget(issue);
        self.newest = Some(issue);
        let kept: Vec<DemandForecast> = raw.iter().map(as_kept).collect();
        if self.is_correcting {
            self.judge_quantiles(panel, issue, &kept);
            self.learn_series(panel, issue, &kept);
            self.settle();
        }
        let guesses = PeakGuesses::of_kept(issue, &kept, self.horizon);
        self.observe_peaks(panel, &guesses, issue.plus_hours(self.horizon.steps() as i64));
    }

    /// Empties the slots of the organizations for the issue times after the newest one, up to `issue`.
    fn forget(&mut self, issue: HourStart) {
        for hour in passed(self.newest, issue) {
            self.series.iter_mut().for_each(|series| series.forget(hour, &mut self.shared));
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

    /// Works out what follows from the residuals of organizations, and drops those that were not measured for a week.
    fn settle(&mut self) {
        self.series.retain(|series| !series.is_forgotten());
        let (mut counts, reach) = (Counts::default(), Reach::over(self.horizon));
        if let Some(newest) = self.newest {
            self.series.iter_mut().for_each(|series| series.settle(newest, &reach, &mut counts));
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
}

/// Demand of a series of the panel around an issue time; `None` before the panel.
fn demand_of(panel: &Panel, place: usize, issue: HourStart) -> Option<Demand<'_>> {
    let one = &panel.series()[place];
    let (gpus, measured, clock) = (one.demand_gpus(), one.measured(), panel.clock());
    Some(Demand { gpus, measured, issue: panel.index_of(issue)?, clock })
}

/// The issue times after `newest`, up to `issue`, whose slots hold those of a week before; none where nothing was learned.
fn passed(newest: Option<HourStart>, issue: HourStart) -> impl Iterator<Item = HourStart> {
    let passed = newest.map_or(0, |newest| issue.hours_since(newest)).min(WINDOW_HOURS as i64);
    (0..passed).map(move |back| issue.plus_hours(-back))
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
