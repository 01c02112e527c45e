//! What earlier forecasts of starts were worth, and how that moves the next ones (conformal prediction).
//!
//! Each forecast is held against the start that it was about. At each of some levels the logarithm of the true wait over the
//! forecast one is a residual; the quantile of the residuals at the level moves the next forecasts, so that as many of them
//! as stated are kept. A task that still waits has a residual that is at least as large as its wait so far says
//! (Kaplan and Meier 1958): short waits are known first, and would make all others look short.

use crate::starts::Starts;
use crate::steps::HORIZON_S;
use std::collections::{BTreeMap, VecDeque};
use vocab::{TaskId, UnixSeconds};

/// Levels at which forecasts are scored.
pub const LEVELS: [f64; 7] = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95];
/// Waits below so many seconds are all alike: a step of the futures, and a renewal.
const ALIKE_S: f64 = 300.0;
/// Scored forecasts that are kept, the newest.
const MOST_SCORED: usize = 1_024;
/// Forecasts whose start is not known yet; further tasks are not scored.
const MOST_OPEN: usize = 4_096;
/// Forecasts that a correction of nothing counts for.
const PRIOR_FORECASTS: f64 = 20.0;
/// A forecast counts half as much after so many seconds.
const HALF_LIFE_S: f64 = 2.0 * 86_400.0;
/// Below so many scored forecasts coverage is not known.
pub const LEAST_SCORED: usize = 20;

/// A forecast whose start is not known yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Issued {
    pub at: UnixSeconds,
    /// Seconds by level: before and after the correction.
    pub raw_s: [f32; LEVELS.len()],
    pub served_s: [f32; LEVELS.len()],
}

/// A forecast and its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    pub issued: Issued,
    pub wait_s: f32,
}

/// How forecasts fared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// Forecasts whose start is known.
    pub scored: usize,
    /// Share of starts inside of the interval that was stated with 50 %.
    pub of_50: f64,
    /// The same of 90 %.
    pub of_90: f64,
    /// Mean pinball loss over the levels, in seconds.
    pub pinball_s: f64,
}

/// The scores of a pool's forecasts for one class.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibration {
    pub(crate) open: BTreeMap<TaskId, Issued>,
    /// In the order in which the starts became known.
    pub(crate) scored: VecDeque<Scored>,
}

impl Calibration {
    /// Whether a forecast of a task waits for its start.
    #[must_use]
    pub fn is_open(&self, task: &TaskId) -> bool {
        self.open.contains_key(task)
    }

    /// Notes a forecast. The first one of a wait counts.
    pub fn issue(&mut self, task: &TaskId, at: UnixSeconds, raw: &Starts, served: &Starts) {
        if self.open.len() < MOST_OPEN && !self.open.contains_key(task) {
            let at_levels = |starts: &Starts| LEVELS.map(|level| starts.quantile_s(level) as f32);
            self.open.insert(task.clone(), Issued { at, raw_s: at_levels(raw), served_s: at_levels(served) });
        }
    }

    /// The task started.
    pub fn started(&mut self, task: &TaskId, at: UnixSeconds) {
        let Some(issued) = self.open.remove(task) else { return };
        let wait_s = at.since_s(issued.at).clamp(0, i64::from(HORIZON_S)) as f32;
        self.scored.push_back(Scored { issued, wait_s });
        if self.scored.len() > MOST_SCORED {
            self.scored.pop_front();
        }
    }

    /// Forgets forecasts of tasks that will not start: those for which `is_gone`.
    pub fn forget(&mut self, is_gone: impl Fn(&TaskId) -> bool) {
        self.open.retain(|task, _| !is_gone(task));
    }

    /// A forecast of now as earlier ones suggest it.
    #[must_use]
    pub fn correct(&self, raw: &Starts, now: UnixSeconds) -> Starts {
        let offsets = self.offsets(now);
        raw.moved(|level, start| ((start + ALIKE_S) * between(&offsets, level).exp() - ALIKE_S).max(0.0))
    }

    /// How forecasts fared as they were served; none while there are few.
    #[must_use]
    pub fn coverage(&self) -> Option<Coverage> {
        let count = self.scored.len();
        if count < LEAST_SCORED {
            return None;
        }
        let share = |of: &dyn Fn(&Scored) -> f64| self.scored.iter().map(of).sum::<f64>() / count as f64;
        let within = |low: usize, high: usize| {
            let is_within = |one: &Scored| (one.issued.served_s[low]..=one.issued.served_s[high]).contains(&one.wait_s);
            share(&|one| f64::from(u8::from(is_within(one))))
        };
        let pinball_s = share(&|one| {
            let (wait, served) = (f64::from(one.wait_s), one.issued.served_s);
            let losses = LEVELS.iter().zip(served).map(|(level, at)| pinball(wait, f64::from(at), *level));
            losses.sum::<f64>() / LEVELS.len() as f64
        });
        Some(Coverage { scored: count, of_50: within(2, 4), of_90: within(0, 6), pinball_s })
    }

