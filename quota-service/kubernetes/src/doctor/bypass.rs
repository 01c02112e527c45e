//! Spot pods that pass Kueue by in a namespace with a `LocalQueue`: they come on top of what Kueue admits.

use super::Check;
use super::api::Api;
use crate::cluster::slim::Pod;
use crate::cluster::workload::Workload;
use crate::gangs::named_gangs;
use crate::show;
use crate::view::facts::{PodFacts, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use vocab::MilliGpus;

/// Pods that are named one by one.
const SHOWN: usize = 3;
/// Labels by which Kueue, or who submits, states that it queues a pod.
const MARKS: [&str; 3] = ["kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/managed", "kueue.x-k8s.io/podset"];
/// Owners whose pods Kueue queues as pods, and then marks.
const QUEUED_AS_PODS: [&str; 4] = ["ReplicaSet", "StatefulSet", "DaemonSet", "Node"];

/// A pod without a mark of Kueue.
struct Unmarked {
    name: String,
    gpus: MilliGpus,
    /// UID of the Job that made it; none of one that Kueue would have marked itself.
    job: Option<String>,
}

/// Of spot pods in namespaces with a `LocalQueue`, those that Kueue does not queue. Pods of other owners than those named here, such as a
/// `JobSet`, are taken for queued: nothing on them tells.
pub async fn of(api: &Api, candidates: &BTreeMap<Uid, &PodFacts>, has_check: bool) -> Option<Check> {
    let mut found = Vec::new();
    let read = show::each::<Pod>(api.client(), "pods", |pod| found.extend(unmarked(&pod, candidates)));
    // `gpus` reports what cannot be listed.
    read.await.ok()?;
    if found.iter().any(|pod| pod.job.is_some()) {
        let alone = unqueued_jobs(api).await.unwrap_or_default();
        found.retain(|pod| pod.job.as_ref().is_none_or(|job| alone.contains(job)));
    }
    check(&found, has_check)
}

fn unmarked(pod: &Pod, candidates: &BTreeMap<Uid, &PodFacts>) -> Option<Unmarked> {
    let facts = candidates.get(&Uid::of(pod.metadata.uid.as_deref()?))?;
    let has = |mark: &str| pod.metadata.labels.as_ref().is_some_and(|all| all.contains_key(mark));
    if MARKS.iter().any(|mark| has(mark)) || !named_gangs(pod).is_empty() {
        return None;
    }
    let job = match controller(&pod.metadata) {
        None => None,
        Some(owner) if QUEUED_AS_PODS.contains(&owner.kind.as_str()) => None,
        Some(owner) if owner.kind == "Job" => Some(owner.uid.clone()),
        Some(_) => return None,
    };
    Some(Unmarked { name: format!("{}/{}", facts.namespace, facts.name), gpus: facts.amount(), job })
}

fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// UIDs of Jobs that have no Workload and are part of nothing that may have one; none where it is not known.
async fn unqueued_jobs(api: &Api) -> Option<BTreeSet<String>> {
    let mut owners = BTreeSet::new();
    let add = |one: Workload| owners.extend(one.metadata.owner_references.into_iter().flatten().map(|owner| owner.uid));
    show::each::<Workload>(api.client(), "workloads", add).await.ok()?;
    let jobs = api.list("/apis/batch/v1/jobs").await.ok()?;
    let is_part = |job: &Value| {
        let mut all = job["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        all.any(|owner| owner["controller"] == true && owner["kind"] != "CronJob")
    };
    let is_queued = |job: &Value| MARKS.iter().any(|mark| job["metadata"]["labels"][*mark].is_string());
    let alone = jobs.iter().filter(|job| !is_part(job) && !is_queued(job));
    let uids = alone.filter_map(|job| job["metadata"]["uid"].as_str());
    Some(uids.filter(|uid| !owners.contains(*uid)).map(str::to_owned).collect())
}

fn check(pods: &[Unmarked], has_check: bool) -> Option<Check> {
    let gpus = pods.iter().fold(MilliGpus::ZERO, |sum, pod| sum.saturating_add(pod.gpus));
    let shown: Vec<&str> = pods.iter().take(SHOWN).map(|pod| pod.name.as_str()).collect();
    let found = format!(
        "{} {} on top of the published quota, without a queue in a namespace with a LocalQueue: {}{}",
        vocab::count(pods.len(), "spot pod").verb("holds", "hold"),
        vocab::gpus(gpus.as_gpus()),
        shown.join(", "),
        if pods.len() > SHOWN { ", …" } else { "" }
    );
    let label = "label the pods, or their Job, with kueue.x-k8s.io/queue-name";
    // The check counts every promise for Kueue; a ResourceQuota asks it nothing.
    let fix = if has_check {
        label.to_owned()
    } else {
        format!("{label}, or switch admission_check on, which counts every promise")
    };
    (!pods.is_empty()).then(|| Check::warn("spot beside Kueue", found, fix))
}
