//! The start of one task on a pool of 4,278 nodes with 5,000 waiting tasks: the task that would be next, one in the middle of
//! the queue, the last, and one that is not submitted. Beside it the facts of the pool, and the starts of all waiting tasks.
//! Prints p50 and p99 and their part of the bound (DESIGN §6).

use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::{Command, Pool, PoolRules, Request};
use placement::{Limit, Policy};
use starts::{Ask, PoolFacts, StartExpert, futures_of};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vocab::{HorizonHours, MilliGpus, NodeId, Organization, TaskClass, TaskId, UnixSeconds};

const NODES: usize = 4_278;
const WAITING: usize = 5_000;
const BOUND_MS: f64 = 50.0;
const ROUNDS: usize = 20;
const BEGIN: UnixSeconds = UnixSeconds::new(1_700_000_000);
/// Two thirds of the GPUs, in thousandths.
const HP_MILLI: u64 = 22_000_000;
/// Some 2,900 jobs come in a day, and as many end: in the trace of the paper it is 2,537.
const ARRIVES_EVERY_S: i64 = 30;

/// A small generator of its own: this bench needs no more than draws that repeat themselves.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn request(&mut self, number: usize, class: TaskClass, submitted: UnixSeconds) -> Request {
        let (gpus, pods) = match self.below(20) {
            0..=11 => (1, 1),
            12..=14 => (2, 1),
            15..=16 => (4, 1),
            17..=18 => (8, 1),
            _ => (8, 4),
        };
        let task = TaskId::parse(&format!("task-{number:07}")).expect("a name");
        let gang = Gang { task, class, pod: PodRequest::new(GpuRequest::Whole(gpus), 0, 0), pods };
        let organization = Organization::parse(&format!("org-{}", self.below(20))).expect("a name");
        let hours = (class == TaskClass::Spot).then(|| hours([1, 2, 4][self.below(3) as usize]));
        Request { gang, organization, submitted, hours, elastic: None }
    }
}

fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).expect("hours that are offered")
}

fn limits(gpus: u32) -> Command {
    let limit = |(of, part)| Limit { hours: hours(of), quota: MilliGpus::from_gpus(gpus * part / 10) };
    Command::SetLimits([(1, 10), (2, 9), (4, 8)].map(limit).to_vec())
}

/// A pool that was filled to the last GPU, watched for two days of jobs that come and go, and then left with a queue.
fn played() -> (Pool, StartExpert, UnixSeconds) {
    let (mut draws, mut expert) = (Draws(7), StartExpert::default());
    let mut pool = Pool::new(Policy::GFS, PoolRules::default());
    for number in 0..NODES {
        let node = NodeId::parse(&format!("node-{number:05}")).expect("a name");
        let add = Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
        pool.handle(BEGIN, &add).1.expect("a new node");
    }
    let (mut number, mut now) = (0, BEGIN);
    let mut submit = |pool: &mut Pool, class: TaskClass, at: UnixSeconds| {
        number += 1;
        let request = draws.request(number, class, at);
        pool.handle(at, &Command::Submit(request)).1.expect("a new task");
    };
    while pool.hp_demand_milli() < HP_MILLI {
        submit(&mut pool, TaskClass::Hp, now);
    }
    pool.handle(BEGIN, &limits(12_000)).1.expect("limits");
    while pool.waiting().count() < 20 {
        submit(&mut pool, TaskClass::Spot, now);
    }
    for step in 0..2 * 86_400 / ARRIVES_EVERY_S {
        now = now.plus_s(ARRIVES_EVERY_S);
        let first = pool.fleet().tasks().keys().nth((step % 1_000) as usize).cloned();
        if let Some(task) = first {
            pool.handle(now, &Command::Finish { task }).1.expect("it runs");
        }
        submit(&mut pool, if step % 3 == 0 { TaskClass::Spot } else { TaskClass::Hp }, now);
        if step % 60 == 0 {
            expert.observe(&PoolFacts::of(&pool));
        }
    }
    while pool.waiting().count() < WAITING {
        submit(&mut pool, TaskClass::Spot, now);
    }
    (pool, expert, now)
}

fn timed<T>(rounds: usize, mut what: impl FnMut(usize) -> T) -> Vec<Duration> {
    let one = |round| {
        let begun = Instant::now();
        black_box(what(round));
        begun.elapsed()
    };
    (0..rounds).map(one).collect()
}

fn report(what: &str, mut times: Vec<Duration>, bound_ms: f64) {
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e3;
    let (p50, p99) = (at(50), at(99));
    println!("  {what:34} p50 {p50:8.1} ms  p99 {p99:8.1} ms   {:.2} of the bound of {bound_ms} ms", p50 / bound_ms);
}

fn main() {
    let (pool, mut expert, now) = played();
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