    /// By level: the quantile of the residuals, drawn to nothing where there are few.
    fn offsets(&self, now: UnixSeconds) -> [f64; LEVELS.len()] {
        std::array::from_fn(|place| {
            let mut residuals: Vec<(f64, bool, f64)> = Vec::with_capacity(self.scored.len() + self.open.len());
            let weight = |at: UnixSeconds| 0.5_f64.powf(now.since_s(at).max(0) as f64 / HALF_LIFE_S);
            let known = self.scored.iter().map(|one| {
                let residual = residual(f64::from(one.wait_s), f64::from(one.issued.raw_s[place]));
                (residual, true, weight(one.issued.at))
            });
            residuals.extend(known);
            residuals.extend(self.open.values().map(|issued| {
                let so_far_s = now.since_s(issued.at).clamp(0, i64::from(HORIZON_S)) as f64;
                (residual(so_far_s, f64::from(issued.raw_s[place])), false, weight(issued.at))
            }));
            let support: f64 = residuals.iter().filter(|one| one.1).map(|one| one.2).sum();
            quantile(&mut residuals, LEVELS[place]) * support / (support + PRIOR_FORECASTS)
        })
    }
}

/// The loss of a quantile at a level.
fn pinball(actual: f64, stated: f64, level: f64) -> f64 {
    if actual > stated { level * (actual - stated) } else { (1.0 - level) * (stated - actual) }
}

fn residual(wait_s: f64, forecast_s: f64) -> f64 {
    ((wait_s + ALIKE_S) / (forecast_s + ALIKE_S)).ln()
}

/// The quantile of weighted residuals, some of which are known as lower bounds alone; the largest known one where it is
/// beyond all of them, and 0 without any.
fn quantile(residuals: &mut [(f64, bool, f64)], level: f64) -> f64 {
    // Of equal ones those that are known come first: they were seen to end before.
    residuals.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    let mut at_risk: f64 = residuals.iter().map(|one| one.2).sum();
    let (mut survival, mut last) = (1.0, 0.0);
    for (residual, is_known, weight) in residuals.iter() {
        if *is_known && at_risk > 0.0 {
            survival *= 1.0 - weight / at_risk;
            last = *residual;
            if survival <= 1.0 - level {
                return last;
            }
        }
        at_risk -= weight;
    }
    last
}

/// Between the offsets of the levels next to one; beyond the outer ones, theirs.
fn between(offsets: &[f64; LEVELS.len()], level: f64) -> f64 {
    let next = LEVELS.partition_point(|known| *known < level);
    if next == 0 || next == LEVELS.len() {
        return offsets[next.min(LEVELS.len() - 1)];
    }
    let part = (level - LEVELS[next - 1]) / (LEVELS[next] - LEVELS[next - 1]);
    offsets[next - 1] * (1.0 - part) + offsets[next] * part
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixSeconds = UnixSeconds::new(1_700_000_000);

    fn task(number: usize) -> TaskId {
        TaskId::parse(&format!("task-{number}")).unwrap()
    }

    /// Forecasts spread evenly up to an hour; true waits are so many times as long.
    fn scored(count: usize, times: f64) -> Calibration {
        let mut calibration = Calibration::default();
        let raw = Starts::of((0..61).map(|path| f64::from(path) * 60.0).collect()).unwrap();
        for number in 0..count {
            let at = NOW.plus_s(-86_400 + number as i64);
            calibration.issue(&task(number), at, &raw, &calibration.correct(&raw, at));
            let wait_s = (number % 61) as f64 * 60.0;
            calibration.started(&task(number), at.plus_s(((wait_s + ALIKE_S) * times - ALIKE_S) as i64));
        }
        calibration
    }

    #[test]
    fn forecasts_that_were_right_are_left_alone_and_those_that_were_short_grow() {
        let raw = Starts::of((0..61).map(|path| f64::from(path) * 60.0).collect()).unwrap();
        let ratio = |times: f64| {
            let corrected = scored(488, times).correct(&raw, NOW);
            (corrected.quantile_s(0.5) + ALIKE_S) / (raw.quantile_s(0.5) + ALIKE_S)
        };
        assert!((ratio(1.0) - 1.0).abs() < 0.05, "{}", ratio(1.0));
        assert!((ratio(3.0) - 3.0).abs() < 0.3, "{}", ratio(3.0));
    }

    #[test]
    fn corrected_forecasts_cover_as_much_as_they_state_though_raw_ones_do_not() {
        let coverage = scored(976, 3.0).coverage().unwrap();
        assert!((0.45..0.56).contains(&coverage.of_50), "{coverage:?}");
        assert!((0.85..0.95).contains(&coverage.of_90), "{coverage:?}");
        assert_eq!(scored(LEAST_SCORED - 1, 1.0).coverage(), None);
    }

    #[test]
    fn tasks_that_still_wait_count_as_waiting_at_least_as_long() {
        let raw = Starts::of((0..61).map(|path| f64::from(path) * 60.0).collect()).unwrap();
        let mut calibration = scored(244, 1.0);
        let before = calibration.correct(&raw, NOW).quantile_s(0.9);
        for number in 1_000..1_244 {
            calibration.issue(&task(number), NOW.plus_s(-40_000), &raw, &raw);
        }
        assert!(calibration.correct(&raw, NOW).quantile_s(0.9) > 1.2 * before);
    }
}
