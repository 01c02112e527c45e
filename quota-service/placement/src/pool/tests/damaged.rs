//! States and facts that no pool has written.

use super::*;
use crate::fleet::{GpuPlace, Guarantee, PlanFault};

/// An HP task and a spot task run, another HP task waits; a node has gone.
fn snapshot() -> Snapshot {
    let mut pool = pool(2, PoolRules::default());
    pool.handle(at(0), &limits(8)).1.unwrap();
    submit(&mut pool, 0, "spot", TaskClass::Spot, 2, Some(1));
    submit(&mut pool, 0, "hp", TaskClass::Hp, 4, None);
    submit(&mut pool, 0, "large", TaskClass::Hp, 16, None);
    pool.handle(at(1), &add(2)).1.unwrap();
    pool.handle(at(2), &Command::RemoveNode { node: node(2), cause: NodeLoss::Drained }).1.unwrap();
    pool.snapshot()
}

fn refused(change: impl FnOnce(&mut Snapshot)) -> Fault {
    let mut damaged = snapshot();
    change(&mut damaged);
    Pool::restore(&damaged, Policy::GFS, PoolRules::default()).expect_err("it contradicts itself")
}

#[test]
fn a_snapshot_that_contradicts_itself_is_refused() {
    let whole = snapshot();
    assert_eq!(Pool::restore(&whole, Policy::GFS, PoolRules::default()).unwrap().snapshot(), whole);
    let known = |name| Fault::Known { task: task(name) };
    assert_eq!(refused(|of| of.waiting.push(of.waiting[0].clone())), known("large"));
    assert_eq!(refused(|of| of.waiting[0].request.gang.task = task("hp")), known("hp"));
    let promised = Some(Guarantee::from(at(0), hours(1)));
    let hp = |of: &Snapshot| of.running.iter().position(|run| run.request.gang.task == task("hp")).unwrap();
    let fault = refused(|of| of.running[hp(&snapshot())].guarantee = promised);
    assert_eq!(fault, Fault::Promised { task: task("hp") });
    assert_eq!(refused(|of| of.waiting[0].request.gang.pods = 0), Fault::NoPods { task: task("large") });
    let fault = refused(|of| of.running[hp(&snapshot())].places[0].1 = GpuPlace::Whole { mask: 0b1 });
    assert_eq!(fault, Fault::OtherGpus { task: task("hp") }, "it asks for four");
    let on = |of: &Snapshot| of.running[hp(of)].places[0].0.clone();
    let fault = refused(|of| of.nodes.iter_mut().find(|one| one.node == on(&snapshot())).unwrap().is_gone = true);
    assert_eq!(fault, Fault::UnknownNode { node: on(&whole) });
    let fault = refused(|of| of.running[hp(&snapshot())].lent = vec![(node(0), GpuPlace::Whole { mask: 0b1111 })]);
    assert_eq!(fault, Fault::NotElastic { task: task("hp") });
}

#[test]
fn demand_that_is_not_that_of_the_tasks_is_refused() {
    let other = |name: &str| Fault::OtherDemand { organization: Organization::parse(name).unwrap() };
    assert_eq!(refused(|of| of.demand[0].1.milli -= 1), other("a"));
    assert_eq!(refused(|of| of.demand.clear()), other("a"));
    assert_eq!(refused(|of| of.demand_total.milli += 1), other("*"));
    assert_eq!(refused(|of| of.demand[0].1.milli += 1), other("a"));
}

#[test]
fn facts_that_nobody_decided_are_refused_and_break_nothing() {
    let started = |name: &str, guarantee, victims: &[&str], mask| Fact::Started {
        task: task(name),
        places: vec![(node(0), GpuPlace::Whole { mask })],
        guarantee,
        victims: victims.iter().map(|name| task(name)).collect(),
        starts: at(5),
    };
    let fault = |fact: &Fact| {
        let mut pool = pool(1, PoolRules::default());
        submit(&mut pool, 0, "spot", TaskClass::Spot, 4, None);
        let request = request("hp", TaskClass::Hp, GpuRequest::Whole(8), 1, None);
        pool.apply(at(1), &Fact::Submitted { request }).unwrap();
        let before = pool.snapshot();
        let fault = pool.apply(at(1), fact).unwrap_err();
        assert_eq!(pool.snapshot(), before);
        fault
    };
    let twice = started("hp", None, &["spot", "spot"], 0xff);
    assert_eq!(fault(&twice), Fault::Plan(PlanFault::VictimGone { task: task("spot") }));
    let promised = started("hp", Some(Guarantee::from(at(1), hours(1))), &["spot"], 0xff);
    assert_eq!(fault(&promised), Fault::Promised { task: task("hp") });
    assert_eq!(fault(&started("hp", None, &["spot"], 0xf0)), Fault::OtherGpus { task: task("hp") });
    let (places, why) = (vec![(node(0), GpuPlace::Whole { mask: 0xf0 })], ResizeReason::Grows);
    let resized = Fact::Resized { task: task("spot"), places, lent: Vec::new(), why, from: at(1) };
    assert_eq!(fault(&resized), Fault::NotElastic { task: task("spot") });
}

#[test]
fn a_window_of_any_length_is_one() {
    let preemption = crate::fleet::PreemptionSettings { usage_window_s: u64::MAX, ..Policy::GFS.preemption };
    let mut pool = Pool::new(Policy { preemption, ..Policy::GFS }, PoolRules::default());
    pool.handle(at(0), &add(0)).1.unwrap();
    submit(&mut pool, 0, "spot", TaskClass::Spot, 8, None);
    submit(&mut pool, 1, "hp", TaskClass::Hp, 8, None);
    pool.pass(at(2));
    assert_eq!(pool.snapshot().runs, [(at(1), true)], "an eviction counts for good");
}
