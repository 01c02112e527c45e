//! When to train again: pure.

use datasets::Calendar;
use std::fmt;
use std::str::FromStr;
use vocab::UnixSeconds;

const HOUR_S: i64 = vocab::SECONDS_PER_HOUR;
const DAY_S: i64 = vocab::SECONDS_PER_DAY;
/// A run may come so much before its period is over: training takes a while, so runs drift through the day, and an
/// operator may have trained by hand.
const SLACK_S: i64 = DAY_S / 2;
/// An attempt that gave no run is not repeated sooner.
const RETRY_S: i64 = HOUR_S;
/// Drift causes at most one training in so long.
const BETWEEN_DRIFTS_S: i64 = DAY_S;
/// Days of a clock that skips an hour do not have it; the next day does.
const LONGEST_DAY_HOURS: i64 = 49;

/// A word that is no period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is none of never, daily and weekly")]
pub struct UnknownPeriod {
    pub text: String,
}

/// How often a cluster is trained again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Never,
    Daily,
    Weekly,
}

impl FromStr for Period {
    type Err = UnknownPeriod;

    fn from_str(text: &str) -> Result<Self, UnknownPeriod> {
        match text {
            "never" => Ok(Self::Never),
            "daily" => Ok(Self::Daily),
            "weekly" => Ok(Self::Weekly),
            _ => Err(UnknownPeriod { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "never",
            Self::Daily => "daily",
            Self::Weekly => "weekly",
        })
    }
}

impl Period {
    const fn days(self) -> Option<i64> {
        match self {
            Self::Never => None,
            Self::Daily => Some(1),
            Self::Weekly => Some(7),
        }
    }
}

/// Facts of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub now: UnixSeconds,
    /// When the newest run of the cluster was trained, promoted or not.
    pub newest_run: UnixSeconds,
    /// When the last attempt of this process ended.
    pub last_attempt: Option<UnixSeconds>,
    /// A pool that has left its band.
    pub drifting: Option<String>,
}

/// Why a cluster is trained again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    Schedule { due: UnixSeconds },
    Drift { pool: String },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule { due } => write!(f, "it was due at {due}"),
            Self::Drift { pool } => write!(f, "the forecasts of pool {pool} drift"),
        }
    }
}

/// When the next run is due after the newest one: at the first hour `at` of the local clock that comes half a day before
/// the period is over or later.
#[must_use]
pub fn due(newest_run: UnixSeconds, period: Period, at: u8, calendar: &Calendar) -> Option<UnixSeconds> {
    let earliest = newest_run.plus_s(period.days()? * DAY_S - SLACK_S);
    let first = earliest.plus_s(HOUR_S - 1).hour().ok()?;
    let hours = (0..LONGEST_DAY_HOURS).map(|more| first.plus_hours(more));
    hours.into_iter().find(|hour| calendar.at(*hour).hour_of_day == at).map(vocab::HourStart::instant)
}

/// Whether to train now, and why. A time that was missed, because the service was down, is made up for.
#[must_use]
pub fn decide(known: &Known, period: Period, at: u8, calendar: &Calendar) -> Option<Why> {
    let since = |then: UnixSeconds| known.now.since_s(then);
    let due = due(known.newest_run, period, at, calendar)?;
    if known.last_attempt.is_some_and(|last| since(last) < RETRY_S) {
        return None;
    }
    if known.now >= due {
        return Some(Why::Schedule { due });
    }
    let last = known.last_attempt.map_or(known.newest_run, |last| last.max(known.newest_run));
    let pool = known.drifting.clone().filter(|_| since(last) >= BETWEEN_DRIFTS_S)?;
    Some(Why::Drift { pool })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(zone: &str) -> Calendar {
        Calendar::parse(zone, Calendar::WEEKDAYS).unwrap()
    }

    /// Seconds from midnight, 1 March 2024, UTC.
    fn at(day: i64, hour: i64, minute: i64) -> UnixSeconds {
        UnixSeconds::new(1_709_251_200 + day * DAY_S + hour * HOUR_S + minute * 60)
    }

    fn due_at(trained: UnixSeconds, period: Period, hour: u8, zone: &str) -> UnixSeconds {
        due(trained, period, hour, &calendar(zone)).unwrap()
    }

    #[test]
    fn a_run_is_due_at_its_hour_once_its_period_is_nearly_over() {
        let daily = |trained| due_at(trained, Period::Daily, 3, "UTC");
        assert_eq!(daily(at(0, 3, 20)), at(1, 3, 0), "the training took 20 minutes");
        assert_eq!(daily(at(0, 15, 0)), at(1, 3, 0), "by hand in the afternoon: twelve hours are enough");
        assert_eq!(daily(at(0, 15, 1)), at(2, 3, 0), "and less are not");
        assert_eq!(due_at(at(0, 3, 20), Period::Weekly, 3, "UTC"), at(7, 3, 0));
        assert_eq!(due(at(0, 3, 20), Period::Never, 3, &calendar("UTC")), None);
    }

    #[test]
    fn the_hour_is_that_of_the_cluster() {
        assert_eq!(due_at(at(0, 0, 0), Period::Daily, 3, "Asia/Shanghai"), at(0, 19, 0));
        assert_eq!(
            due_at(at(0, 0, 0), Period::Daily, 3, "Asia/Kolkata"),
            at(0, 22, 0),
            "21:30 UTC lies in no hour's start"
        );
        // Berlin has no hour 2 on 31 March 2024.
        assert_eq!(due_at(at(29, 4, 0), Period::Daily, 2, "Europe/Berlin"), at(31, 0, 0));
    }

    fn decided(known: &Known, period: Period) -> Option<Why> {
        decide(known, period, 3, &calendar("UTC"))
    }

    fn known(now: UnixSeconds) -> Known {
        Known { now, newest_run: at(0, 3, 0), last_attempt: None, drifting: None }
    }

    #[test]
    fn what_is_due_is_trained_and_what_was_missed_made_up_for() {
        assert_eq!(decided(&known(at(1, 2, 59)), Period::Daily), None);
        let due = Some(Why::Schedule { due: at(1, 3, 0) });
        assert_eq!(decided(&known(at(1, 3, 0)), Period::Daily), due);
        assert_eq!(decided(&known(at(9, 17, 0)), Period::Daily), due);
        assert_eq!(decided(&known(at(9, 17, 0)), Period::Never), None);
        let tried = |minutes| Known { last_attempt: Some(at(1, 3, 0)), ..known(at(1, 3, minutes)) };
        assert_eq!(decided(&tried(59), Period::Daily), None, "it failed: not at once again");
        assert_eq!(decided(&tried(60), Period::Daily), due);
    }

    #[test]
    fn drift_trains_earlier_and_once_a_day_at_most() {
        let drifting = |now| Known { drifting: Some("earth:A100".to_owned()), ..known(now) };
        let why = Some(Why::Drift { pool: "earth:A100".to_owned() });
        assert_eq!(decided(&drifting(at(1, 2, 59)), Period::Weekly), None, "trained less than a day ago");
        assert_eq!(decided(&drifting(at(1, 3, 0)), Period::Weekly), why);
        let tried = |now| Known { last_attempt: Some(at(1, 4, 0)), ..drifting(now) };
        assert_eq!(decided(&tried(at(2, 3, 59)), Period::Weekly), None);
        assert_eq!(decided(&tried(at(2, 4, 0)), Period::Weekly), why);
        assert_eq!(
            decided(&drifting(at(1, 3, 0)), Period::Never),
            None,
            "an operator who trains by hand is not overruled"
        );
    }
}
