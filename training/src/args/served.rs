//! The flags of `train backtest --served`.

use super::jobs::{JobLists, JobsAs, jobs_as};
use crate::backtest::RestartState;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use placement::staleness::USAGE_MAX_AGE_S;
use placement::{PoolSettings, Promise, SettingsError};
use std::path::PathBuf;
use vocab::{GuaranteeRate, HorizonHours, SECONDS_PER_HOUR};

/// Of a service: GFS table 4.
const RENEWAL_S: i64 = 300;
/// Shorter ones say no more, since no source is finer than a minute.
const LEAST_RENEWAL_S: i64 = 60;

/// How the answers of a service are played again.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Replay of a service")]
pub struct Replay {
    /// Play each renewal of the quotas again, and score the bounds that would have been served
    #[arg(long)]
    pub served: bool,
    /// Between two renewals: 60s to 1h, in whole parts of an hour. A bound of H hours covers H forecast steps on the full hour, and H + 1 in between
    #[arg(long, value_name = "TIME", requires = "served", default_value = "300s", value_parser = renewal_s)]
    pub renewal: i64,
    /// How long after its end the usage of an hour is known, at most 2h; several are played one after the other
    #[arg(long, value_name = "TIME,…", requires = "served", default_value = "0h", value_delimiter = ',', value_parser = late_s)]
    pub late: Vec<i64>,
    /// The service restarts so often; not at all if not given
    #[arg(long, value_name = "HOURS", requires = "served", value_parser = command_line::horizon)]
    pub restart_every: Option<HorizonHours>,
    /// The effect of a restart on the learned state of demand and promises: the database keeps it, or it is lost
    #[arg(long, value_name = "STATE", requires = "served", default_value = "kept", value_parser = restart_state())]
    pub restart_state: RestartState,
    /// The event that p is the probability of: that a promised GPU is kept, or that the peak stays below the bound
    #[arg(long, value_name = "PROMISE", requires = "served", default_value = "kept", value_parser = promise())]
    pub promise: Promise,
    /// Hours of the promises on offer, rising; 1h, 2h and 4h up to --horizon if not given
    #[arg(long, value_name = "HOURS,…", requires = "served", value_delimiter = ',', value_parser = command_line::horizon)]
    pub offered: Vec<HorizonHours>,
    /// Demand of every minute, as `datasets ingest --format helios` reads it: files vc*.csv of the cluster, or their folder.
    /// Without it demand is known by the hour alone
    #[arg(long, value_name = "FILE", requires = "served", num_args = 1..)]
    pub minutes: Vec<PathBuf>,
    /// Knowledge of the service about --jobs: the jobs, or their demand alone
    #[arg(long, value_name = "WHAT", requires = "files", default_value = JobsAs::Jobs.as_str(), value_parser = jobs_as())]
    pub jobs_as: JobsAs,
    // Last: what follows stands under the heading of its flags.
    #[command(flatten)]
    pub jobs: JobLists,
}

impl Replay {
    /// The settings of the pools that are played: a service's own, but for what the command line says.
    ///
    /// # Errors
    /// The offered hours do not rise, or exceed what is forecast.
    pub fn settings(&self, rate: GuaranteeRate, horizon: HorizonHours) -> Result<PoolSettings, SettingsError> {
        let usual = PoolSettings { guarantee_rate: rate, promise: self.promise, ..PoolSettings::default() };
        let within = || usual.offered_hours.iter().copied().filter(|hours| *hours <= horizon).collect();
        let offered_hours = if self.offered.is_empty() { within() } else { self.offered.clone() };
        let settings = PoolSettings { offered_hours, ..usual };
        settings.check(Some(horizon))?;
        Ok(settings)
    }
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            served: false,
            renewal: RENEWAL_S,
            late: vec![0],
            restart_every: None,
            restart_state: RestartState::default(),
            promise: Promise::default(),
            offered: Vec::new(),
            minutes: Vec::new(),
            jobs: JobLists::default(),
            jobs_as: JobsAs::default(),
        }
    }
}

fn restart_state() -> impl TypedValueParser<Value = RestartState> {
    PossibleValuesParser::new(RestartState::ALL.map(RestartState::as_str))
        .map(|name| RestartState::ALL.into_iter().find(|one| one.as_str() == name).unwrap_or_default())
}

fn promise() -> impl TypedValueParser<Value = Promise> {
    PossibleValuesParser::new(Promise::ALL.map(Promise::as_str)).map(|name| Promise::parse(&name).unwrap_or_default())
}

/// Whole seconds, written with their unit.
fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|one: char| one.is_ascii_alphabetic());
    let number: i64 = digits.parse().ok().filter(|number| *number >= 0)?;
    let unit_s = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => SECONDS_PER_HOUR,
        _ => return None,
    };
    number.checked_mul(unit_s)
}

fn renewal_s(text: &str) -> Result<i64, String> {
    let is_fit = |one: &i64| (LEAST_RENEWAL_S..=SECONDS_PER_HOUR).contains(one) && SECONDS_PER_HOUR % one == 0;
    let fit = seconds(text).filter(is_fit);
    fit.ok_or_else(|| "write 60s to 1h of which an hour is a multiple, such as 300s or 15m".to_owned())
}

fn late_s(text: &str) -> Result<i64, String> {
    let late_s = seconds(text).ok_or_else(|| "write a time such as 0h, 90m or 2h".to_owned())?;
    if late_s > USAGE_MAX_AGE_S {
        let most_hours = USAGE_MAX_AGE_S / SECONDS_PER_HOUR;
        return Err(format!(
            "no quota is served by usage that is older than {most_hours} h: write at most {most_hours}h"
        ));
    }
    Ok(late_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_the_usual_ones_as_far_as_forecasts_reach() {
        let hours = |hours: &[u64]| hours.iter().map(|hours| HorizonHours::new(*hours).unwrap()).collect::<Vec<_>>();
        let of = |offered: &[u64], horizon: u64| {
            let replay = Replay { offered: hours(offered), ..Replay::default() };
            replay.settings(GuaranteeRate::GFS, HorizonHours::new(horizon).unwrap())
        };
        assert_eq!(of(&[], 6).unwrap().offered_hours, hours(&[1, 2, 4]));
        assert_eq!(of(&[], 3).unwrap().offered_hours, hours(&[1, 2]));
        assert_eq!(of(&[3], 3).unwrap().offered_hours, hours(&[3]));
        assert!(matches!(of(&[4], 3), Err(SettingsError::BeyondHorizon { .. })));
        assert!(matches!(of(&[2, 1], 3), Err(SettingsError::OfferedNotRising)));
    }

    #[test]
    fn times_have_a_unit_and_what_no_service_does_is_refused() {
        assert_eq!(["300s", "5m", "1h"].map(renewal_s), [Ok(300), Ok(300), Ok(3_600)]);
        for text in ["300", "30s", "2h", "7m", "-5m", "1d", ""] {
            assert!(renewal_s(text).is_err(), "{text}");
        }
        assert_eq!(["0h", "90m", "2h"].map(late_s), [Ok(0), Ok(5_400), Ok(7_200)]);
        assert!(late_s("3h").unwrap_err().contains("older than 2 h"));
        assert!(late_s("soon").unwrap_err().starts_with("write a time"));
    }
}
