//! One pool, renewal by renewal: what [`cycle`] decides of what was known at each time. Pure: no file, no clock.
//!
//! Usage of an hour is known so long after its end as it is late. Forecasts are those of the newest hour that is known, so
//! that promises reach beyond what was forecast last, as they do in a service. Where the source has minutes or jobs, demand of the
//! moment is known on time, as where the service places the tasks.

use super::forecasts::PoolBounds;
use super::minutes::Minutes;
use crate::args::JobsAs;
use crate::jobs::{PoolJobs, Walk};
use cycle::{ForecastBound, Inputs, Learned, decide, latest_demand, more_steps};
use datasets::Panel;
use forecaster::jobs::PastJobs;
use forecaster::scores::actual_peak_gpus;
use placement::eta::EtaState;
use placement::{Bound, Known, PoolSettings, staleness};
use vocab::{HorizonHours, HourStart, MilliGpus, PoolId, SECONDS_PER_HOUR, UnixSeconds, hp_gpus};

/// The fate of the learned state when the service restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestartState {
    /// The database keeps it: a restart costs one renewal.
    #[default]
    Kept,
    /// It is lost, and learned again.
    Lost,
}

impl RestartState {
    pub const ALL: [Self; 2] = [Self::Kept, Self::Lost];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Lost => "lost",
        }
    }
}

/// When quotas are renewed.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// The service begins here, with nothing learned.
    pub from: UnixSeconds,
    /// The last renewal is before.
    pub until: UnixSeconds,
    /// Later hours are not read.
    pub end: UnixSeconds,
    pub renewal_s: i64,
    /// How long after its end the usage of an hour is known.
    pub late_s: i64,
    pub restart_every_s: Option<i64>,
    pub restart_state: RestartState,
}

/// The history of a pool, and its forecasts.
pub struct PoolHistory<'a> {
    pub panel: &'a Panel,
    pub pool: &'a PoolId,
    /// By the hour from which on they hold.
    pub capacities: &'a [(HourStart, MilliGpus)],
    /// Where demand is known from moment to moment.
    pub minutes: Option<&'a Minutes>,
    /// Where its jobs are known.
    pub jobs: Option<KnownJobs<'a>>,
    pub forecast: &'a PoolBounds,
}

/// Knowledge of the service about the HP jobs of a pool.
#[derive(Debug, Clone, Copy)]
pub struct KnownJobs<'a> {
    pub list: &'a PoolJobs,
    pub known_as: JobsAs,
    /// Those of before, where its model was trained with them.
    pub past: Option<&'a PastJobs>,
}

/// One bound that would have been served, beside what came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub at: UnixSeconds,
    /// Of the newest hour that was known.
    pub issue: HourStart,
    pub hours: HorizonHours,
    /// 0 to 23.
    pub local_hour: u8,
    /// None before the first restart.
    pub since_restart_s: Option<i64>,
    pub capacity_gpus: f64,
    pub bound_gpus: f64,
    /// The forecast's own bound, before anything moved it.
    pub forecast_gpus: f64,
    /// Over the hours of the promise, where they were measured. Where demand is known by the hour alone, the hours in which it
    /// begins and ends count whole.
    pub peak_gpus: Option<f64>,
}

/// The answers of a service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replayed {
    pub samples: Vec<Sample>,
    /// Renewals without a restart in them.
    pub renewals: usize,
    /// Those that gave no quota, since usage, demand or capacity was not known.
    pub unserved: usize,
}

/// Plays a pool from `from + late_s` on: before, nothing that was known is within the window.
#[must_use]
pub fn replay(history: &PoolHistory<'_>, schedule: &Schedule, settings: &PoolSettings) -> Replayed {
    let mut service = Service {
        history,
        schedule,
        settings,
        measured: Measured::of(history.panel, history.pool),
        learned: Learned::new(settings.guarantee_rate, &settings.offered_hours),
        walk: history.jobs.map(|jobs| jobs.list.walk()),
        restarts: 0,
    };
    let mut replayed = Replayed::default();
    let mut now = schedule.from;
    while now < schedule.until {
        // A service that restarts misses a renewal.
        if !service.restarts_at(now) && now.since_s(schedule.from) >= schedule.late_s {
            replayed.renewals += 1;
            match service.renew(now) {
                Some(samples) => replayed.samples.extend(samples),
                None => replayed.unserved += 1,
            }
        }
        now = now.plus_s(schedule.renewal_s);
    }
    replayed
}

struct Service<'a> {
    history: &'a PoolHistory<'a>,
    schedule: &'a Schedule,
    settings: &'a PoolSettings,
    measured: Measured,
    learned: Learned,
    walk: Option<Walk<'a>>,
    restarts: i64,
}

