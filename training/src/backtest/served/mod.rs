//! `train backtest --served`: what a service would have answered, renewal by renewal, and what that was worth.
//!
//! [`replay`] plays one pool through [`cycle`], [`score`] says how often its bounds held and how much was kept; both are pure.
//! Here is where their inputs come from: the window, the bounds of the forecasts, capacities, and minutes where there are some.
//! In hours without usage a backtest forecasts on, and so learns from a few forecasts that a service would not have made.

mod forecasts;
mod minutes;
mod replay;
mod report;
mod score;
mod validation;

pub use forecasts::{AtIssue, ForecastBounds};
pub use replay::RestartState;
pub use report::{ReplayBody, tables};
pub use validation::{ServedBody, ServedOnValidation, served_table};

use super::play::Played;
use crate::args::{Backtest, Replay};
use crate::error::TrainingError;
use crate::jobs::{self, PoolJobs};
use datasets::{HourRange, Panel, ReadOptions, read};
use forecaster::jobs::PastJobs;
use forecaster::scores::actual_peak_gpus;
use minutes::Minutes;
use placement::PoolSettings;
use placement::staleness::{Stage, stage};
use replay::{KnownJobs, PoolHistory, Replayed, Schedule, replay};
use std::collections::BTreeSet;
use vocab::{CapacityRow, GuaranteeRate, HorizonHours, HourStart, MilliGpus, PoolId, UnixSeconds};

/// The assumed capacity of a pool without a known one, over its largest demand: a pool of 80 % use at its peak.
const CAPACITY_OF_PEAK: f64 = 1.25;

/// Refuses what cannot be played before any file is written.
///
/// # Errors
/// The offered hours do not fit, or rows are asked for that are not played.
pub fn check(what: &Backtest, rate: GuaranteeRate, clusters: usize) -> Result<(), TrainingError> {
    let replay = &what.replay;
    let settings = replay.settings(rate, what.horizon)?;
    if !replay.jobs.files.is_empty() && clusters != 1 {
        return Err(TrainingError::JobsOfSeveral { clusters });
    }
    if !replay.jobs.files.is_empty() && !replay.minutes.is_empty() {
        return Err(TrainingError::JobsAndMinutes);
    }
    if !replay.minutes.is_empty() && clusters != 1 {
        return Err(TrainingError::MinutesOfSeveral { what: "clusters", known: clusters });
    }
    if what.pool_out.is_some() && !settings.offered_hours.contains(&what.horizon) {
        return Err(TrainingError::ServedWithoutHorizon { horizon: what.horizon });
    }
    if what.pool_out.is_some() && !replay.late.contains(&0) {
        return Err(TrainingError::ServedLate);
    }
    Ok(())
}

/// The settings that the pools of a cluster are played with.
pub struct Inputs {
    settings: PoolSettings,
    pools: Vec<PoolInputs>,
}

struct PoolInputs {
    pool: PoolId,
    /// By the hour from which on they hold.
    capacities: Vec<(HourStart, MilliGpus)>,
    is_capacity_assumed: bool,
    minutes: Option<Minutes>,
    jobs: Option<PoolJobs>,
    /// Those of before the window.
    past: Option<PastJobs>,
}

/// One pool under one model and lateness.
pub struct PoolReplay {
    pub pool: PoolId,
    pub late_s: i64,
    pub replayed: Replayed,
    /// Assumptions where nothing is known.
    pub assumed_capacity: Option<MilliGpus>,
    capacities: Vec<(HourStart, MilliGpus)>,
}

impl Inputs {
    /// # Errors
    /// The minutes cannot be read, are those of several pools, or lie outside the window.
    pub fn read(
        what: &Backtest,
        panel: &Panel,
        issues: HourRange,
        capacities: &[CapacityRow],
        rate: GuaranteeRate,
    ) -> Result<Self, TrainingError> {
        let settings = what.replay.settings(rate, what.horizon)?;
        let pools: BTreeSet<PoolId> = panel.series().iter().map(|series| series.id().pool.clone()).collect();
        let minutes = read_minutes(&what.replay, panel, issues, &pools)?;
        let mut jobs = jobs::read(&what.replay.jobs, panel)?;
        // The peaks that score a quota are those of the jobs: by another cluster's every promise would be kept.
        if let Some(why) = jobs::unlike_usage(&jobs, panel, issues) {
            return Err(TrainingError::OtherDemand { why });
        }
        let window = (issues.from.instant(), what.to.plus_hours(1).instant());
        let one = |pool: PoolId| {
            let (capacities, is_capacity_assumed) = capacities_of(panel, &pool, capacities);
            let jobs = jobs.remove(&pool);
            let of_jobs = jobs.as_ref().map(|jobs| Minutes::of_changes(&jobs.changes(), window));
            let past = jobs.as_ref().and_then(|jobs| jobs.past(window.0));
            PoolInputs {
                capacities,
                is_capacity_assumed,
                minutes: of_jobs.or_else(|| minutes.clone()),
                jobs,
                past,
                pool,
            }
        };
        Ok(Self { settings, pools: pools.into_iter().map(one).collect() })
    }

