mod damaged;
mod defer;
mod demand;
mod elastic;
mod reserve;
mod shares;
mod turns;
mod windows;

use super::*;
use crate::fleet::{GpuRequest, PodRequest};
use crate::invariants;
use crate::policy::{Blocking, ReservationSettings, Timing};
use proptest::prelude::*;
use std::sync::Arc;
use vocab::{NodeId, OutcomeKind, TaskClass, Topology};

const START: i64 = 1_700_000_000;

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds::new(START + seconds)
}

fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).unwrap()
}

fn task(name: &str) -> TaskId {
    TaskId::parse(name).unwrap()
}

fn node(number: usize) -> NodeId {
    NodeId::parse(&format!("node-{number}")).unwrap()
}

fn request(name: &str, class: TaskClass, gpus: GpuRequest, pods: u32, hours: Option<HorizonHours>) -> Request {
    let pod = PodRequest::new(gpus, 1_000, 0);
    let gang = Gang { task: task(name), class, pod, pods };
    Request { gang, organization: Organization::parse("a").unwrap(), submitted: at(0), hours, elastic: None }
}

fn limits(gpus: u32) -> Command {
    let one = |of| Limit { hours: hours(of), quota: MilliGpus::from_gpus(gpus) };
    Command::SetLimits([1, 2, 4].map(one).to_vec())
}

fn add(number: usize) -> Command {
    Command::AddNode { node: node(number), gpus: 8, cpu_milli: Some(64_000), memory_mib: None, topology: None }
}

/// A node of a random history: what it says of itself depends on its number.
fn add_any(number: usize) -> Command {
    let topology = number.is_multiple_of(2).then(|| Arc::new(Topology::preset("a100-8").unwrap()));
    let cpu_milli = number.is_multiple_of(2).then_some(64_000);
    let memory_mib = number.is_multiple_of(3).then_some(90_000);
    Command::AddNode { node: node(number), gpus: 8, cpu_milli, memory_mib, topology }
}

fn pool(nodes: usize, rules: PoolRules) -> Pool {
    let mut pool = Pool::new(Policy::GFS, rules);
    (0..nodes).for_each(|number| pool.handle(at(0), &add(number)).1.unwrap());
    pool
}

fn submit(pool: &mut Pool, seconds: i64, name: &str, class: TaskClass, gpus: u16, of: Option<u64>) -> Report {
    let request = request(name, class, GpuRequest::Whole(gpus), 1, of.map(hours));
    let (report, done) = pool.handle(at(seconds), &Command::Submit(request));
    done.unwrap();
    report
}

fn kinds(report: &Report) -> Vec<(&str, OutcomeKind)> {
    report.consequences.ends.iter().map(|end| (end.task.as_str(), end.kind)).collect()
}

fn started(report: &Report) -> Vec<&str> {
    fn name(fact: &Fact) -> Option<&str> {
        if let Fact::Started { task, .. } = fact { Some(task.as_str()) } else { None }
    }
    report.facts.iter().filter_map(name).collect()
}

#[test]
fn a_guarantee_ends_kept_is_renewed_while_the_quota_has_room_and_broken_by_an_eviction() {
    let mut pool = pool(1, PoolRules::default());
    pool.handle(at(0), &limits(8)).1.unwrap();
    assert_eq!(started(&submit(&mut pool, 0, "spot", TaskClass::Spot, 8, Some(1))), ["spot"]);
    let report = pool.pass(at(3_600));
    assert_eq!(kinds(&report), [("spot", OutcomeKind::Kept)]);
    assert!(matches!(&report.facts[..], [Fact::Renewed { guarantee, .. }] if guarantee.until == at(7_200)));
    pool.handle(at(4_000), &limits(0)).1.unwrap();
    let report = pool.pass(at(7_300));
    assert_eq!(kinds(&report), [("spot", OutcomeKind::Kept)]);
    assert_eq!(report.facts, [], "it runs on at will");
    pool.handle(at(7_400), &limits(8)).1.unwrap();
    let report = submit(&mut pool, 7_500, "hp", TaskClass::Hp, 1, None);
    assert_eq!((started(&report), kinds(&report)), (vec!["hp"], vec![]), "at will there is nothing to break");
    assert_eq!(report.consequences.cuts[0].why, CutReason::EvictedBy { task: task("hp") });
    assert_eq!(pool.waiting_task(&task("spot")).unwrap().queued, at(7_500));
    pool.handle(at(7_600), &Command::Finish { task: task("hp") }).1.unwrap();
    let report = submit(&mut pool, 7_700, "hp2", TaskClass::Hp, 1, None);
    assert_eq!(kinds(&report), [("spot", OutcomeKind::Broken)], "it had been promised an hour again");
}

