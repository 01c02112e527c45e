//! Twins of a pool's whole state: for the compaction of the journal, `GET /v1/pools/{id}/snapshot`, and replays offline.

use crate::fact::{GuaranteeRecord, LimitRecord, PlaceRecord, RequestRecord, gpus_of};
use crate::fault::{FieldFault, Place, time};
use crate::shares::UseRecord;
use crate::topology::TopologyBody;
use placement::Limit;
use placement::fleet::{Guarantee, Models, Spec};
use placement::pool::{Deferral, Level, Request, Snapshot, SnapshotNode, SnapshotRun, SnapshotSpec, Waiting};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{HourStart, NodeId, Organization, TaskId, UnixSeconds};

/// [`SnapshotNode`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeRecord {
    /// The id of the node.
    pub node: String,
    /// The number of GPUs.
    pub gpus: u32,
    /// Thousandths of a virtual CPU.
    pub cpu_milli: Option<u64>,
    /// Memory, in MiB.
    pub memory_mib: Option<u64>,
    /// The topology of its GPUs and cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyBody>,
    /// Whether it takes new pods.
    pub is_open: bool,
    /// Whether it was removed, while tasks still name it.
    pub is_gone: bool,
}

/// [`Waiting`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitingRecord {
    /// The request.
    pub request: RequestRecord,
    /// When it joined the queue.
    pub queued_unix_s: i64,
    /// When it may start again after an eviction.
    pub rests_until_unix_s: Option<i64>,
    /// When it was evicted, oldest first.
    pub evicted_unix_s: Vec<i64>,
    /// Its eviction that was put off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferral: Option<DeferralRecord>,
}

/// [`Deferral`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeferralRecord {
    /// When it evicts at the latest.
    pub until_unix_s: i64,
    /// Tasks whose GPUs it waits for.
    pub holds: Vec<String>,
}

/// [`SnapshotRun`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// The request.
    pub request: RequestRecord,
    /// The GPUs of each pod.
    pub places: Vec<PlaceRecord>,
    /// Places on GPUs that an elastic task is lent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lent: Vec<PlaceRecord>,
    /// The last change of an elastic task's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized_unix_s: Option<i64>,
    /// When its places were decided.
    pub since_unix_s: i64,
    /// When its GPUs are free.
    pub starts_unix_s: i64,
    /// When its work was last saved.
    pub saved_unix_s: i64,
    /// The guarantee, while it lasts.
    pub guarantee: Option<GuaranteeRecord>,
    /// When it was evicted, oldest first.
    pub evicted_unix_s: Vec<i64>,
}

/// An eviction that still counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvictionRecord {
    /// When.
    pub at_unix_s: i64,
    /// The id of the node.
    pub node: String,
}

/// A spot run that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunEndRecord {
    /// When it ended.
    pub at_unix_s: i64,
    /// Whether it was evicted.
    pub was_evicted: bool,
}

/// [`SnapshotSpec`]: the number of requested pods of one shape. Snapshots from before fragmentation counted CPU have neither CPU
/// nor target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadRecord {
    /// Thousandths of a GPU that a pod asks for.
    pub gpus_milli: u64,
    /// Thousandths of a virtual CPU that a pod asks for.
    #[serde(default)]
    pub cpu_milli: u64,
    /// Pods that asked for it.
    pub pods: u64,
    /// Its weight in the target of fragmentation; absent where it is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_pods: Option<u64>,
}

/// HP demand of the present hour; `*` for the pool's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelRecord {
    /// The organization; `*` for the pool.
    pub organization: String,
    /// Demand now, in thousandths of a GPU.
    pub milli: u64,
    /// The peak of the hour, in thousandths of a GPU.
    pub peak_milli: u64,
}

/// [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRecord {
    /// The instant of the snapshot.
    pub at_unix_s: i64,
    /// The nodes.
    pub nodes: Vec<NodeRecord>,
    /// The limits of spot, by guarantee hours.
    pub limits: Vec<LimitRecord>,
    /// HP demand when the limits were set.
    pub limits_demand_milli: u64,
    /// Waiting tasks, in the order of the queue.
    pub waiting: Vec<WaitingRecord>,
    /// Running tasks.
    pub running: Vec<RunRecord>,
    /// Evictions that still count for their nodes.
    pub evictions: Vec<EvictionRecord>,
    /// Ends of spot runs that still count.
    pub runs: Vec<RunEndRecord>,
    /// The shapes of pods that were asked for.
    pub workload: Vec<WorkloadRecord>,
    /// The hour of `demand`.
    pub demand_hour_unix_s: Option<i64>,
    /// HP demand of each organization, and of the pool.
    pub demand: Vec<LevelRecord>,
    /// Rests that were given so far: their random lengths follow from it.
    pub rests: u64,
    /// The use of spot by organization, under a policy with fair shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<UseRecord>,
}

