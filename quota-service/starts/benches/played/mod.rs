//! A pool of 4,278 nodes with 5,000 waiting tasks, played from a seed, and how long questions about it take.

use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::{Command, Pool, PoolRules, Request};
use placement::{Limit, Policy};
use starts::{PoolFacts, StartExpert};
use std::time::Duration;
use vocab::{HorizonHours, MilliGpus, NodeId, Organization, TaskClass, TaskId, UnixSeconds};

pub const NODES: usize = 4_278;
pub const WAITING: usize = 5_000;
pub const BOUND_MS: f64 = 50.0;
/// Two thirds of the GPUs, in thousandths.
pub const HP_MILLI: u64 = 22_000_000;
/// For how long the pool is played, in seconds.
pub const PLAYED_S: i64 = 2 * 86_400;
/// Some 2,900 jobs come in a day, and as many end: in the trace of the paper it is 2,537.
const ARRIVES_EVERY_S: i64 = 30;

/// A small generator of its own: this bench needs no more than draws that repeat themselves.
pub struct Draws(pub u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    pub fn request(&mut self, number: usize, class: TaskClass, submitted: UnixSeconds) -> Request {
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

/// Quotas of so many GPUs for an hour, and less for longer guarantees.
pub fn limits(gpus: u32) -> Vec<Limit> {
    let limit = |(of, part)| Limit { hours: hours(of), quota: MilliGpus::from_gpus(gpus * part / 10) };
    [(1, 10), (2, 9), (4, 8)].map(limit).to_vec()
}

/// A pool that was filled to the last GPU, watched for two days of jobs that come and go, and then left with a queue.
pub fn played(begin: UnixSeconds) -> (Pool, StartExpert, UnixSeconds) {
    let (mut draws, mut expert) = (Draws(7), StartExpert::default());
    let mut pool = Pool::new(Policy::GFS, PoolRules::default());
    for number in 0..NODES {
        let node = NodeId::parse(&format!("node-{number:05}")).expect("a name");
        let add = Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
        pool.handle(begin, &add).1.expect("a new node");
    }
    let (mut number, mut now) = (0, begin);
    let mut submit = |pool: &mut Pool, class: TaskClass, at: UnixSeconds| {
        number += 1;
        let request = draws.request(number, class, at);
        pool.handle(at, &Command::Submit(request)).1.expect("a new task");
    };
    while pool.hp_demand_milli() < HP_MILLI {
        submit(&mut pool, TaskClass::Hp, now);
    }
    pool.handle(begin, &Command::SetLimits(limits(12_000))).1.expect("limits");
    while pool.waiting().count() < 20 {
        submit(&mut pool, TaskClass::Spot, now);
    }
    for step in 0..PLAYED_S / ARRIVES_EVERY_S {
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

/// Prints p50 and p99, and their part of a bound in milliseconds.
pub fn report(what: &str, mut times: Vec<Duration>, bound_ms: f64) {
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e3;
    let (p50, p99) = (at(50), at(99));
    println!("  {what:34} p50 {p50:8.1} ms  p99 {p99:8.1} ms   {:.2} of the bound of {bound_ms} ms", p50 / bound_ms);
}
