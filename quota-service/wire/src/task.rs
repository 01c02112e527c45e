//! Tasks, as clients submit and read them.

use crate::answer::ReasonBody;
use crate::bounds::{MOST_CPU_MILLI, MOST_MEMORY_MIB, MOST_PODS};
use crate::choices::{CutCodeBody, EventKindBody, TaskClassBody, TaskStatusBody};
use crate::elastic::ElasticBody;
use crate::fact::GuaranteeRecord;
use crate::fault::{FieldFault, Place};
use crate::start::StartSpanBody;
use crate::topology::{AffinityBody, PlaceBody};
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::Request;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{ClusterName, GpuModel, HorizonHours, Organization, PoolId, TaskClass, TaskId, UnixSeconds, addressable};

/// `POST /v1/tasks`: equal pods, placed all or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBody {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The submitter's own id, never used again in the pool: it identifies a repeated request.
    pub id: String,
    /// The organization.
    pub organization: String,
    /// The class of the task.
    pub class: TaskClassBody,
    /// A share of one GPU such as 0.25, or whole ones; a pod without GPUs is refused.
    pub gpus_per_pod: f64,
    /// The number of pods, all alike.
    #[serde(default = "one")]
    pub pods: u32,
    /// Thousandths of a virtual CPU, of each pod; 0 for no requirement.
    #[serde(default)]
    pub cpu_milli: u64,
    /// Memory of each pod, in MiB.
    #[serde(default)]
    pub memory_mib: u64,
    /// The guarantee hours that a spot task asks for; without them, it runs at will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee_hours: Option<u64>,
    /// The affinity of a pod's whole GPUs; without it, any GPUs of a node do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<AffinityBody>,
    /// The range in which the pods of a spot task may change while it runs; without it, it runs on all of them or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticBody>,
}

const fn one() -> u32 {
    1
}

impl TaskBody {
    /// The pool, and the request to it.
    ///
    /// # Errors
    /// A field is refused.
    pub fn parse(&self, submitted: UnixSeconds) -> Result<(PoolId, Request), FieldFault> {
        let place = Place("");
        let pool = PoolId {
            cluster: place.new_name("cluster", &self.cluster, ClusterName::parse)?,
            gpu_model: place.new_name("gpu_model", &self.gpu_model, GpuModel::parse)?,
        };
        let class = TaskClass::from(self.class);
        let gpus = place.gpus("gpus_per_pod", self.gpus_per_pod)?;
        if gpus.is_zero() {
            let detail = "0 GPUs: no quota holds such a task; run it on the nodes beside Headroom, or write a share such as 0.25";
            return Err(place.fault("gpus_per_pod", detail));
        }
        let gpus = GpuRequest::of(gpus).map_err(|fault| place.fault("gpus_per_pod", fault))?;
        if self.pods == 0 {
            return Err(place.fault("pods", "a task needs at least one pod"));
        }
        place.positive("pods", u64::from(self.pods), u64::from(MOST_PODS))?;
        let cpu_milli = place.whole("cpu_milli", self.cpu_milli, MOST_CPU_MILLI)?;
        let memory_mib = place.whole("memory_mib", self.memory_mib, MOST_MEMORY_MIB)?;
        let organization = place.new_name("organization", &self.organization, Organization::parse)?;
        let organization = place.of_a_task("organization", organization)?;
        if class == TaskClass::Hp && self.guarantee_hours.is_some() {
            return Err(place.fault("guarantee_hours", "an hp task is never evicted: leave guarantee_hours out"));
        }
        let hours = self.guarantee_hours.map(|hours| place.hours("guarantee_hours", hours)).transpose()?;
        let affinity = self.affinity.map(AffinityBody::of);
        let pod = PodRequest { affinity, ..PodRequest::new(gpus, cpu_milli, memory_mib) };
        let task = place.new_name("id", &self.id, TaskId::parse)?;
        addressable(&self.id).map_err(|fault| place.fault("id", fault))?;
        let gang = Gang { task, class, pod, pods: self.pods };
        let elastic = self.elastic.as_ref().map(|elastic| elastic.parse(place, &gang)).transpose()?;
        Ok((pool, Request { gang, organization, submitted, hours, elastic }))
    }
}

