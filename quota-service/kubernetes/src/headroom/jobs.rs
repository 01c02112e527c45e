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
    // Where pods share a claim it counts with one of them: a job of others alone has no demand of its own, and the service takes none.
    let counted = |mut jobs: BTreeMap<TaskId, HpJob>| {
        jobs.retain(|_, job| job.gpus_milli > 0);
        within_a_report(jobs)
    };
    pools.into_iter().map(|(model, jobs)| (model, counted(jobs))).collect()
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
        gpus_milli: pod.amount().milli(),
        submitted: pod.created,
        started: (pod.life == Life::Runs).then(|| pod.since()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::view::facts::{NodeFacts, Reading, Uid};
    use crate::view::tests::fixture;
    use placement::Policy;
    use vocab::{ClusterName, NodeId};

    #[test]
    fn jobs_have_their_parts_of_gpus_and_one_without_any_is_none() {
        let cluster = ClusterName::parse("earth").unwrap();
        let mut view = View::new(cluster, Reading::of(&Config::default()), Policy::GFS);
        let model = GpuModel::parse("A100").unwrap();
        let node = NodeFacts {
            node: NodeId::parse("n1").unwrap(),
            gpu_model: Some(model.clone()),
            gpus: 8,
            is_open: true,
            is_ready: true,
            is_emptied: false,
            topology: None,
        };
        view.set_node(node, UnixSeconds::new(0));
        for (number, gpus, share_milli) in [(1, 2, 0), (2, 1, 250), (3, 0, 0)] {
            let pod = fixture::pod(Uid(number), gpus, TaskClass::Hp, Some("n1"));
            view.set_pod(PodFacts { share_milli, ..pod }, UnixSeconds::new(0));
        }
        let jobs = hp_jobs(&view).remove(&model).unwrap().unwrap();
        let amounts: Vec<_> = jobs.iter().map(|job| job.gpus_milli).collect();
        assert_eq!(amounts, [2_000, 1_250]);
    }
}