fn unix_s(times: &[UnixSeconds]) -> Vec<i64> {
    times.iter().map(|time| time.get()).collect()
}

fn times(unix_s: &[i64]) -> Result<Vec<UnixSeconds>, FieldFault> {
    unix_s.iter().map(|unix_s| time("/evicted_unix_s", *unix_s)).collect()
}

impl From<&Snapshot> for SnapshotRecord {
    fn from(of: &Snapshot) -> Self {
        let level = |(organization, level): (&Organization, &Level)| LevelRecord {
            organization: organization.to_string(),
            milli: level.milli,
            peak_milli: level.peak_milli,
        };
        let eviction =
            |(at, node): &(UnixSeconds, NodeId)| EvictionRecord { at_unix_s: at.get(), node: node.to_string() };
        let mut demand: Vec<LevelRecord> = of.demand.iter().map(|(name, one)| level((name, one))).collect();
        demand.push(level((&Organization::pool_peak(), &of.demand_total)));
        Self {
            at_unix_s: of.at.get(),
            nodes: of.nodes.iter().map(NodeRecord::from).collect(),
            limits: of.limits.iter().map(LimitRecord::from).collect(),
            limits_demand_milli: of.limits_demand_milli,
            waiting: of.waiting.iter().map(WaitingRecord::from).collect(),
            running: of.running.iter().map(RunRecord::from).collect(),
            evictions: of.evictions.iter().map(eviction).collect(),
            runs: of.runs.iter().map(|(at, was)| RunEndRecord { at_unix_s: at.get(), was_evicted: *was }).collect(),
            workload: of.workload.iter().map(WorkloadRecord::from).collect(),
            demand_hour_unix_s: of.demand_hour.map(HourStart::unix_s),
            demand,
            rests: of.rests,
            shares: UseRecord::of(&of.shares),
        }
    }
}

impl From<&SnapshotNode> for NodeRecord {
    fn from(of: &SnapshotNode) -> Self {
        Self {
            node: of.node.to_string(),
            gpus: of.gpus,
            cpu_milli: of.cpu_milli,
            memory_mib: of.memory_mib,
            topology: of.topology.as_deref().map(TopologyBody::from),
            is_open: of.is_open,
            is_gone: of.is_gone,
        }
    }
}

impl From<&Waiting> for WaitingRecord {
    fn from(of: &Waiting) -> Self {
        Self {
            request: RequestRecord::from(&of.request),
            queued_unix_s: of.queued.get(),
            rests_until_unix_s: of.rests_until.map(UnixSeconds::get),
            evicted_unix_s: unix_s(&of.evicted),
            deferral: of.deferral.as_ref().map(|deferral| DeferralRecord {
                until_unix_s: deferral.until.get(),
                holds: deferral.holds.iter().map(ToString::to_string).collect(),
            }),
        }
    }
}

impl From<&SnapshotRun> for RunRecord {
    fn from(of: &SnapshotRun) -> Self {
        Self {
            request: RequestRecord::from(&of.request),
            places: of.places.iter().map(PlaceRecord::from).collect(),
            lent: of.lent.iter().map(PlaceRecord::from).collect(),
            resized_unix_s: of.resized.map(UnixSeconds::get),
            since_unix_s: of.since.get(),
            starts_unix_s: of.starts.get(),
            saved_unix_s: of.saved.get(),
            guarantee: of.guarantee.map(GuaranteeRecord::from),
            evicted_unix_s: unix_s(&of.evicted),
        }
    }
}

impl TryFrom<&SnapshotRecord> for Snapshot {
    type Error = FieldFault;

    fn try_from(of: &SnapshotRecord) -> Result<Self, FieldFault> {
        let hour = |unix_s| HourStart::from_unix_s(unix_s).map_err(|fault| FieldFault::new("/demand_hour", fault));
        let run = |one: &RunEndRecord| Ok((time("/runs/at_unix_s", one.at_unix_s)?, one.was_evicted));
        let (demand, totals): (Vec<_>, Vec<_>) = of
            .demand
            .iter()
            .map(demand)
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .partition(|(organization, _)| !organization.is_pool_peak());
        if totals.len() > 1 {
            return Err(FieldFault::new("/demand", "more than one total of the pool, whose name is *"));
        }
        Ok(Self {
            at: UnixSeconds::new(of.at_unix_s),
            nodes: of.nodes.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
            limits: of.limits.iter().map(Limit::try_from).collect::<Result<_, _>>()?,
            limits_demand_milli: of.limits_demand_milli,
            waiting: of.waiting.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
            running: of.running.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
            evictions: of.evictions.iter().map(eviction).collect::<Result<_, _>>()?,
            runs: of.runs.iter().map(run).collect::<Result<_, FieldFault>>()?,
            workload: of.workload.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
            demand_hour: of.demand_hour_unix_s.map(hour).transpose()?,
            demand,
            demand_total: totals.first().map(|(_, level)| *level).unwrap_or_default(),
            rests: of.rests,
            shares: of.shares.as_ref().map(UseRecord::parse).transpose()?.unwrap_or_default(),
        })
    }
}

