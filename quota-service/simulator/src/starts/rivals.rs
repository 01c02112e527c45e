//! Answers to be compared with: plans by stated durations, and the waits of the class before.

use crate::world::World;
use starts::{HORIZON_S, LEVELS, PoolFacts, StartExpert, planned_s};
use std::collections::{BTreeMap, VecDeque};
use vocab::{SECONDS_PER_HOUR, TaskClass, TaskId, UnixSeconds};

/// Limits of run time that queues have, in hours.
const LIMITS_HOURS: [i64; 10] = [1, 2, 4, 8, 12, 24, 48, 96, 168, 336];
/// Users ask for twice the time that their jobs need (median of use in Mu'alem and Feitelson 2001: a half).
const ASKED_FACTOR: i64 = 2;
/// Waits older than this are forgotten.
const WAITS_S: i64 = 7 * vocab::SECONDS_PER_DAY;
/// Newest waits whose quantiles count.
const QUANTILES_OF: usize = 300;
/// Before any wait is known.
const UNKNOWN_WAIT_S: f64 = 3_600.0;

/// The run time that a job of this duration asks for, in seconds.
#[must_use]
pub fn requested_s(duration_s: i64) -> i64 {
    let asked_s = duration_s.saturating_mul(ASKED_FACTOR);
    let limits = LIMITS_HOURS.map(|hours| hours * SECONDS_PER_HOUR);
    limits.into_iter().find(|limit| asked_s <= *limit).unwrap_or(asked_s)
}

/// Waits of a class that are over, oldest first: when they ended, and seconds.
#[derive(Debug, Default)]
pub struct Waits(VecDeque<(UnixSeconds, f64)>);

impl Waits {
    pub fn add(&mut self, at: UnixSeconds, wait_s: f64) {
        self.0.push_back((at, wait_s));
        while self.0.pop_front_if(|first| at.since_s(first.0) > WAITS_S).is_some() {}
    }

    #[must_use]
    pub fn mean_s(&self) -> f64 {
        if self.0.is_empty() {
            return UNKNOWN_WAIT_S;
        }
        self.0.iter().map(|one| one.1).sum::<f64>() / self.0.len() as f64
    }

    pub fn quantiles_s(&self) -> [f64; LEVELS.len()] {
        let mut newest: Vec<f64> = self.0.iter().rev().take(QUANTILES_OF).map(|one| one.1).collect();
        newest.sort_by(f64::total_cmp);
        LEVELS.map(|level| {
            let at = level * newest.len().saturating_sub(1) as f64;
            newest.get(at.round() as usize).copied().unwrap_or(UNKNOWN_WAIT_S)
        })
    }
}

/// Stated times of running and waiting tasks.
pub struct Plans<'a> {
    duration_s: BTreeMap<&'a TaskId, i64>,
}

impl<'a> Plans<'a> {
    #[must_use]
    pub fn new(world: &'a World) -> Self {
        Self { duration_s: world.jobs.iter().map(|job| (&job.request.gang.task, job.duration_s)).collect() }
    }

    /// When a plan by these durations starts a waiting task, in seconds; the horizon where it is later.
    pub fn start_s(
        &self,
        (facts, expert): (&PoolFacts, &StartExpert),
        place: usize,
        stated_s: impl Fn(i64) -> i64,
    ) -> f64 {
        let of = |task: &TaskId| stated_s(self.duration_s.get(task).copied().unwrap_or(0));
        let running = facts.running().map(|(task, age_s)| (of(task) - age_s).max(0) as f64).collect();
        let waiting = facts.waiting().map(|task| of(task) as f64).collect();
        planned_s(facts, expert.memory(), (running, waiting), place).unwrap_or(f64::from(HORIZON_S))
    }
}

/// HP, then spot.
#[must_use]
pub const fn number(class: TaskClass) -> usize {
    match class {
        TaskClass::Hp => 0,
        TaskClass::Spot => 1,
    }
}
