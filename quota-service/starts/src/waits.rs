//! Waits of a class that are over: what a forecast says that knows nothing of the pool.

use crate::calibration::LEVELS;
use crate::starts::Starts;
use crate::steps::HORIZON_S;
use std::collections::VecDeque;
use vocab::{SECONDS_PER_DAY, UnixSeconds};

/// Waits that are kept, the newest.
const MOST_WAITS: usize = 300;
/// Waits older than a week say nothing of now.
const OLDEST_S: i64 = 7 * SECONDS_PER_DAY;
/// Below so many waits nothing is stated.
const LEAST_WAITS: usize = 5;

/// Waits of a class from submission to first start, oldest first: when they ended, and seconds, at most [`HORIZON_S`].
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Waits(pub VecDeque<(UnixSeconds, f32)>);

/// The statement of past waits about one that has just begun.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usual {
    /// Seconds by level.
    pub levels_s: [f32; LEVELS.len()],
    /// Their mean, in seconds.
    pub mean_s: f32,
}

impl Waits {
    /// Notes a wait that ended at a time; calls come in its order.
    pub fn add(&mut self, at: UnixSeconds, wait_s: i64) {
        self.0.push_back((at, wait_s.clamp(0, i64::from(HORIZON_S)) as f32));
        if self.0.len() > MOST_WAITS {
            self.0.pop_front();
        }
    }

    /// The rest of waits that were longer than one is so far; none where there are few of them.
    pub fn left(&self, now: UnixSeconds, so_far_s: i64) -> Option<Starts> {
        let so_far_s = so_far_s.max(0) as f64;
        let recent = self.0.iter().filter(|(at, _)| now.since_s(*at) <= OLDEST_S);
        let longer = recent.map(|(_, wait_s)| f64::from(*wait_s)).filter(|wait_s| *wait_s > so_far_s);
        let left: Vec<f64> = longer.map(|wait_s| wait_s - so_far_s).collect();
        (left.len() >= LEAST_WAITS).then(|| Starts::of(left)).flatten()
    }
}

impl Usual {
    pub fn of(waits: &Starts) -> Self {
        let mean_s = waits.each().sum::<f64>() / waits.futures() as f64;
        Self { levels_s: LEVELS.map(|level| waits.quantile_s(level) as f32), mean_s: mean_s as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixSeconds = UnixSeconds::new(1_790_000_000);

    #[test]
    fn of_a_wait_that_lasts_only_what_is_left_of_longer_ones_counts() {
        let mut waits = Waits::default();
        for minutes in 1..=10 {
            waits.add(NOW, minutes * 60);
        }
        assert_eq!(waits.left(NOW, -60).unwrap().futures(), 10);
        let left = waits.left(NOW, 300).unwrap();
        assert_eq!((left.futures(), left.quantile_s(0.0), left.quantile_s(1.0)), (5, 60.0, 300.0));
        assert_eq!(waits.left(NOW, 360), None, "four are too few");
        assert_eq!(waits.left(NOW.plus_s(OLDEST_S + 1), 0), None, "all are old");
        assert_eq!(Usual::of(&left).mean_s, 180.0);
    }

    #[test]
    fn the_newest_waits_are_kept_and_none_is_longer_than_the_horizon() {
        let mut waits = Waits::default();
        for number in 0..=MOST_WAITS as i64 {
            waits.add(NOW, number * 1_000);
        }
        let all = waits.left(NOW, 0).unwrap();
        assert_eq!((all.futures(), all.quantile_s(0.0), all.quantile_s(1.0)), (300, 1_000.0, f64::from(HORIZON_S)));
    }
}
