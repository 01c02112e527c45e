//! The HP jobs of each pool, for the reports of its state: pods of one Workload of Kueue are one job, any other pod is its own.

use crate::view::View;
use crate::view::facts::{Life, PodFacts};
use connectors::report::{HpJobs, within_a_report};
use std::collections::BTreeMap;
use vocab::{GpuModel, HpJob, TaskClass, TaskId, UnixSeconds};

/// The HP jobs of every pool that is known, by the pods that count as its demand.
#[must_use]
pub fn hp_jobs(view: &View) -> BTreeMap<GpuModel, HpJobs> {
    let mut pools: BTreeMap<GpuModel, BTreeMap<TaskId, HpJob>> =
        view.pools().keys().map(|model| (model.clone(), BTreeMap::new())).collect();
    for pod in view.pods().values().filter(|pod| pod.class == TaskClass::Hp) {
        let Some(jobs) = view.model_of(pod).and_then(|model| pools.get_mut(&model)) else { continue };
        let one = job_of(pod);
        let job = jobs.entry(one.task.clone()).or_insert(HpJob { gpus_milli: 0, ..one.clone() });
        job.gpus_milli += one.gpus_milli;
        job.submitted = job.submitted.min(one.submitted);
        job.started = earlier(job.started, one.started);
    }
    pools.into_iter().map(|(model, jobs)| (model, within_a_report(jobs))).collect()
}

/// A job runs once one of its pods does.
fn earlier(one: Option<UnixSeconds>, other: Option<UnixSeconds>) -> Option<UnixSeconds> {
    one.into_iter().chain(other).min()
}

fn job_of(pod: &PodFacts) -> HpJob {
    let own = || TaskId::parse(&pod.uid.to_string()).expect("36 characters of a UID are a name");
    let gang = pod.workload.as_ref().and_then(|workload| TaskId::parse(&format!("{}/{workload}", pod.namespace)).ok());
    HpJob {
        task: gang.unwrap_or_else(own),
        organization: pod.organization.clone(),
        gpus_milli: u64::from(pod.gpus) * 1_000,
        submitted: pod.created,
        started: (pod.life == Life::Runs).then(|| pod.since()),
    }
}
