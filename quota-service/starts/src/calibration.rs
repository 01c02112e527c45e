//! The worth of earlier forecasts of starts, and how it moves the next ones.
//!
//! Each forecast is held against the start that it was about: the level of its distribution at which the task started. Right
//! forecasts have levels spread evenly from 0 to 1. The p-quantile of a forecast becomes the one at the p-quantile of the
//! levels of earlier forecasts of about as long a wait (quantile recalibration, Kuleshov et al. 2018). A start beyond all futures
//! has a level beyond 1, by the logarithm of the time that it took longer. A task that still waits has a level that is at least
//! that of its wait so far (Kaplan and Meier 1958): short waits are known first, and would make all others look short.

use crate::expert::Forecast;
use crate::mixing::{COUNTS_HALF_S, Contest, Waited};
use crate::starts::Starts;
use crate::steps::HORIZON_S;
use crate::waits::Usual;
use std::collections::{BTreeMap, VecDeque};
use vocab::{SECONDS_PER_HOUR, TaskId, UnixSeconds};

/// Levels at which forecasts are scored.
pub const LEVELS: [f64; 7] = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95];
/// Points of a forecast that are kept: its least start, its largest, and quantiles between them.
pub(crate) const POINTS: usize = 25;
/// Waits below so many seconds are all alike: a step of the futures, and a renewal.
const ALIKE_S: f64 = 300.0;
/// Scored forecasts that are kept, the newest.
const MOST_SCORED: usize = 1_024;
/// Forecasts whose start is not known yet; further tasks are not scored.
const MOST_OPEN: usize = 4_096;
/// Forecasts that levels spread evenly count for.
const PRIOR_FORECASTS: f64 = 20.0;
/// A forecast counts half as much after so many seconds.
const HALF_LIFE_S: f64 = 2.0 * 86_400.0;
/// Forecasts of one hour count as this many at most: what they are about comes together.
const MOST_OF_AN_HOUR: f64 = 2.0;
/// How far forecasts of other waits count: as a Gaussian of so much in the logarithm of the median.
const ALIKE_WIDTH: f64 = 1.0;
/// Medians are distinguished in steps of so much in their logarithm.
const MEDIAN_STEP: f64 = 0.25;
/// Below so many scored forecasts coverage is not known.
pub const LEAST_SCORED: usize = 20;

/// A forecast whose start is not known yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Issued {
    pub at: UnixSeconds,
    /// Seconds, before the correction.
    pub points_s: [f32; POINTS],
    /// Seconds by level, after it.
    pub corrected_s: [f32; LEVELS.len()],
    /// The waits of the class, as they were known; none where there were few.
    pub usual: Option<Usual>,
    /// Seconds by level, as served.
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
    /// The same of the mean wait of the class, of all forecasts beside which it was known; none while they are few.
    pub class_mean_pinball_s: Option<f64>,
}

/// The scores of a pool's forecasts for one class.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibration {
    pub(crate) open: BTreeMap<TaskId, Issued>,
    /// In the order in which the starts became known.
    pub(crate) scored: VecDeque<Scored>,
}

/// Corrections of one moment, by the median of what is corrected.
pub(crate) struct Corrections<'a> {
    calibration: &'a Calibration,
    now: UnixSeconds,
    /// By hour: what each of its forecasts counts.
    parts: BTreeMap<i64, f64>,
    contest: Contest,
    known: BTreeMap<i64, Levels>,
}

impl Corrections<'_> {
    /// A forecast as earlier ones suggest it, beside what waits of the class usually are; its doubts are not known here.
    pub fn of(&mut self, raw: Starts, usual: Option<&Starts>) -> Forecast {
        let step = (log(raw.quantile_s(0.5)) / MEDIAN_STEP).round() as i64;
        let (calibration, now, parts) = (self.calibration, self.now, &self.parts);
        let levels = || calibration.levels((now, parts), step as f64 * MEDIAN_STEP);
        let levels = self.known.entry(step).or_insert_with(levels);
        let points = points_of(&raw);
        let corrected = raw.moved(|level, _| at_level(&points, levels.quantile(level)));
        let starts = self.contest.mix(&corrected, usual);
        Forecast { starts, raw, corrected, usual: usual.map(Usual::of), doubts: Vec::new() }
    }
}

