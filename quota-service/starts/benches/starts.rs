//! The start of one task on a pool of 4,278 nodes with 5,000 waiting tasks: the task that would be next, one in the middle of
//! the queue, the last, and one that is not submitted. Beside it the facts of the pool, and the starts of all waiting tasks.
//! Prints p50 and p99 and their part of the bound (DESIGN §6).

mod played;

use played::{BOUND_MS, Draws, NODES, played, report};
use starts::{Ask, PoolFacts, futures_of};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vocab::{TaskClass, TaskId, UnixSeconds};

const ROUNDS: usize = 20;
const BEGIN: UnixSeconds = UnixSeconds::new(1_700_000_000);

fn timed<T>(rounds: usize, mut what: impl FnMut(usize) -> T) -> Vec<Duration> {
    let one = |round| {
        let begun = Instant::now();
        black_box(what(round));
        begun.elapsed()
    };
    (0..rounds).map(one).collect()
}

fn main() {
    let (pool, mut expert, now) = played(BEGIN);
    let facts = PoolFacts::of(&pool);
    expert.observe(&facts);
    let (running, waiting) = (facts.running().count(), facts.waiting().count());
    let futures = futures_of(&facts, expert.memory());
    println!("starts: {NODES} nodes, {running} tasks run, {waiting} wait, {futures} futures");
    let order: Vec<TaskId> = facts.waiting().cloned().collect();
    for (what, place) in
        [("the first task", 0), ("one in the middle", order.len() / 2), ("the last task", order.len() - 1)]
    {
        let of = |round| expert.of_waiting(&facts, &order[place], round as u64);
        let p50 = of(0).map_or(0.0, |forecast| forecast.starts.quantile_s(0.5));
        report(what, timed(ROUNDS, of), BOUND_MS);
        println!("    (starts after {:.1} h, median)", p50 / 3_600.0);
    }
    let new = Ask::now(Draws(9).request(9_999_999, TaskClass::Spot, now));
    let of = |round| expert.of_new(&facts, std::slice::from_ref(&new), round as u64);
    report("a task that is not submitted", timed(ROUNDS, of), BOUND_MS);
    report("the facts of the pool", timed(ROUNDS, |_| PoolFacts::of(&pool)), BOUND_MS);
    report("observing them", timed(3, |_| expert.clone().observe(&facts)), BOUND_MS);
    report("all waiting tasks", timed(3, |round| expert.clone().issue(&facts, round as u64)), 1_000.0);
}
