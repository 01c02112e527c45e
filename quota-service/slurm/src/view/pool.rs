//! One pool.

use super::Hold;
use slurm_records::JobName;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{HorizonHours, HpJob, MilliGpus, Organization, PoolId, PoolState, TaskId, UnixSeconds};

/// A spot job that holds GPUs of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpotJob {
    /// Name as Slurm shows it.
    pub name: JobName,
    /// Account.
    pub account: Arc<str>,
    /// QOS.
    pub qos: Arc<str>,
    /// GPUs of this pool.
    pub gpus: u32,
    /// Since when it might have started.
    pub eligible: UnixSeconds,
    /// Start.
    pub started: UnixSeconds,
    /// Hours that it is promised; none at will.
    pub hours: Option<HorizonHours>,
    /// Whether it is stopped, and holds its GPUs.
    pub is_suspended: bool,
}

impl SpotJob {
    /// Hours of the promise that still holds.
    #[must_use]
    pub fn promised(&self, now: UnixSeconds) -> Option<HorizonHours> {
        self.hours.filter(|hours| self.started.plus_s(hours.seconds()) > now)
    }
}

/// A spot job, or tasks of an array, that may start and waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpotWaiting {
    /// Name as Slurm shows it.
    pub name: JobName,
    /// QOS.
    pub qos: Arc<str>,
    /// GPUs of one task in this pool.
    pub task: u32,
    /// GPUs of all its tasks that may start now.
    pub gpus: u32,
    /// Since when it waits.
    pub since: UnixSeconds,
    /// Cause of its wait.
    pub hold: Hold,
}

/// The number that a job, all tasks of an array, or all components of a heterogeneous job share.
#[must_use]
pub const fn family(name: JobName) -> u32 {
    match name {
        JobName::Job(id) | JobName::Task(id, _) | JobName::Tasks(id) | JobName::Component(id, _) => id,
    }
}

/// HP demand of one organization.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HpDemand {
    /// GPUs of jobs that run.
    pub running_gpus: u64,
    /// GPUs of jobs that wait.
    pub waiting_gpus: u64,
}

/// The GPUs of one model with their jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolView {
    /// GPUs of nodes on which jobs may start.
    pub open_gpus: u64,
    /// GPUs in use on these.
    pub open_used_gpus: u64,
    /// GPUs in use on nodes on which none may start.
    pub closed_used_gpus: u64,
    /// HP demand by organization.
    pub hp: BTreeMap<Organization, HpDemand>,
    /// HP jobs, running and waiting.
    pub hp_jobs: Vec<HpJob>,
    /// Spot jobs that hold GPUs.
    pub spot: Vec<SpotJob>,
    /// Spot jobs that wait.
    pub spot_queue: Vec<SpotWaiting>,
    /// GPUs of jobs that are neither HP nor spot.
    pub other_gpus: u32,
    /// Since when the first HP job waits.
    pub hp_waits_since: Option<UnixSeconds>,
}

impl PoolView {
    pub(super) fn add_node(&mut self, gpus: u32, used: u32, is_open: bool, is_up: bool) {
        if is_open {
            self.open_gpus += u64::from(gpus);
            self.open_used_gpus += u64::from(used);
        } else if is_up {
            self.closed_used_gpus += u64::from(used);
        }
    }

    pub(super) fn add_hp(&mut self, job: HpJob, gpus: u32) {
        let demand = self.hp.entry(job.organization.clone()).or_default();
        *(if job.started.is_none() { &mut demand.waiting_gpus } else { &mut demand.running_gpus }) += u64::from(gpus);
        if job.started.is_none() {
            self.hp_waits_since = self.hp_waits_since.into_iter().chain([job.submitted]).min();
        }
        if gpus > 0 {
            self.hp_jobs.push(job);
        }
    }

