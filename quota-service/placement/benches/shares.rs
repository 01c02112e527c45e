//! The commands of a saturated pool with fair shares of spot, beside the same pool without them: each submission, each end and
//! each change of limits, with the starts that follow. Prints microseconds of a command and the ratio to the pool without shares.

use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::{Command, Fact, Pool, PoolRules, Request};
use placement::shares::ShareSettings;
use placement::{Limit, Policy};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::{Duration, Instant};
use vocab::{HorizonHours, MilliGpus, NodeId, Organization, TaskClass, TaskId, UnixSeconds};

const START: UnixSeconds = UnixSeconds::new(1_700_000_000);
const SUBMISSIONS: usize = 6_000;
/// Seconds between two submissions on 160 nodes; on more nodes they come more often.
const PACE_S: i64 = 40;
const LIMITS_EACH_S: i64 = 300;

/// A small generator of its own: this bench needs no more than draws that repeat themselves.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A task, and how long it runs.
fn task(number: usize, organizations: u64, submitted: UnixSeconds, draws: &mut Draws) -> (Request, i64) {
    let class = if draws.below(4) == 0 { TaskClass::Hp } else { TaskClass::Spot };
    let gpus = [1, 1, 1, 2, 2, 4, 8][draws.below(7) as usize];
    let pods = [1, 1, 1, 1, 2, 4][draws.below(6) as usize];
    let id = TaskId::parse(&format!("task-{number:06}")).expect("a name");
    let gang = Gang { task: id, class, pod: PodRequest::new(GpuRequest::Whole(gpus), 4_000, 0), pods };
    // A few organizations ask for most.
    let number = draws.below(organizations).min(draws.below(organizations));
    let organization = Organization::parse(&format!("organization-{number}")).expect("a name");
    let hours = [1, 1, 4][draws.below(3) as usize];
    let hours = HorizonHours::new(hours).ok().filter(|_| class == TaskClass::Spot && draws.below(4) > 0);
    let lasts_s = 600 + draws.below(30_000) as i64;
    (Request { gang, organization, submitted, hours, elastic: None }, lasts_s)
}

/// The pool under load, with the time that its commands took.
struct Load {
    pool: Pool,
    ends: BinaryHeap<Reverse<(UnixSeconds, TaskId)>>,
    lasts_s: Vec<i64>,
    commands: u32,
    took: Duration,
}

impl Load {
    fn new(nodes: usize, shares: Option<ShareSettings>) -> Self {
        let pool = Pool::new(Policy { shares, ..Policy::GFS }, PoolRules::default());
        let mut load = Self { pool, ends: BinaryHeap::new(), lasts_s: Vec::new(), commands: 0, took: Duration::ZERO };
        for number in 0..nodes {
            let node = NodeId::parse(&format!("node-{number:05}")).expect("a name");
            let add = Command::AddNode { node, gpus: 8, cpu_milli: Some(192_000), memory_mib: None, topology: None };
            load.pool.handle(START, &add).1.expect("a new node");
        }
        load
    }

    fn tell(&mut self, now: UnixSeconds, command: &Command) {
        let begun = Instant::now();
        let (report, done) = black_box(self.pool.handle(now, command));
        self.took += begun.elapsed();
        self.commands += 1;
        done.expect("the command fits");
        for fact in &report.facts {
            if let Fact::Started { task, .. } = fact {
                self.ends.push(Reverse((now.plus_s(self.lasts_s[number(task)]), task.clone())));
            }
        }
    }

    /// Ends that come up to now; a task that was evicted meanwhile ends with its next run.
    fn end(&mut self, now: UnixSeconds) {
        while self.ends.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((at, task))) = self.ends.pop() else { return };
            if self.pool.running(&task).is_some_and(|(_, run)| run.since.plus_s(self.lasts_s[number(&task)]) <= at) {
                self.tell(at, &Command::Finish { task });
            }
        }
    }

    fn play(&mut self, nodes: usize, organizations: u64) {
        let (mut draws, pace_s) = (Draws(28), (PACE_S * 160 / nodes as i64).max(1));
        let mut limited = START;
        for number in 0..SUBMISSIONS {
            let now = START.plus_s(number as i64 * pace_s);
            self.end(now);
            if limited <= now {
                let part = 40 + draws.below(20) as u32;
                let quota = MilliGpus::from_gpus(nodes as u32 * 8 * part / 100);
                let limit = |hours| Limit { hours: HorizonHours::new(hours).expect("in range"), quota };
                self.tell(now, &Command::SetLimits([1, 2, 4].map(limit).to_vec()));
                limited = now.plus_s(LIMITS_EACH_S);
            }
            let (request, lasts_s) = task(number, organizations, now, &mut draws);
            self.lasts_s.push(lasts_s);
            self.tell(now, &Command::Submit(request));
        }
    }

    fn us(&self) -> f64 {
        self.took.as_secs_f64() * 1e6 / f64::from(self.commands)
    }
}

fn number(task: &TaskId) -> usize {
    task.as_str()[5..].parse().expect("a number")
}

fn main() {
    for (nodes, organizations) in [(160, 11), (160, 200), (4_278, 11)] {
        let mut off = Load::new(nodes, None);
        off.play(nodes, organizations);
        println!(
            "{nodes} nodes of 8 GPUs, {organizations} organizations, {} tasks wait at the end:",
            off.pool.waiting().count()
        );
        println!("  without shares          {:8.2} us a command", off.us());
        for half_life_hours in [24, 168] {
            let mut on = Load::new(nodes, Some(ShareSettings { half_life_hours }));
            on.play(nodes, organizations);
            println!(
                "  a half-life of {half_life_hours:3} h    {:8.2} us a command, {:.2} of that without; {} wait",
                on.us(),
                on.us() / off.us(),
                on.pool.waiting().count(),
            );
        }
    }
}
