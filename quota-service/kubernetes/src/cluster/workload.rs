//! Kueue's Workload (`kueue.x-k8s.io/v1beta2`) with the fields that we read.

use super::slim::{Condition, PodSpec, or_default, resource, slim};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Unit of Kueue's queues and admission: all pods of a job.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Workload {
    /// Metadata.
    #[serde(deserialize_with = "slim", default)]
    pub metadata: ObjectMeta,
    /// Spec.
    #[serde(deserialize_with = "or_default", default)]
    pub spec: WorkloadSpec,
    /// Status.
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

/// Spec of a Workload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    /// `false` of one that was deactivated.
    pub active: Option<bool>,
    /// Sets of pods.
    #[serde(deserialize_with = "or_default")]
    pub pod_sets: Vec<PodSet>,
    /// Class of its priority.
    #[serde(deserialize_with = "or_default")]
    pub priority_class_ref: ClassRef,
    /// The same in older versions: its name.
    #[serde(deserialize_with = "or_default")]
    pub priority_class_name: String,
    /// And its kind.
    #[serde(deserialize_with = "or_default")]
    pub priority_class_source: String,
}

impl WorkloadSpec {
    /// The class of pods that gave it its priority; none where it has that of a WorkloadPriorityClass, or no class.
    #[must_use]
    pub fn pod_class(&self) -> Option<&str> {
        let of = &self.priority_class_ref;
        let is_named = of.kind == "PriorityClass" && of.group == "scheduling.k8s.io";
        let by_source = self.priority_class_source == "scheduling.k8s.io/priorityclass";
        let name = if is_named { Some(&of.name) } else { Some(&self.priority_class_name).filter(|_| by_source) };
        name.filter(|name| !name.is_empty()).map(String::as_str)
    }
}

/// Class that gives a Workload its priority.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClassRef {
    /// Group.
    pub group: String,
    /// `PriorityClass` or `WorkloadPriorityClass`.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// Pods that are alike.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSet {
    /// Name.
    pub name: String,
    /// Number of pods.
    pub count: u32,
    /// Template of the pods.
    #[serde(deserialize_with = "or_default")]
    pub template: Template,
}

/// Template of pods.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Template {
    /// Metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// Spec.
    #[serde(deserialize_with = "or_default")]
    pub spec: PodSpec,
}

/// Status of a Workload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    /// Conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// Assigned quota.
    #[serde(deserialize_with = "or_default")]
    pub admission: Admission,
    /// States of admission checks.
    #[serde(deserialize_with = "or_default")]
    pub admission_checks: Vec<Check>,
}

/// Assigned quota.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Admission {
    /// ClusterQueue.
    pub cluster_queue: String,
    /// Assignments by set of pods.
    #[serde(deserialize_with = "or_default")]
    pub pod_set_assignments: Vec<Assignment>,
}

/// Assigned flavors of a set of pods.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Assignment {
    /// Name.
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
    /// Name.
    pub name: String,
    /// `Pending`, `Ready`, `Retry` or `Rejected`.
    pub state: String,
    /// Time of the last change.
    pub last_transition_time: Option<Time>,
    /// Wait after `Retry`, s.
    pub requeue_after_seconds: Option<u64>,
    /// Kueue counts how often it went from `Retry` back to `Pending`.
    pub retry_count: Option<u32>,
}
