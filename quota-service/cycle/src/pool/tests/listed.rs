//! HP jobs that another scheduler lists, held against usage.

use super::*;
use crate::jobs::{JobsMissing, ListFault, last_usage};
use datasets::{Calendar, PanelBuilder};
use vocab::{HourStart, SeriesId};

/// A pool with 500 GPUs of the forecast's bound, and usage of six jobs of 50 GPUs.
fn listing() -> World {
    World { usage_gpus: Some(290.0), ..World::new(Promise::Peak, 80) }
}

fn renew(pool: &mut World, renewal: i64, jobs: Vec<HpJob>) -> Decided {
    pool.hp_demand = Some(MilliGpus::from_milli(jobs.iter().map(|job| job.gpus_milli).sum()).unwrap());
    pool.hp_jobs = Some(jobs);
    pool.renew(renewal, &[])
}

fn missing(decided: &Decided) -> Option<JobsMissing> {
    match decided.list_fault {
        Some(ListFault::Missing(missing)) => Some(missing),
        _ => None,
    }
}

fn half(renewal: i64) -> Vec<HpJob> {
    jobs_at(renewal).into_iter().filter(|job| job.submitted.get() % 7_200 == 0).collect()
}

#[test]
fn a_part_of_the_jobs_is_taken_for_no_demand_until_all_are_reported() {
    let mut pool = listing();
    // Half of the jobs are reported: after an hour that is known, and the forecast's bound stands alone.
    let of_half: Vec<_> = (0..DAY).map(|renewal| renew(&mut pool, renewal, half(renewal))).collect();
    assert!(of_half[..12].iter().all(|decided| decided.list_fault.is_none()), "nothing to compare with yet");
    for decided in &of_half[12..] {
        let found = missing(decided).unwrap();
        assert!(found.usage_gpus == 290.0 && found.jobs_gpus <= 200.0 && found.hours >= 1, "{found:?}");
        assert!(decided.moving.is_none() && decided.hp_demand.is_none(), "{:?}", decided.demand);
        assert_eq!(decided.demand[0].bound.bound, gpus(500));
    }
    // All of them: with the first hour that has them they count again.
    let whole: Vec<_> = (DAY..2 * DAY).map(|renewal| renew(&mut pool, renewal, jobs_at(renewal))).collect();
    assert!(whole[12..].iter().all(|decided| decided.list_fault.is_none() && decided.moving.is_some()));
}

#[test]
fn a_tenth_that_is_missing_is_known_after_two_hours_and_a_first_list_at_once() {
    let part = |renewal: i64| jobs_at(renewal)[1..].to_vec();
    let mut pool = World { usage_gpus: Some(330.0), ..listing() };
    let found: Vec<_> = (1..=DAY).map(|renewal| missing(&renew(&mut pool, renewal, part(renewal)))).collect();
    // The first list comes at five past, so that the hours from one on are known.
    assert!(found[..35].iter().all(Option::is_none), "one hour alone shows nothing");
    assert!(found[35..].iter().all(|one| one.unwrap().hours >= 2));
    let mut pool = listing();
    let first = missing(&renew(&mut pool, 3, Vec::new())).unwrap();
    assert_eq!(first, JobsMissing { hours: 1, usage_gpus: 290.0, jobs_gpus: 0.0 });
    // Jobs that were listed and ended are none that is missing.
    let mut pool = World { usage_gpus: Some(290.0), ..listing() };
    let three = |renewal: i64| jobs_at(renewal)[..3].to_vec();
    assert!((3..8).all(|renewal| renew(&mut pool, renewal, three(renewal)).list_fault.is_none()));
    assert_eq!(renew(&mut pool, 8, Vec::new()).list_fault, None);
    // Two such hours, of which the newest is covered, are no fault.
    let mut pool = World { usage_gpus: Some(330.0), ..listing() };
    (1..36).for_each(|renewal| drop(renew(&mut pool, renewal, part(renewal))));
    pool.usage_gpus = Some(250.0);
    assert_eq!(renew(&mut pool, 36, part(36)).list_fault, None);
}

