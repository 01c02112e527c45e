//! Where a simulated pool's demand bounds come from: the forecaster, fitted as the service would, or the future itself.

use cycle::{ForecastBound, Forecasted, forecast_bounds, more_steps};
use datasets::{Calendar, HourRange, Panel, PanelBuilder};
use forecaster::baseline::{Baseline, Rule};
use forecaster::blend::Settings;
use forecaster::bound::{Aggregation, PoolCalibration};
use forecaster::calibration::{Calibrator, Issued, Online, Switch};
use forecaster::{Fit, ModelKind, ModelSpec, Predict, PredictError, Trained, forecast, train};
use placement::pool::HourOfDemand;
use std::collections::BTreeMap;
use std::time::Duration;
use vocab::{
    ClusterName, DemandForecast, GuaranteeRate, HorizonHours, HourStart, MilliGpus, PoolId, SeriesId, UnixSeconds,
};

/// History before which nothing is trained: a week.
const COLD_START_HOURS: usize = vocab::HOURS_PER_WEEK as usize;
/// Below 60 days of history a model looks back a week, else four (DESIGN §5).
const SHORT_HISTORY_HOURS: usize = 60 * vocab::HOURS_PER_DAY as usize;
const LONG_LOOKBACK_HOURS: usize = 672;

/// The source of the HP forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PredictorKind {
    Model(ModelKind),
    /// Nothing but the live bound: no model at all.
    Live,
    /// The live bound, and paths drawn from the HP jobs of the pool.
    Jobs,
    /// The demand that comes: what no forecast can beat.
    Oracle,
}

impl PredictorKind {
    /// # Errors
    /// The name is no model, and not `oracle`.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "live" => Ok(Self::Live),
            "jobs" => Ok(Self::Jobs),
            "oracle" => Ok(Self::Oracle),
            _ => ModelKind::parse(name).map(Self::Model).map_err(|fault| format!("{fault}, live, jobs, oracle")),
        }
    }

    /// As it is written on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model(kind) => kind.as_str(),
            Self::Live => "live",
            Self::Jobs => "jobs",
            Self::Oracle => "oracle",
        }
    }

    /// Whether bounds follow demand between two forecasts. Peers and rules stay as they are, so that they show what they are.
    #[must_use]
    pub const fn is_live(self) -> bool {
        match self {
            Self::Model(kind) => kind.is_calibrated(),
            Self::Live | Self::Jobs => true,
            Self::Oracle => false,
        }
    }

    /// Whether the HP jobs of the pool have their say beside demand. They have in a service; `live` stays without them, to show what
    /// they are worth.
    #[must_use]
    pub const fn knows_jobs(self, are_known: bool) -> bool {
        match self {
            Self::Model(kind) => kind.is_calibrated() && are_known,
            Self::Jobs => true,
            Self::Live | Self::Oracle => false,
        }
    }
}

/// How forecasts are made.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub kind: ModelKind,
    pub horizon: HorizonHours,
    pub rate: GuaranteeRate,
    pub seed: u64,
    pub refit_hours: i64,
    /// For all pools; else as validation chooses.
    pub aggregation: Option<Aggregation>,
}

/// Knows no series: every forecast is that of the cold-start rule.
struct Cold(HorizonHours);

impl Predict for Cold {
    fn lookback_hours(&self) -> usize {
        1
    }

    fn horizon(&self) -> HorizonHours {
        self.0
    }

    fn knows(&self, _: &SeriesId) -> bool {
        false
    }

    fn predict(&self, _: &[datasets::window::Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        Ok(Vec::new())
    }
}

/// The last fit.
enum Fitted {
    Trained(Box<Trained>),
    Rule(Baseline),
}

impl Fitted {
    fn model(&self) -> &dyn Predict {
        match self {
            Self::Trained(trained) => trained.as_ref(),
            Self::Rule(rule) => rule,
        }
    }

    fn calibration(&self, pool: &PoolId) -> Option<&PoolCalibration> {
        match self {
            Self::Trained(trained) => trained.calibration(pool),
            Self::Rule(_) => None,
        }
    }
}

/// The forecasts of a cluster, hour by hour.
pub struct Forecasts {
    plan: Plan,
    cluster: ClusterName,
    calendar: Calendar,
    panel: Option<Panel>,
    fitted: Option<(HourStart, Fitted)>,
    online: Online,
    issued: Option<(HourStart, Issued)>,
    /// Of the present hour, by pool and the steps that promises cover beyond their own hours.
    bounds: BTreeMap<(PoolId, u8), Vec<ForecastBound>>,
    /// CPU time that training took.
    pub train_cpu: Duration,
}

impl Forecasts {
    #[must_use]
    pub fn new(plan: Plan, cluster: ClusterName, calendar: Calendar) -> Self {
        let online = Online::new(Calibrator::new(plan.horizon, false));
        let (panel, fitted, issued, train_cpu) = (None, None, None, Duration::ZERO);
        Self { plan, cluster, calendar, panel, fitted, online, issued, bounds: BTreeMap::new(), train_cpu }
    }

