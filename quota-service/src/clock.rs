//! The time of the service.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vocab::UnixSeconds;

/// Wall and monotonic time; replaced in tests.
pub trait Source: Send + Sync {
    fn wall(&self) -> UnixSeconds;
    /// Since any fixed moment.
    fn elapsed(&self) -> Duration;
}

struct System {
    start: Instant,
}

impl Source for System {
    fn wall(&self) -> UnixSeconds {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixSeconds::new(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The present time. A real clock never goes back with the wall clock, which an operator or a time server may set:
/// quotas must not grow younger. It does go forward with it, since a monotonic clock stands still while a machine
/// sleeps. A virtual clock starts at a given time and runs as fast as the real one.
pub struct Clock {
    source: Box<dyn Source>,
    base: UnixSeconds,
    started: Duration,
    is_virtual: bool,
}

impl Clock {
    #[must_use]
    pub fn real() -> Self {
        Self::real_from(Box::new(System { start: Instant::now() }))
    }

    /// A real clock on another source.
    #[must_use]
    pub fn real_from(source: Box<dyn Source>) -> Self {
        let (base, started) = (source.wall(), source.elapsed());
        Self { source, base, started, is_virtual: false }
    }

    /// A clock that shows `start` now.
    #[must_use]
    pub fn starting_at(start: UnixSeconds) -> Self {
        Self {
            source: Box::new(System { start: Instant::now() }),
            base: start,
            started: Duration::ZERO,
            is_virtual: true,
        }
    }

    #[must_use]
    pub const fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    #[must_use]
    pub fn now(&self) -> UnixSeconds {
        let ran = self.source.elapsed().saturating_sub(self.started).as_secs();
        let steady = self.base.plus_s(i64::try_from(ran).unwrap_or(i64::MAX));
        if self.is_virtual { steady } else { steady.max(self.source.wall()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    struct Set {
        wall: Arc<AtomicI64>,
        ran_s: Arc<AtomicI64>,
    }

    impl Source for Set {
        fn wall(&self) -> UnixSeconds {
            UnixSeconds::new(self.wall.load(Ordering::Relaxed))
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.ran_s.load(Ordering::Relaxed).unsigned_abs())
        }
    }

    #[test]
    fn the_clock_does_not_follow_a_wall_clock_that_jumps_back_an_hour() {
        let (wall, ran_s) = (Arc::new(AtomicI64::new(1_000_000)), Arc::new(AtomicI64::new(50)));
        let clock = Clock::real_from(Box::new(Set { wall: wall.clone(), ran_s: ran_s.clone() }));
        assert_eq!(clock.now().get(), 1_000_000);
        wall.store(1_000_000 - 3_600, Ordering::Relaxed);
        ran_s.store(50 + 700, Ordering::Relaxed);
        assert_eq!(clock.now().get(), 1_000_700, "700 s went by");
        wall.store(1_000_000 + 9_000, Ordering::Relaxed);
        assert_eq!(clock.now().get(), 1_009_000, "the machine slept");
    }

    #[test]
    fn a_virtual_clock_starts_at_the_given_time() {
        let clock = Clock::starting_at(UnixSeconds::new(5));
        assert!((5..10).contains(&clock.now().get()));
    }
}
