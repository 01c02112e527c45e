//! The HP jobs of a pool: of one whose tasks are placed here, and whether those that a scheduler reports are all.

use datasets::{Panel, Series};
use forecaster::jobs::JobHistory;
use placement::pool::{Pool, Request};
use vocab::{HourStart, HpJob, PoolId, SECONDS_PER_HOUR, TaskClass, UnixSeconds};

/// The last hours of usage that reported jobs are held against.
const COMPARED_HOURS: i64 = 3;
/// One hour alone shows nothing: short jobs may have come and gone between two reports.
const LEAST_HOURS: usize = 2;
/// Usage may exceed the jobs by this part of itself and a GPU.
const TOLERATED: f64 = 0.1;

/// Usage of a pool in one hour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HourUsage {
    /// The start of the hour.
    pub hour: UnixSeconds,
    /// The demand of all organizations that have reported it, in GPUs.
    pub gpus: f64,
}

/// Reported HP jobs that are not all: the pool used more than they add up to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobsMissing {
    /// Hours in which both are known. In each of them usage is larger.
    pub hours: usize,
    /// The mean usage of those hours, in GPUs.
    pub usage_gpus: f64,
    /// The mean, over those hours, of the GPUs of all reported jobs that were there at any time within the hour.
    pub jobs_gpus: f64,
}

/// Usage of a pool in the last hours before `issue`, as far as it was measured.
#[must_use]
pub fn last_usage(panel: &Panel, pool: &PoolId, issue: HourStart) -> Vec<HourUsage> {
    let hour = |back: i64| {
        let hour = issue.plus_hours(-back);
        let index = panel.index_of(hour).filter(|index| *index < panel.hours())?;
        let measured = |series: &Series| series.measured()[index].then(|| series.demand_gpus()[index]);
        let gpus = panel.series_of(pool).iter().filter_map(measured).reduce(|sum, gpus| sum + gpus)?;
        Some(HourUsage { hour: hour.instant(), gpus })
    };
    (1..=COMPARED_HOURS).filter_map(hour).collect()
}

/// Whether the HP jobs that a scheduler reports are only a part of what the pool uses. The usage of an hour is the sum of the peaks of
/// organizations, which together may be more than the pool ever needed at one moment; so it is held against all jobs of the hour,
/// which are no less. None where fewer than two hours can be compared, or one of them is covered.
pub(crate) fn jobs_missing(usage: &[HourUsage], jobs: &JobHistory) -> Option<JobsMissing> {
    let listed_gpus = |one: &HourUsage| {
        let milli = jobs.gpus_milli_within(one.hour, one.hour.plus_s(SECONDS_PER_HOUR))?;
        Some((one.gpus, milli as f64 / 1_000.0))
    };
    let both: Vec<(f64, f64)> = usage.iter().filter_map(listed_gpus).collect();
    let is_short = |(usage, jobs): &(f64, f64)| usage * (1.0 - TOLERATED) > jobs + 1.0;
    let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / both.len() as f64;
    (both.len() >= LEAST_HOURS && both.iter().all(is_short)).then(|| JobsMissing {
        hours: both.len(),
        usage_gpus: mean(|one| one.0),
        jobs_gpus: mean(|one| one.1),
    })
}

/// The HP jobs that run and wait, as far as they are demand, the running ones first.
#[must_use]
pub fn hp_jobs(pool: &Pool) -> Vec<HpJob> {
    let running = pool.fleet().tasks().iter().filter(|(_, running)| running.class == TaskClass::Hp);
    let running =
        running.filter_map(|(task, _)| pool.running(task)).map(|(request, run)| job(request, Some(run.since)));
    let is_demand = |request: &Request| request.gang.class == TaskClass::Hp && pool.is_demand(&request.gang.task);
    let waiting = pool.waiting().filter(|waiting| is_demand(&waiting.request));
    running.chain(waiting.map(|waiting| job(&waiting.request, None))).collect()
}

fn job(request: &Request, started: Option<UnixSeconds>) -> HpJob {
    let gang = &request.gang;
    HpJob {
        task: gang.task.clone(),
        organization: request.organization.clone(),
        gpus_milli: u64::from(gang.pod.gpus.milli()) * u64::from(gang.pods),
        submitted: request.submitted,
        started,
    }
}