    /// Goes on with a model that was trained elsewhere, from the end of the hours that are known.
    ///
    /// # Errors
    /// A forecast is none.
    pub fn resumed(plan: Plan, panel: Panel, trained: Trained) -> Result<Self, PredictError> {
        let (cluster, calendar, issue) = (panel.cluster().clone(), panel.calendar().clone(), panel.end());
        let mut resumed = Self::new(plan, cluster, calendar);
        resumed.online = Online::new(trained.calibrator.clone());
        (resumed.panel, resumed.fitted) = (Some(panel), Some((issue, Fitted::Trained(Box::new(trained)))));
        resumed.issue(issue)?;
        Ok(resumed)
    }

    /// Whether there is more than the rule for a cold start.
    #[must_use]
    pub const fn is_trained(&self) -> bool {
        self.fitted.is_some()
    }

    /// Learns the demand of an hour that is over, refits where it is time, and forecasts from the hour after it.
    ///
    /// # Errors
    /// A forecast is none. A model that cannot be fitted yet is no error: the last one stays.
    pub fn learn(&mut self, hour: HourStart, demand: &[(PoolId, Vec<HourOfDemand>)]) -> Result<(), PredictError> {
        let series = |pool: &PoolId, one: &HourOfDemand| {
            let id = SeriesId { pool: pool.clone(), organization: one.organization.clone() };
            (id, one.demand)
        };
        let rows = demand.iter().flat_map(|(pool, hours)| hours.iter().map(move |one| series(pool, one)));
        if let Some(panel) = &mut self.panel {
            let rows: Vec<_> = rows.collect();
            panel.push_hour(&rows).expect("pools of a world belong to its cluster");
        } else {
            let rows: Vec<_> = rows.map(|(series, demand)| demand.row(series, hour)).collect();
            self.panel = PanelBuilder::from_rows(self.cluster.clone(), self.calendar.clone(), &rows).ok();
        }
        let issue = hour.plus_hours(1);
        self.refit(issue);
        self.issue(issue)
    }

    fn issue(&mut self, issue: HourStart) -> Result<(), PredictError> {
        self.bounds.clear();
        let Some(panel) = &self.panel else { return Ok(()) };
        let cold = Cold(self.plan.horizon);
        let model: &dyn Predict = self.fitted.as_ref().map_or(&cold as &dyn Predict, |(_, fitted)| fitted.model());
        let raw = forecast(model, panel, issue)?;
        self.issued = Some((issue, self.online.issue(panel, issue, raw, self.plan.rate)));
        Ok(())
    }

    fn refit(&mut self, issue: HourStart) {
        let Some(panel) = &self.panel else { return };
        let due = self.fitted.as_ref().is_none_or(|(last, _)| issue.hours_since(*last) >= self.plan.refit_hours);
        if panel.hours() < COLD_START_HOURS || !due {
            return;
        }
        let before = crate::cpu::of_process();
        match self.fit(panel, issue) {
            Some(Fitted::Trained(trained)) => {
                self.online = Online::new(trained.calibrator.clone());
                self.fitted = Some((issue, Fitted::Trained(trained)));
            }
            Some(rule) => self.fitted = Some((issue, rule)),
            // Not yet, or not this time: what was fitted before stays.
            None => {}
        }
        self.train_cpu += crate::cpu::of_process().saturating_sub(before);
    }

    fn fit(&self, panel: &Panel, until: HourStart) -> Option<Fitted> {
        let (kind, horizon) = (self.plan.kind, self.plan.horizon);
        let usual = if panel.hours() < SHORT_HISTORY_HOURS { COLD_START_HOURS } else { LONG_LOOKBACK_HOURS };
        let lookback_hours = kind.rule().map_or(usual, Rule::lookback_hours);
        let spec = ModelSpec { kind, horizon, lookback_hours, seed: self.plan.seed };
        let split = forecaster::trained::split(panel, until, &spec).ok()?;
        let fit = Fit { panel, split, spec, settings: Settings::default() };
        if let Some(rule) = kind.rule() {
            // A rule chooses nothing: it measures its spread over the last weeks.
            let from = until.plus_hours(-(LONG_LOOKBACK_HOURS as i64)).max(split.train.from);
            let issues = HourRange { from, to: until.plus_hours(1 - i64::from(horizon.get())) };
            return Baseline::fit(rule, &fit, issues).ok().map(Fitted::Rule);
        }
        train(&fit, self.plan.rate, Switch::Auto, &mut |_| ())
            .ok()
            .map(|(trained, _)| Fitted::Trained(Box::new(trained)))
    }