    /// HP jobs, each once: tasks of an array that wait may be several records of one name, and a report takes a name once.
    #[must_use]
    pub fn distinct_hp_jobs(&self) -> BTreeMap<TaskId, HpJob> {
        let mut jobs: BTreeMap<TaskId, HpJob> = BTreeMap::new();
        for one in &self.hp_jobs {
            let job = jobs.entry(one.task.clone()).or_insert_with(|| HpJob { gpus_milli: 0, ..one.clone() });
            job.gpus_milli += one.gpus_milli;
            job.submitted = job.submitted.min(one.submitted);
        }
        jobs
    }

    /// GPUs of spot jobs that wait.
    #[must_use]
    pub fn spot_waiting_gpus(&self) -> u64 {
        self.spot_queue.iter().map(|job| u64::from(job.gpus)).sum()
    }

    /// GPUs of a QOS whose jobs wait for our limit or for GPUs.
    #[must_use]
    pub fn counted_waiting_gpus(&self, qos: &str) -> u64 {
        let counted = self.spot_queue.iter().filter(|job| &*job.qos == qos && job.hold.counts());
        counted.map(|job| u64::from(job.gpus)).sum()
    }

    /// GPUs of all jobs that hold some.
    fn held_gpus(&self) -> u64 {
        let hp: u64 = self.hp.values().map(|demand| demand.running_gpus).sum();
        hp + self.spot_gpus() + u64::from(self.other_gpus)
    }

    /// GPUs of spot jobs.
    #[must_use]
    pub fn spot_gpus(&self) -> u64 {
        self.spot.iter().map(|job| u64::from(job.gpus)).sum()
    }

    /// GPUs that work: all of nodes that take jobs, and those in use on others that are up.
    #[must_use]
    pub const fn capacity_gpus(&self) -> u64 {
        self.open_gpus + self.closed_used_gpus
    }

    /// GPUs that a job could have now. Nodes and jobs are two counts of one thing, and each may lag: the higher use counts.
    #[must_use]
    pub fn idle_gpus(&self) -> u64 {
        let used = self.open_used_gpus.max(self.held_gpus().saturating_sub(self.closed_used_gpus));
        self.open_gpus.saturating_sub(used)
    }

    /// S_a: GPUs of spot jobs inside a promise of at least so many hours.
    #[must_use]
    pub fn promised_gpus(&self, hours: HorizonHours, now: UnixSeconds) -> u64 {
        let inside = self.spot.iter().filter(|job| job.promised(now).is_some_and(|promised| promised >= hours));
        inside.map(|job| u64::from(job.gpus)).sum()
    }

    /// l: the longest that a spot job waits now because of a limit, though it would fit.
    #[must_use]
    pub fn longest_limit_wait_s(&self, now: UnixSeconds) -> u64 {
        let idle = self.idle_gpus();
        let waits = self.spot_queue.iter().filter(|job| job.hold == Hold::Limit && u64::from(job.task) <= idle);
        waits.map(|job| u64::try_from(now.since_s(job.since)).unwrap_or(0)).max().unwrap_or(0)
    }

    /// State of the pool for Headroom.
    #[must_use]
    pub fn state(&self, pool: PoolId, now: UnixSeconds) -> PoolState {
        let amount = |gpus: u64| MilliGpus::from_gpus(u32::try_from(gpus).unwrap_or(u32::MAX));
        let (capacity, idle) = (amount(self.capacity_gpus()), amount(self.idle_gpus()));
        let mut by_hours: BTreeMap<HorizonHours, u64> = BTreeMap::new();
        for job in &self.spot {
            if let Some(hours) = job.promised(now) {
                *by_hours.entry(hours).or_default() += u64::from(job.gpus);
            }
        }
        // Jobs on nodes that are down keep their promises, and are in no capacity: reported GPUs stay within it.
        let mut left = capacity.left_after(idle);
        let mut within = |gpus: MilliGpus| {
            let reported = gpus.min(left);
            left = left.left_after(reported);
            reported
        };
        let spot_by_guarantee = by_hours.into_iter().map(|(hours, gpus)| (hours, within(amount(gpus)))).collect();
        let longest_quota_wait_s = self.longest_limit_wait_s(now);
        PoolState { pool, capacity, idle, spot_by_guarantee, longest_quota_wait_s, as_of: now }
    }
}
