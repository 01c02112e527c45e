//! HP demand is what runs and what could run.

use super::*;

/// HP pods of eight GPUs.
fn gang(pool: &mut Pool, seconds: i64, name: &str, pods: u32) {
    let request = request(name, TaskClass::Hp, GpuRequest::Whole(8), pods, None);
    pool.handle(at(seconds), &Command::Submit(request)).1.unwrap();
}

fn gpus(pool: &Pool) -> u64 {
    pool.hp_demand_milli() / 1_000
}

fn restored(pool: &Pool) -> Pool {
    Pool::restore(&pool.snapshot(), *pool.policy(), PoolRules::default()).unwrap()
}

#[test]
fn hp_work_that_does_not_fit_on_the_empty_pool_is_no_demand_and_never_usage() {
    let mut pool = pool(2, PoolRules::default());
    gang(&mut pool, 0, "runs", 1);
    gang(&mut pool, 10, "waits", 2);
    assert_eq!(gpus(&pool), 24, "what fits and waits is demand");
    gang(&mut pool, 20, "huge", 100_000);
    assert_eq!(gpus(&pool), 24);
    pool.handle(at(30), &Command::Delete { task: task("huge") }).1.unwrap();
    assert_eq!(gpus(&pool), 24);
    let hours: Vec<u64> = pool.pass(at(3_600)).consequences.demand.iter().map(|one| one.demand.peak.milli()).collect();
    assert_eq!(hours, [24_000, 24_000], "the organization, and the pool");
}

#[test]
fn waiting_work_becomes_demand_with_the_node_on_which_it_fits_and_ceases_to_be_without() {
    let mut pool = pool(1, PoolRules::default());
    gang(&mut pool, 0, "runs", 1);
    gang(&mut pool, 0, "waits", 2);
    assert_eq!((gpus(&pool), gpus(&restored(&pool))), (8, 8));
    pool.handle(at(10), &add(1)).1.unwrap();
    assert_eq!((gpus(&pool), gpus(&restored(&pool))), (24, 24));
    let remove = Command::RemoveNode { node: node(1), cause: NodeLoss::Drained };
    pool.handle(at(20), &remove).1.unwrap();
    assert_eq!((gpus(&pool), gpus(&restored(&pool))), (8, 8));
    pool.handle(at(30), &Command::Finish { task: task("runs") }).1.unwrap();
    pool.handle(at(30), &add(2)).1.unwrap();
    pool.handle(at(40), &Command::Finish { task: task("waits") }).1.unwrap();
    assert_eq!(gpus(&pool), 0, "it ran, and left nothing behind");
}

#[test]
fn a_snapshot_that_counts_tasks_which_fit_no_node_is_read_without_them() {
    let mut pool = pool(1, PoolRules::default());
    gang(&mut pool, 0, "runs", 1);
    gang(&mut pool, 0, "never", 100);
    pool.pass(at(60));
    let mut old = pool.snapshot();
    for level in old.demand.iter_mut().map(|(_, level)| level).chain([&mut old.demand_total]) {
        (level.milli, level.peak_milli) = (808_000, 808_000);
    }
    let read = Pool::restore(&old, *pool.policy(), PoolRules::default()).unwrap();
    assert_eq!(read.snapshot(), pool.snapshot());
}

/// Where an hour begins.
const FIRST: i64 = 2_800;

/// The demand of the hours that are over at a second: the organization's and the pool's.
fn closed(pool: &mut Pool, seconds: i64) -> Vec<u64> {
    pool.pass(at(FIRST + seconds)).consequences.demand.iter().map(|one| one.demand.peak.milli() / 1_000).collect()
}

#[test]
fn what_is_withdrawn_before_it_has_waited_a_minute_is_no_demand_of_the_hour() {
    let mut pool = pool(2, PoolRules::default());
    gang(&mut pool, FIRST, "runs", 2);
    for number in 0..60 {
        gang(&mut pool, FIRST + 10 + number, &format!("flash-{number}"), 2);
    }
    assert_eq!(gpus(&pool), 16 * 61, "what waits is demand at once");
    for number in 0..60 {
        let task = task(&format!("flash-{number}"));
        pool.handle(at(FIRST + 69), &Command::Delete { task }).1.unwrap();
    }
    assert_eq!(gpus(&pool), 16);
    assert_eq!(closed(&mut pool, 3_600), [16, 16], "none of them waited a minute");
    gang(&mut pool, FIRST + 3_700, "stays", 2);
    pool.handle(at(FIRST + 3_760), &Command::Delete { task: task("stays") }).1.unwrap();
    assert_eq!(closed(&mut pool, 7_200), [32, 32], "a minute is enough");
}

#[test]
fn what_is_withdrawn_before_it_has_run_a_minute_is_no_demand_of_the_hour_and_what_comes_to_its_end_is() {
    let mut pool = pool(2, PoolRules::default());
    gang(&mut pool, FIRST + 5, "flash", 2);
    assert_eq!(gpus(&pool), 16, "it runs, and is demand at once");
    let again = restored(&pool);
    assert_eq!(again.demand(), pool.demand(), "what is young follows from the tasks");
    pool.handle(at(FIRST + 6), &Command::Delete { task: task("flash") }).1.unwrap();
    gang(&mut pool, FIRST + 10, "short", 1);
    pool.handle(at(FIRST + 12), &Command::Finish { task: task("short") }).1.unwrap();
    assert_eq!(closed(&mut pool, 3_600), [8, 8], "it ran to its end");
    gang(&mut pool, FIRST + 3_700, "longer", 2);
    pool.handle(at(FIRST + 3_760), &Command::Delete { task: task("longer") }).1.unwrap();
    assert_eq!(closed(&mut pool, 7_200), [16, 16], "a minute is enough");
}

#[test]
fn what_waits_or_runs_over_the_turn_of_the_hour_counts_where_it_settles() {
    let mut pool = pool(2, PoolRules::default());
    gang(&mut pool, FIRST + 3_590, "young", 1);
    assert_eq!(closed(&mut pool, 3_600), [0, 0]);
    pool.handle(at(FIRST + 3_600), &Command::Delete { task: task("young") }).1.unwrap();
    gang(&mut pool, FIRST + 3_600, "runs", 2);
    gang(&mut pool, FIRST + 7_170, "late", 1);
    let mut again = restored(&pool);
    assert_eq!(again.demand(), pool.demand(), "what is young follows from the tasks");
    for pool in [&mut pool, &mut again] {
        assert_eq!(closed(pool, 7_200), [16, 16]);
        pool.handle(at(FIRST + 7_400), &Command::Delete { task: task("late") }).1.unwrap();
        assert_eq!(closed(pool, 10_800), [24, 24], "it had waited a minute in this hour");
    }
}

#[test]
fn a_task_that_lost_its_node_is_no_flash() {
    let mut pool = pool(1, PoolRules::default());
    gang(&mut pool, FIRST, "runs", 1);
    let remove = Command::RemoveNode { node: node(0), cause: NodeLoss::Failed };
    pool.handle(at(FIRST + 3_590), &remove).1.unwrap();
    pool.handle(at(FIRST + 3_595), &add(1)).1.unwrap();
    let again = restored(&pool);
    assert_eq!(again.demand(), pool.demand());
    assert_eq!(closed(&mut pool, 3_600), [8, 8]);
    assert_eq!(closed(&mut pool, 7_200), [8, 8]);
}