impl Calibration {
    pub(crate) const fn new() -> Self {
        Self { open: BTreeMap::new(), scored: VecDeque::new() }
    }

    /// Whether a forecast of a task waits for its start.
    #[must_use]
    pub fn is_open(&self, task: &TaskId) -> bool {
        self.open.contains_key(task)
    }

    /// Notes a forecast. The first one of a wait counts.
    pub fn issue(&mut self, task: &TaskId, at: UnixSeconds, forecast: &Forecast) {
        if self.open.len() < MOST_OPEN && !self.open.contains_key(task) {
            let at_levels = |starts: &Starts| LEVELS.map(|level| starts.quantile_s(level) as f32);
            let issued = Issued {
                at,
                points_s: points_of(&forecast.raw).map(|point| point as f32),
                corrected_s: at_levels(&forecast.corrected),
                usual: forecast.usual,
                served_s: at_levels(&forecast.starts),
            };
            self.open.insert(task.clone(), issued);
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
    pub fn correct(&self, raw: &Starts, now: UnixSeconds) -> Forecast {
        self.corrections(now).of(raw.clone(), None)
    }

    pub(crate) fn corrections(&self, now: UnixSeconds) -> Corrections<'_> {
        let mut parts = BTreeMap::new();
        for issued in self.scored.iter().map(|one| &one.issued).chain(self.open.values()) {
            *parts.entry(hour(issued)).or_insert(0.0) += 1.0;
        }
        for count in parts.values_mut() {
            *count = f64::min(1.0, MOST_OF_AN_HOUR / *count);
        }
        let mut contest = Contest::default();
        for (issued, waited) in self.waited(now) {
            let age = now.since_s(issued.at).max(0) as f64 / COUNTS_HALF_S;
            contest.learn(issued, waited, parts[&hour(issued)] * 0.5_f64.powf(age));
        }
        Corrections { calibration: self, now, parts, contest, known: BTreeMap::new() }
    }

    /// All forecasts, with how long their tasks waited until they started, or until now.
    fn waited(&self, now: UnixSeconds) -> impl Iterator<Item = (&Issued, Waited)> {
        let known = self.scored.iter().map(|one| (&one.issued, Waited::Until(f64::from(one.wait_s))));
        let so_far_s = move |issued: &Issued| now.since_s(issued.at).clamp(0, i64::from(HORIZON_S)) as f64;
        known.chain(self.open.values().map(move |issued| (issued, Waited::SoFar(so_far_s(issued)))))
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
        let pinball_s = share(&|one| Waited::Until(f64::from(one.wait_s)).loss_s(&one.issued.served_s));
        let beside = self.scored.iter().filter_map(|one| {
            let mean_s = one.issued.usual?.mean_s;
            Some(Waited::Until(f64::from(one.wait_s)).loss_s(&[mean_s; LEVELS.len()]))
        });
        let beside: Vec<f64> = beside.collect();
        let class_mean_pinball_s =
            (beside.len() >= LEAST_SCORED).then(|| beside.iter().sum::<f64>() / beside.len() as f64);
        Some(Coverage { scored: count, of_50: within(2, 4), of_90: within(0, 6), pinball_s, class_mean_pinball_s })
    }

    /// The levels at which tasks started whose forecasts had about this median (its logarithm).
    fn levels(&self, (now, parts): (UnixSeconds, &BTreeMap<i64, f64>), median: f64) -> Levels {
        let weighed = self.waited(now).map(|(issued, waited)| {
            let points = issued.points_s.map(f64::from);
            let apart = (log(points[POINTS / 2]) - median) / ALIKE_WIDTH;
            let age = now.since_s(issued.at).max(0) as f64 / HALF_LIFE_S;
            let weight = parts[&hour(issued)] * 0.5_f64.powf(age) * (-0.5 * apart * apart).exp();
            let (Waited::Until(wait_s) | Waited::SoFar(wait_s)) = waited;
            (level_of(&points, wait_s), matches!(waited, Waited::Until(_)), weight)
        });
        let even =
            (0..POINTS).map(|place| ((place as f64 + 0.5) / POINTS as f64, true, PRIOR_FORECASTS / POINTS as f64));
        Levels::of(weighed.chain(even).collect())
    }
}

/// Levels at which tasks started, with the share of tasks that started up to each.
struct Levels {
    shares: Vec<(f64, f64)>,
    /// The largest of all, known or a lower bound.
    largest: f64,
}

impl Levels {
    /// Of weighed levels, some of which are known as lower bounds alone.
    fn of(mut levels: Vec<(f64, bool, f64)>) -> Self {
        // Of equal ones those that are known come first: they were seen to end before.
        levels.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
        let mut at_risk: f64 = levels.iter().map(|one| one.2).sum();
        let (mut survival, mut shares) = (1.0, Vec::new());
        let largest = levels.last().map_or(1.0, |one| one.0);
        for (level, is_known, weight) in levels {
            if is_known && at_risk > 0.0 {
                survival *= 1.0 - weight / at_risk;
                shares.push((level, 1.0 - survival));
            }
            at_risk -= weight;
        }
        Self { shares, largest }
    }

