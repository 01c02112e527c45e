//! Evictions that are put off.

use super::*;
use crate::fleet::VictimRule;
use crate::policy::Timing;

fn lazer(nodes: usize) -> Pool {
    let policy = Policy::parse("gfs-lazer").unwrap();
    let mut pool = Pool::new(policy, PoolRules { grace_s: 30, ..PoolRules::default() });
    (0..nodes).for_each(|number| pool.handle(at(0), &add(number)).1.unwrap());
    pool
}

fn until(pool: &mut Pool, name: &str) -> i64 {
    match pool.why_it_waits(&task(name)) {
        Some(WaitReason::Deferred { until }) => until.since_s(at(0)),
        other => panic!("{name} is not put off: {other:?}"),
    }
}

#[test]
fn hp_that_would_evict_takes_what_falls_idle_meanwhile_and_nobody_goes() {
    let mut pool = lazer(2);
    submit(&mut pool, 0, "short", TaskClass::Spot, 8, None);
    submit(&mut pool, 0, "long", TaskClass::Spot, 8, None);
    let report = submit(&mut pool, 100, "hp", TaskClass::Hp, 8, None);
    assert!(matches!(&report.facts[..], [_, Fact::Deferred { holds, .. }] if holds.len() == 1));
    let due = until(&mut pool, "hp");
    assert!((101..=200).contains(&due), "{due}");
    let (report, _) = pool.handle(at(101), &Command::Finish { task: task("short") });
    assert_eq!((started(&report), report.consequences.cuts.len()), (vec!["hp"], 0));
    assert_eq!(pool.deferred(), 0);
    assert_eq!(pool.pass(at(due)).facts, [], "its deferral is forgotten");
}

#[test]
fn when_nothing_falls_idle_it_evicts_as_soon_as_its_time_is_over() {
    let mut pool = lazer(1);
    submit(&mut pool, 0, "spot", TaskClass::Spot, 8, None);
    submit(&mut pool, 100, "hp", TaskClass::Hp, 8, None);
    let due = until(&mut pool, "hp");
    assert_eq!(started(&pool.pass(at(due - 1))), Vec::<&str>::new());
    let report = pool.pass(at(due));
    assert_eq!((started(&report), report.consequences.cuts.len()), (vec!["hp"], 1));
}

#[test]
fn whom_one_newcomer_holds_another_does_not_evict() {
    let mut pool = lazer(2);
    submit(&mut pool, 0, "one", TaskClass::Spot, 8, None);
    submit(&mut pool, 50, "two", TaskClass::Spot, 8, None);
    let holds = |report: &Report| match &report.facts[..] {
        [_, Fact::Deferred { holds, .. }] => holds.clone(),
        other => panic!("{other:?}"),
    };
    let first = holds(&submit(&mut pool, 100, "a", TaskClass::Hp, 8, None));
    let second = holds(&submit(&mut pool, 100, "b", TaskClass::Hp, 8, None));
    assert_eq!((first, second), (vec![task("two")], vec![task("one")]));
    let third = submit(&mut pool, 100, "c", TaskClass::Hp, 8, None);
    assert_eq!(third.facts.len(), 1, "nobody is left for it");
    pool.handle(at(101), &Command::Delete { task: task("b") }).1.unwrap();
    invariants_hold(&pool);
    assert!(pool.running(&task("c")).is_some(), "it waited for whom another one held, and is no newcomer any more");
}

#[test]
fn it_learns_that_nothing_falls_idle_and_stops_waiting() {
    let mut pool = lazer(1);
    let mut put_off = Vec::new();
    for round in 0..400 {
        let start = 10_000 * round;
        submit(&mut pool, start, &format!("spot-{round}"), TaskClass::Spot, 8, None);
        let hp = format!("hp-{round}");
        submit(&mut pool, start + 1_000, &hp, TaskClass::Hp, 8, None);
        put_off.push(match pool.why_it_waits(&task(&hp)) {
            Some(WaitReason::Deferred { until }) => until.since_s(at(start + 1_000)),
            _ => 0,
        });
        pool.pass(at(start + 2_000));
        pool.handle(at(start + 5_000), &Command::Finish { task: task(&hp) }).1.unwrap();
        let spot = format!("spot-{round}");
        pool.handle(at(start + 5_100), &Command::Delete { task: task(&spot) }).1.unwrap();
    }
    let mean = |some: &[i64]| some.iter().sum::<i64>() as f64 / some.len() as f64;
    assert!(mean(&put_off[..10]) > 20.0, "it samples first: {:?}", &put_off[..10]);
    assert!(mean(&put_off[300..]) < 5.0, "{:?}", &put_off[300..]);
}

#[test]
fn a_seed_says_which_samples_come_first() {
    let due = |seed| {
        let policy = Policy { timing: Timing::Lazer { seed }, ..Policy::GFS };
        let mut pool = Pool::new(policy, PoolRules::default());
        pool.handle(at(0), &add(0)).1.unwrap();
        submit(&mut pool, 0, "spot", TaskClass::Spot, 8, None);
        submit(&mut pool, 100, "hp", TaskClass::Hp, 8, None);
        until(&mut pool, "hp")
    };
    assert_eq!(due(1), due(1));
    assert_ne!(due(1), due(2));
}

#[test]
fn put_off_it_takes_falling_idle_gpus_before_any_preference_of_its_policy() {
    let policy =
        Policy { idle_first: false, victims: VictimRule::Tightest, timing: Timing::Lazer { seed: 1 }, ..Policy::GFS };
    let mut pool = Pool::new(policy, PoolRules { grace_s: 30, ..PoolRules::default() });
    (0..2).for_each(|number| pool.handle(at(0), &add(number)).1.unwrap());
    submit(&mut pool, 0, "short", TaskClass::Spot, 8, None);
    submit(&mut pool, 0, "long", TaskClass::Spot, 8, None);
    submit(&mut pool, 100, "hp", TaskClass::Hp, 8, None);
    until(&mut pool, "hp");
    let (report, _) = pool.handle(at(101), &Command::Finish { task: task("short") });
    assert_eq!(started(&report), ["hp"]);
}
