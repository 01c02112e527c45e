//! Tasks as clients submit them and see them.

use crate::answer::ReasonBody;
use crate::bounds::{MOST_CPU_MILLI, MOST_MEMORY_MIB, MOST_PODS};
use crate::elastic::ElasticBody;
use crate::fact::GuaranteeRecord;
use crate::fault::{FieldFault, Place};
use crate::topology::{AffinityBody, PlaceBody};
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::Request;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{ClusterName, GpuModel, HorizonHours, Organization, PoolId, TaskClass, TaskId, UnixSeconds, addressable};

/// `POST /v1/tasks`: pods that are alike, all or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBody {
    pub cluster: String,
    pub gpu_model: String,
    /// The submitter's own, never used again in the pool: a repeated request is told by it.
    pub id: String,
    pub organization: String,
    /// `hp`, which is never evicted, or `spot`, which HP may evict.
    pub class: String,
    /// A share of one GPU such as 0.25, or whole ones.
    pub gpus_per_pod: f64,
    #[serde(default = "one")]
    pub pods: u32,
    /// Thousandths of a virtual CPU, of each pod; 0 where it does not matter.
    #[serde(default)]
    pub cpu_milli: u64,
    #[serde(default)]
    pub memory_mib: u64,
    /// How long a spot task wants to be promised to run; without, it runs at will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee_hours: Option<u64>,
    /// Where the whole GPUs of a pod are to lie together; without, that is the same to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<AffinityBody>,
    /// How far the pods of a spot task may come and go while it runs; without, it runs on all of them or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticBody>,
}

const fn one() -> u32 {
    1
}

impl TaskBody {
    /// The pool and what is asked of it.
    ///
    /// # Errors
    /// A field is refused.
    pub fn parse(&self, submitted: UnixSeconds) -> Result<(PoolId, Request), FieldFault> {
        let place = Place("");
        let pool = PoolId {
            cluster: place.new_name("cluster", &self.cluster, ClusterName::parse)?,
            gpu_model: place.new_name("gpu_model", &self.gpu_model, GpuModel::parse)?,
        };
        let class = TaskClass::parse(&self.class)
            .ok_or_else(|| place.fault("class", format!("{:?} is neither hp nor spot", self.class)))?;
        let gpus = place.gpus("gpus_per_pod", self.gpus_per_pod)?;
        let gpus = GpuRequest::of(gpus).map_err(|fault| place.fault("gpus_per_pod", fault))?;
        if self.pods == 0 {
            return Err(place.fault("pods", "a task needs at least one pod"));
        }
        place.whole("pods", u64::from(self.pods), u64::from(MOST_PODS))?;
        let cpu_milli = place.whole("cpu_milli", self.cpu_milli, MOST_CPU_MILLI)?;
        let memory_mib = place.whole("memory_mib", self.memory_mib, MOST_MEMORY_MIB)?;
        let organization = place.new_name("organization", &self.organization, Organization::parse)?;
        if organization.is_pool_peak() {
            return Err(place.fault("organization", "* stands for all organizations together"));
        }
        if class == TaskClass::Hp && self.guarantee_hours.is_some() {
            return Err(place.fault("guarantee_hours", "an hp task is never evicted and needs no guarantee"));
        }
        let hours = self.guarantee_hours.map(|hours| place.hours("guarantee_hours", hours)).transpose()?;
        let affinity = self.affinity.as_ref().map(|affinity| affinity.parse(place)).transpose()?;
        let pod = PodRequest { affinity, ..PodRequest::new(gpus, cpu_milli, memory_mib) };
        let task = place.new_name("id", &self.id, TaskId::parse)?;
        addressable(&self.id).map_err(|fault| place.fault("id", fault))?;
        let gang = Gang { task, class, pod, pods: self.pods };
        let elastic = self.elastic.as_ref().map(|elastic| elastic.parse(place, &gang)).transpose()?;
        Ok((pool, Request { gang, organization, submitted, hours, elastic }))
    }
}

/// Where a task runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRun {
    /// When its places were decided.
    pub since: String,
    /// When its GPUs are free: later where others have to save their work first.
    pub starts: String,
    /// One for each pod.
    pub places: Vec<PlaceBody>,
    /// Pods of an elastic task that somebody else may get at any time, beside those in `places`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lent: Vec<PlaceBody>,
    /// When its work was saved last.
    pub saved: String,
    /// What it is promised, while that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<GuaranteeRecord>,
}

/// How the last run of a task was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCut {
    pub at: String,
    /// `evicted`, `node_failed` or `node_drained`.
    pub code: String,
    /// The HP task, or the node.
    pub by: String,
    /// Until when it may save its work.
    pub deadline: String,
}

/// What is known of a task beside what it asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskDetail {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<TaskRun>,
    /// Why it waits, as of the last time that it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<ReasonBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<TaskCut>,
    /// Tasks that had to go for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<String>,
}

/// A task: what it asked for, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskAnswer {
    pub cluster: String,
    pub gpu_model: String,
    pub id: String,
    pub organization: String,
    pub class: String,
    pub gpus_per_pod: f64,
    pub pods: u32,
    pub cpu_milli: u64,
    pub memory_mib: u64,
    pub guarantee_hours: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<AffinityBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticBody>,
    pub submitted: String,
    /// `waiting`, `running`, `finished` or `deleted`.
    pub status: String,
    pub updated: String,
    /// Nothing was done: so it would have been decided.
    pub shadow: bool,
    pub detail: TaskDetail,
}

/// Promises of a pool beside their limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseBody {
    pub hours: u8,
    /// f · η: what may be promised for so long.
    pub quota_gpus: f64,
    /// What is.
    pub promised_gpus: f64,
}

/// `GET /v1/tasks/{id}/explain`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskExplanation {
    pub task: TaskAnswer,
    /// Why it waits now, or stands as it does.
    pub reason: ReasonBody,
    pub policy: String,
    pub capacity_gpus: f64,
    pub idle_gpus: f64,
    pub promises: Vec<PromiseBody>,
}

/// What happened in a pool, as `GET /v1/events` and the webhook tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventBody {
    /// Unique in its pool and rising.
    pub id: String,
    /// `started`, `evicted`, `shrunk`, `grown`, `node_lost` or `quota_changed`.
    pub kind: String,
    pub cluster: String,
    pub gpu_model: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The task that it goes or shrinks for, or the node that was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Until when an evicted task may save its work, or one that shrinks let its pods go; when one that started or grew has its
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Of an elastic task: how many pods it has from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// Of an elastic task: the pods that it has to let go, or may start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceBody>,
    /// Where it was, or is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<crate::fact::LimitRecord>,
}

/// Hours as bodies have them.
#[must_use]
pub fn hours_body(hours: Option<HorizonHours>) -> Option<u64> {
    hours.map(|hours| u64::from(hours.get()))
}