#[test]
fn a_list_that_loses_its_jobs_takes_nothing_from_the_bound_until_usage_confirms_it() {
    let mut pool = listing();
    let before = (0..3 * DAY).map(|renewal| renew(&mut pool, renewal, jobs_at(renewal))).last().unwrap();
    // From a quarter past on nothing is listed, and the pool is used as before.
    let (from, jobs) = (3 * DAY + 3, |renewal: i64| if renewal < 3 * DAY + 3 { jobs_at(renewal) } else { Vec::new() });
    let after: Vec<_> = (3 * DAY..4 * DAY).map(|renewal| renew(&mut pool, renewal, jobs(renewal))).collect();
    for decided in &after[3..24] {
        let Some(ListFault::Dropped { jobs, counted }) = decided.list_fault else { panic!("{:?}", decided.list_fault) };
        assert_eq!((jobs.jobs, jobs.gpus_milli, jobs.since), (6, 300_000, at(from)));
        // No more than was used.
        assert!(counted == gpus(290) && decided.hp_demand == Some(gpus(290)) && decided.moving.is_some());
        assert!(decided.demand[0].bound.bound >= gpus(290), "{:?} before {:?}", decided.demand, before.demand);
    }
    assert!(after[24..].iter().all(|decided| missing(decided).is_some()), "an hour of usage shows it");
    // Of another pool the jobs have ended: usage of a whole hour says so.
    let mut pool = listing();
    (0..3 * DAY).for_each(|renewal| drop(renew(&mut pool, renewal, jobs_at(renewal))));
    let ended: Vec<_> = (3 * DAY..4 * DAY)
        .map(|renewal| {
            pool.usage_gpus = Some(if renewal < 3 * DAY + 24 { 290.0 } else { 0.0 });
            renew(&mut pool, renewal, jobs(renewal))
        })
        .collect();
    assert!(matches!(ended[23].list_fault, Some(ListFault::Dropped { .. })));
    assert!(ended[24..].iter().all(|decided| decided.list_fault.is_none() && decided.hp_demand == Some(gpus(0))));
}

#[test]
fn jobs_that_get_other_ids_are_no_loss_and_those_of_two_reporters_in_turn_count_together() {
    let named = |renewal: i64, of: i64| -> Vec<HpJob> {
        let other = |job: HpJob| HpJob { task: TaskId::parse(&format!("{}-{of}", job.task)).unwrap(), ..job };
        jobs_at(renewal).into_iter().map(other).collect()
    };
    let mut pool = listing();
    for renewal in 0..DAY {
        let decided = renew(&mut pool, renewal, named(renewal, renewal));
        assert!(decided.list_fault.is_none() && decided.hp_demand == Some(gpus(300)), "{:?}", decided.list_fault);
    }
    let mut pool = listing();
    let halves = |renewal: i64| -> Vec<HpJob> {
        let of = |job: &HpJob| (job.submitted.get() / 3_600 + renewal) % 2 == 0;
        // More jobs of fewer GPUs each: fewer than four may well end together.
        let parts = |job: HpJob| {
            (0..2).map(move |part| HpJob {
                task: TaskId::parse(&format!("{}-{part}", job.task)).unwrap(),
                gpus_milli: 25_000,
                ..job.clone()
            })
        };
        jobs_at(renewal).into_iter().filter(of).flat_map(parts).collect()
    };
    let all: Vec<_> = (0..DAY).map(|renewal| renew(&mut pool, renewal, halves(renewal))).collect();
    for decided in &all[24..] {
        assert!(matches!(decided.list_fault, Some(ListFault::Dropped { .. })), "{:?}", decided.list_fault);
        assert_eq!(decided.hp_demand, Some(gpus(290)));
    }
}

#[test]
fn where_no_usage_tells_jobs_that_left_together_have_ended_after_four_hours() {
    let mut pool = World { usage_gpus: Some(f64::NAN), ..listing() };
    let jobs = |renewal: i64| if renewal < 12 { jobs_at(renewal) } else { Vec::new() };
    let faults: Vec<_> = (0..DAY).map(|renewal| renew(&mut pool, renewal, jobs(renewal)).list_fault).collect();
    let places: Vec<usize> = (0..faults.len()).filter(|place| faults[*place].is_some()).collect();
    assert_eq!(places, (12..60).collect::<Vec<_>>());
}

#[test]
fn usage_of_an_hour_has_the_last_known_demand_of_those_that_are_late() {
    let (cluster, start) = (ClusterName::parse("earth").unwrap(), HourStart::from_unix_s(0).unwrap());
    let pool = PoolId { cluster: cluster.clone(), gpu_model: GpuModel::parse("A100").unwrap() };
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let mut builder = PanelBuilder::new(cluster, calendar, start, start.plus_hours(80));
    // The second is late by an hour, and the third has reported nothing for more than two days.
    for (name, gpus, hours) in [("vision", 90.0, 80), ("speech", 200.0, 79), ("nlp", 50.0, 10)] {
        let series = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
        (0..hours).for_each(|hour| builder.push(&series, start.plus_hours(hour), gpus).unwrap());
    }
    let panel = builder.finish().unwrap();
    let of = |issue: i64| -> Vec<f64> {
        last_usage(&panel, &pool, start.plus_hours(issue)).iter().map(|one| one.gpus).collect()
    };
    assert_eq!(of(80), [290.0, 290.0, 290.0]);
    assert_eq!(of(30), [340.0, 340.0, 340.0]);
    assert_eq!(of(81), [290.0, 290.0], "the newest hour has not come");
}

#[test]
fn after_an_hour_without_lists_what_they_had_before_is_no_measure() {
    let mut pool = listing();
    (0..=DAY).for_each(|renewal| drop(renew(&mut pool, renewal, jobs_at(renewal))));
    // The reporter comes back after an hour and five minutes, with nothing.
    let found = missing(&renew(&mut pool, DAY + 14, Vec::new())).unwrap();
    assert_eq!(found, JobsMissing { hours: 1, usage_gpus: 290.0, jobs_gpus: 0.0 });
}
