//! Tasks that shrink before they die, and grow on what nobody has.

use super::*;
use crate::fleet::Plan;

const NOBODY: &[(&str, u32)] = &[];

fn elastic(name: &str, [min, asked, max]: [u32; 3], of: Option<u64>) -> Request {
    let made = request(name, TaskClass::Spot, GpuRequest::Whole(1), asked, of.map(hours));
    Request { elastic: Some(Elastic::new(min, asked, max, None).unwrap()), ..made }
}

fn come(pool: &mut Pool, seconds: i64, request: Request) -> Report {
    let (report, done) = pool.handle(at(seconds), &Command::Submit(request));
    done.unwrap();
    invariants_hold(pool);
    report
}

fn hp(pool: &mut Pool, seconds: i64, name: &str, gpus: u16) -> Report {
    come(pool, seconds, request(name, TaskClass::Hp, GpuRequest::Whole(gpus), 1, None))
}

/// Tasks and their pods after a report, in the order in which they changed.
fn sizes(report: &Report) -> Vec<(&str, u32)> {
    report.consequences.resizes.iter().map(|one| (one.task.as_str(), one.pods)).collect()
}

fn pods(pool: &Pool, name: &str) -> [usize; 2] {
    let (_, running) = pool.running(&task(name)).unwrap();
    [running.places.len(), running.lent.len()]
}

#[test]
fn it_starts_on_its_least_grows_on_what_nobody_has_and_gives_it_back_without_an_eviction() {
    let mut pool = pool(2, PoolRules { grace_s: 30, ..PoolRules::default() });
    pool.handle(at(0), &limits(1)).1.unwrap();
    let report = come(&mut pool, 0, elastic("spot", [1, 8, 12], Some(1)));
    assert_eq!((started(&report), sizes(&report)), (vec!["spot"], vec![("spot", 12)]), "the quota of 1 suffices");
    assert_eq!(pod_counts(&pool), [("spot", [1, 11])]);
    assert_eq!(pool.idle_milli(), 15_000, "what is lent is idle");
    assert_eq!(pool.fleet().promised(hours(1)), MilliGpus::from_gpus(1));
    let report = hp(&mut pool, 100, "hp", 8);
    assert_eq!((report.consequences.cuts.len(), sizes(&report)), (0, vec![("spot", 8)]));
    let resize = &report.consequences.resizes[0];
    assert_eq!((resize.went.len(), resize.from), (4, at(130)));
    assert_eq!(resize.why, ResizeReason::For { task: task("hp") });
    assert_eq!(pool.starts(&task("hp")), Some(at(130)), "it has its GPUs when they are free");
    let report = hp(&mut pool, 200, "more", 7);
    assert_eq!((report.consequences.cuts.len(), sizes(&report)), (0, vec![("spot", 1)]));
    let report = hp(&mut pool, 300, "last", 1);
    assert_eq!(report.consequences.cuts[0].task, task("spot"));
    assert_eq!(kinds(&report), [("spot", OutcomeKind::Broken)], "only its least was promised");
}

fn pod_counts(pool: &Pool) -> Vec<(&str, [usize; 2])> {
    pool.fleet().tasks().keys().map(|task| (task.as_str(), pods(pool, task.as_str()))).collect()
}

#[test]
fn a_victim_that_has_pods_elsewhere_goes_on_with_those() {
    let mut pool = pool(1, PoolRules::default());
    come(&mut pool, 0, elastic("spot", [1, 4, 4], None));
    let own = pool.running(&task("spot")).unwrap().1.places.clone();
    let gang = request("late", TaskClass::Hp, GpuRequest::Whole(1), 1, None).gang;
    let mut plan = Plan { gang, places: own.clone(), victims: vec![task("spot")] };
    let mut report = Report::default();
    assert!(pool.make_room(&mut plan, at(30), &mut report));
    assert_eq!((plan.victims.len(), sizes(&report), pods(&pool, "spot")), (0, vec![("spot", 3)], [1, 2]));
    assert_eq!(report.consequences.resizes[0].went, own);
    assert_eq!(pool.fleet().check(&plan), Ok(()));
    let all: Vec<_> =
        pool.running(&task("spot")).map(|(_, run)| [run.places.clone(), run.lent.clone()].concat()).unwrap();
    let mut plan = Plan { places: all[..3].to_vec(), victims: vec![task("spot")], ..plan };
    assert!(!pool.make_room(&mut plan, at(30), &mut report));
    assert_eq!(plan.victims, [task("spot")], "without a single pod it cannot go on");
}

#[test]
fn of_those_who_gain_alike_the_largest_gives_first_and_who_gains_little_before_both() {
    let mut pool = pool(1, PoolRules { resize_rest_s: 0, ..PoolRules::default() });
    let bends = Elastic::new(1, 2, 2, Some(vec![1_000, 1_100])).unwrap();
    come(&mut pool, 0, Request { elastic: Some(bends), ..elastic("bends", [1, 2, 2], None) });
    come(&mut pool, 1, elastic("small", [1, 2, 2], None));
    come(&mut pool, 2, elastic("large", [1, 4, 4], None));
    assert_eq!([pods(&pool, "bends"), pods(&pool, "small"), pods(&pool, "large")], [[1, 1], [1, 1], [1, 3]]);
    assert_eq!(sizes(&hp(&mut pool, 10, "a", 1)), [("bends", 1)]);
    assert_eq!(sizes(&hp(&mut pool, 11, "b", 1)), [("large", 3)]);
    assert_eq!(sizes(&hp(&mut pool, 12, "c", 1)), [("large", 2)]);
    assert_eq!(sizes(&hp(&mut pool, 13, "d", 2)), [("large", 1), ("small", 1)]);
}

