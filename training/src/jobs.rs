//! Lists of HP jobs: what a run learns of them (`train --jobs`), and what a service would have known of them at each moment.

mod lists;
mod whole;

use crate::args::JobLists;
use crate::error::TrainingError;
use command_line::print_notice;
use datasets::Panel;
use datasets::read::ReadOptions;
use forecaster::jobs::{ListedJob, MOST_JOBS, PastJobs};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{HourStart, HpJob, PoolId, Task, TaskClass, UnixSeconds};
pub use whole::{unlike_minutes, unlike_usage, whole};

/// The HP jobs of a pool, as if none waited, in the order of their submission.
#[derive(Debug, Clone, Default)]
pub struct PoolJobs {
    /// Each with its end.
    jobs: Vec<(HpJob, UnixSeconds)>,
}

/// The HP jobs of the pools of a cluster.
pub type ClusterJobs = BTreeMap<PoolId, PoolJobs>;

/// Reads lists of the HP jobs of a cluster's pools. Jobs of GPU models without usage are left out, with a notice.
///
/// # Errors
/// A list cannot be read, holds a bad row, or has no HP job of the cluster's pools; a flag is missing or has no meaning.
pub fn read(lists: &JobLists, panel: &Panel) -> Result<ClusterJobs, TrainingError> {
    if lists.files.is_empty() {
        lists::check(lists, &[])?;
        return Ok(ClusterJobs::new());
    }
    let pools: BTreeSet<PoolId> = panel.series().iter().map(|series| series.id().pool.clone()).collect();
    let Some(first) = pools.first() else { return Ok(ClusterJobs::new()) };
    let options = ReadOptions {
        cluster: panel.cluster().clone(),
        gpu_model: first.gpu_model.clone(),
        calendar: panel.calendar().clone(),
        skip_bad_rows: false,
        zones: datasets::Zones::new(),
    };
    let tasks = lists::tasks_of(lists, &options, &pools)?;
    let (mut known, mut left_out) = (ClusterJobs::new(), 0_u64);
    for task in tasks.into_iter().filter(|task| task.class == TaskClass::Hp) {
        let pool = PoolId { cluster: panel.cluster().clone(), gpu_model: task.gpu_model.clone() };
        match timed(task).filter(|_| pools.contains(&pool)) {
            Some(job) => known.entry(pool).or_default().jobs.push(job),
            None => left_out += 1,
        }
    }
    if known.is_empty() {
        let lacking =
            format!("of a GPU model of cluster {} that has GPUs and lasts: name a list of its jobs", panel.cluster());
        return Err(none(&lacking));
    }
    let end = UnixSeconds::new(panel.end().unix_s());
    if known.values().flat_map(|pool| &pool.jobs).all(|(job, _)| job.submitted >= end) {
        let (end, cluster) = (panel.end(), panel.cluster());
        let lacking =
            format!("before {end}, where the usage of cluster {cluster} ends: check the times of the lists ({EPOCH})");
        return Err(none(&lacking));
    }
    if left_out > 0 {
        print_notice(format_args!(
            "note: of --jobs {} left out, without a duration or GPUs, or of a GPU model without usage",
            vocab::count(left_out, "HP job").verb("is", "are")
        ));
    }
    known.values_mut().for_each(PoolJobs::sort);
    Ok(known)
}

/// As [`read`], for a run: jobs that it would keep none of teach it nothing.
///
/// # Errors
/// As [`read`], and no job lies in the weeks of which a run keeps some.
pub fn read_for_run(lists: &JobLists, panel: &Panel) -> Result<ClusterJobs, TrainingError> {
    let known = read(lists, panel)?;
    if !known.is_empty() && past(&known, panel.end().instant()).is_empty() {
        let (end, cluster) = (panel.end(), panel.cluster());
        let lacking = format!(
            "in the eight weeks before {end}, where the usage of cluster {cluster} ends: check the times of the lists ({EPOCH})"
        );
        return Err(none(&lacking));
    }
    known.iter().filter_map(|(pool, jobs)| partly_kept(pool, jobs, panel.end())).for_each(print_notice);
    Ok(known)
}

/// A notice where a run knows less of a pool's jobs than the list has, or not until the end of the usage.
fn partly_kept(pool: &PoolId, jobs: &PoolJobs, end: HourStart) -> Option<String> {
    let until = end.instant();
    let (listed, past) = (jobs.jobs.iter().filter(|(job, _)| job.submitted < until).count(), jobs.past(until)?);
    let kept = past.len();
    let cut = (kept < listed).then(|| {
        format!(
            "of {listed} HP jobs of {pool} in --jobs the newest {kept} are kept: {MOST_JOBS} at most, of eight weeks"
        )
    });
    let last = past.span().1;
    let early = (last < until).then(|| {
        format!("the HP jobs of {pool} in --jobs end at {last}, and usage at {end}: how jobs arrive is learned until the former")
    });
    let both: Vec<String> = cut.into_iter().chain(early).collect();
    (!both.is_empty()).then(|| format!("note: {}", both.join("; ")))
}

/// No job of `--jobs` counts.
fn none(lacking: &str) -> TrainingError {
    TrainingError::OtherDemand { why: format!("--jobs has no HP job {lacking}") }
}

