//! Standing faults: logged when they begin and when they end. A fault of every second or every renewal would otherwise fill
//! the log with one sentence.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A fault that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// From the first failure to the first success.
    pub lasted_s: u64,
    /// How often it failed meanwhile.
    pub times: u64,
}

struct Stands {
    since: Instant,
    times: u64,
}

/// The faults of one kind that stand now, by what they are of: a cluster, a pool, or nothing.
#[derive(Default)]
pub struct Standing(Mutex<BTreeMap<String, Stands>>);

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.lock().unwrap_or_else(PoisonError::into_inner).keys()).finish()
    }
}

impl Standing {
    /// No standing fault.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Notes a failure. Returns whether the fault begins with it, and has to be logged.
    pub fn begins(&self, of: &str) -> bool {
        self.begins_at(of, Instant::now())
    }

    /// Notes a success. Returns the fault that ends with it, if any.
    pub fn is_over(&self, of: &str) -> Option<Over> {
        self.is_over_at(of, Instant::now())
    }

    /// Notes an outcome; calls `begins` for a new fault, and `over` for one that ends.
    pub fn note<E>(&self, of: &str, went: &Result<(), E>, begins: impl FnOnce(&E), over: impl FnOnce(Over)) {
        match went {
            Ok(()) => {
                if let Some(was) = self.is_over(of) {
                    over(was);
                }
            }
            Err(fault) if self.begins(of) => begins(fault),
            Err(_) => {}
        }
    }

    fn begins_at(&self, of: &str, now: Instant) -> bool {
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stands) = standing.get_mut(of) {
            stands.times += 1;
            return false;
        }
        standing.insert(of.to_owned(), Stands { since: now, times: 1 });
        true
    }

    fn is_over_at(&self, of: &str, now: Instant) -> Option<Over> {
        let stands = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(of)?;
        Some(Over { lasted_s: now.saturating_duration_since(stands.since).as_secs(), times: stands.times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_fault_is_reported_at_its_begin_and_at_its_end_with_duration_and_count() {
        let (standing, start) = (Standing::new(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(standing.is_over_at("a", at(0)), None, "nothing stood");
        assert_eq!([0, 300, 600].map(|seconds| standing.begins_at("a", at(seconds))), [true, false, false]);
        assert_eq!(standing.is_over_at("a", at(900)), Some(Over { lasted_s: 900, times: 3 }));
        assert_eq!(standing.is_over_at("a", at(901)), None, "it is reported once");
        assert!(standing.begins_at("a", at(902)), "the next one is a new one");
    }

    #[test]
    fn each_has_a_fault_of_its_own() {
        let (standing, now) = (Standing::new(), Instant::now());
        assert!(standing.begins_at("a", now) && standing.begins_at("b", now));
        assert_eq!(standing.is_over_at("a", now).map(|over| over.times), Some(1));
        assert!(!standing.begins_at("b", now));
    }
}
