//! Twins of the facts of a pool, as the journal keeps them. Counts are integers (thousandths, seconds since 1970), so that a
//! state that is written and read again is the same to the bit.

mod parts;

use crate::choices::{EndingBody, NodeLossBody, TaskClassBody};
use crate::elastic::{ElasticRecord, ResizeRecord};
use crate::fault::{FieldFault, Place, time};
use crate::topology::{AffinityBody, TopologyBody};
use placement::Limit;
use placement::fleet::{Gang, GpuRequest, Guarantee, PodRequest};
use placement::pool::{Fact, Request};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{MilliGpus, NodeId, Organization, TaskId};

/// [`Request`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestRecord {
    /// The id of the task.
    pub task: String,
    /// The organization.
    pub organization: String,
    /// The class of the task.
    pub class: TaskClassBody,
    /// Thousandths of a GPU, of each pod.
    pub gpus_milli: u64,
    /// The number of pods.
    pub pods: u32,
    /// Thousandths of a virtual CPU, of each pod.
    pub cpu_milli: u64,
    /// Memory of each pod, in MiB.
    pub memory_mib: u64,
    /// Guarantee hours; absent for a task at will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<u64>,
    /// Where its GPUs lie together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<AffinityBody>,
    /// How far its pods come and go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticRecord>,
    /// When it was submitted.
    pub submitted_unix_s: i64,
}

/// [`Limit`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRecord {
    /// Guarantee hours.
    pub hours: u64,
    /// The quota, in thousandths of a GPU.
    pub quota_milli: u64,
}

/// [`Guarantee`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GuaranteeRecord {
    /// Guarantee hours.
    pub hours: u64,
    /// When the guarantee ends.
    pub until_unix_s: i64,
}

/// The GPUs of one pod: whole ones, or a share of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceRecord {
    /// The id of the node.
    pub node: String,
    /// Numbers of GPUs, from 0.
    pub gpus: Vec<u8>,
    /// Thousandths of the only one; absent where they are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_milli: Option<u16>,
}

/// [`Fact`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case", deny_unknown_fields)]
pub enum FactRecord {
    /// A node was added, or changed.
    NodeAdded {
        /// The node.
        node: String,
        /// Its GPUs.
        gpus: u32,
        /// Thousandths of a virtual CPU.
        cpu_milli: Option<u64>,
        /// Memory, in MiB.
        memory_mib: Option<u64>,
        /// The topology of its GPUs and cores.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topology: Option<TopologyBody>,
    },
    /// A node takes new pods, or none any more.
    NodeOpened {
        /// The node.
        node: String,
        /// Whether it takes new pods.
        is_open: bool,
    },
    /// A node left.
    NodeRemoved {
        /// The node.
        node: String,
        /// The cause.
        cause: NodeLossBody,
    },
    /// The limits of spot were set.
    LimitsSet {
        /// The limits.
        limits: Vec<LimitRecord>,
    },
    /// A task was submitted.
    Submitted {
        /// The request.
        request: RequestRecord,
    },
    /// A task started.
    Started {
        /// The task.
        task: String,
        /// The GPUs of each pod.
        places: Vec<PlaceRecord>,
        /// The guarantee.
        guarantee: Option<GuaranteeRecord>,
        /// Tasks that were evicted for it.
        victims: Vec<String>,
        /// When its GPUs are free.
        starts_unix_s: i64,
    },
    /// An eviction was put off.
    Deferred {
        /// The task.
        task: String,
        /// When it evicts at the latest.
        until_unix_s: i64,
        /// Tasks whose GPUs it waits for.
        holds: Vec<String>,
    },
    /// Spot at will left GPUs that are reserved ahead.
    Cleared {
        /// The organization of the reservation.
        organization: String,
        /// Tasks that were evicted.
        victims: Vec<String>,
        /// When their GPUs are free.
        free_unix_s: i64,
    },
    /// The pods of an elastic task changed.
    Resized {
        /// The task.
        task: String,
        /// The GPUs of each pod.
        places: Vec<PlaceRecord>,
        /// The GPUs that it is lent.
        lent: Vec<PlaceRecord>,
        /// The reason.
        why: ResizeRecord,
        /// When the change takes effect.
        from_unix_s: i64,
    },
    /// A task has another guarantee.
    Renewed {
        /// The task.
        task: String,
        /// The guarantee.
        guarantee: GuaranteeRecord,
    },
    /// A task saved its work.
    Saved {
        /// The task.
        task: String,
    },
    /// An elastic task measured its speed.
    Measured {
        /// The task.
        task: String,
        /// The number of pods.
        pods: u32,
        /// Thousandths of any one unit.
        speed_thousandths: u64,
    },
    /// A task ended.
    Ended {
        /// The task.
        task: String,
        /// The end.
        ending: EndingBody,
    },
}

