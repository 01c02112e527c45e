//! Knowledge of the starts of one pool.

use starts::{Forecast, HORIZON_S, PoolFacts, StartExpert};
use std::collections::BTreeMap;
use vocab::{TaskId, UnixSeconds};
use wire::StartSpanBody;

/// Changes below so many seconds, and below this share of the wait, are not announced.
const SHARE_OF_WAIT: f64 = 0.25;
/// A task is announced at most once in so many seconds.
const ANNOUNCED_EVERY_S: i64 = 600;
/// Tasks announced at once, those that moved most; others have to wait for the next round.
const MOST_ANNOUNCED: usize = 100;

/// The jobs of a pool, and the last forecasts of its waiting tasks.
#[derive(Debug, Default)]
pub struct Known {
    pub expert: StartExpert,
    seen_at: Option<UnixSeconds>,
    pub expected: BTreeMap<TaskId, Expected>,
    /// When the expert was stored last.
    pub saved_at: Option<UnixSeconds>,
}

/// The expected start of a waiting task. None: beyond the horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub at: UnixSeconds,
    pub p50: Option<UnixSeconds>,
    pub p90: Option<UnixSeconds>,
    /// The median that was announced last, and when.
    announced: (Option<UnixSeconds>, UnixSeconds),
}

impl Known {
    #[must_use]
    pub fn of(expert: StartExpert) -> Self {
        Self { expert, ..Self::default() }
    }

    /// Learns from the facts, unless later ones were seen already.
    pub fn observe(&mut self, facts: &PoolFacts) {
        if self.seen_at.is_none_or(|seen| seen <= facts.at()) {
            self.expert.observe(facts);
            self.seen_at = Some(facts.at());
        }
    }

    /// Notes a forecast that was asked for.
    pub fn note(&mut self, task: &TaskId, now: UnixSeconds, forecast: &Forecast) {
        let expected = Expected::of(now, forecast);
        let announced = self.expected.get(task).map_or(expected.announced, |before| before.announced);
        self.expected.insert(task.clone(), Expected { announced, ..expected });
    }

    /// Forecasts all waiting tasks. Answers those whose median moved by at least `moved_s` (0: none), with the one that was announced.
    pub fn forecast(&mut self, facts: &PoolFacts, seed: u64, moved_s: u64) -> Vec<(TaskId, StartSpanBody)> {
        self.observe(facts);
        let (now, before) = (facts.at(), std::mem::take(&mut self.expected));
        let mut moved = Vec::new();
        for (task, forecast) in self.expert.issue(facts, seed) {
            let mut expected = Expected::of(now, &forecast);
            if let Some(before) = before.get(&task) {
                expected.announced = before.announced;
                moved.extend(expected.moved_s(moved_s).map(|by_s| (by_s, task.clone())));
            }
            self.expected.insert(task, expected);
        }
        // The largest move comes first; names decide among equals.
        moved.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        moved.truncate(MOST_ANNOUNCED);
        let body = |(_, task): (i64, TaskId)| {
            let expected = self.expected.get_mut(&task)?;
            let announced = std::mem::replace(&mut expected.announced, (expected.p50, now)).0;
            Some((task, expected.body(announced)))
        };
        moved.into_iter().filter_map(body).collect()
    }
}

impl Expected {
    fn of(now: UnixSeconds, forecast: &Forecast) -> Self {
        let at = |level| {
            let wait_s = forecast.starts.quantile_s(level);
            (wait_s < f64::from(HORIZON_S)).then(|| now.plus_s(wait_s.ceil() as i64))
        };
        let (p50, p90) = (at(0.5), at(0.9));
        Self { at: now, p50, p90, announced: (p50, now) }
    }

    /// By how many seconds the median moved since it was announced, where that is to be announced.
    fn moved_s(&self, least_s: u64) -> Option<i64> {
        let (announced, at) = self.announced;
        if least_s == 0 || self.at.since_s(at) < ANNOUNCED_EVERY_S {
            return None;
        }
        let horizon = self.at.plus_s(i64::from(HORIZON_S));
        let (now, before) = (self.p50.unwrap_or(horizon), announced.unwrap_or(horizon));
        if self.p50.is_none() && announced.is_none() {
            return None;
        }
        let by_s = now.since_s(before).abs();
        let wait_s = now.since_s(self.at).max(before.since_s(self.at)).max(0);
        let least_s = (least_s as f64).max(SHARE_OF_WAIT * wait_s as f64);
        (by_s as f64 >= least_s).then_some(by_s)
    }

    /// `before`: the median that was announced before, in an event.
    #[must_use]
    pub fn body(&self, before: Option<UnixSeconds>) -> StartSpanBody {
        let text = |at: Option<UnixSeconds>| at.map(|at| at.to_string());
        StartSpanBody { p50: text(self.p50), p90: text(self.p90), as_of: self.at.to_string(), before: text(before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixSeconds = UnixSeconds::new(1_790_000_000);

    /// By how much a median moved that was announced in so many seconds, long ago.
    fn moved(announced_in_s: Option<i64>, now_in_s: Option<i64>, ago_s: i64) -> Option<i64> {
        let announced = (announced_in_s.map(|seconds| NOW.plus_s(seconds)), NOW.plus_s(-ago_s));
        Expected { at: NOW, p50: now_in_s.map(|seconds| NOW.plus_s(seconds)), p90: None, announced }.moved_s(1_800)
    }

    #[test]
    fn a_start_that_moved_much_is_announced_and_at_most_once_in_ten_minutes() {
        assert_eq!(moved(Some(3_600), Some(7_200), 600), Some(3_600));
        assert_eq!(moved(Some(7_200), Some(3_600), 600), Some(3_600), "earlier");
        assert_eq!(moved(Some(3_600), Some(7_200), 599), None, "announced just now");
        assert_eq!(moved(Some(3_600), Some(5_399), 600), None, "half an hour is the least");
        assert_eq!(moved(Some(36_000), Some(40_000), 600), None, "a quarter of a long wait is the least");
        assert_eq!(moved(Some(36_000), None, 600), Some(i64::from(HORIZON_S) - 36_000));
        assert_eq!(moved(None, None, 600), None, "beyond the horizon, as before");
        let never = Expected { at: NOW, p50: None, p90: None, announced: (Some(NOW), NOW.plus_s(-9_000)) };
        assert_eq!(never.moved_s(0), None);
    }
}
