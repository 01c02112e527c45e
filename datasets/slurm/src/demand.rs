//! From a history of jobs to hourly HP demand, to the second.
//!
//! A job is demand from when it was eligible, until it ended: while it waits, of the GPUs that it asked for; while it runs,
//! of those that it had. A run whose size changed has a record for each size, which counts for its own time. A wait behind a hold, a
//! dependency, a begin time or the limit of its array is none.

use crate::gpus::Gpus;
use crate::history::{History, Job, JobName};
use crate::rules::{JobClass, Rules};
use datasets::sweep::{Sweep, SweepError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{
    ClusterName, GpuModel, HourError, HourStart, MilliGpus, NameError, Organization, Task, TaskClass, TaskId,
    UnixSeconds, UsageRow,
};

/// How a history is read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Which jobs are spot, and whose they are.
    pub rules: Rules,
    /// Headroom's name of the cluster; without it, Slurm's.
    pub cluster: Option<ClusterName>,
    /// GPU model of jobs that name none and of which nothing else tells it.
    pub untyped: Option<GpuModel>,
    /// The GPU model of each partition that has one alone.
    pub partitions: BTreeMap<String, GpuModel>,
    /// First hour; without it, the first whole hour after the earliest end of a job: from there on no job is missing.
    pub from: Option<HourStart>,
    /// Hours before this one; without it, before the hour in which the records were printed.
    pub until: Option<HourStart>,
}

/// Why a history has no demand.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DemandFault {
    /// A name.
    #[error("job {job}: {fault}")]
    Name {
        /// The job.
        job: JobName,
        /// Cause.
        fault: NameError,
    },
    /// An organization that is reserved.
    #[error("job {job}: the account * is reserved for the pool's own peak: rename the account")]
    Star {
        /// The job.
        job: JobName,
    },
    /// More GPUs than an amount holds.
    #[error("job {job}: {gpus} GPUs exceed the limit of one job")]
    Gpus {
        /// The job.
        job: JobName,
        /// GPUs.
        gpus: u64,
    },
    /// A time.
    #[error(transparent)]
    Hour(#[from] HourError),
    /// A sum.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// No hours.
    #[error(
        "no whole hour between {from} and {until}: ask sacct for a longer time, or correct --from and --until; where \
         the accounting has just begun, try again in an hour"
    )]
    NoHours {
        /// First hour.
        from: HourStart,
        /// End.
        until: HourStart,
    },
}

/// Spot runs of one QOS in one pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpotUse {
    /// Starts within the hours.
    pub starts: u64,
    /// GPU-seconds that they held within the hours.
    pub gpu_seconds: u64,
    /// Starts that ended by an eviction within the hours.
    pub evictions: u64,
}

/// Demand of a history.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demand {
    /// Hourly rows: the peak of each organization, and of each pool.
    pub rows: Vec<UsageRow>,
    /// GPU-seconds of HP demand within the hours, by cluster and GPU model.
    pub hp_gpu_seconds: BTreeMap<(ClusterName, GpuModel), u64>,
    /// Spot by GPU model and QOS.
    pub spot: BTreeMap<(GpuModel, String), SpotUse>,
    /// Jobs that are neither HP nor spot.
    pub other_jobs: u64,
    /// Jobs without a GPU type in their record, by the GPU model that they count as.
    pub untyped_jobs: BTreeMap<GpuModel, u64>,
    /// Jobs that were never eligible, or ended in the second in which they were.
    pub jobs_without_demand: u64,
}

/// GPUs of a job for some time.
struct Held {
    from: UnixSeconds,
    until: Option<UnixSeconds>,
    model: GpuModel,
    gpus: u64,
    is_running: bool,
}

/// Hourly HP demand of a history, and what was spot beside it.
///
/// # Errors
/// A name, an amount or a time cannot be used, or no hour is whole.
pub fn demand(history: &History, reading: &Reading) -> Result<Demand, DemandFault> {
    let models = Models::of(history, reading)?;
    let (from, until) = window(history, reading)?;
    let mut demand = Demand::default();
    let mut sweeps: BTreeMap<ClusterName, Sweep> = BTreeMap::new();
    for job in &history.jobs {
        let class = reading.rules.class(&job.qos, &job.partition);
        if class == JobClass::Other {
            demand.other_jobs += 1;
            continue;
        }
        let held = models.held(job, &mut demand);
        demand.jobs_without_demand += u64::from(held.is_empty());
        let cluster = cluster_of(job, reading)?;
        if class == JobClass::Hp {
            let organization = organization(job, &reading.rules)?;
            let sweep = sweeps.entry(cluster.clone()).or_insert_with(|| Sweep::new(cluster.clone(), from, until));
            for part in held {
                let seconds = within(&part, from, until);
                let sum = demand.hp_gpu_seconds.entry((cluster.clone(), part.model.clone())).or_default();
                *sum = sum.saturating_add(seconds.saturating_mul(part.gpus));
                sweep.add(&task_of(job, &part, organization.clone(), TaskClass::Hp)?);
            }
        } else {
            demand.note_spot(job, held, from, until);
        }
    }
    for sweep in sweeps.into_values() {
        demand.rows.extend(sweep.rows()?);
    }
    Ok(demand)
}

