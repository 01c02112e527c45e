//! Pauses between tries.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// The longest that is kept of those that an answer names: a proxy may name years, and a number that no clock holds.
const LONGEST_NAMED: Duration = Duration::from_mins(10);
/// The shortest of those that an answer names: at `Retry-After: 0` a client would ask without a pause.
const SHORTEST_NAMED: Duration = FIRST;

/// Pauses of 1, 2, 4 and at most 30 seconds, each shortened at random by up to 30 %, so that clients do not all come back at once.
#[derive(Debug)]
pub struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Pauses {
    /// The next pause; `named` is the one that the service asks for: a second at least, ten minutes at most.
    pub fn next(&mut self, named: Option<Duration>) -> Duration {
        let pause = self.next;
        self.next = (2 * pause).min(LONGEST);
        named.map_or_else(|| pause.mul_f64(0.7 + 0.3 * share()), |named| named.clamp(SHORTEST_NAMED, LONGEST_NAMED))
    }
}

/// A number between 0 and 1. Each hasher of the standard library has new random keys.
fn share() -> f64 {
    let drawn = RandomState::new().hash_one(0_u8);
    (drawn >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_a_named_one_is_kept_from_a_second_to_ten_minutes() {
        let mut pauses = Pauses::default();
        for expected_s in [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] {
            let pause_s = pauses.next(None).as_secs_f64();
            assert!((0.7 * expected_s..=expected_s).contains(&pause_s), "{pause_s} of {expected_s}");
        }
        assert_eq!(pauses.next(Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(pauses.next(Some(Duration::from_secs(u64::MAX))), LONGEST_NAMED);
        assert_eq!(pauses.next(Some(Duration::ZERO)), Duration::from_secs(1));
    }
}