#[test]
fn victims_have_their_grace_and_neither_they_nor_their_gpus_are_used_before() {
    let mut pool = pool(1, PoolRules { grace_s: 30, ..PoolRules::default() });
    submit(&mut pool, 0, "spot", TaskClass::Spot, 4, None);
    submit(&mut pool, 0, "other", TaskClass::Spot, 4, None);
    let report = submit(&mut pool, 100, "hp", TaskClass::Hp, 4, None);
    assert!(matches!(&report.facts[..], [_, Fact::Started { starts, .. }] if *starts == at(130)));
    let victim = report.consequences.cuts[0].task.clone();
    assert_eq!(pool.why_it_waits(&victim), Some(WaitReason::Rests { until: at(130) }));
    let kept = if victim.as_str() == "spot" { "other" } else { "spot" };
    pool.handle(at(110), &Command::Delete { task: task(kept) }).1.unwrap();
    assert_eq!(started(&pool.pass(at(129))), Vec::<&str>::new());
    assert_eq!(started(&pool.pass(at(130))), [victim.as_str()]);
}

#[test]
fn a_task_that_is_pushed_out_again_and_again_rests() {
    let mut pool = pool(1, PoolRules::default());
    submit(&mut pool, 0, "spot", TaskClass::Spot, 8, None);
    for round in 0..4 {
        assert_eq!(pool.rests(), 0);
        let name = format!("hp-{round}");
        assert_eq!(submit(&mut pool, 60 * round + 1, &name, TaskClass::Hp, 8, None).consequences.cuts.len(), 1);
        pool.handle(at(60 * round + 2), &Command::Finish { task: task(&name) }).1.unwrap();
    }
    let until = at(181 + 900);
    assert_eq!((pool.rests(), pool.why_it_waits(&task("spot"))), (1, Some(WaitReason::Rests { until })));
    assert_eq!(started(&pool.pass(until)), ["spot"]);
}

#[test]
fn what_runs_on_a_lost_node_waits_again_and_breaks_no_promise() {
    let mut pool = pool(2, PoolRules::default());
    pool.handle(at(0), &limits(16)).1.unwrap();
    submit(&mut pool, 0, "spot", TaskClass::Spot, 8, Some(1));
    submit(&mut pool, 0, "hp", TaskClass::Hp, 8, None);
    let lost = pool.fleet().tasks()[&task("spot")].places[0].node;
    let remove = Command::RemoveNode { node: node(lost), cause: NodeLoss::Failed };
    let (report, done) = pool.handle(at(60), &remove);
    assert_eq!((done, kinds(&report)), (Ok(()), vec![("spot", OutcomeKind::NodeFailure)]));
    assert_eq!(pool.capacity(), MilliGpus::from_gpus(8));
    let unknown = pool.handle(at(61), &remove).1;
    assert_eq!(unknown, Err(Fault::UnknownNode { node: node(lost) }));
    let (report, done) = pool.handle(at(62), &add(lost));
    assert_eq!((done, started(&report)), (Ok(()), vec!["spot"]));
}

#[test]
fn the_longest_wait_for_quota_counts_tasks_that_would_fit() {
    let mut pool = pool(1, PoolRules::default());
    pool.handle(at(0), &limits(4)).1.unwrap();
    submit(&mut pool, 0, "a", TaskClass::Spot, 4, Some(1));
    submit(&mut pool, 10, "b", TaskClass::Spot, 1, Some(2));
    submit(&mut pool, 0, "wide", TaskClass::Spot, 8, Some(1));
    pool.pass(at(500));
    assert_eq!(pool.longest_quota_wait_s(), 490, "the wide one would not fit anyway");
}

#[test]
fn hp_demand_is_measured_hour_by_hour_with_what_waits() {
    let mut pool = pool(1, PoolRules::default());
    let start = at(0).hour().unwrap().instant().get() + 3_600 - START;
    submit(&mut pool, start, "a", TaskClass::Hp, 8, None);
    submit(&mut pool, start + 10, "b", TaskClass::Hp, 4, None);
    pool.handle(at(start + 80), &Command::Finish { task: task("a") }).1.unwrap();
    let report = pool.pass(at(start + 2 * 3_600));
    let milli = |one: &HourOfDemand| [one.demand.peak, one.demand.at_end.unwrap()].map(MilliGpus::milli);
    let demand: Vec<_> = report.consequences.demand.iter().map(milli).collect();
    let (first, second) = ([12_000, 4_000], [4_000, 4_000]);
    assert_eq!(
        demand,
        [first, first, second, second],
        "an organization and the pool, two hours, at the peak and at the end"
    );
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Submit { class: bool, gpus: GpuRequest, pods: u32, of: Option<u64>, elastic: Option<(u32, u32)>, cpu_milli: u64 },
    Finish(usize),
    Delete(usize),
    Save(usize),
    Measure(usize, u32, u64),
    Limit(u32),
    Open(usize, bool),
    Remove(usize, bool),
    Add(usize),
    Pass,
}

