//! Futures of a pool, and the starts in them.

use crate::course::Course;
use crate::facts::PoolFacts;
use crate::memory::JobMemory;
use crate::path::{Path, Times};
use crate::plan::{Lifetimes, Plan, Stated};
use crate::steps::HORIZON_S;

/// Numbers of futures that may be asked for: primes, each about half as large again as the one before.
const FUTURES: [u32; 7] = [13, 23, 37, 61, 97, 149, 199];
/// Tasks in all futures together: about so many are played in 40 ms (bench `starts`).
const MOST_TASKS: usize = 400_000;

/// How many futures are drawn of a pool: fewer of a large one.
#[must_use]
pub fn futures_of(facts: &PoolFacts, memory: &JobMemory) -> u32 {
    let arriving = memory.arrivals_a_day() * (HORIZON_S / 86_400) as usize;
    let tasks = facts.running.len() + facts.waiting.len() + arriving;
    let affordable = FUTURES.iter().rev().find(|futures| **futures as usize * tasks.max(1) <= MOST_TASKS);
    affordable.copied().unwrap_or(FUTURES[0])
}

/// Places of waiting tasks, and how far a future goes for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub places: &'a [usize],
    /// Until they end, not only until they start.
    pub ends: bool,
}

/// By waiting task: when it starts and ends, in seconds, in each of so many futures (a prime); the horizon where that is later.
pub(crate) fn play(
    facts: &PoolFacts,
    memory: &JobMemory,
    wanted: Wanted<'_>,
    (futures, seed): (u32, u64),
) -> Vec<Vec<(f64, f64)>> {
    let lifetimes = Lifetimes::learn(memory, facts.at);
    let arrivals = lifetimes.arrivals(facts.at);
    let course = Course::of(facts, &memory.margins);
    let plan = Plan::new(facts, &course, (memory, &lifetimes, &arrivals), (futures, seed), None);
    let is_done = |times: Times<'_>| {
        let all = if wanted.ends { times.ends_s } else { times.starts_s };
        wanted.places.iter().all(|place| all[*place].is_some())
    };
    let horizon_s = f64::from(HORIZON_S);
    let one = |numbers: std::ops::Range<u32>| {
        let mut path = Path::new(&plan, seed);
        let mut all_s = Vec::with_capacity(wanted.places.len() * numbers.len());
        for number in numbers {
            let Times { starts_s, ends_s } = path.play(number, is_done);
            let of = |place: &usize| (starts_s[*place].unwrap_or(horizon_s), ends_s[*place].unwrap_or(horizon_s));
            all_s.extend(wanted.places.iter().map(of));
        }
        all_s
    };
    // The paths know nothing of each other: halves of them on two threads are the same as all on one.
    let half = futures / 2;
    let all_s = std::thread::scope(|scope| {
        let second = scope.spawn(|| one(half..futures));
        let mut all_s = one(0..half);
        all_s.extend(second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all_s
    });
    let of = |place: usize| all_s.iter().skip(place).step_by(wanted.places.len()).copied().collect();
    (0..wanted.places.len()).map(of).collect()
}

/// When the waiting task at a place starts if every task runs on for as long as its owner states, nothing arrives and the policy
/// fills gaps: the plan of `squeue --start`. In seconds from the facts on; none within the horizon where it is not planned.
/// `stated_s` are the seconds of running tasks and of waiting ones, in the order of the facts.
#[must_use]
pub fn planned_s(facts: &PoolFacts, memory: &JobMemory, stated_s: (Vec<f64>, Vec<f64>), place: usize) -> Option<f64> {
    let nothing = JobMemory::default();
    let lifetimes = Lifetimes::learn(&nothing, facts.at);
    let course = Course::of(facts, &memory.margins);
    let stated = Stated { running_s: stated_s.0, waiting_s: stated_s.1 };
    let plan = Plan::new(facts, &course, (memory, &lifetimes, &[]), (2, 0), Some(&stated));
    let mut path = Path::new(&plan, 0);
    path.play(0, |times| times.starts_s[place].is_some()).starts_s[place]
}