impl From<&Request> for RequestRecord {
    fn from(Request { gang, organization, submitted, hours, elastic }: &Request) -> Self {
        Self {
            task: gang.task.to_string(),
            organization: organization.to_string(),
            class: gang.class.into(),
            gpus_milli: u64::from(gang.pod.gpus.milli()),
            pods: gang.pods,
            cpu_milli: gang.pod.cpu_milli,
            memory_mib: gang.pod.memory_mib,
            hours: hours.map(|hours| u64::from(hours.get())),
            affinity: gang.pod.affinity.map(AffinityBody::from),
            elastic: elastic.as_ref().map(ElasticRecord::from),
            submitted_unix_s: submitted.get(),
        }
    }
}

impl TryFrom<&RequestRecord> for Request {
    type Error = FieldFault;

    fn try_from(record: &RequestRecord) -> Result<Self, FieldFault> {
        let place = Place("/request");
        let class = record.class.into();
        let gpus = gpus_of(record.gpus_milli).map_err(|fault| place.fault("gpus_milli", fault.detail))?;
        let affinity = record.affinity.map(AffinityBody::of);
        let pod = PodRequest { affinity, ..PodRequest::new(gpus, record.cpu_milli, record.memory_mib) };
        let task = place.name("task", &record.task, TaskId::parse)?;
        let organization = place.name("organization", &record.organization, Organization::parse)?;
        Ok(Self {
            gang: Gang { task, class, pod, pods: record.pods },
            organization: place.of_a_task("organization", organization)?,
            submitted: time("/request/submitted_unix_s", record.submitted_unix_s)?,
            hours: record.hours.map(|hours| place.hours("hours", hours)).transpose()?,
            elastic: record.elastic.as_ref().map(|elastic| elastic.parse(record.pods)).transpose()?,
        })
    }
}

pub(crate) fn gpus_of(milli: u64) -> Result<GpuRequest, FieldFault> {
    let refused = |fault: &dyn std::fmt::Display| FieldFault::new("/gpus_milli", fault);
    GpuRequest::of(MilliGpus::from_milli(milli).map_err(|fault| refused(&fault))?).map_err(|fault| refused(&fault))
}

impl From<&Fact> for FactRecord {
    fn from(fact: &Fact) -> Self {
        match fact {
            Fact::NodeAdded { node, gpus, cpu_milli, memory_mib, topology } => {
                let topology = topology.as_deref().map(TopologyBody::from);
                let (node, cpu_milli, memory_mib) = (node.to_string(), *cpu_milli, *memory_mib);
                Self::NodeAdded { node, gpus: *gpus, cpu_milli, memory_mib, topology }
            }
            Fact::NodeOpened { node, is_open } => Self::NodeOpened { node: node.to_string(), is_open: *is_open },
            Fact::NodeRemoved { node, cause } => Self::NodeRemoved { node: node.to_string(), cause: (*cause).into() },
            Fact::LimitsSet { limits } => Self::LimitsSet { limits: limits.iter().map(LimitRecord::from).collect() },
            Fact::Submitted { request } => Self::Submitted { request: RequestRecord::from(request) },
            Fact::Started { task, places, guarantee, victims, starts } => Self::Started {
                task: task.to_string(),
                places: places.iter().map(PlaceRecord::from).collect(),
                guarantee: guarantee.map(GuaranteeRecord::from),
                victims: victims.iter().map(ToString::to_string).collect(),
                starts_unix_s: starts.get(),
            },
            Fact::Deferred { task, until, holds } => Self::Deferred {
                task: task.to_string(),
                until_unix_s: until.get(),
                holds: holds.iter().map(ToString::to_string).collect(),
            },
            Fact::Cleared { organization, victims, free } => Self::Cleared {
                organization: organization.to_string(),
                victims: victims.iter().map(ToString::to_string).collect(),
                free_unix_s: free.get(),
            },
            Fact::Resized { task, places, lent, why, from } => Self::Resized {
                task: task.to_string(),
                places: places.iter().map(PlaceRecord::from).collect(),
                lent: lent.iter().map(PlaceRecord::from).collect(),
                why: ResizeRecord::from(why),
                from_unix_s: from.get(),
            },
            Fact::Renewed { task, guarantee } => {
                Self::Renewed { task: task.to_string(), guarantee: GuaranteeRecord::from(*guarantee) }
            }
            Fact::Saved { task } => Self::Saved { task: task.to_string() },
            Fact::Measured { task, pods, speed_thousandths } => {
                Self::Measured { task: task.to_string(), pods: *pods, speed_thousandths: *speed_thousandths }
            }
            Fact::Ended { task, ending } => Self::Ended { task: task.to_string(), ending: (*ending).into() },
        }
    }
}