impl Service<'_> {
    /// Whether it restarts at `now`, and forgets where it does.
    fn restarts_at(&mut self, now: UnixSeconds) -> bool {
        let Some(every_s) = self.schedule.restart_every_s else { return false };
        let restarts = now.since_s(self.schedule.from) / every_s;
        if restarts == self.restarts {
            return false;
        }
        self.restarts = restarts;
        if self.schedule.restart_state == RestartState::Lost {
            self.learned = Learned::new(self.settings.guarantee_rate, &self.settings.offered_hours);
        }
        true
    }

    fn since_restart_s(&self, now: UnixSeconds) -> Option<i64> {
        let every_s = self.schedule.restart_every_s.filter(|_| self.restarts > 0)?;
        Some(now.since_s(self.schedule.from) - self.restarts * every_s)
    }

    /// One renewal; none where nothing would have been served.
    fn renew(&mut self, now: UnixSeconds) -> Option<Vec<Sample>> {
        let PoolHistory { panel, pool, capacities, minutes, jobs, forecast } = *self.history;
        let present = self.walk.as_mut().map(|walk| walk.at(now));
        let issue = self.measured.issue(panel, now, self.schedule.late_s)?;
        let (_, more_steps) = more_steps(issue, now);
        let forecast = forecast.get(&(issue, more_steps))?;
        let hp_demand = match (&present, minutes) {
            (Some(present), _) => Some(hp_gpus(present)),
            (None, Some(minutes)) => Some(minutes.demand_at(now)?),
            (None, None) => None,
        };
        let known = jobs.filter(|jobs| jobs.known_as == JobsAs::Jobs);
        let hp_jobs = present.as_deref().filter(|_| known.is_some());
        let hour = now.hour().ok()?;
        let capacity = capacities.iter().rev().find(|(from, _)| *from <= hour).map(|(_, capacity)| *capacity);
        let latest_demand = latest_demand(panel, pool, issue);
        let supply = Known { table_capacity: capacity, latest_demand, ..Known::default() };
        let decided = decide(Inputs {
            now,
            known: &supply,
            settings: self.settings,
            forecast: Some(forecast),
            // Nothing is sold, so that no promise can teach.
            is_placed_here: false,
            hp_demand,
            hp_jobs,
            past_jobs: known.and_then(|jobs| jobs.past),
            last_usage: &[],
            measured_until: issue.instant(),
            calibrated_hours: 0,
            learned: Some(&mut self.learned),
            overrides: &[],
            // Nothing is sold, so no outcome moves it; and it moves inventories, not bounds.
            eta: EtaState { eta: self.settings.eta_start, moved_at: self.schedule.from },
            unspent: &[],
            newest_outcome: None,
            eta_is_fixed: true,
        })
        .ok()?;
        let sample = |(served, forecast): (Bound, &ForecastBound)| Sample {
            at: now,
            issue,
            hours: served.hours,
            local_hour: panel.calendar().at(hour).hour_of_day,
            since_restart_s: self.since_restart_s(now),
            capacity_gpus: decided.supply.capacity.as_gpus(),
            bound_gpus: served.bound.as_gpus(),
            forecast_gpus: forecast.bound.as_gpus(),
            peak_gpus: self.peak_gpus(now, hour, served.hours),
        };
        let served = decided.demand.iter().map(|one| one.bound);
        Some(served.zip(forecast).map(sample).collect())
    }

    /// The largest demand over the hours of a promise that is given at `now`.
    fn peak_gpus(&self, now: UnixSeconds, hour: HourStart, hours: HorizonHours) -> Option<f64> {
        let end = now.plus_s(hours.seconds());
        if end > self.schedule.end {
            return None;
        }
        if let Some(minutes) = self.history.minutes {
            return minutes.peak_gpus(now, end);
        }
        let whole = HorizonHours::new((end.since_s(hour.instant()) as u64).div_ceil(SECONDS_PER_HOUR as u64)).ok()?;
        let is_within = hour.plus_hours(i64::from(whole.get())).instant() <= self.schedule.end;
        actual_peak_gpus(self.history.panel, self.history.pool, hour, whole).filter(|_| is_within)
    }
}

/// The newest hour with demand, at or before each hour of the panel.
struct Measured {
    of_cluster: Vec<Option<usize>>,
    of_pool: Vec<Option<usize>>,
}

impl Measured {
    fn of(panel: &Panel, pool: &PoolId) -> Self {
        let newest = |is_counted: &dyn Fn(&PoolId) -> bool| {
            let series: Vec<_> =
                panel.series().iter().chain(panel.pool_peaks()).filter(|one| is_counted(&one.id().pool)).collect();
            let mut newest = None;
            let one = |hour| {
                newest = if series.iter().any(|one| one.measured()[hour]) { Some(hour) } else { newest };
                newest
            };
            (0..panel.hours()).map(one).collect()
        };
        Self { of_cluster: newest(&|_| true), of_pool: newest(&|of| of == pool) }
    }

    /// The hour after the newest one that is known at `now`; none where that is too old to serve, also of the pool alone.
    fn issue(&self, panel: &Panel, now: UnixSeconds, late_s: i64) -> Option<HourStart> {
        let known = now.plus_s(-late_s).hour().ok().and_then(|hour| panel.index_of(hour))?;
        let last = known.min(panel.hours()).checked_sub(1)?;
        let after = |newest: Option<usize>| newest.map(|hour| panel.hour_at(hour + 1));
        let (issue, of_pool) = (after(self.of_cluster[last])?, after(self.of_pool[last])?);
        let is_missing = |issue: HourStart| staleness::usage_is_missing(issue.instant(), now);
        (!is_missing(issue) && !is_missing(of_pool)).then_some(issue)
    }
}

#[cfg(test)]
mod tests;