/// Flag by which times of a list may be wrong.
const EPOCH: &str = "--epoch, where they are of gfs-jobs or philly";

fn timed(task: Task) -> Option<(HpJob, UnixSeconds)> {
    let seconds = i64::try_from(task.duration_s?).ok().filter(|seconds| *seconds > 0)?;
    let (gpus_milli, submitted) = (task.gpus().milli(), task.submitted);
    let job = HpJob { task: task.id, organization: task.organization, gpus_milli, submitted, started: Some(submitted) };
    (gpus_milli > 0).then(|| (job, submitted.plus_s(seconds)))
}

/// The jobs that were submitted before `until`, as a run keeps them; pools without any are left out.
#[must_use]
pub fn past(jobs: &ClusterJobs, until: UnixSeconds) -> BTreeMap<PoolId, PastJobs> {
    jobs.iter().filter_map(|(pool, jobs)| Some((pool.clone(), jobs.past(until)?))).collect()
}

impl PoolJobs {
    fn sort(&mut self) {
        self.jobs.sort_by(|(one, _), (other, _)| (one.submitted, &one.task).cmp(&(other.submitted, &other.task)));
    }

    /// Those that were submitted before `until`; none where there is none.
    #[must_use]
    pub fn past(&self, until: UnixSeconds) -> Option<PastJobs> {
        let listed = |(job, end): &(HpJob, UnixSeconds)| ListedJob {
            organization: job.organization.clone(),
            gpus_milli: job.gpus_milli,
            submitted: job.submitted,
            ran_s: end.since_s(job.submitted).unsigned_abs(),
        };
        PastJobs::of(&self.jobs.iter().map(listed).collect::<Vec<_>>(), until)
    }

    /// By rising time, ends before arrivals: when demand changes, and by how many thousandths of a GPU.
    #[must_use]
    pub fn changes(&self) -> Vec<(UnixSeconds, i64)> {
        let milli = |job: &HpJob| i64::try_from(job.gpus_milli).unwrap_or(i64::MAX);
        let both = |(job, end): &(HpJob, UnixSeconds)| [(job.submitted, milli(job)), (*end, -milli(job))];
        let mut changes: Vec<_> = self.jobs.iter().flat_map(both).collect();
        changes.sort_unstable();
        changes
    }

    /// Goes through the jobs by rising time.
    #[must_use]
    pub fn walk(&self) -> Walk<'_> {
        Walk { jobs: &self.jobs, next: 0, present: BTreeMap::new() }
    }
}

/// The jobs at one time after another.
#[derive(Debug)]
pub struct Walk<'a> {
    jobs: &'a [(HpJob, UnixSeconds)],
    next: usize,
    /// By their end and number.
    present: BTreeMap<(UnixSeconds, usize), &'a HpJob>,
}

impl Walk<'_> {
    /// The jobs that run at `now`, which is no earlier than at the call before.
    pub fn at(&mut self, now: UnixSeconds) -> Vec<HpJob> {
        while let Some((job, end)) = self.jobs.get(self.next).filter(|(job, _)| job.submitted <= now) {
            self.present.insert((*end, self.next), job);
            self.next += 1;
        }
        self.present = self.present.split_off(&(now.plus_s(1), 0));
        self.present.values().map(|job| (*job).clone()).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use vocab::{Organization, TaskId};

    fn at(seconds: i64) -> UnixSeconds {
        UnixSeconds::new(seconds)
    }

    /// Jobs of `(submitted, lasts, GPUs)`.
    pub(crate) fn pool_jobs(list: &[(i64, i64, u64)]) -> PoolJobs {
        let one = |(number, (submitted, lasts, gpus)): (usize, &(i64, i64, u64))| {
            let job = HpJob {
                task: TaskId::parse(&format!("job-{number}")).unwrap(),
                organization: Organization::parse("vision").unwrap(),
                gpus_milli: gpus * 1_000,
                submitted: at(*submitted),
                started: Some(at(*submitted)),
            };
            (job, at(submitted + lasts))
        };
        let mut jobs = PoolJobs { jobs: list.iter().enumerate().map(one).collect() };
        jobs.sort();
        jobs
    }

    #[test]
    fn a_job_is_there_from_its_submission_until_before_its_end() {
        let jobs = pool_jobs(&[(100, 50, 8), (120, 10, 2), (130, 500, 1)]);
        let mut walk = jobs.walk();
        let gpus = [99, 100, 120, 129, 130, 149, 150, 629, 630]
            .map(|now| walk.at(at(now)).iter().map(|job| job.gpus_milli / 1_000).sum::<u64>());
        assert_eq!(gpus, [0, 8, 10, 10, 9, 9, 1, 1, 0]);
        assert_eq!(jobs.changes().iter().map(|(_, change)| change).sum::<i64>(), 0);
        assert_eq!(jobs.changes()[3], (at(130), 1_000), "what ends goes before what comes: {:?}", jobs.changes());
        assert_eq!((jobs.past(at(100)), jobs.past(at(125)).map(|past| past.len())), (None, Some(2)));
    }
}