#[test]
fn it_goes_on_without_a_node_that_is_lost() {
    let mut pool = pool(2, PoolRules::default());
    come(&mut pool, 0, elastic("spot", [2, 16, 16], None));
    let own = pool.running(&task("spot")).unwrap().1.places[0].node;
    let lost = Command::RemoveNode { node: node(own), cause: NodeLoss::Failed };
    let (report, done) = pool.handle(at(100), &lost);
    invariants_hold(&pool);
    assert_eq!((done, report.consequences.cuts.len(), pods(&pool, "spot")), (Ok(()), 0, [2, 6]));
    assert_eq!(report.consequences.resizes[0].why, ResizeReason::Lost { node: node(own) });
    let (report, _) = pool.handle(at(200), &Command::RemoveNode { node: node(1 - own), cause: NodeLoss::Failed });
    assert_eq!(report.consequences.cuts.len(), 1, "no node is left to go on");
}

#[test]
fn who_has_just_been_resized_gets_nothing_more_for_a_while() {
    let mut pool = pool(1, PoolRules::default());
    come(&mut pool, 0, elastic("spot", [1, 8, 8], None));
    assert_eq!(sizes(&hp(&mut pool, 100, "hp", 4)), [("spot", 4)]);
    let (report, _) = pool.handle(at(110), &Command::Finish { task: task("hp") });
    assert_eq!(sizes(&report), NOBODY);
    assert_eq!(sizes(&pool.pass(at(159))), NOBODY);
    assert_eq!(sizes(&pool.pass(at(160))), [("spot", 8)]);
}

#[test]
fn lent_pods_give_back_cpu_too_and_a_rigid_task_comes_before_them() {
    let mut pool = Pool::new(Policy::GFS, PoolRules::default());
    let node = Command::AddNode { node: node(0), gpus: 8, cpu_milli: Some(8_000), memory_mib: None, topology: None };
    pool.handle(at(0), &node).1.unwrap();
    come(&mut pool, 0, elastic("spot", [1, 8, 8], None));
    let mut wide = request("wide", TaskClass::Spot, GpuRequest::Whole(1), 1, None);
    wide.gang.pod.cpu_milli = 4_000;
    let report = come(&mut pool, 10, wide);
    assert_eq!((started(&report), pods(&pool, "spot")), (vec!["wide"], [1, 3]));
}

#[test]
fn what_cannot_be_elastic_is_refused() {
    let mut pool = pool(1, PoolRules::default());
    let hp = Request {
        elastic: Elastic::new(1, 2, 2, None).ok(),
        ..request("hp", TaskClass::Hp, GpuRequest::Whole(1), 2, None)
    };
    let (report, done) = pool.handle(at(0), &Command::Submit(hp));
    assert_eq!((report.facts.len(), done), (0, Err(Fault::NotElastic { task: task("hp") })));
    invariants_hold(&pool);
}

#[test]
fn a_pod_may_ask_for_any_cpu_where_that_is_not_known() {
    let mut pool = Pool::new(Policy::GFS, PoolRules::default());
    let node = Command::AddNode { node: node(0), gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
    pool.handle(at(0), &node).1.unwrap();
    let mut wide = elastic("spot", [1, 8, 8], None);
    wide.gang.pod.cpu_milli = i64::MAX as u64;
    come(&mut pool, 0, wide);
    assert_eq!(pods(&pool, "spot"), [1, 7]);
}

#[test]
fn what_others_still_save_on_is_lent_from_when_they_have_gone() {
    let mut pool = pool(1, PoolRules { grace_s: 30, ..PoolRules::default() });
    let mut two = elastic("two", [1, 2, 2], None);
    two.gang.pod.gpus = GpuRequest::Whole(4);
    come(&mut pool, 0, two);
    let report = come(&mut pool, 1, elastic("other", [1, 4, 4], None));
    let resizes = &report.consequences.resizes;
    let [gives, takes] = &resizes[..] else { panic!("{resizes:?}") };
    assert_eq!((gives.task.as_str(), gives.went.len(), gives.from), ("two", 1, at(31)));
    assert_eq!((takes.task.as_str(), takes.came.len(), takes.from), ("other", 3, at(31)), "not before");
}

#[test]
fn a_node_that_drains_gets_back_what_it_lent() {
    let mut pool = pool(2, PoolRules { grace_s: 30, ..PoolRules::default() });
    come(&mut pool, 0, elastic("spot", [1, 16, 16], None));
    let own = pool.running(&task("spot")).unwrap().1.places[0].node;
    let close = Command::OpenNode { node: node(1 - own), is_open: false };
    let (report, done) = pool.handle(at(10), &close);
    invariants_hold(&pool);
    assert_eq!((done, pods(&pool, "spot"), report.consequences.resizes[0].from), (Ok(()), [1, 7], at(40)));
    pool.pass(at(1_000));
    assert_eq!(pods(&pool, "spot"), [1, 7], "nothing is lent there any more");
}