/// The jobs of a history as tasks, as job lists have them: submitted when they became eligible, with the seconds that they
/// ran. Starts that are still running, and jobs that wait, have no duration; jobs that never started are left out.
///
/// # Errors
/// As [`demand`].
pub fn tasks(history: &History, reading: &Reading) -> Result<Vec<Task>, DemandFault> {
    let models = Models::of(history, reading)?;
    let mut tasks = Vec::new();
    for job in &history.jobs {
        let class = match reading.rules.class(&job.qos, &job.partition) {
            JobClass::Hp => TaskClass::Hp,
            JobClass::Spot => TaskClass::Spot,
            JobClass::Other => continue,
        };
        let held = models.held(job, &mut Demand::default());
        let has_started = held.iter().any(|part| part.is_running);
        for mut part in held.into_iter().filter(|part| part.is_running == has_started) {
            if !has_started && part.until.is_some() {
                continue;
            }
            let lasted = part.until.map(|until| until.since_s(part.from));
            part.from = begins(job).unwrap_or(part.from);
            part.until = lasted.map(|seconds| part.from.plus_s(seconds));
            tasks.push(task_of(job, &part, organization(job, &reading.rules)?, class)?);
        }
    }
    Ok(tasks)
}

impl Demand {
    fn note_spot(&mut self, job: &Job, held: Vec<Held>, from: HourStart, until: HourStart) {
        for part in held.into_iter().filter(|part| part.is_running) {
            let is_here = |time: UnixSeconds| from.instant() <= time && time < until.instant();
            let seconds = within(&part, from, until);
            let spot = self.spot.entry((part.model, job.qos.to_string())).or_default();
            spot.starts += u64::from(job.continues.is_none() && is_here(part.from));
            spot.gpu_seconds = spot.gpu_seconds.saturating_add(seconds.saturating_mul(part.gpus));
            let is_evicted = job.state == crate::State::Preempted && part.until.is_some_and(is_here);
            spot.evictions += u64::from(is_evicted);
        }
    }
}

/// Seconds of a part within hours.
fn within(part: &Held, from: HourStart, until: HourStart) -> u64 {
    let end = part.until.map_or(until.instant(), |end| end.min(until.instant()));
    u64::try_from(end.since_s(part.from.max(from.instant()))).unwrap_or(0)
}

/// Since when a record is demand: where the size before it ended, or where the job could have started.
fn begins(job: &Job) -> Option<UnixSeconds> {
    // A requeue after a change of size leaves the eligibility of before.
    let eligible = job.eligible.map(|eligible| eligible.max(job.submitted));
    job.continues.or_else(|| [eligible, job.started].into_iter().flatten().min())
}

fn window(history: &History, reading: &Reading) -> Result<(HourStart, HourStart), DemandFault> {
    let present = history.latest.unwrap_or(UnixSeconds::new(0)).hour()?;
    let until = reading.until.unwrap_or(present).min(present);
    let first = match history.earliest_end {
        Some(end) => end.plus_s(vocab::SECONDS_PER_HOUR - 1).hour()?,
        None => until,
    };
    let from = reading.from.unwrap_or(first);
    if from >= until {
        return Err(DemandFault::NoHours { from, until });
    }
    Ok((from, until))
}

fn cluster_of(job: &Job, reading: &Reading) -> Result<ClusterName, DemandFault> {
    let named = |fault| DemandFault::Name { job: job.name, fault };
    reading.cluster.clone().map_or_else(|| ClusterName::parse(&job.cluster).map_err(named), Ok)
}

fn organization(job: &Job, rules: &Rules) -> Result<Organization, DemandFault> {
    let named = |fault| DemandFault::Name { job: job.name, fault };
    let organization = Organization::parse(rules.accounts.organization(&job.account)).map_err(named)?;
    if organization.is_pool_peak() { Err(DemandFault::Star { job: job.name }) } else { Ok(organization) }
}