fn steps() -> impl Strategy<Value = Vec<(i64, Step)>> {
    let gpus = prop_oneof![
        2 => (1_u16..4).prop_map(|quarters| GpuRequest::Share(quarters * 250)),
        5 => (1_u16..9).prop_map(GpuRequest::Whole),
    ];
    let of = prop_oneof![1 => Just(None), 3 => prop_oneof![Just(1_u64), Just(2), Just(4)].prop_map(Some)];
    let elastic = prop_oneof![1 => Just(None), 1 => (1_u32..4, 0_u32..6).prop_map(Some)];
    let step = prop_oneof![
        8 => (any::<bool>(), gpus, 1_u32..4, of, elastic, 0_u64..30_000).prop_map(
            |(class, gpus, pods, of, elastic, cpu_milli)| Step::Submit { class, gpus, pods, of, elastic, cpu_milli }),
        4 => any::<usize>().prop_map(Step::Finish),
        1 => any::<usize>().prop_map(Step::Delete),
        1 => any::<usize>().prop_map(Step::Save),
        1 => (any::<usize>(), 1_u32..8, 1_u64..9_000).prop_map(|(task, pods, speed)| Step::Measure(task, pods, speed)),
        2 => (0_u32..40).prop_map(Step::Limit),
        1 => (0_usize..5, any::<bool>()).prop_map(|(node, is_open)| Step::Open(node, is_open)),
        1 => (0_usize..5, any::<bool>()).prop_map(|(node, failed)| Step::Remove(node, failed)),
        2 => (0_usize..5).prop_map(Step::Add),
        1 => Just(Step::Pass),
    ];
    prop::collection::vec((0_i64..2_000, step), 1..60)
}

fn command(pool: &Pool, number: usize, step: &Step, now: UnixSeconds) -> Command {
    let nth = |which: usize| {
        let running: Vec<&TaskId> = pool.fleet().tasks().keys().collect();
        let waiting = pool.waiting().map(|waiting| &waiting.request.gang.task);
        let all: Vec<&TaskId> = running.into_iter().chain(waiting).collect();
        all.get(which % all.len().max(1)).map_or_else(|| task("none"), |task| (*task).clone())
    };
    match *step {
        Step::Submit { class, gpus, pods, of, elastic, cpu_milli } => {
            let class = if class { TaskClass::Hp } else { TaskClass::Spot };
            let of = of.filter(|_| class == TaskClass::Spot).map(hours);
            let mut made = request(&format!("task-{number}"), class, gpus, pods, of);
            (made.gang.pod.cpu_milli, made.gang.pod.memory_mib) = (cpu_milli, 30_000 - cpu_milli);
            let elastic = elastic.filter(|_| Elastic::check(&made.gang).is_ok());
            let elastic = elastic.and_then(|(min, more)| Elastic::new(min.min(pods), pods, pods + more, None).ok());
            // Of three organizations; the requests of one size are not all of one of them.
            let organization = Organization::parse(["a", "b", "c"][number % 3]).unwrap();
            Command::Submit(Request { submitted: now, elastic, organization, ..made })
        }
        Step::Finish(which) => Command::Finish { task: nth(which) },
        Step::Delete(which) => Command::Delete { task: nth(which) },
        Step::Save(which) => Command::Save { task: nth(which) },
        Step::Measure(which, pods, speed_thousandths) => Command::Measure { task: nth(which), pods, speed_thousandths },
        Step::Limit(gpus) => limits(gpus),
        Step::Open(number, is_open) => Command::OpenNode { node: node(number), is_open },
        Step::Remove(number, failed) => {
            let cause = if failed { NodeLoss::Failed } else { NodeLoss::Drained };
            Command::RemoveNode { node: node(number), cause }
        }
        Step::Add(number) => add_any(number),
        Step::Pass => Command::Pass,
    }
}

const POLICIES: [&str; 11] = [
    "gfs",
    "gfs-topology",
    "gfs-lazer",
    "gfs-paper",
    "gfs-noquota",
    "gfs-s",
    "gfs-p",
    "yarn-cs",
    "fifo-fair",
    "lyra",
    "fgd",
];

