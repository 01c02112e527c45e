//! The HP jobs of a pool: of one whose tasks are placed here, and whether those that a scheduler reports are all.

use crate::bounds::expected;
use datasets::Panel;
use forecaster::jobs::{DroppedJobs, JobHistory};
use placement::pool::{Pool, Request};
use vocab::{HourStart, HpJob, MilliGpus, PoolId, SECONDS_PER_HOUR, TaskClass, UnixSeconds};

/// The last hours of usage that reported jobs are held against.
const COMPARED_HOURS: i64 = 3;
/// So many of them show that jobs are missing: short jobs may have come and gone between two reports.
const LEAST_HOURS: usize = 2;
/// Usage may exceed the jobs by this part of itself and a GPU.
const TOLERATED: f64 = 0.1;
/// By more than this part and a GPU no short jobs explain it: one hour shows it.
const PLAIN: f64 = 0.25;
/// First lists have no hour of their own to compare with: they are held against the newest usage, which may have fallen by this part.
const FIRST: f64 = 0.5;
/// Jobs that left the list at once count as running for so long at most where no usage tells.
const LONGEST_DOUBT_S: i64 = 4 * SECONDS_PER_HOUR;

/// Usage of a pool in one hour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HourUsage {
    /// The start of the hour.
    pub hour: UnixSeconds,
    /// The demand of all organizations, in GPUs; the last known one of those that have not reported it yet.
    pub gpus: f64,
}

/// Reported HP jobs that are not all: the pool used more than they add up to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobsMissing {
    /// The last hours in which both are known and usage is larger.
    pub hours: usize,
    /// The mean usage of those hours, in GPUs.
    pub usage_gpus: f64,
    /// The mean, over those hours, of the GPUs of all reported jobs that were there at any time within the hour.
    pub jobs_gpus: f64,
}

/// Faults of the HP jobs that a scheduler reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ListFault {
    /// They are not all: nothing is taken from them.
    Missing(JobsMissing),
    /// Many left at once: these count as if they ran on.
    Dropped {
        /// Those that left.
        jobs: DroppedJobs,
        /// GPUs of them that count: what the list lacks to the largest of the last hours of usage, where these are known.
        counted: MilliGpus,
    },
}

/// Usage of a pool in the last hours before `issue`, as far as it was measured.
#[must_use]
pub fn last_usage(panel: &Panel, pool: &PoolId, issue: HourStart) -> Vec<HourUsage> {
    let hour = |back: i64| {
        let hour = issue.plus_hours(-back);
        let index = panel.index_of(hour).filter(|index| *index < panel.hours())?;
        // An hour without those that are late would be covered by any list.
        let series = expected(panel, pool, index);
        let is_known = series.iter().any(|one| one.measured()[index]);
        let gpus = series.iter().map(|one| one.demand_gpus()[index]).sum();
        is_known.then(|| HourUsage { hour: hour.instant(), gpus })
    };
    (1..=COMPARED_HOURS).filter_map(hour).collect()
}

/// Usage of an hour, and all jobs that were listed within it, in GPUs.
fn compared(usage: &[HourUsage], jobs: &JobHistory) -> Vec<(HourUsage, f64)> {
    let listed = |one: &HourUsage| Some((*one, jobs.listed_milli(one.hour)? as f64 / 1_000.0));
    usage.iter().filter_map(listed).collect()
}

/// The usage of an hour is the sum of the peaks of organizations, which together may be more than the pool ever needed at one
/// moment; so it is held against all jobs of the hour, which are no less.
fn is_short(usage_gpus: f64, jobs_gpus: f64, tolerated: f64) -> bool {
    usage_gpus * (1.0 - tolerated) > jobs_gpus + 1.0
}

/// Whether the HP jobs that a scheduler reports are only a part of what the pool uses; `usage` is newest first. None where the newest
/// hour is covered.
pub(crate) fn jobs_missing(usage: &[HourUsage], jobs: &JobHistory) -> Option<JobsMissing> {
    let both = compared(usage, jobs);
    if both.is_empty() {
        let so_far_gpus = jobs.listed_so_far_milli() as f64 / 1_000.0;
        let newest = usage.first().filter(|newest| is_short(newest.gpus, so_far_gpus, FIRST));
        return newest.map(|newest| JobsMissing { hours: 1, usage_gpus: newest.gpus, jobs_gpus: so_far_gpus });
    }
    let short = both.iter().take_while(|(usage, jobs)| is_short(usage.gpus, *jobs, TOLERATED)).count();
    let short = &both[..short];
    let is_plain = short.first().is_some_and(|(usage, jobs)| is_short(usage.gpus, *jobs, PLAIN));
    let mean = |of: fn(&(HourUsage, f64)) -> f64| short.iter().map(of).sum::<f64>() / short.len() as f64;
    (is_plain || short.len() >= LEAST_HOURS).then(|| JobsMissing {
        hours: short.len(),
        usage_gpus: mean(|one| one.0.gpus),
        jobs_gpus: mean(|one| one.1),
    })
}

/// Until when jobs that left the list at once have ended: until now, where the listed ones cover the last hours of usage, as after a change of
/// ids; before an hour that the listed jobs cover, or long ago, unless usage says that jobs are missing.
pub(crate) fn ended_until(
    usage: &[HourUsage],
    jobs: &JobHistory,
    (now, now_gpus): (UnixSeconds, f64),
) -> Option<UnixSeconds> {
    if !usage.is_empty() && usage.iter().all(|one| !is_short(one.gpus, now_gpus, TOLERATED)) {
        return Some(now);
    }
    let both = compared(usage, jobs);
    let is_covered = |(usage, jobs): &&(HourUsage, f64)| !is_short(usage.gpus, *jobs, TOLERATED);
    if let Some((covered, _)) = both.iter().find(is_covered) {
        return Some(covered.hour.max(now.plus_s(-LONGEST_DOUBT_S)));
    }
    both.is_empty().then(|| now.plus_s(-LONGEST_DOUBT_S))
}

/// Jobs that left the list at once, as they count beside those that are listed now.
pub(crate) fn dropped(usage: &[HourUsage], jobs: DroppedJobs, now_gpus: f64) -> ListFault {
    let all = MilliGpus::from_milli(jobs.gpus_milli).unwrap_or(MilliGpus::MAX);
    let largest_gpus = usage.iter().map(|one| one.gpus).reduce(f64::max);
    let lacking = |gpus: f64| MilliGpus::rounded_up((gpus - now_gpus).max(0.0)).unwrap_or(MilliGpus::MAX);
    ListFault::Dropped { jobs, counted: largest_gpus.map_or(all, |gpus| all.min(lacking(gpus))) }
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