fn task(text: &str) -> Result<TaskId, FieldFault> {
    Place("").name("task", text, TaskId::parse)
}

fn node(text: &str) -> Result<NodeId, FieldFault> {
    Place("").name("node", text, NodeId::parse)
}

impl TryFrom<&FactRecord> for Fact {
    type Error = FieldFault;

    fn try_from(record: &FactRecord) -> Result<Self, FieldFault> {
        Ok(match record {
            FactRecord::NodeAdded { node: id, gpus, cpu_milli, memory_mib, topology } => {
                let topology = topology.as_ref().map(|body| body.of_node(*gpus)).transpose()?;
                let (cpu_milli, memory_mib) = (*cpu_milli, *memory_mib);
                Self::NodeAdded { node: node(id)?, gpus: *gpus, cpu_milli, memory_mib, topology }
            }
            FactRecord::NodeOpened { node: id, is_open } => Self::NodeOpened { node: node(id)?, is_open: *is_open },
            FactRecord::NodeRemoved { node: id, cause } => {
                Self::NodeRemoved { node: node(id)?, cause: (*cause).into() }
            }
            FactRecord::LimitsSet { limits } => {
                Self::LimitsSet { limits: limits.iter().map(Limit::try_from).collect::<Result<_, _>>()? }
            }
            FactRecord::Submitted { request } => Self::Submitted { request: Request::try_from(request)? },
            FactRecord::Started { task: id, places, guarantee, victims, starts_unix_s } => Self::Started {
                task: task(id)?,
                places: places.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
                guarantee: guarantee.map(Guarantee::try_from).transpose()?,
                victims: victims.iter().map(|victim| task(victim)).collect::<Result<_, _>>()?,
                starts: time("/starts_unix_s", *starts_unix_s)?,
            },
            FactRecord::Deferred { task: id, until_unix_s, holds } => Self::Deferred {
                task: task(id)?,
                until: time("/until_unix_s", *until_unix_s)?,
                holds: holds.iter().map(|held| task(held)).collect::<Result<_, _>>()?,
            },
            FactRecord::Cleared { organization, victims, free_unix_s } => Self::Cleared {
                organization: Place("").name("organization", organization, Organization::parse)?,
                victims: victims.iter().map(|victim| task(victim)).collect::<Result<_, _>>()?,
                free: time("/free_unix_s", *free_unix_s)?,
            },
            FactRecord::Resized { task: id, places, lent, why, from_unix_s } => Self::Resized {
                task: task(id)?,
                places: places.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
                lent: lent.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
                why: why.parse()?,
                from: time("/from_unix_s", *from_unix_s)?,
            },
            FactRecord::Renewed { task: id, guarantee } => {
                Self::Renewed { task: task(id)?, guarantee: Guarantee::try_from(*guarantee)? }
            }
            FactRecord::Saved { task: id } => Self::Saved { task: task(id)? },
            FactRecord::Measured { task: id, pods, speed_thousandths } => {
                Self::Measured { task: task(id)?, pods: *pods, speed_thousandths: *speed_thousandths }
            }
            FactRecord::Ended { task: id, ending } => Self::Ended { task: task(id)?, ending: (*ending).into() },
        })
    }
}
