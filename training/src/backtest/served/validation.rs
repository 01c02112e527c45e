//! The bounds that a run would have served over its validation part: the gate compares them with its threshold.

use super::capacities_of;
use super::forecasts::{AtIssue, ForecastBounds};
use super::minutes::Minutes;
use super::replay::{KnownJobs, PoolHistory, RestartState, Sample, Schedule, replay};
use super::score::{By, Group, groups};
use crate::args::{JobsAs, Replay};
use crate::error::TrainingError;
use crate::jobs::ClusterJobs;
use command_line::table;
use datasets::{HourRange, Panel};
use forecaster::PredictError;
use forecaster::bound::PoolCalibration;
use forecaster::calibration::Issued;
use placement::{PoolSettings, Promise};
use serde::{Deserialize, Serialize};
use vocab::{CapacityRow, GuaranteeRate, HorizonHours, HourStart, SECONDS_PER_HOUR};

/// Between two renewals where jobs are known: often enough that few come and go unseen.
const RENEWAL_WITH_JOBS_S: i64 = 900;

/// Bounds that would have been served, over all pools, for one number of hours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ServedBody {
    pub hours: u8,
    /// Pools times renewals.
    pub samples: usize,
    /// Share of bounds at or above the peak.
    pub coverage: f64,
    /// Share of GPUs kept, had every inventory been sold whole.
    pub kept_rate: Option<f64>,
    pub pinball_gpus: f64,
}

/// Plays the validation part, a renewal an hour, with usage on time and the promise `peak`: its coverage is what p promises there,
/// and under `kept` bounds move from these. Forecasts are added hour by hour and need not be kept.
pub struct ServedOnValidation {
    settings: PoolSettings,
    forecasts: ForecastBounds,
    horizon: HorizonHours,
    rate: GuaranteeRate,
}

impl ServedOnValidation {
    /// Without any hour yet.
    ///
    /// # Errors
    /// The horizon offers nothing.
    pub fn new(horizon: HorizonHours, rate: GuaranteeRate) -> Result<Self, TrainingError> {
        let settings = Replay { promise: Promise::Peak, ..Replay::default() }.settings(rate, horizon)?;
        let forecasts = ForecastBounds::new(rate, settings.offered_hours.clone());
        Ok(Self { settings, forecasts, horizon, rate })
    }

    /// Adds what is issued at an hour; forecasts come in the order of the panel.
    ///
    /// # Errors
    /// A bound exceeds what an amount holds.
    pub fn add(
        &mut self,
        panel: &Panel,
        calibrations: &[PoolCalibration],
        issue: HourStart,
        issued: &Issued,
    ) -> Result<(), PredictError> {
        let at = AtIssue { panel, issue, issued, calibrations, horizon: self.horizon };
        Ok(self.forecasts.add(&at)?)
    }

    /// Scores what would have been served at the hours that were added; where `jobs` are known, the pools that have some, by a service
    /// that knew them and those of before. Nothing is scored where nothing was measured.
    #[must_use]
    pub fn finish(
        &self,
        panel: &Panel,
        capacities: &[CapacityRow],
        issues: HourRange,
        jobs: Option<&ClusterJobs>,
    ) -> Vec<ServedBody> {
        let schedule = Schedule {
            from: issues.from.instant(),
            until: issues.to.instant(),
            end: issues.to.plus_hours(i64::from(self.horizon.get()) - 1).instant(),
            renewal_s: if jobs.is_some() { RENEWAL_WITH_JOBS_S } else { SECONDS_PER_HOUR },
            late_s: 0,
            restart_every_s: None,
            restart_state: RestartState::Kept,
        };
        let mut samples: Vec<Sample> = Vec::new();
        for (pool, forecast) in self.forecasts.by_pool() {
            let (capacities, _) = capacities_of(panel, pool, capacities);
            let list = jobs.and_then(|jobs| jobs.get(pool));
            if jobs.is_some() && list.is_none() {
                continue;
            }
            let minutes = list.map(|list| Minutes::of_changes(&list.changes(), (schedule.from, schedule.end)));
            let past = list.and_then(|list| list.past(schedule.from));
            let jobs = list.map(|list| KnownJobs { list, known_as: JobsAs::Jobs, past: past.as_ref() });
            let history =
                PoolHistory { panel, pool, capacities: &capacities, minutes: minutes.as_ref(), jobs, forecast };
            samples.extend(replay(&history, &schedule, &self.settings).samples);
        }
        groups(&samples, schedule.from, self.rate).iter().filter_map(body).collect()
    }
}

fn body(((hours, by), group): (&(HorizonHours, By), &Group)) -> Option<ServedBody> {
    let served = Some(&group.served).filter(|_| *by == By::All)?;
    let (coverage, pinball_gpus) = (served.coverage()?, served.pinball_gpus()?);
    Some(ServedBody {
        hours: hours.get(),
        samples: served.samples,
        coverage,
        kept_rate: served.kept_rate(),
        pinball_gpus,
    })
}

/// As a table; nothing where nothing was played.
#[must_use]
pub fn served_table(name: &str, rows: &[ServedBody]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let row = |one: &ServedBody| {
        vec![
            format!("{}h", one.hours),
            one.samples.to_string(),
            format!("{:.3}", one.coverage),
            one.kept_rate.map_or_else(|| "-".to_owned(), |kept| format!("{kept:.3}")),
            format!("{:.2}", one.pinball_gpus),
        ]
    };
    let header = [name, "samples", "coverage", "kept", "pinball"];
    table(&header, &rows.iter().map(row).collect::<Vec<_>>())
}