fn demand(of: &LevelRecord) -> Result<(Organization, Level), FieldFault> {
    let organization = Place("/demand").name("organization", &of.organization, Organization::parse)?;
    Ok((organization, Level { milli: of.milli, peak_milli: of.peak_milli }))
}

fn deferral(of: &DeferralRecord) -> Result<Deferral, FieldFault> {
    let holds = of.holds.iter().map(|task| Place("/deferral").name("holds", task, TaskId::parse));
    Ok(Deferral { until: time("/deferral/until_unix_s", of.until_unix_s)?, holds: holds.collect::<Result<_, _>>()? })
}

fn eviction(of: &EvictionRecord) -> Result<(UnixSeconds, NodeId), FieldFault> {
    Ok((time("/evictions/at_unix_s", of.at_unix_s)?, Place("/evictions").name("node", &of.node, NodeId::parse)?))
}

impl From<&SnapshotSpec> for WorkloadRecord {
    fn from(of: &SnapshotSpec) -> Self {
        let SnapshotSpec { spec, pods, target_pods } = *of;
        Self { gpus_milli: u64::from(spec.gpus.milli()), cpu_milli: spec.cpu_milli, pods, target_pods }
    }
}

/// Pods of one shape: far above what tasks can ask for, and low enough that sums of them stay inside 64 bits.
const MOST_PODS: u64 = 1_000_000_000_000_000;

impl TryFrom<&WorkloadRecord> for SnapshotSpec {
    type Error = FieldFault;

    fn try_from(of: &WorkloadRecord) -> Result<Self, FieldFault> {
        // The nodes of a pool are of one model: no request names one.
        let spec = Spec { cpu_milli: of.cpu_milli, gpus: gpus_of(of.gpus_milli)?, models: Models::ANY };
        if of.pods.max(of.target_pods.unwrap_or(0)) > MOST_PODS {
            return Err(FieldFault::new("/workload/pods", format!("no pool has seen more than {MOST_PODS} pods")));
        }
        Ok(Self { spec, pods: of.pods, target_pods: of.target_pods })
    }
}

impl TryFrom<&NodeRecord> for SnapshotNode {
    type Error = FieldFault;

    fn try_from(of: &NodeRecord) -> Result<Self, FieldFault> {
        Ok(Self {
            node: Place("/nodes").name("node", &of.node, NodeId::parse)?,
            gpus: of.gpus,
            cpu_milli: of.cpu_milli,
            memory_mib: of.memory_mib,
            topology: of.topology.as_ref().map(|body| body.of_node(of.gpus)).transpose()?,
            is_open: of.is_open,
            is_gone: of.is_gone,
        })
    }
}

impl TryFrom<&WaitingRecord> for Waiting {
    type Error = FieldFault;

    fn try_from(of: &WaitingRecord) -> Result<Self, FieldFault> {
        Ok(Self {
            request: Request::try_from(&of.request)?,
            queued: time("/queued_unix_s", of.queued_unix_s)?,
            rests_until: of.rests_until_unix_s.map(|unix_s| time("/rests_until_unix_s", unix_s)).transpose()?,
            evicted: times(&of.evicted_unix_s)?,
            deferral: of.deferral.as_ref().map(deferral).transpose()?,
        })
    }
}

impl TryFrom<&RunRecord> for SnapshotRun {
    type Error = FieldFault;

    fn try_from(of: &RunRecord) -> Result<Self, FieldFault> {
        Ok(Self {
            request: Request::try_from(&of.request)?,
            places: of.places.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
            lent: of.lent.iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
            resized: of.resized_unix_s.map(|unix_s| time("/resized_unix_s", unix_s)).transpose()?,
            since: time("/since_unix_s", of.since_unix_s)?,
            starts: time("/starts_unix_s", of.starts_unix_s)?,
            saved: time("/saved_unix_s", of.saved_unix_s)?,
            guarantee: of.guarantee.map(Guarantee::try_from).transpose()?,
            evicted: times(&of.evicted_unix_s)?,
        })
    }
}