    /// The largest of all where the quantile is beyond those that are known.
    fn quantile(&self, share: f64) -> f64 {
        let place = self.shares.partition_point(|one| one.1 < share);
        self.shares.get(place).map_or(self.largest, |one| one.0)
    }
}

/// Forecasts of one hour count together.
fn hour(issued: &Issued) -> i64 {
    issued.at.get().div_euclid(SECONDS_PER_HOUR)
}

fn points_of(raw: &Starts) -> [f64; POINTS] {
    std::array::from_fn(|place| raw.quantile_s(place as f64 / (POINTS - 1) as f64))
}

fn log(seconds: f64) -> f64 {
    (seconds + ALIKE_S).ln()
}

/// The level of a forecast at which a time is: in the middle of those that have the same time, and beyond 0 and 1 by logarithms.
fn level_of(points: &[f64; POINTS], seconds: f64) -> f64 {
    let level = |place: usize| place as f64 / (POINTS - 1) as f64;
    let (below, up_to) = (points.partition_point(|at| *at < seconds), points.partition_point(|at| *at <= seconds));
    if below == POINTS {
        return 1.0 + log(seconds) - log(points[POINTS - 1]);
    }
    if up_to == 0 {
        return log(seconds) - log(points[0]);
    }
    if up_to > below {
        return f64::midpoint(level(below), level(up_to - 1));
    }
    let (from, to) = (points[below - 1], points[below]);
    level(below - 1) + (seconds - from) / (to - from) / (POINTS - 1) as f64
}

/// The time of a level in seconds: the inverse of [`level_of`] where times differ.
fn at_level(points: &[f64; POINTS], level: f64) -> f64 {
    if level > 1.0 {
        return (points[POINTS - 1] + ALIKE_S) * (level - 1.0).exp() - ALIKE_S;
    }
    if level < 0.0 {
        return ((points[0] + ALIKE_S) * level.exp() - ALIKE_S).max(0.0);
    }
    let at = level * (POINTS - 1) as f64;
    let low = (at.floor() as usize).min(POINTS - 2);
    points[low] + (at - low as f64) * (points[low + 1] - points[low])
}

/// The loss of a quantile at a level.
pub(crate) fn pinball(actual: f64, stated: f64, level: f64) -> f64 {
    if actual > stated { level * (actual - stated) } else { (1.0 - level) * (stated - actual) }
}

#[cfg(test)]
mod tests;