/// The run of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRun {
    /// When its places were decided.
    pub since: String,
    /// When its GPUs are free: later where victims have a grace period.
    pub starts: String,
    /// One for each pod.
    pub places: Vec<PlaceBody>,
    /// Pods of an elastic task on lent GPUs, which another task may get at any time, beside those in `places`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lent: Vec<PlaceBody>,
    /// The time of its last checkpoint.
    pub saved: String,
    /// Its guarantee, while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<GuaranteeRecord>,
}

/// The cut of a task's last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCut {
    /// When, RFC 3339.
    pub at: String,
    /// The reason.
    pub code: CutCodeBody,
    /// The HP task, the organization of the reservation, or the node. Empty for a token with an organization where another one has evicted it.
    pub by: String,
    /// The end of its grace period.
    pub deadline: String,
}

/// The state of a task beside its request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskDetail {
    /// Its run, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<TaskRun>,
    /// The reason for which it waits; of its last change, where the service that answers does not lead the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<ReasonBody>,
    /// The cut of its last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<TaskCut>,
    /// Tasks that were evicted for it; for a token with an organization, its own alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<String>,
}

/// A task: its request and its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskAnswer {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The id of the task.
    pub id: String,
    /// The organization.
    pub organization: String,
    /// The class of the task.
    pub class: TaskClassBody,
    /// A share of one GPU, or whole ones.
    pub gpus_per_pod: f64,
    /// The number of pods.
    pub pods: u32,
    /// Thousandths of a virtual CPU, of each pod.
    pub cpu_milli: u64,
    /// Memory of each pod, in MiB.
    pub memory_mib: u64,
    /// Guarantee hours; null for a task at will.
    pub guarantee_hours: Option<u64>,
    /// Where its GPUs lie together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<AffinityBody>,
    /// How far its pods come and go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticBody>,
    /// When it was submitted, RFC 3339.
    pub submitted: String,
    /// The status of the task.
    pub status: TaskStatusBody,
    /// When it last changed, RFC 3339.
    pub updated: String,
    /// Whether the pool is in shadow: the decision was not carried out.
    pub shadow: bool,
    /// Its run, or the reason for which it waits.
    pub detail: TaskDetail,
    /// Its expected start, while it waits; absent before the first forecast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartSpanBody>,
}

/// Promises of a pool beside their limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseBody {
    /// Guarantee hours.
    pub hours: u8,
    /// f · η: GPUs that may be promised for so long.
    pub quota_gpus: f64,
    /// Promised GPUs.
    pub promised_gpus: f64,
}

/// `GET /v1/tasks/{id}/explain`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskExplanation {
    /// The task.
    pub task: TaskAnswer,
    /// The reason for its present state.
    pub reason: ReasonBody,
    /// The policy of the pool.
    pub policy: String,
    /// C, the capacity.
    pub capacity_gpus: f64,
    /// GPUs that a task could have now: those without one, and those that elastic tasks have on loan and give back.
    pub idle_gpus: f64,
    /// The promises of the pool, by guarantee hours.
    pub promises: Vec<PromiseBody>,
}

/// An event of a pool, as `GET /v1/events` and the webhook send it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventBody {
    /// Unique in its pool and rising.
    pub id: String,
    /// The kind of event.
    pub kind: EventKindBody,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// When, RFC 3339.
    pub at: String,
    /// The task that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The task for which it is evicted or shrinks, or the lost node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The end of the grace period of an evicted or shrinking task; the time at which a started or grown task has its GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// The pods of an elastic task from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// The pods that an elastic task has to release, or may start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceBody>,
    /// Its nodes, before or after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The new limits of spot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<crate::fact::LimitRecord>,
    /// The expected start of a waiting task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartSpanBody>,
}

/// Guarantee hours, as bodies have them.
#[must_use]
pub fn hours_body(hours: Option<HorizonHours>) -> Option<u64> {
    hours.map(|hours| u64::from(hours.get()))
}
