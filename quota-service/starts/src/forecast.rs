//! Futures of a pool, and the starts in them.

use crate::course::Course;
use crate::facts::PoolFacts;
use crate::memory::JobMemory;
use crate::path::Path;
use crate::plan::{Lifetimes, Plan, Stated};
use crate::starts::Starts;
use crate::steps::HORIZON_S;

/// Numbers of futures that may be asked for: primes, each about half as large again as the one before.
const FUTURES: [u32; 6] = [23, 37, 61, 97, 149, 199];
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

/// The starts of the waiting tasks at these places, in so many futures (a prime); of one task, each future ends with its start.
pub(crate) fn play(
    facts: &PoolFacts,
    memory: &JobMemory,
    places: &[usize],
    (futures, seed): (u32, u64),
) -> Vec<Option<Starts>> {
    let lifetimes = Lifetimes::learn(memory, facts.at);
    let arrivals = lifetimes.arrivals(facts.at);
    let course = Course::of(facts, &memory.margins);
    let plan = Plan::new(facts, &course, (memory, &lifetimes, &arrivals), (futures, seed), None);
    let mut starts_s = vec![Vec::with_capacity(futures as usize); places.len()];
    for number in 0..futures {
        let mut path = Path::new(&plan, number, seed);
        path.play(|starts_s| places.iter().all(|place| starts_s[*place].is_some()));
        for (all_s, place) in starts_s.iter_mut().zip(places) {
            all_s.push(path.starts_s[*place].unwrap_or(f64::from(HORIZON_S)));
        }
    }
    starts_s.into_iter().map(Starts::of).collect()
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
    let mut path = Path::new(&plan, 0, 0);
    path.play(|starts_s| starts_s[place].is_some());
    path.starts_s[place]
}
