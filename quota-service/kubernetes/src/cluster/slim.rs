//! Nodes, pods and priority classes with the fields that we read, and no other: a pod of the API holds some 5 KB, of which 0.5 KB
//! concern us, and a large cluster has 100,000 of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Metadata without managed fields, which are most of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct SlimMeta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

pub(super) fn slim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = SlimMeta::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        creation_timestamp: meta.creation_timestamp,
        deletion_timestamp: meta.deletion_timestamp,
        labels: meta.labels,
        annotations: meta.annotations,
        ..ObjectMeta::default()
    })
}

/// `null` and a missing field are the same: Go writes an empty list as either.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

macro_rules! resource {
    ($type:ident, $group:literal, $version:literal, $kind:literal, $plural:literal, $api:literal, $scope:ty) => {
        impl k8s_openapi::Resource for $type {
            const API_VERSION: &'static str = $api;
            const GROUP: &'static str = $group;
            const KIND: &'static str = $kind;
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = $scope;
        }
        impl k8s_openapi::Metadata for $type {
            type Ty = ObjectMeta;
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(super) use resource;

/// A pod.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Pod {
    #[serde(deserialize_with = "slim", default)]
    pub metadata: ObjectMeta,
    #[serde(deserialize_with = "or_default", default)]
    pub spec: PodSpec,
    #[serde(deserialize_with = "or_default", default)]
    pub status: PodStatus,
}
resource!(Pod, "", "v1", "Pod", "pods", "v1", NamespaceResourceScope);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: Option<String>,
    pub priority: Option<i32>,
    pub priority_class_name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub affinity: Affinity,
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    pub overhead: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    #[serde(deserialize_with = "or_default")]
    pub node_affinity: NodeAffinity,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAffinity {
    #[serde(deserialize_with = "or_default", rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: NodeSelector,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    #[serde(deserialize_with = "or_default")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    #[serde(deserialize_with = "or_default")]
    pub match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub key: String,
    pub operator: String,
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    #[serde(deserialize_with = "or_default")]
    pub resources: Resources,
    /// `Always` of an init container: it runs beside the others.
    pub restart_policy: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    #[serde(deserialize_with = "or_default")]
    pub requests: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub limits: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    #[serde(deserialize_with = "or_default")]
    pub phase: String,
    pub reason: Option<String>,
    pub start_time: Option<Time>,
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: Option<String>,
    pub last_transition_time: Option<Time>,
}

/// A node.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Node {
    #[serde(deserialize_with = "slim", default)]
    pub metadata: ObjectMeta,
    #[serde(deserialize_with = "or_default", default)]
    pub spec: NodeSpec,
    #[serde(deserialize_with = "or_default", default)]
    pub status: NodeStatus,
}
resource!(Node, "", "v1", "Node", "nodes", "v1", ClusterResourceScope);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    #[serde(deserialize_with = "or_default")]
    pub unschedulable: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    #[serde(deserialize_with = "or_default")]
    pub allocatable: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

/// A priority class.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PriorityClass {
    #[serde(deserialize_with = "slim", default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub value: i32,
}
resource!(
    PriorityClass,
    "scheduling.k8s.io",
    "v1",
    "PriorityClass",
    "priorityclasses",
    "scheduling.k8s.io/v1",
    ClusterResourceScope
);

/// Unix seconds of a time of the API.
#[must_use]
pub fn unix_s(time: &Time) -> i64 {
    time.0.as_second()
}
