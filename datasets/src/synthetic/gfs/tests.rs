use super::check::{check, failed};
use super::*;
use std::collections::BTreeSet;
use vocab::MilliGpus;

fn cluster(shares: Shares, days: u32, seed: u64) -> GfsCluster {
    let start = HourStart::from_unix_s(1_709_222_400).unwrap();
    let (cluster, organizations) = (ClusterName::parse("gfs").unwrap(), GfsCluster::published_organizations(shares));
    GfsCluster { shares, cluster, start, days, organizations, seed }
}

fn failures(made: &Made) -> Vec<String> {
    failed(&check(made, &made.usage().unwrap()))
}

fn jobs_of(made: &Made, organization: u32) -> Vec<Job> {
    made.jobs.iter().filter(|job| job.organization == organization).copied().collect()
}

/// HP demand of every pool lies below its fleet on average, and moves in most hours.
fn assert_demand_is_plausible(made: &Made) {
    let usage = made.usage().unwrap();
    for row in check(made, &usage).iter().filter(|row| row.category.ends_with(", mean")) {
        assert!((0.4..0.9).contains(&row.generated), "{} {}", row.category, row.generated);
    }
    let pools: Vec<_> = usage.iter().filter(|row| row.series.is_pool_peak()).collect();
    let moved = pools.windows(2).filter(|pair| pair[0].demand != pair[1].demand).count();
    assert!(moved * 10 > pools.len() * 8, "{moved} of {} hours", pools.len());
}

#[test]
fn five_weeks_have_the_published_shares_and_a_plausible_demand_with_any_seed() {
    for shares in [Shares::Trace, Shares::A100] {
        for seed in 1..=3 {
            let made = cluster(shares, 35, seed).make();
            assert_eq!(failures(&made), [""; 0], "{shares:?}, seed {seed}");
            assert_demand_is_plausible(&made);
        }
    }
}

#[test]
fn jobs_that_are_not_those_published_fail_the_check() {
    let made = cluster(Shares::Trace, 35, 1).make();
    let spoil = |change: &dyn Fn(&mut Job)| {
        let mut made = made.clone();
        made.jobs.iter_mut().for_each(change);
        failures(&made)
    };
    let every_tenth_a10_on_h800 =
        spoil(&|job| job.model = if job.model == 0 && job.submit_s % 10 == 0 { 2 } else { job.model });
    assert!(every_tenth_a10_on_h800.contains(&"model A10 (jobs)".to_owned()), "{every_tenth_a10_on_h800:?}");
    let longer_gangs =
        spoil(&|job| job.duration_s = if job.workers > 8 { job.duration_s * 5 / 4 } else { job.duration_s });
    assert!(longer_gangs.contains(&"workers 9 to 32 (gpu_seconds)".to_owned()), "{longer_gangs:?}");
    let twice_as_dense = spoil(&|job| job.submit_s = if job.submit_s > 0 { job.submit_s / 2 } else { 0 });
    assert!(twice_as_dense.contains(&"gap between jobs quantile 0.5 (seconds)".to_owned()), "{twice_as_dense:?}");
}

#[test]
fn more_spot_than_table_3_shows_fails_the_check() {
    let mut made = cluster(Shares::A100, 35, 1).make();
    for job in made.jobs.iter_mut().filter(|job| job.submit_s % 20 == 0) {
        job.spot = true;
    }
    assert!(failures(&made).contains(&"type Spot (jobs)".to_owned()), "{:?}", failures(&made));
}

#[test]
fn the_same_seed_gives_the_same_jobs_and_another_one_others() {
    let of = |seed| cluster(Shares::A100, 7, seed).make().jobs;
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}

#[test]
fn fewer_organizations_are_the_largest_and_more_of_them_change_no_job_of_the_others() {
    let made = |organizations| GfsCluster { organizations, ..cluster(Shares::Trace, 7, 7) }.make();
    let (few, all, many) = (made(3), made(84), made(90));
    let names = |made: &Made| made.jobs.iter().map(|job| job.organization).collect::<BTreeSet<_>>();
    assert_eq!(names(&few), BTreeSet::from([13, 57, 19]));
    assert_eq!((names(&all).len(), names(&many).len()), (84, 90));
    assert_eq!(names(&cluster(Shares::A100, 7, 7).make()).len(), 39);
    assert_eq!(names(&all).into_iter().chain(84..90).collect::<BTreeSet<_>>(), names(&many));
    for organization in [57, 19] {
        assert_eq!(jobs_of(&few, organization), jobs_of(&all, organization));
        assert_eq!(jobs_of(&many, organization), jobs_of(&all, organization));
    }
}

#[test]
fn any_window_has_a_job_in_its_first_and_its_last_hour_and_none_outside() {
    for (shares, days, organizations) in [(Shares::Trace, 1, 84), (Shares::A100, 2, 1), (Shares::A100, 50, 39)] {
        let made = GfsCluster { organizations, ..cluster(shares, days, 3) }.make();
        let (first, last) = (made.jobs[0].submit_s, made.jobs[made.jobs.len() - 1].submit_s);
        assert!(first < 3_600 && (days * 86_400 - 3_600..days * 86_400).contains(&last), "{first} {last}");
        assert!(made.jobs.iter().all(|job| job.duration_s > 0 && job.workers > 0 && job.request_milli > 0));
    }
}

#[test]
fn every_worker_fits_the_largest_node_of_its_model_with_all_its_gpus_used() {
    let made = cluster(Shares::Trace, 35, 5).make();
    let nodes = made.nodes();
    assert_eq!((nodes.len(), nodes.iter().map(|node| u64::from(node.gpus)).sum::<u64>()), (4_278, 10_412));
    for job in &made.jobs {
        let largest = published::FLEET.iter().filter(|shape| shape.model == usize::from(job.model));
        let largest = largest.max_by_key(|shape| shape.gpus).unwrap();
        assert!(u32::from(job.request_milli) <= largest.gpus * 1_000, "{job:?}");
        // Sharing a node by GPUs, it is never short of vCPUs; a fraction asks for its part, and one vCPU at least.
        let fair = f64::from(largest.vcpus) / f64::from(largest.gpus) * f64::from(job.request_milli) / 1_000.0;
        assert!(f64::from(job.vcpus) <= fair.max(1.0), "{job:?}");
    }
    let a100 = cluster(Shares::A100, 1, 5).make().nodes();
    assert_eq!((a100.len(), a100[0].capacity()), (287, MilliGpus::from_gpus(8)));
}

#[test]
fn the_hours_of_the_day_are_those_of_the_clock_in_china_wherever_the_window_begins() {
    let start = HourStart::from_unix_s(1_709_222_400).unwrap().plus_hours(15);
    let made = GfsCluster { start, ..cluster(Shares::Trace, 35, 2) }.make();
    assert_eq!(failures(&made), [""; 0]);
}
