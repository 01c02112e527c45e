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
    let hours: Vec<u64> = pool.pass(at(3_600)).consequences.demand.iter().map(|one| one.demand.milli()).collect();
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
fn a_snapshot_that_counts_what_fits_nowhere_is_read_without_it() {
    let mut pool = pool(1, PoolRules::default());
    gang(&mut pool, 0, "runs", 1);
    gang(&mut pool, 0, "never", 100);
    let mut old = pool.snapshot();
    for level in old.demand.iter_mut().map(|(_, level)| level).chain([&mut old.demand_total]) {
        (level.milli, level.peak_milli) = (808_000, 808_000);
    }
    let read = Pool::restore(&old, *pool.policy(), PoolRules::default()).unwrap();
    assert_eq!(read.snapshot(), pool.snapshot());
}
