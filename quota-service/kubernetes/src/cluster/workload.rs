//! Kueue's Workload (`kueue.x-k8s.io/v1beta2`) with the fields that we read.

use super::slim::{Condition, PodSpec, or_default, resource, slim};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Unit of Kueue's queues and admission: all pods of a job.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Workload {
    #[serde(deserialize_with = "slim", default)]
    pub metadata: ObjectMeta,
    #[serde(deserialize_with = "or_default", default)]
    pub spec: WorkloadSpec,
    #[serde(deserialize_with = "or_default", default)]
    pub status: WorkloadStatus,
}
resource!(
    Workload,
    "kueue.x-k8s.io",
    "v1beta2",
    "Workload",
    "workloads",
    "kueue.x-k8s.io/v1beta2",
    NamespaceResourceScope
);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    /// `false` of one that was deactivated.
    pub active: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    pub pod_sets: Vec<PodSet>,
}

/// Pods that are alike.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSet {
    pub name: String,
    pub count: u32,
    #[serde(deserialize_with = "or_default")]
    pub template: Template,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Template {
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    #[serde(deserialize_with = "or_default")]
    pub spec: PodSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")]
    pub admission: Admission,
    #[serde(deserialize_with = "or_default")]
    pub admission_checks: Vec<Check>,
}

/// Assigned quota.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Admission {
    pub cluster_queue: String,
    #[serde(deserialize_with = "or_default")]
    pub pod_set_assignments: Vec<Assignment>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Assignment {
    pub name: String,
    /// Flavor by resource.
    #[serde(deserialize_with = "or_default")]
    pub flavors: BTreeMap<String, String>,
    /// Of pods, where fewer were admitted than asked for.
    pub count: Option<u32>,
}

/// State of an admission check, set by its controller.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Check {
    pub name: String,
    pub state: String,
    pub last_transition_time: Option<Time>,
    pub requeue_after_seconds: Option<u64>,
    /// Kueue counts how often it went from `Retry` back to `Pending`.
    pub retry_count: Option<u32>,
}
