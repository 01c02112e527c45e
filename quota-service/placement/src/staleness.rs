//! How a quota ages. Never a larger one out of ignorance.

use vocab::{MilliGpus, UnixSeconds};

/// A quota is fresh for this long after it was computed; it is renewed every 300 s (GFS table 4), so one renewal may
/// fail.
pub const VALID_S: i64 = 600;
/// Then its last value stands for this long.
pub const STALE_S: i64 = 1_800;
/// Usage older than this counts as a missing input.
pub const USAGE_MAX_AGE_S: i64 = 7_200;
/// Clocks of two machines may differ by this much; more means that one of them jumped.
const CLOCK_TOLERANCE_S: i64 = 300;

/// The stage of a quota by its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Computed within the validity of a quota, 600 s.
    Fresh,
    /// Not renewed in time; the last value stands.
    Stale,
    /// Not renewed for long: nothing new is admitted, nothing is evicted.
    Conservative,
}

impl Stage {
    /// Name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Conservative => "conservative",
        }
    }
}

/// The stage of a quota computed at `computed_at`, and when it ends; a conservative one has no end.
///
/// A quota from the future was computed by a clock that has since jumped back: its age is unknown.
#[must_use]
pub fn stage(computed_at: UnixSeconds, now: UnixSeconds) -> (Stage, Option<UnixSeconds>) {
    let valid_until = computed_at.plus_s(VALID_S);
    let stale_until = valid_until.plus_s(STALE_S);
    if now.plus_s(CLOCK_TOLERANCE_S) < computed_at {
        (Stage::Conservative, None)
    } else if now < valid_until {
        (Stage::Fresh, Some(valid_until))
    } else if now < stale_until {
        (Stage::Stale, Some(stale_until))
    } else {
        (Stage::Conservative, None)
    }
}

/// The answer at a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// Quota at this age, in GPUs.
    pub quota: MilliGpus,
    /// GPUs that may still be admitted.
    pub available: MilliGpus,
}

/// The last value, or, when conservative, no more of it than spot tasks hold. `held` is what they hold now: what was
/// admitted since is not available a second time, and what ended since does not come back before the next renewal.
#[must_use]
pub fn answered(stage: Stage, last: Answered, held: MilliGpus) -> Answered {
    let quota = match stage {
        Stage::Fresh | Stage::Stale => last.quota,
        Stage::Conservative => last.quota.min(held),
    };
    Answered { quota, available: quota.left_after(held).min(last.available) }
}

/// Whether usage is too old to forecast from. `newest_hour_end` is the end of the newest measured hour.
#[must_use]
pub fn usage_is_missing(newest_hour_end: UnixSeconds, now: UnixSeconds) -> bool {
    now.since_s(newest_hour_end) > USAGE_MAX_AGE_S
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPUTED: UnixSeconds = UnixSeconds::new(1_000_000);

    #[test]
    fn a_quota_is_fresh_then_stale_then_conservative() {
        let at = |age_s| stage(COMPUTED, COMPUTED.plus_s(age_s)).0;
        assert_eq!([0, 599].map(at), [Stage::Fresh; 2]);
        assert_eq!([600, 2_399].map(at), [Stage::Stale; 2]);
        assert_eq!([2_400, 1_000_000].map(at), [Stage::Conservative; 2]);
    }

    #[test]
    fn after_the_clock_jumped_back_an_hour_the_quota_is_conservative() {
        assert_eq!(stage(COMPUTED, COMPUTED.plus_s(-300)).0, Stage::Fresh);
        assert_eq!(stage(COMPUTED, COMPUTED.plus_s(-3_600)).0, Stage::Conservative);
    }

    #[test]
    fn when_conservative_nothing_new_is_admitted_and_nothing_evicted() {
        let answer = |quota, available| Answered {
            quota: MilliGpus::from_gpus(quota),
            available: MilliGpus::from_gpus(available),
        };
        let held = MilliGpus::from_gpus;
        assert_eq!(answered(Stage::Stale, answer(40, 15), held(25)), answer(40, 15));
        assert_eq!(answered(Stage::Conservative, answer(40, 15), held(25)), answer(25, 0));
        assert_eq!(answered(Stage::Conservative, answer(25, 5), held(40)), answer(25, 0), "never more than the last");
    }

    #[test]
    fn while_stale_what_was_admitted_since_is_not_available_again() {
        let answer = |quota, available| Answered {
            quota: MilliGpus::from_gpus(quota),
            available: MilliGpus::from_gpus(available),
        };
        let held = MilliGpus::from_gpus;
        assert_eq!(answered(Stage::Stale, answer(40, 15), held(35)), answer(40, 5), "10 GPUs were admitted since");
        assert_eq!(answered(Stage::Stale, answer(40, 15), held(10)), answer(40, 15), "what ended does not add up");
    }

    #[test]
    fn usage_is_missing_after_two_hours() {
        assert!(!usage_is_missing(COMPUTED, COMPUTED.plus_s(7_200)));
        assert!(usage_is_missing(COMPUTED, COMPUTED.plus_s(7_201)));
    }
}
