//! Which hours may be learned from, which ones choose, which ones test.

use std::fmt;
use vocab::{HorizonHours, HourStart};

/// Issue times from `from` to before `to`, one an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourRange {
    /// First hour.
    pub from: HourStart,
    /// The hour after the last one.
    pub to: HourStart,
}

impl HourRange {
    /// Number of hours.
    #[must_use]
    pub fn hours(self) -> usize {
        usize::try_from(self.to.hours_since(self.from)).unwrap_or(0)
    }

    /// Each hour, in order.
    #[must_use]
    pub fn iter(self) -> impl ExactSizeIterator<Item = HourStart> + Clone {
        (0..self.hours()).map(move |hour| self.from.plus_hours(hour as i64))
    }
}

impl fmt::Display for HourRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to before {}", self.from, self.to)
    }
}

/// Why a history cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    #[error(
        "the history begins at {start} and has {have} h before {until}, and training needs {need} h \
         ({lookback_hours} h lookback, and {} h each to learn and to choose from at {horizon} horizon): \
         ingest more, choose a later time (--until of train, --from of a backtest), or a shorter --lookback",
        (need - lookback_hours) / 2
    )]
    TooShort {
        start: HourStart,
        until: HourStart,
        have: usize,
        need: usize,
        lookback_hours: usize,
        horizon: HorizonHours,
    },
    #[error(
        "no forecast of {horizon} lies between --from {from} and --to {to}: write a later --to, or an earlier --from"
    )]
    EmptyTest { from: HourStart, to: HourStart, horizon: HorizonHours },
}

/// Hours before `until`, split by time: the targets of a training issue time end before the first validation issue
/// time, those of a validation issue time before `until`. So nothing that chooses was learned from, and nothing at or
/// after `until` is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSplit {
    /// End of the history.
    pub until: HourStart,
    /// Hours for training.
    pub train: HourRange,
    /// Hours for validation.
    pub validation: HourRange,
}

impl TimeSplit {
    /// A week shows each hour of the week once.
    pub const VALIDATION_HOURS: usize = vocab::HOURS_PER_WEEK as usize;
    /// Fewer training issue times than this are no basis: a day shows each hour of the day once.
    const LEAST_ISSUES: usize = 24;

    /// Splits the hours from `start` to before `until`. The validation part is [`Self::VALIDATION_HOURS`], or a quarter
    /// of the issue times where the history is short.
    ///
    /// # Errors
    /// Less than a day of issue times would be left to learn or to choose from.
    pub fn new(
        start: HourStart,
        until: HourStart,
        lookback_hours: usize,
        horizon: HorizonHours,
    ) -> Result<Self, SplitError> {
        let have = usize::try_from(until.hours_since(start)).unwrap_or(0);
        // Both parts lose the last horizon − 1 hours, whose targets would cross into the next part.
        let need = lookback_hours + 2 * (Self::LEAST_ISSUES + horizon.steps() - 1);
        if have < need {
            return Err(SplitError::TooShort { start, until, have, need, lookback_hours, horizon });
        }
        let quarter = (have - lookback_hours) / 4;
        let least = Self::LEAST_ISSUES + horizon.steps() - 1;
        let choose = quarter.clamp(least, Self::VALIDATION_HOURS.max(least));
        let validation_from = until.plus_hours(-(choose as i64));
        let crossing = 1 - i64::from(horizon.get());
        Ok(Self {
            until,
            train: HourRange {
                from: start.plus_hours(lookback_hours as i64),
                to: validation_from.plus_hours(crossing),
            },
            validation: HourRange { from: validation_from, to: until.plus_hours(crossing) },
        })
    }
}

/// The issue times of a test from `from` (the first issue hour) to `to` (the last target hour).
///
/// # Errors
/// There is none.
pub fn test_issues(from: HourStart, to: HourStart, horizon: HorizonHours) -> Result<HourRange, SplitError> {
    let issues = HourRange { from, to: to.plus_hours(2 - i64::from(horizon.get())) };
    if issues.hours() == 0 {
        return Err(SplitError::EmptyTest { from, to, horizon });
    }
    Ok(issues)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hour(index: i64) -> HourStart {
        HourStart::from_unix_s(index * 3_600).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(11), ..ProptestConfig::default() })]

        #[test]
        fn no_target_of_one_part_reaches_into_the_next(
            history in 1_i64..5_000, lookback in 1_usize..700, horizon in 1_u64..=168,
        ) {
            let horizon = HorizonHours::new(horizon).unwrap();
            let last_target = |issue: HourStart| issue.plus_hours(i64::from(horizon.get()) - 1);
            if let Ok(split) = TimeSplit::new(hour(0), hour(history), lookback, horizon) {
                prop_assert!(split.train.iter().all(|issue| last_target(issue) < split.validation.from));
                prop_assert!(split.validation.iter().all(|issue| last_target(issue) < split.until));
                prop_assert!(split.train.from == hour(lookback as i64), "the first window is whole");
                prop_assert!(split.train.hours() >= 24 && split.validation.hours() >= 24);
                prop_assert_eq!(last_target(split.validation.iter().last().unwrap()).plus_hours(1), split.until);
            }
        }
    }

    #[test]
    fn a_long_history_is_validated_on_its_last_week() {
        let split = TimeSplit::new(hour(0), hour(4_000), 672, HorizonHours::new(4).unwrap()).unwrap();
        assert_eq!((split.validation.from, split.validation.to), (hour(3_832), hour(3_997)));
        assert_eq!(split.train.to, hour(3_829));
    }

    #[test]
    fn the_test_window_of_a_week_has_165_issue_times_for_four_hours() {
        let issues = test_issues(hour(100), hour(267), HorizonHours::new(4).unwrap()).unwrap();
        assert_eq!((issues.hours(), issues.from, issues.to), (165, hour(100), hour(265)));
        assert!(test_issues(hour(100), hour(102), HorizonHours::new(4).unwrap()).is_err());
    }

    #[test]
    fn a_history_that_is_too_short_says_what_is_missing() {
        let fault = TimeSplit::new(hour(0), hour(200), 168, HorizonHours::new(4).unwrap()).unwrap_err();
        assert!(fault.to_string().contains(", and training needs 222 h"), "{fault}");
    }
}
