//! The futures beside `placement` itself: the same pool, the same durations, nothing that arrives.

#![allow(clippy::unwrap_used, reason = "helpers of tests: a fault fails the test")]

use placement::Policy;
use placement::draw::Draw;
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::{Command, Fact, Pool, PoolRules, Report, Request};
use starts::{JobMemory, PoolFacts, planned_s};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{NodeId, Organization, TaskClass, TaskId, UnixSeconds};

const NOW: UnixSeconds = UnixSeconds::new(1_700_000_000);
const NODES: usize = 24;

fn request(number: usize, class: TaskClass, draw: &mut Draw) -> Request {
    let sizes = [(1, 1), (1, 1), (1, 1), (2, 1), (4, 1), (8, 1), (8, 2)];
    let (gpus, pods) = sizes[draw.below(sizes.len()).unwrap()];
    let gang = Gang {
        task: TaskId::parse(&format!("task-{number:04}")).unwrap(),
        class,
        pod: PodRequest::new(GpuRequest::Whole(gpus), 0, 0),
        pods,
    };
    let submitted = NOW.plus_s(number as i64 - 1_000);
    Request { gang, organization: Organization::parse("a").unwrap(), submitted, hours: None, elastic: None }
}

/// A full pool with a queue, of one class, and how long each task runs from now on or from its start on.
fn full(policy: &str, class: TaskClass, seed: u64) -> (Pool, BTreeMap<TaskId, i64>) {
    let mut draw = Draw::new(seed);
    let mut pool = Pool::new(Policy::parse(policy).unwrap(), PoolRules::default());
    for number in 0..NODES {
        let node = NodeId::parse(&format!("node-{number:02}")).unwrap();
        let add = Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
        pool.handle(NOW, &add).1.unwrap();
    }
    let mut durations = BTreeMap::new();
    for number in 0..160 {
        let request = request(number, class, &mut draw);
        let duration_s = (600.0 * 60.0_f64.powf(draw.unit())) as i64;
        durations.insert(request.gang.task.clone(), duration_s);
        pool.handle(NOW, &Command::Submit(request)).1.unwrap();
    }
    (pool, durations)
}

fn started(report: &Report) -> Vec<TaskId> {
    let start = |fact: &Fact| if let Fact::Started { task, .. } = fact { Some(task.clone()) } else { None };
    report.facts.iter().filter_map(start).collect()
}

/// When each waiting task starts by `placement`, in seconds from now.
fn exact(mut pool: Pool, durations: &BTreeMap<TaskId, i64>) -> BTreeMap<TaskId, i64> {
    let mut ends: BTreeSet<(i64, TaskId)> =
        pool.fleet().tasks().keys().map(|task| (durations[task], task.clone())).collect();
    let mut starts = BTreeMap::new();
    while let Some((at_s, task)) = ends.pop_first() {
        let (report, done) = pool.handle(NOW.plus_s(at_s), &Command::Finish { task });
        done.unwrap();
        for task in started(&report) {
            ends.insert((at_s + durations[&task], task.clone()));
            starts.insert(task, at_s);
        }
    }
    starts
}

/// The futures count GPUs by node and do not number them, and end tasks in steps: a start may come some tasks earlier or later.
/// On average they agree.
#[test]
fn starts_are_those_of_placement_but_for_what_steps_and_counted_gpus_cost() {
    // HP beside a reservation depends on which node that is on.
    let cases = [("gfs", TaskClass::Hp, 0.8), ("gfs", TaskClass::Spot, 0.93), ("fifo-fair", TaskClass::Spot, 0.95)];
    for (policy, class, least_near) in cases {
        let (mut compared, mut off_s, mut sum_s, mut near) = (0, 0.0, 0.0, 0);
        for seed in 0..5 {
            let (pool, durations) = full(policy, class, seed);
            let facts = PoolFacts::of(&pool);
            let running: Vec<f64> = facts.running().map(|(task, _)| durations[task] as f64).collect();
            let waiting: Vec<f64> = facts.waiting().map(|task| durations[task] as f64).collect();
            let order: Vec<TaskId> = facts.waiting().cloned().collect();
            let exact = exact(pool, &durations);
            for (place, task) in order.iter().enumerate() {
                let stated = (running.clone(), waiting.clone());
                let planned = planned_s(&facts, &JobMemory::default(), stated, place).unwrap();
                let (off, truth) = (planned - exact[task] as f64, exact[task] as f64);
                (compared, off_s, sum_s) = (compared + 1, off_s + off, sum_s + truth);
                near += usize::from(off.abs() <= 900.0 + 0.1 * truth);
            }
        }
        assert!(compared > 200, "{compared} tasks wait");
        let (near, bias) = (near as f64 / f64::from(compared), off_s / sum_s);
        assert!(near > least_near, "{policy}, {class:?}: {near:.3} of {compared} starts are near");
        assert!(bias.abs() < 0.09, "{policy}, {class:?}: starts are {bias:+.3} later on average");
    }
}
