//! When the API server may be written to again.

use crate::calls::Fault;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// A pause of all writes: as long as a busy server says, and twice as long after each failure in a row.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    until: Option<Instant>,
    failures: u32,
}

impl Pace {
    #[must_use]
    pub fn may_write(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// Notes how a request went.
    pub fn note(&mut self, now: Instant, went: Result<(), &Fault>) {
        match went {
            Err(Fault::Throttled { after }) => self.until = Some(now + *after),
            Err(Fault::Failed { .. }) => {
                self.until = Some(now + (FIRST * 2_u32.saturating_pow(self.failures.min(16))).min(LONGEST));
                self.failures += 1;
            }
            Ok(()) | Err(_) => *self = Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_end_with_an_answer() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let failed = Fault::Failed { detail: String::new() };
        let pauses: Vec<u64> = (0..8)
            .map(|_| {
                pace.note(start, Err(&failed));
                (0..).find(|seconds| pace.may_write(start + Duration::from_secs(*seconds))).unwrap()
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        pace.note(start, Err(&Fault::Throttled { after: Duration::from_secs(7) }));
        assert!(!pace.may_write(start + Duration::from_secs(6)) && pace.may_write(start + Duration::from_secs(7)));
        pace.note(start, Ok(()));
        assert!(pace.may_write(start));
    }
}
