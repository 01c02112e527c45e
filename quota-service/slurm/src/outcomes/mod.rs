//! How promises ended, out of the records of the accounting.
//!
//! A promise is of one run: a start of a job, with all sizes that it had. Each size is a record, and the last record says how the
//! run ended.

#[cfg(test)]
pub(crate) mod tests;

use crate::sightings::{Run, Sightings, run_of};
use crate::view::Reading;
use slurm_records::{History, Job, JobClass, State};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{
    ClusterName, EventId, GpuModel, HorizonHours, MilliGpus, NodeId, Outcome, OutcomeKind, PoolId, TaskId, UnixSeconds,
};

/// Outcomes, and runs of which slurmctld has to show more first.
#[derive(Debug, Default)]
pub struct Found {
    /// Outcomes, in the order of the records.
    pub outcomes: Vec<Outcome>,
    /// Runs whose promises have ended, nobody knows how.
    pub waiting: BTreeSet<Run>,
}

/// Outcomes of the promises that have ended until now, not before `since`.
#[must_use]
pub fn outcomes(
    (history, sightings): (&History, &Sightings),
    reading: &Reading,
    cluster: &ClusterName,
    (since, now): (UnixSeconds, UnixSeconds),
) -> Found {
    let mut all = Found::default();
    for run in runs(&history.jobs) {
        let Some(job) = run.last().filter(|job| is_spot(job, reading) && had_gpus(run)) else { continue };
        let Some((how, hours, ended_at)) = ended(job, reading, sightings, now) else { continue };
        let Some(started) = job.started.filter(|_| since <= ended_at && ended_at <= now) else { continue };
        let Some(kind) = how else {
            all.waiting.insert((job.id, started));
            continue;
        };
        for (model, gpus) in most_held(run, reading, ended_at) {
            all.outcomes.push(Outcome {
                event_id: event_id(cluster, job, started, &model),
                pool: PoolId { cluster: cluster.clone(), gpu_model: model },
                guarantee_hours: hours,
                kind,
                ended_at,
                began_at: Some(started),
                gpus: Some(MilliGpus::from_gpus(gpus)),
                task: TaskId::parse(&job.name.to_string()).ok(),
                node: None::<NodeId>,
            });
        }
    }
    all
}

/// Whether a job is a spot job.
#[must_use]
pub fn is_spot(job: &Job, reading: &Reading) -> bool {
    reading.rules.class(&job.qos, &job.partition) == JobClass::Spot
}

/// The records of each run, in the order of its sizes; each wait is alone.
fn runs(jobs: &[Job]) -> impl Iterator<Item = &[Job]> {
    jobs.chunk_by(|one, next| one.started.is_some() && (one.id, one.started) == (next.id, next.started))
}

/// Whether a run had its GPUs. The record of a submission that was refused, and of a job that was cancelled before its start, has a start
/// and none.
fn had_gpus(run: &[Job]) -> bool {
    run.iter().any(|job| job.ended.is_none() || job.allocated.total > 0)
}

/// How and when a promise ended, where slurmctld has shown enough to say how; none while it holds, or where there was none.
fn ended(
    job: &Job,
    reading: &Reading,
    sightings: &Sightings,
    now: UnixSeconds,
) -> Option<(Option<OutcomeKind>, HorizonHours, UnixSeconds)> {
    let hours = reading.hours(&job.qos, &job.partition)?;
    let run = run_of(job)?;
    let until = run.1.plus_s(hours.seconds());
    match job.ended {
        Some(ended) if ended < until => {
            let kind = match job.state {
                State::Preempted => OutcomeKind::Broken,
                // The run goes on, in a record that is not there yet.
                State::Resizing => return None,
                // It was evicted, and used the notice to end by itself.
                _ if sightings.had_notice(run) => OutcomeKind::Broken,
                _ if !sightings.is_after(ended) => return Some((None, hours, ended)),
                State::NodeFail => OutcomeKind::NodeFailure,
                // Such a record does not say how the run ended.
                State::Completed if is_repaired(job, ended) => OutcomeKind::Drain,
                // It came to its own end, or to that of its time limit.
                State::Completed | State::Failed | State::Timeout => OutcomeKind::Kept,
                State::Cancelled | State::Revoked => OutcomeKind::UserDeleted,
                // An operator requeued it.
                State::Pending | State::Running | State::Suspended | State::Completing => OutcomeKind::Drain,
            };
            Some((Some(kind), hours, ended))
        }
        Some(_) => Some((Some(OutcomeKind::Kept), hours, until)),
        // The accounting may be behind: the record of an ended run says RUNNING until slurmdbd has received its end.
        None => {
            let is_proven = sightings.holds_since(run, until);
            (until <= now).then_some((is_proven.then_some(OutcomeKind::Kept), hours, until))
        }
    }
}

/// Whether a record looks as the repair of runaway jobs leaves it: it ends where it began, by the latest of the times that say so. A
/// record after another one of the same run begins where that ended, and Slurm writes its time as that of a submission.
fn is_repaired(job: &Job, ended: UnixSeconds) -> bool {
    let began = [job.started, job.continues, job.eligible, Some(job.submitted)].into_iter().flatten().max();
    began.is_some_and(|began| ended <= began)
}

/// Id of the outcome of one start in one pool.
fn event_id(cluster: &ClusterName, job: &Job, started: UnixSeconds, model: &GpuModel) -> EventId {
    let id = format!("slurm-{}-{}", job.id, started.get());
    let long = format!("{id}-{cluster}-{model}");
    EventId::parse(&long).or_else(|_| EventId::parse(&id)).expect("numbers and dashes are a name")
}

/// The most GPUs of each model that a run held at once inside its promise.
fn most_held(run: &[Job], reading: &Reading, ended_at: UnixSeconds) -> BTreeMap<GpuModel, u32> {
    let mut most = BTreeMap::new();
    // A size that came after the promise is no part of it.
    for job in run.iter().filter(|job| job.continues.is_none_or(|from| from < ended_at)) {
        for (model, gpus) in models(job, reading) {
            let known: &mut u32 = most.entry(model).or_default();
            *known = gpus.max(*known);
        }
    }
    most
}

fn models(job: &Job, reading: &Reading) -> BTreeMap<GpuModel, u32> {
    let had = if job.allocated.total > 0 { &job.allocated } else { &job.requested };
    let mut models: BTreeMap<GpuModel, u32> =
        had.typed.iter().filter_map(|(name, gpus)| Some((GpuModel::parse(name).ok()?, *gpus))).collect();
    if had.untyped() > 0 {
        *models.entry(reading.untyped.clone()).or_default() += had.untyped();
    }
    models
}
