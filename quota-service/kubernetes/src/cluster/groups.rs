//! Kinds that state gangs, with the fields that we read: PodGroup and Workload of `scheduling.k8s.io`, JobSet, LeaderWorkerSet.
//! Kueue's Workload is in [`workload`](super::workload).

use super::slim::or_default;
use super::workload::Template;
use serde::Deserialize;

/// Spec of a PodGroup (v1beta1, v1alpha3, v1alpha2).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupSpec {
    /// How its pods are scheduled.
    #[serde(deserialize_with = "or_default")]
    pub scheduling_policy: GroupPolicy,
}

/// How the pods of a group are scheduled.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct GroupPolicy {
    /// Together; none where each is scheduled by itself.
    pub gang: Option<GangPolicy>,
}

/// Pods that are scheduled together.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GangPolicy {
    /// Pods at least.
    pub min_count: u32,
}

/// Spec of a Workload of `scheduling.k8s.io/v1alpha1`, whose groups are no objects yet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    /// Groups of pods.
    #[serde(deserialize_with = "or_default")]
    pub pod_groups: Vec<NamedGroup>,
}

/// A group of a Workload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NamedGroup {
    /// Name.
    pub name: String,
    /// How its pods are scheduled.
    #[serde(deserialize_with = "or_default")]
    pub policy: GroupPolicy,
}

/// Spec of a JobSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetSpec {
    /// Jobs.
    #[serde(deserialize_with = "or_default")]
    pub replicated_jobs: Vec<ReplicatedJob>,
    /// Whether it waits to be let go.
    #[serde(deserialize_with = "or_default")]
    pub suspend: bool,
}

/// Jobs that are alike.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReplicatedJob {
    /// Number of jobs; 1 where it is not stated.
    pub replicas: Option<u32>,
    /// Template of the jobs.
    #[serde(deserialize_with = "or_default")]
    pub template: JobTemplate,
}

/// Template of jobs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    /// Spec of the jobs.
    #[serde(deserialize_with = "or_default")]
    pub spec: JobSpec,
}

/// Spec of a job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    /// Pods at once; 1 where it is not stated.
    pub parallelism: Option<u32>,
    /// Pods in all.
    pub completions: Option<u32>,
    /// Template of the pods.
    #[serde(deserialize_with = "or_default")]
    pub template: Template,
}

/// Status of a JobSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetStatus {
    /// `Completed` or `Failed` once it is over.
    #[serde(deserialize_with = "or_default")]
    pub terminal_state: String,
    /// How often all its jobs were begun again.
    #[serde(deserialize_with = "or_default")]
    pub restarts: u32,
}

/// Spec of a LeaderWorkerSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderWorkerSetSpec {
    /// Groups; 1 where it is not stated.
    pub replicas: Option<u32>,
    /// Pods of a group.
    #[serde(deserialize_with = "or_default")]
    pub leader_worker_template: LeaderWorkerTemplate,
}

/// Pods of a group.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderWorkerTemplate {
    /// Number, the leader included; 1 where it is not stated.
    pub size: Option<u32>,
    /// Template of the leader; that of the workers where it is not stated.
    pub leader_template: Option<Template>,
    /// Template of the workers.
    #[serde(deserialize_with = "or_default")]
    pub worker_template: Template,
}