/// A policy with so many reservations of each class, where it can have any; with 0 as it is.
fn reserving(policy: &str, heads: u32, after_s: u32) -> Policy {
    let policy = Policy::parse(policy).unwrap();
    if heads == 0 || policy.blocking != Blocking::Nobody {
        return policy;
    }
    let reservations = ReservationSettings {
        hp_heads: heads,
        spot_heads: heads,
        hp_after_s: after_s,
        spot_after_s: after_s,
        quota_percent: 100,
    };
    Policy { reservations, ..policy }
}

fn invariants_hold(pool: &Pool) {
    invariants::no_gpu_is_overused(pool.fleet());
    invariants::books_balance(pool.fleet());
    let hp = |request: &Request| if request.gang.class == TaskClass::Hp { apply::gpus_milli(request) } else { 0 };
    let running = pool.requests.values().map(|admitted| hp(&admitted.request));
    let fits = |request: &Request| !pool.unplaceable.contains(&request.gang.task);
    let waiting = pool.waiting().map(|waiting| &waiting.request).filter(|request| fits(request)).map(hp);
    let demand = running.chain(waiting).sum::<u64>();
    assert_eq!(pool.hp_demand_milli(), demand, "HP demand is what runs, and what waits and fits the pool");
    assert!(pool.requests.keys().eq(pool.fleet().tasks().keys()), "what runs is what was admitted");
}

/// Cases of one run: those of a test run, or as many as `HEADROOM_SOAK_CASES` asks for, from `HEADROOM_SOAK_SEED`.
fn config() -> ProptestConfig {
    let from = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (cases, seed) = (from("HEADROOM_SOAK_CASES").unwrap_or(10_000), from("HEADROOM_SOAK_SEED").unwrap_or(23));
    println!("{cases} histories from seed {seed}");
    let rng_seed = proptest::test_runner::RngSeed::Fixed(seed);
    ProptestConfig { rng_seed, cases: cases as u32, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn facts_rebuild_the_state_and_a_snapshot_stands_for_them(
        policy in prop::sample::select(&POLICIES[..]), grace_s in prop::sample::select(vec![0, 30]), steps in steps(),
        heads in 0_u32..4, after_s in prop::sample::select(vec![0, 900]),
        half_life in prop::sample::select(vec![None, Some(1), Some(24)]),
    ) {
        let policy = shares::sharing(reserving(policy, heads, after_s), half_life);
        let rules = PoolRules { grace_s, ..PoolRules::default() };
        let mut pool = Pool::new(policy, rules);
        let mut rebuilt = Pool::new(policy, rules);
        let mut restored = pool.clone();
        let mut now = at(0);
        for (number, (seconds, step)) in steps.into_iter().enumerate() {
            now = now.plus_s(seconds);
            let command = command(&pool, number, &step, now);
            let before = pool.snapshot();
            let (report, done) = pool.handle(now, &command);
            invariants_hold(&pool);
            if done.is_err() && report.facts.is_empty() && report.consequences.ends.is_empty() {
                // A refused command leaves everything where it was.
                let after = pool.snapshot();
                prop_assert_eq!((before.nodes, before.limits), (after.nodes, after.limits));
                prop_assert_eq!(before.running, after.running);
                prop_assert_eq!(before.waiting.len(), after.waiting.len());
            }
            for fact in &report.facts {
                if let Fact::Resized { why: ResizeReason::For { task }, .. } = fact {
                    prop_assert!(started(&report).contains(&task.as_str()), "a task shrinks in vain for {task}");
                }
            }
            // Nobody waits in vain.
            let first: Vec<_> = pool.queue.first_of_each_shape().collect();
            for (gang, ..) in first.iter().filter(|_| policy.blocking == Blocking::Nobody) {
                prop_assert!(pool.why_it_waits(&gang.task).is_some(), "{} waits in vain", gang.task);
            }
            // The kept facts are applied, one after the other; then both know the same.
            for fact in &report.facts {
                rebuilt.apply(now, fact).unwrap();
            }
            rebuilt.pass_to(now);
            prop_assert_eq!(&pool.snapshot(), &rebuilt.snapshot());
            // And a pool made of a snapshot decides the same from there on.
            if policy.timing == Timing::AtOnce {
                let again = restored.handle(now, &command);
                prop_assert_eq!(&again, &(report, done));
            }
            restored = Pool::restore(&pool.snapshot(), policy, rules).unwrap();
            prop_assert_eq!(&pool.snapshot(), &restored.snapshot());
        }
    }
}
