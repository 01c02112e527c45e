//! A circuit breaker: after some late answers in a row, neutral ones go out at once for a while.
//!
//! The scheduler waits for an answer with one pod at a time. An extender whose work takes longer than the deadline would cost each pod
//! the deadline twice, in filter and prioritize.

use std::time::{Duration, Instant};

/// Late answers in a row after which it opens.
const LATE_MOST: u32 = 3;
/// How long it stays open. Then one request is tried.
const OPEN_FOR: Duration = Duration::from_secs(5);

/// State of the breaker. Pure: instants are passed in.
#[derive(Debug, Clone, Default)]
pub struct Breaker {
    late: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    /// Whether a request is worked on; if not, it is answered neutrally at once.
    #[must_use]
    pub fn is_closed(&self, now: Instant) -> bool {
        self.open_until.is_none_or(|until| until <= now)
    }

    /// Notes an answer. Answers whether the breaker opens or closes with it.
    pub fn note(&mut self, now: Instant, in_time: bool) -> Option<Turn> {
        if in_time {
            self.late = 0;
            return self.open_until.take().map(|_| Turn::Closes);
        }
        self.late = self.late.saturating_add(1);
        if self.late < LATE_MOST {
            return None;
        }
        let was_open = self.open_until.replace(now + OPEN_FOR).is_some();
        (!was_open).then_some(Turn::Opens)
    }
}

/// A change of the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Opens,
    Closes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_three_late_answers_in_a_row_and_tries_one_after_five_seconds() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert_eq!([false, false, true, false, false].map(|in_time| breaker.note(at(0), in_time)), [None; 5]);
        assert!(breaker.is_closed(at(0)), "an answer in time lies between");
        assert_eq!(breaker.note(at(0), false), Some(Turn::Opens));
        assert!(!breaker.is_closed(at(4_999)) && breaker.is_closed(at(5_000)));
        assert_eq!(breaker.note(at(5_100), false), None, "it stays open");
        assert!(!breaker.is_closed(at(10_000)));
        assert_eq!(breaker.note(at(10_200), true), Some(Turn::Closes));
        assert!(breaker.is_closed(at(10_200)));
        assert_eq!(breaker.note(at(10_300), false), None);
    }
}