    /// B_H of a pool for each of `offered`, by the forecast of this hour; none before the first hour is over.
    ///
    /// # Errors
    /// A bound is no amount.
    pub fn bounds(
        &mut self,
        pool: &PoolId,
        now: UnixSeconds,
        offered: &[HorizonHours],
    ) -> Result<Option<Vec<ForecastBound>>, PredictError> {
        let Some((issue, _)) = &self.issued else { return Ok(None) };
        let (_, more_steps) = more_steps(*issue, now);
        let key = (pool.clone(), more_steps);
        if let Some(known) = self.bounds.get(&key) {
            return Ok(Some(known.clone()));
        }
        let bounds = self.bounds_now(pool, more_steps, offered)?;
        if let Some(bounds) = &bounds {
            self.bounds.insert(key, bounds.clone());
        }
        Ok(bounds)
    }

    fn bounds_now(
        &self,
        pool: &PoolId,
        more_steps: u8,
        offered: &[HorizonHours],
    ) -> Result<Option<Vec<ForecastBound>>, PredictError> {
        let (Some(panel), Some((_, issued))) = (&self.panel, &self.issued) else { return Ok(None) };
        let conformal = issued.conformal.get(pool);
        let calibration = self.fitted.as_ref().and_then(|(_, fitted)| fitted.calibration(pool));
        let of = Forecasted {
            members: &issued.forecasts[panel.places_of(pool)],
            conformal,
            calibration,
            aggregation: self.plan.aggregation,
            horizon: self.plan.horizon,
            more_steps,
        };
        let all = forecast_bounds(&of, offered, self.plan.rate)?;
        Ok(Some(offered.iter().zip(&all).map(|(hours, bound)| ForecastBound::of(*hours, bound)).collect()))
    }
}

/// The demand that comes, as the trace has it.
#[derive(Debug, Clone)]
pub struct Oracle {
    start_s: i64,
    /// The largest demand in thousandths within each five minutes.
    peaks: Vec<u64>,
}

/// Peaks are kept for so many seconds each.
const GRAIN_S: i64 = 300;

impl Oracle {
    /// From submissions and durations of HP jobs: `(submitted, duration, thousandths)`.
    #[must_use]
    pub fn new(jobs: &[(i64, i64, u64)]) -> Self {
        let mut steps: Vec<(i64, bool, u64)> = Vec::with_capacity(2 * jobs.len());
        for &(submitted, duration_s, milli) in jobs {
            steps.push((submitted, true, milli));
            steps.push((submitted.saturating_add(duration_s), false, milli));
        }
        steps.sort_unstable();
        let start_s = steps.first().map_or(0, |(at, ..)| at.div_euclid(GRAIN_S) * GRAIN_S);
        let last = jobs.iter().map(|(submitted, ..)| *submitted).max().unwrap_or(start_s);
        let count = ((last - start_s) / GRAIN_S + 1) as usize;
        let (mut peaks, mut level, mut next) = (Vec::with_capacity(count), 0_u64, 0);
        for grain in 0..count {
            let begin = start_s + grain as i64 * GRAIN_S;
            let end = begin + GRAIN_S;
            // A job that ends as the grain begins is not in it.
            while let Some((_, adds, milli)) = steps.get(next).filter(|(at, ..)| *at <= begin) {
                level = if *adds { level + milli } else { level - milli };
                next += 1;
            }
            let mut peak = level;
            while let Some((_, adds, milli)) = steps.get(next).filter(|(at, ..)| *at < end) {
                level = if *adds { level + milli } else { level - milli };
                peak = peak.max(level);
                next += 1;
            }
            peaks.push(peak);
        }
        Self { start_s, peaks }
    }

    /// The largest demand within the next hours, for each of `offered`.
    #[must_use]
    pub fn bounds(&self, now: UnixSeconds, offered: &[HorizonHours]) -> Vec<ForecastBound> {
        let first = usize::try_from((now.get() - self.start_s).div_euclid(GRAIN_S)).unwrap_or(0).min(self.peaks.len());
        let one = |hours: &HorizonHours| {
            let end = (first + (hours.seconds() / GRAIN_S) as usize).min(self.peaks.len());
            let peak = self.peaks[first..end].iter().copied().max().unwrap_or(0);
            let bound = MilliGpus::from_milli(peak).unwrap_or(MilliGpus::ZERO);
            ForecastBound { hours: *hours, bound, returns: MilliGpus::ZERO }
        };
        offered.iter().map(one).collect()
    }
}