    /// Plays every pool under every lateness.
    #[must_use]
    pub fn replay(&self, what: &Backtest, panel: &Panel, issues: HourRange, played: &Played) -> Vec<PoolReplay> {
        let Some(forecasts) = &played.forecast_bounds else { return Vec::new() };
        let of_pool = |of: &PoolInputs, late_s: i64| {
            let history = PoolHistory {
                panel,
                pool: &of.pool,
                capacities: &of.capacities,
                minutes: of.minutes.as_ref(),
                jobs: of.jobs.as_ref().map(|list| {
                    let (known_as, past) = (what.replay.jobs_as, of.past.as_ref());
                    KnownJobs { list, known_as, past }
                }),
                forecast: forecasts.by_pool().get(&of.pool)?,
            };
            let schedule = schedule(&what.replay, issues, what.to, late_s);
            let assumed = of.is_capacity_assumed.then(|| of.capacities.first().map(|(_, capacity)| *capacity));
            Some(PoolReplay {
                pool: of.pool.clone(),
                late_s,
                replayed: replay(&history, &schedule, &self.settings),
                assumed_capacity: assumed.flatten(),
                capacities: of.capacities.clone(),
            })
        };
        let pairs = self.pools.iter().flat_map(|pool| what.replay.late.iter().map(move |late_s| (pool, *late_s)));
        pairs.filter_map(|(pool, late_s)| of_pool(pool, late_s)).collect()
    }
}

impl PoolReplay {
    /// The bound over `hours` that is valid at the start of an hour: a quota that was not renewed stands until it is too old,
    /// and then nothing may be sold.
    #[must_use]
    pub fn in_force(&self, hour: HourStart, hours: HorizonHours) -> Option<f64> {
        let now = hour.instant();
        let mut before = self.replayed.samples.iter().rev().filter(|one| one.hours == hours && one.at <= now);
        let newest = before.next().filter(|one| stage(one.at, now).0 != Stage::Conservative);
        let capacity = || {
            let known = self.capacities.iter().rev().find(|(from, _)| *from <= hour).or(self.capacities.first());
            known.map(|(_, capacity)| capacity.as_gpus())
        };
        newest.map(|one| one.bound_gpus).or_else(capacity)
    }
}

fn schedule(replay: &Replay, issues: HourRange, last: HourStart, late_s: i64) -> Schedule {
    Schedule {
        from: issues.from.instant(),
        until: issues.to.instant(),
        end: last.plus_hours(1).instant(),
        renewal_s: replay.renewal,
        late_s,
        restart_every_s: replay.restart_every.map(HorizonHours::seconds),
        restart_state: replay.restart_state,
    }
}

/// Samples before are not scored: with the latest usage there are none yet, and every lateness is scored at the same times.
fn scored_from(replay: &Replay, issues: HourRange) -> UnixSeconds {
    issues.from.instant().plus_s(replay.late.iter().copied().max().unwrap_or(0))
}

/// The minutes of the window, in the hours in which the history has demand.
fn read_minutes(
    replay: &Replay,
    panel: &Panel,
    issues: HourRange,
    pools: &BTreeSet<PoolId>,
) -> Result<Option<Minutes>, TrainingError> {
    if replay.minutes.is_empty() {
        return Ok(None);
    }
    let [pool] = pools.iter().collect::<Vec<_>>()[..] else {
        return Err(TrainingError::MinutesOfSeveral { what: "pools", known: pools.len() });
    };
    let options = ReadOptions {
        cluster: panel.cluster().clone(),
        gpu_model: pool.gpu_model.clone(),
        calendar: panel.calendar().clone(),
        skip_bad_rows: false,
        zones: datasets::Zones::new(),
    };
    let all =
        read::helios_minutes(&replay.minutes, &options).map_err(|fault| TrainingError::Minutes(Box::new(fault)))?;
    let minutes = Minutes::of_history(&all, panel, pool);
    if !minutes.any_within(issues.from.instant(), issues.to.instant()) {
        let (from, to) = (issues.from, issues.to);
        return Err(TrainingError::NoMinutes { cluster: panel.cluster().clone(), from, to });
    }
    // The peaks that score a quota are those of the minutes.
    if let Some(why) = jobs::unlike_minutes(&minutes.hourly_peaks_gpus(issues), panel, pool, issues) {
        return Err(TrainingError::OtherDemand { why });
    }
    Ok(Some(minutes))
}

/// The capacities of a pool, by hour, and whether they are assumed.
fn capacities_of(panel: &Panel, pool: &PoolId, rows: &[CapacityRow]) -> (Vec<(HourStart, MilliGpus)>, bool) {
    let mut known: Vec<_> = rows.iter().filter(|row| row.pool == *pool).map(|row| (row.from, row.capacity)).collect();
    known.sort_unstable();
    if !known.is_empty() {
        return (known, false);
    }
    let peaks =
        (0..panel.hours()).filter_map(|hour| actual_peak_gpus(panel, pool, panel.hour_at(hour), HorizonHours::ONE));
    let capacity = MilliGpus::nearest(CAPACITY_OF_PEAK * peaks.fold(0.0, f64::max)).unwrap_or(MilliGpus::ZERO);
    (vec![(panel.start(), capacity)], true)
}
