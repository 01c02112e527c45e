//! Nodes, pods and priority classes with the fields that we read, and no other: a pod of the API holds some 5 KB, of which 0.5 KB
//! concern us, and a large cluster has 100,000 of them.

// Short words of each pod are many: they stand in place, without a block of memory of their own.
use compact_str::CompactString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
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
    owner_references: Option<Vec<OwnerReference>>,
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
        owner_references: meta.owner_references,
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
    /// Metadata.
    #[serde(deserialize_with = "slim", default)]
    pub metadata: ObjectMeta,
    /// Spec.
    #[serde(deserialize_with = "or_default", default)]
    pub spec: PodSpec,
    /// Status.
    #[serde(deserialize_with = "or_default", default)]
    pub status: PodStatus,
}
resource!(Pod, "", "v1", "Pod", "pods", "v1", NamespaceResourceScope);

/// Spec of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Node that it is bound to.
    pub node_name: Option<String>,
    /// Priority.
    pub priority: Option<i32>,
    /// Priority class.
    pub priority_class_name: Option<String>,
    /// Node selector.
    #[serde(deserialize_with = "or_default")]
    pub node_selector: BTreeMap<String, String>,
    /// Affinity.
    #[serde(deserialize_with = "or_default")]
    pub affinity: Affinity,
    /// Containers.
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    /// Init containers and sidecars.
    #[serde(deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
    /// Overhead of the runtime.
    #[serde(deserialize_with = "or_default")]
    pub overhead: BTreeMap<String, String>,
    /// Claims to devices.
    #[serde(deserialize_with = "or_default")]
    pub resource_claims: Vec<PodClaim>,
    /// Its PodGroup, of scheduling.k8s.io.
    #[serde(deserialize_with = "or_default")]
    pub scheduling_group: SchedulingGroup,
    /// Its group in a Workload of scheduling.k8s.io/v1alpha1.
    pub workload_ref: Option<WorkloadRef>,
}

/// A claim that a pod uses: one by name, or one that is made of a template.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodClaim {
    /// Name in the pod.
    pub name: String,
    /// A claim that others may use, too.
    pub resource_claim_name: Option<String>,
    /// Template of its own claim.
    pub resource_claim_template_name: Option<String>,
}

/// The claim that was made of a template.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodClaimStatus {
    /// Name in the pod.
    pub name: String,
    /// The claim; none where none is needed.
    pub resource_claim_name: Option<String>,
}

/// PodGroup of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingGroup {
    /// PodGroup.
    pub pod_group_name: Option<String>,
}

/// Group of a pod in a Workload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadRef {
    /// Workload.
    pub name: String,
    /// Group of pods in it.
    pub pod_group: String,
    /// Which of the group's replicas.
    pub pod_group_replica_key: Option<String>,
}

/// Affinity of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// Affinity to nodes.
    #[serde(deserialize_with = "or_default")]
    pub node_affinity: NodeAffinity,
}

/// Node affinity of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAffinity {
    /// Required while scheduling.
    #[serde(deserialize_with = "or_default", rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: NodeSelector,
}

/// Alternatives of node selectors.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// Alternatives: one has to match.
    #[serde(deserialize_with = "or_default")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Requirements that hold together.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// Requirements: all have to match.
    #[serde(deserialize_with = "or_default")]
    pub match_expressions: Vec<Requirement>,
}

/// Requirement of a label.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// Label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` and others.
    pub operator: String,
    /// Values of the label.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
}

/// A container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Requests and limits.
    #[serde(deserialize_with = "or_default")]
    pub resources: Resources,
    /// `Always` of an init container: it runs beside the others.
    pub restart_policy: Option<String>,
}

/// Requests and limits.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Requests by resource.
    #[serde(deserialize_with = "or_default")]
    pub requests: BTreeMap<CompactString, CompactString>,
    /// Limits by resource.
    #[serde(deserialize_with = "or_default")]
    pub limits: BTreeMap<CompactString, CompactString>,
}

/// Status of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Phase: `Pending`, `Running`, `Succeeded`, `Failed`.
    #[serde(deserialize_with = "or_default")]
    pub phase: CompactString,
    /// Reason in one word.
    pub reason: Option<String>,
    /// Time at which the kubelet took the pod.
    pub start_time: Option<Time>,
    /// Conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// Containers.
    #[serde(deserialize_with = "or_default")]
    pub container_statuses: Vec<ContainerStatus>,
    /// Claims that were made of templates.
    #[serde(deserialize_with = "or_default")]
    pub resource_claim_statuses: Vec<PodClaimStatus>,
}

/// Status of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    /// State.
    #[serde(deserialize_with = "or_default")]
    pub state: ContainerState,
}

/// State of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// Its end, where it has ended.
    pub terminated: Option<Terminated>,
}

/// End of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Time of the end.
    pub finished_at: Option<Time>,
}

/// A condition of a pod or node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub kind: CompactString,
    /// Status.
    pub status: CompactString,
    /// Reason in one word.
    pub reason: Option<CompactString>,
    /// Time of the last change.
    pub last_transition_time: Option<Time>,
}

/// A node.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Node {
    /// Metadata.
    #[serde(deserialize_with = "slim", default)]
    pub metadata: ObjectMeta,
    /// Spec.
    #[serde(deserialize_with = "or_default", default)]
    pub spec: NodeSpec,
    /// Status.
    #[serde(deserialize_with = "or_default", default)]
    pub status: NodeStatus,
}
resource!(Node, "", "v1", "Node", "nodes", "v1", ClusterResourceScope);

/// Spec of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    /// Whether it is cordoned.
    #[serde(deserialize_with = "or_default")]
    pub unschedulable: bool,
    /// Taints.
    #[serde(deserialize_with = "or_default")]
    pub taints: Vec<Taint>,
}

/// A taint of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Key.
    #[serde(deserialize_with = "or_default")]
    pub key: CompactString,
    /// Effect on pods that do not tolerate it.
    #[serde(deserialize_with = "or_default")]
    pub effect: CompactString,
}

/// Status of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// Allocatable amounts by resource.
    #[serde(deserialize_with = "or_default")]
    pub allocatable: BTreeMap<String, String>,
    /// Conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

/// A priority class.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PriorityClass {
    /// Metadata.
    #[serde(deserialize_with = "slim", default)]
    pub metadata: ObjectMeta,
    /// Priority of the class.
    #[serde(default)]
    pub value: i32,
    /// Whether pods that name no class are of this one.
    #[serde(default, rename = "globalDefault", deserialize_with = "or_default")]
    pub is_default: bool,
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
