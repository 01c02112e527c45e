//! How many events are written. Pure: instants are passed in.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The same event of the same object is written once in this time.
const SAME_AFTER: Duration = Duration::from_mins(5);
/// Events that may come at once.
const BURST: f64 = 20.0;
/// Events of all objects in the long run, per second.
const RATE_PER_S: f64 = 0.5;
/// Events that are remembered at most.
const REMEMBERED: usize = 4_096;

/// A bucket for all events, and the last time of each.
#[derive(Debug, Default)]
pub struct Limiter {
    last: BTreeMap<String, Instant>,
    left: Option<(f64, Instant)>,
}

impl Limiter {
    /// Whether an event may be written now; it counts then.
    pub fn admits(&mut self, now: Instant, of: String) -> bool {
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < SAME_AFTER;
        if self.last.get(&of).is_some_and(is_recent) {
            return false;
        }
        let (left, at) = self.left.unwrap_or((BURST, now));
        let left = (left + now.saturating_duration_since(at).as_secs_f64() * RATE_PER_S).min(BURST);
        if left < 1.0 {
            self.left = Some((left, now));
            return false;
        }
        self.left = Some((left - 1.0, now));
        if self.last.len() >= REMEMBERED {
            self.last.retain(|_, at| is_recent(at));
        }
        self.last.insert(of, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_event_is_written_once_in_five_minutes_and_all_together_one_in_two_seconds() {
        let (mut limiter, start) = (Limiter::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut admits = |seconds, of: &str| limiter.admits(at(seconds), of.to_owned());
        assert_eq!([admits(0, "a"), admits(299, "a"), admits(300, "a")], [true, false, true]);
        let burst = (0..40).filter(|number| admits(300, &format!("b{number}"))).count();
        assert_eq!(burst, 19, "one of twenty was a");
        let later = (0..40).filter(|second| admits(301 + second, &format!("c{second}"))).count();
        assert_eq!(later, 20);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut limiter, start) = (Limiter::default(), Instant::now());
        for number in 0..3 * REMEMBERED as u64 {
            limiter.admits(start + Duration::from_secs(2 * number), number.to_string());
        }
        assert!(limiter.last.len() <= REMEMBERED);
    }
}