fn task_of(job: &Job, part: &Held, organization: Organization, class: TaskClass) -> Result<Task, DemandFault> {
    let too_many = || DemandFault::Gpus { job: job.name, gpus: part.gpus };
    let gpus = MilliGpus::from_milli(part.gpus.saturating_mul(MilliGpus::PER_GPU)).map_err(|_| too_many())?;
    let lasted = part.until.map(|until| u64::try_from(until.since_s(part.from)).unwrap_or(0));
    let id = TaskId::parse(&job.name.to_string()).expect("digits and marks are a name");
    Task::new(id, organization, part.model.clone(), class, part.from, lasted, gpus, 1).map_err(|_| too_many())
}

/// GPU models by the names of types, and of jobs without a type.
struct Models<'a> {
    types: BTreeMap<Arc<str>, GpuModel>,
    reading: &'a Reading,
    /// The type on which most GPUs of each partition ran.
    usual: BTreeMap<Arc<str>, GpuModel>,
    fallback: GpuModel,
}

/// GPU model where a history has no types at all.
const ANY_MODEL: &str = "any";

impl<'a> Models<'a> {
    fn of(history: &History, reading: &'a Reading) -> Result<Self, DemandFault> {
        let mut types: BTreeMap<Arc<str>, GpuModel> = BTreeMap::new();
        let mut ran: BTreeMap<(Arc<str>, GpuModel), u64> = BTreeMap::new();
        let mut in_all: BTreeMap<GpuModel, u64> = BTreeMap::new();
        for job in &history.jobs {
            for (name, count) in job.allocated.typed.iter().chain(&job.requested.typed) {
                let named = |fault| DemandFault::Name { job: job.name, fault };
                let model = match types.get(name) {
                    Some(model) => model.clone(),
                    None => GpuModel::parse(name).map_err(named)?,
                };
                types.insert(name.clone(), model.clone());
                *ran.entry((job.partition.clone(), model.clone())).or_default() += u64::from(*count);
                *in_all.entry(model).or_default() += u64::from(*count);
            }
        }
        // The larger count wins, then the earlier name.
        let mut usual: BTreeMap<Arc<str>, (u64, GpuModel)> = BTreeMap::new();
        for ((partition, model), count) in ran {
            let best = usual.entry(partition).or_insert_with(|| (0, model.clone()));
            if count > best.0 {
                *best = (count, model);
            }
        }
        let most = in_all.iter().max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0))).map(|(model, _)| model.clone());
        let any = GpuModel::parse(ANY_MODEL).expect("a word is a name");
        let fallback = reading.untyped.clone().or(most).unwrap_or(any);
        let usual = usual.into_iter().map(|(partition, (_, model))| (partition, model)).collect();
        Ok(Self { types, reading, usual, fallback })
    }

    /// The model of GPUs without a type: the only one of the partition, the named one, the partition's usual one.
    fn untyped(&self, job: &Job) -> GpuModel {
        let first = job.partition.split(',').next().unwrap_or_default();
        let only = self.reading.partitions.get(first).or(self.reading.untyped.as_ref());
        only.or_else(|| self.usual.get(first)).unwrap_or(&self.fallback).clone()
    }

    fn split(&self, gpus: &Gpus, like: &Gpus, job: &Job) -> Vec<(GpuModel, u64, bool)> {
        let mut parts: Vec<(GpuModel, u64, bool)> =
            gpus.typed.iter().map(|(name, count)| (self.types[name].clone(), u64::from(*count), true)).collect();
        let untyped = u64::from(gpus.untyped());
        if untyped > 0 {
            // It waited for what it got then.
            let got = like.typed.iter().max_by_key(|(_, count)| *count).map(|(name, _)| self.types[name].clone());
            let is_known = got.is_some();
            parts.push((got.unwrap_or_else(|| self.untyped(job)), untyped, is_known));
        }
        parts
    }

    /// The time of a job while it waits and while it runs.
    fn held(&self, job: &Job, demand: &mut Demand) -> Vec<Held> {
        let mut held = Vec::new();
        let Some(begins) = begins(job) else { return held };
        let mut unknown = BTreeSet::new();
        let tasks = u64::from(job.tasks);
        let mut add = |from: UnixSeconds, until: Option<UnixSeconds>, parts: Vec<(GpuModel, u64, bool)>, is_running| {
            for (model, gpus, is_known) in parts.into_iter().filter(|_| until.is_none_or(|until| until > from)) {
                if !is_known {
                    unknown.insert(model.clone());
                }
                held.push(Held { from, until, model, gpus: gpus * tasks, is_running });
            }
        };
        let started = job.started.map(|started| job.continues.unwrap_or(started));
        add(begins, started.or(job.ended), self.split(&job.requested, &job.allocated, job), false);
        if let Some(started) = started {
            let had = if job.allocated.total > 0 { &job.allocated } else { &job.requested };
            add(started, job.ended, self.split(had, &job.requested, job), true);
        }
        for model in unknown {
            *demand.untyped_jobs.entry(model).or_default() += 1;
        }
        held
    }
}
