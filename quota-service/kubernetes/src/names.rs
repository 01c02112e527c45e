//! Names on objects of the API: field managers, labels, annotations.

/// Field manager that writes quotas, and lowers those that are not renewed.
pub const QUOTA_MANAGER: &str = "headroom-quota";
/// Field manager that answers Kueue's admission check.
pub const GUARANTEE_MANAGER: &str = "headroom-guarantee";
/// Field manager that writes the boost of Kueue's priorities.
pub const BOOST_MANAGER: &str = "headroom-boost";
/// Field manager that announces evictions.
pub const EVICT_MANAGER: &str = "headroom-evict";
/// Field manager of events.
pub const EVENT_MANAGER: &str = "headroom-events";
/// The controller of the capacity provider.
pub const QUOTA_CONTROLLER: &str = "headroom.dev/spot-quota";
/// The controller of the admission check.
pub const GUARANTEE_CONTROLLER: &str = "headroom.dev/guarantee";

/// Label of objects that we created and own whole.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`].
pub const HEADROOM: &str = "headroom";

/// Label or annotation of a spot pod or Workload: hours that it asks to be guaranteed. 0 for none.
pub const GUARANTEE_HOURS: &str = "headroom.dev/guarantee-hours";
/// Annotation: time of the last checkpoint, RFC 3339.
pub const CHECKPOINTED_AT: &str = "headroom.dev/checkpointed-at";
/// Annotation: epoch of the last writer.
pub const EPOCH: &str = "headroom.dev/epoch";
/// Annotation of the heartbeat: quotas that its leader may not write, comma between them. The watchdog lowers these alone.
pub const NOT_RENEWED: &str = "headroom.dev/not-renewed";
/// Annotation: GPUs that spot pods held when the quota was published, by flavor, as JSON.
pub const HELD_GPUS: &str = "headroom.dev/held-gpus";
/// Annotation of a victim: time of its eviction, RFC 3339.
pub const EVICT_AT: &str = "headroom.dev/evict-at";
/// Annotation of a victim, which its program writes: the time of [`EVICT_AT`] once it has saved its work. It is evicted at once then.
pub const EVICT_READY: &str = "headroom.dev/evict-ready";
/// Condition of a victim.
pub const EVICTION_NOTICE: &str = "headroom.dev/EvictionNotice";
/// Requester of evictions.
pub const EVICTOR: &str = "headroom.dev/evict";
/// Annotation of a pod: port of its checkpoint hook.
pub const CHECKPOINT_PORT: &str = "headroom.dev/checkpoint-port";
/// Annotation of a pod: path of its checkpoint hook.
pub const CHECKPOINT_PATH: &str = "headroom.dev/checkpoint-path";
/// Annotation of nodes: topology of the GPUs, as `topology` of PUT /v1/nodes/{id}.
pub const TOPOLOGY: &str = "headroom.dev/topology";
/// Kueue sets this condition on the pods of a pod group, or on a pod that it queues itself, before it deletes them.
pub const TERMINATION_TARGET: &str = "TerminationTarget";
/// Start of the condition's reason where Kueue evicts the Workload; the reason of the eviction follows.
pub const KUEUE_EVICTS: &str = "WorkloadEvictedDueTo";
/// The reason of Kueue where it makes room for another Workload, and its condition of the Workload that goes.
pub const KUEUE_PREEMPTS: &str = "Preempted";
/// Kueue reads this annotation of a Workload.
pub const PRIORITY_BOOST: &str = "kueue.x-k8s.io/priority-boost";
/// Kueue writes this annotation on the Workload of a job that has grown: namespace and name of the one whose place it takes.
pub const REPLACES: &str = "kueue.x-k8s.io/workload-slice-replacement-for";
/// Kueue writes this annotation on the pods of a Workload: its name.
pub const WORKLOAD: &str = "kueue.x-k8s.io/workload";
