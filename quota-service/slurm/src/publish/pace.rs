//! A pause after each failure in a row, twice as long each time.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// When the next attempt may be made.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    until: Option<Instant>,
    failures: u32,
}

impl Pace {
    /// Whether the pause is over.
    #[must_use]
    pub fn may_go(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// Notes how an attempt went.
    pub fn note(&mut self, now: Instant, is_good: bool) {
        if is_good {
            *self = Self::default();
            return;
        }
        self.until = Some(now + (FIRST * 2_u32.saturating_pow(self.failures.min(16))).min(LONGEST));
        self.failures += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_end_with_an_answer() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let pauses: Vec<u64> = (0..8)
            .map(|_| {
                pace.note(start, false);
                (0..100).find(|seconds| pace.may_go(start + Duration::from_secs(*seconds))).unwrap()
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        pace.note(start, true);
        assert!(pace.may_go(start));
    }
}
