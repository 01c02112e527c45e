//! One decision on a pool of 4,278 and of 100,000 nodes: whole GPUs, shares, gangs of 16, with and without preemption;
//! beside a look at every node, which is what an index saves. Prints p50 and p99 and their part of the budget.

use placement::fleet::{EvictionSettings, Fleet, Gang, GpuRequest, History, PodRequest, ScoreRule, Workload};
use placement::{Circumstances, Decision, Policy, decide};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vocab::{NodeId, TaskClass, TaskId, UnixSeconds};

const ROUNDS: usize = 2_000;

/// A small generator of its own: this bench needs no more than draws that repeat themselves.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn gang(number: usize, class: TaskClass, gpus: GpuRequest, pods: u32) -> Gang {
    let task = TaskId::parse(&format!("task-{number:07}")).expect("a name");
    Gang { task, class, pod: PodRequest::new(gpus, 4_000, 0), pods }
}

fn now() -> UnixSeconds {
    UnixSeconds::new(1_700_000_000)
}

/// Nodes of 8 GPUs, filled until little is idle: a third of the GPUs by spot.
fn filled(nodes: usize, draws: &mut Draws) -> Fleet {
    let mut fleet = Fleet::ordered(EvictionSettings::default(), ScoreRule::Apart);
    for number in 0..nodes {
        let id = NodeId::parse(&format!("node-{number:06}")).expect("a name");
        fleet.add(id, 8, Some(192_000), None).expect("a new node");
    }
    let (mut number, mut misses) = (0, 0);
    while misses < 20 {
        let class = if draws.below(3) == 0 { TaskClass::Spot } else { TaskClass::Hp };
        let gpus = match draws.below(20) {
            0 | 1 => GpuRequest::Share(250),
            2..=12 => GpuRequest::Whole(1),
            13..=15 => GpuRequest::Whole(2),
            16..=17 => GpuRequest::Whole(4),
            _ => GpuRequest::Whole(8),
        };
        number += 1;
        let Some(plan) = fleet.plan(&gang(number, class, gpus, 1)) else {
            misses += 1;
            continue;
        };
        let started = now().plus_s(-(draws.below(3_600) as i64));
        fleet.apply(&plan, started, None).expect("it was planned");
    }
    fleet
}

fn report(what: &str, mut times: Vec<Duration>, budget_us: f64) {
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e6;
    let (p50, p99) = (at(50), at(99));
    println!("  {what:42} p50 {p50:9.1} us  p99 {p99:9.1} us   {:.2} of the budget of {budget_us} us", p50 / budget_us);
}

/// Decides, and starts and ends what was decided outside of the time.
fn timed(fleet: &mut Fleet, gangs: impl Iterator<Item = Gang>, is_preempting: Option<bool>) -> Vec<Duration> {
    let history = History { finished: 10_000, evicted: 500 };
    let on = Circumstances {
        now: now(),
        limits: &[],
        history,
        policy: &Policy::GFS,
        workload: &Workload::default(),
        may_evict: true,
    };
    let mut times = Vec::new();
    for gang in gangs {
        let started = Instant::now();
        let decision = black_box(decide(fleet, &gang, None, &on));
        let took = started.elapsed();
        if let Decision::Start { plan, .. } = decision
            && is_preempting.is_none_or(|wanted| wanted != plan.victims.is_empty())
        {
            times.push(took);
        }
    }
    assert!(!times.is_empty(), "nothing of this kind was decided");
    times
}

/// The same order without an index: every node is read.
fn look_at_all(fleet: &Fleet, gpus: GpuRequest) -> Option<usize> {
    let fits = fleet.nodes().iter().enumerate().filter(|(_, node)| node.place(gpus).is_some());
    fits.min_by_key(|(number, node)| (node.idle, u32::MAX - node.hp_milli, *number)).map(|(number, _)| number)
}

fn main() {
    for (nodes, idle_us, full_us) in [(4_278, 10.0, 100.0), (100_000, 20.0, 1_000.0)] {
        let mut draws = Draws(7);
        let mut fleet = filled(nodes, &mut draws);
        println!("{nodes} nodes of 8 GPUs, {} tasks:", fleet.tasks().len());
        let hp = |gpus: u16, pods: u32| {
            (0..ROUNDS).map(move |k| gang(9_000_000 + k, TaskClass::Hp, GpuRequest::Whole(gpus), pods))
        };
        let preempting = timed(&mut fleet, hp(1, 1).chain(hp(4, 1)), Some(true));
        report("HP on 1 and 4 GPUs, by eviction", preempting, full_us);
        report("HP on 8 GPUs, by eviction", timed(&mut fleet, hp(8, 1).take(ROUNDS / 4), Some(true)), full_us);
        // Some room: one task of eight ends.
        let names: Vec<TaskId> = fleet.tasks().keys().step_by(8).cloned().collect();
        for name in &names {
            fleet.finish(name);
        }
        report("HP on 1 GPU", timed(&mut fleet, hp(1, 1), Some(false)), idle_us);
        let spot = (0..ROUNDS).map(|k| gang(9_500_000 + k, TaskClass::Spot, GpuRequest::Share(250), 1));
        report("spot on a quarter of a GPU", timed(&mut fleet, spot, None), idle_us);
        let gangs = (0..ROUNDS).map(|k| gang(9_700_000 + k, TaskClass::Spot, GpuRequest::Whole(1), 16));
        report("a gang of 16 pods of 1 GPU, a pod", per_pod(timed(&mut fleet, gangs, None), 16), idle_us);
        let looks = (0..50).map(|_| {
            let started = Instant::now();
            black_box(look_at_all(&fleet, GpuRequest::Whole(1)));
            started.elapsed()
        });
        report("peer: a look at every node, HP on 1 GPU", looks.collect(), idle_us);
    }
}

fn per_pod(times: Vec<Duration>, pods: u32) -> Vec<Duration> {
    times.into_iter().map(|time| time / pods).collect()
}
