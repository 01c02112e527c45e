//! Events of a pool, decisions, and their consequences.

use super::Request;
use super::demand::HourOfDemand;
use crate::decide::Limit;
use crate::fleet::{GpuPlace, Guarantee, NodeError, PlanFault, PodPlace, PodRequest, Running};
use crate::kept::Period;
use std::sync::Arc;
use vocab::{HorizonHours, NodeId, Organization, OutcomeKind, TaskId, Topology, UnixSeconds};

/// An event of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Submits a task.
    Submit(Request),
    /// A running task came to its end by itself.
    Finish {
        /// The task that has ended by itself.
        task: TaskId,
    },
    /// A user takes a task back, wherever it is.
    Delete {
        /// The task that its user withdraws.
        task: TaskId,
    },
    /// A running task has saved its work.
    Save {
        /// The task that has written a checkpoint.
        task: TaskId,
    },
    /// A running elastic task has worked so fast, in thousandths of a unit of its own, on so many pods.
    Measure {
        /// The elastic task.
        task: TaskId,
        /// Pods that it had.
        pods: u32,
        /// Its speed on them, in thousandths of any one unit.
        speed_thousandths: u64,
    },
    /// Adds a node, or changes it.
    AddNode {
        /// Name of the node.
        node: NodeId,
        /// Its GPUs.
        gpus: u32,
        /// Its CPU, in thousandths of a core; `None` where it is not known.
        cpu_milli: Option<u64>,
        /// Its memory, in MiB; `None` where it is not known.
        memory_mib: Option<u64>,
        /// The connections of its GPUs; `None` where they are not known.
        topology: Option<Arc<Topology>>,
    },
    /// Lets new pods come to a node, or no longer.
    OpenNode {
        /// Name of the node.
        node: NodeId,
        /// Whether new pods may start there.
        is_open: bool,
    },
    /// A node is gone, with what ran on it.
    RemoveNode {
        /// Name of the node.
        node: NodeId,
        /// Why it goes.
        cause: NodeLoss,
    },
    /// New quotas, by rising hours.
    SetLimits(Vec<Limit>),
    /// Time alone.
    Pass,
}

/// Why a node went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeLoss {
    /// The node failed.
    Failed,
    /// The node was drained.
    Drained,
}

/// How a task left for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The task ended by itself.
    Finished,
    /// Its user deleted it.
    Deleted,
}

/// A decision or an event. Facts in their order are the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A node was added or changed.
    NodeAdded {
        /// Name of the node.
        node: NodeId,
        /// Its GPUs.
        gpus: u32,
        /// Its CPU, in thousandths of a core; `None` where it is not known.
        cpu_milli: Option<u64>,
        /// Its memory, in MiB; `None` where it is not known.
        memory_mib: Option<u64>,
        /// The connections of its GPUs; `None` where they are not known.
        topology: Option<Arc<Topology>>,
    },
    /// A node takes new tasks again, or no more.
    NodeOpened {
        /// Name of the node.
        node: NodeId,
        /// Whether new pods may start there.
        is_open: bool,
    },
    /// A node left the pool.
    NodeRemoved {
        /// Name of the node.
        node: NodeId,
        /// Why it went.
        cause: NodeLoss,
    },
    /// The limits of spot were set.
    LimitsSet {
        /// The quotas by hours, ascending.
        limits: Vec<Limit>,
    },
    /// A task was submitted.
    Submitted {
        /// The request that waits from now on.
        request: Request,
    },
    /// A waiting task has its places; `victims` went back to the queue for it.
    Started {
        /// The task that runs from now on.
        task: TaskId,
        /// Node and GPUs of each pod.
        places: Vec<(NodeId, GpuPlace)>,
        /// Its promise; `None` for HP, and for spot at will.
        guarantee: Option<Guarantee>,
        /// Tasks that were evicted for it.
        victims: Vec<TaskId>,
        /// When its GPUs are free: later than the fact where victims have a grace period.
        starts: UnixSeconds,
    },
    /// HP that would evict waits for a moment; until then nobody else evicts those whom it holds.
    Deferred {
        /// The HP task whose evictions are put off.
        task: TaskId,
        /// The end of the deferral.
        until: UnixSeconds,
        /// Tasks that it would evict.
        holds: Vec<TaskId>,
    },
    /// Spot at will left GPUs that are reserved ahead.
    Cleared {
        /// The organization of the reservation.
        organization: Organization,
        /// Tasks that were evicted.
        victims: Vec<TaskId>,
        /// When their GPUs are free.
        free: UnixSeconds,
    },
    /// An elastic task has other pods than before: those that it keeps, and those on lent GPUs. What it gives has to be free
    /// at `from`.
    Resized {
        /// The elastic task.
        task: TaskId,
        /// Node and GPUs of each pod that it owns from now on.
        places: Vec<(NodeId, GpuPlace)>,
        /// Node and GPUs of each pod that it is lent from now on.
        lent: Vec<(NodeId, GpuPlace)>,
        /// The cause of the change.
        why: ResizeReason,
        /// The time at which the change counts.
        from: UnixSeconds,
    },
    /// A guarantee was over, and there was room for another one.
    Renewed {
        /// The spot task.
        task: TaskId,
        /// Its next promise.
        guarantee: Guarantee,
    },
    /// A task has a checkpoint.
    Saved {
        /// The task that has written a checkpoint.
        task: TaskId,
    },
    /// A task measured its speed.
    Measured {
        /// The elastic task.
        task: TaskId,
        /// Pods that it had.
        pods: u32,
        /// Its speed on them, in thousandths of any one unit.
        speed_thousandths: u64,
    },
    /// A task ended.
    Ended {
        /// The task that has ended.
        task: TaskId,
        /// How it ended.
        ending: Ending,
    },
}

/// A guarantee period that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodEnd {
    /// The task.
    pub task: TaskId,
    /// Guarantee hours.
    pub hours: HorizonHours,
    /// How the guarantee ended.
    pub kind: OutcomeKind,
    /// When the run began, and when the period ended: together with the task they name the period.
    pub since: UnixSeconds,
    /// Instant at which it ended.
    pub at: UnixSeconds,
    /// The period, up to its end.
    pub period: Period,
}

impl PeriodEnd {
    /// The period of a run that ends now.
    pub(super) fn of(task: TaskId, run: &Running, promised: Guarantee, kind: OutcomeKind, at: UnixSeconds) -> Self {
        let Guarantee { hours, until } = promised;
        let began = until.plus_s(-hours.seconds());
        let (lasted_s, broken) = (at.since_s(began), kind == OutcomeKind::Broken);
        let period = Period { began, lasted_s, gpus_milli: run.gpus_milli(), broken };
        Self { task, hours, kind, since: run.since, at, period }
    }
}

/// A run that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The task.
    pub task: TaskId,
    /// The run that was cut.
    pub run: Running,
    /// Why it was cut.
    pub why: CutReason,
}

/// Why a run was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutReason {
    /// An HP task needs its GPUs.
    EvictedBy {
        /// The HP task that has its GPUs now.
        task: TaskId,
    },
    /// Its GPUs are reserved ahead.
    ClearedFor {
        /// The organization of the reservation.
        organization: Organization,
        /// When its GPUs have to be free.
        free: UnixSeconds,
    },
    /// Its node was lost.
    Lost {
        /// Name of the lost node.
        node: NodeId,
        /// Why the node went.
        cause: NodeLoss,
    },
}

/// Why the pods of an elastic task change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResizeReason {
    /// There were GPUs that nobody had.
    Grows,
    /// This task gets GPUs that it was lent, or was.
    For {
        /// The task that gets the GPUs.
        task: TaskId,
    },
    /// It goes on without the pods on this node.
    Lost {
        /// Name of the lost node.
        node: NodeId,
    },
}

/// Pods of an elastic task that came and went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resize {
    /// The task.
    pub task: TaskId,
    /// The GPUs of each pod.
    pub pod: PodRequest,
    /// How many it has now.
    pub pods: u32,
    /// Pods that start.
    pub came: Vec<PodPlace>,
    /// Pods that end.
    pub went: Vec<PodPlace>,
    /// Why it was resized.
    pub why: ResizeReason,
    /// When those that went have to be gone.
    pub from: UnixSeconds,
}

/// The consequences of facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consequences {
    /// Runs that were cut; their tasks wait again.
    pub cuts: Vec<Cut>,
    /// Elastic tasks that shrank or grew.
    pub resizes: Vec<Resize>,
    /// Guarantee periods that ended, however they did.
    pub ends: Vec<PeriodEnd>,
    /// Demand of hours that are over.
    pub demand: Vec<HourOfDemand>,
    /// The run of the task that finished or was deleted, if it ran.
    pub ended: Option<(TaskId, Running)>,
}

/// The facts of a command, applied, and what followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Facts, in the order in which they were applied.
    pub facts: Vec<Fact>,
    /// The consequences of the facts.
    pub consequences: Consequences,
}

/// Why a command, or a fact, was refused. Nothing changed but the time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The task is known already.
    #[error("task {task} is there already")]
    Known {
        /// The id of both.
        task: TaskId,
    },
    /// The task is unknown.
    #[error("no task {task} waits or runs")]
    UnknownTask {
        /// The unknown id.
        task: TaskId,
    },
    /// The task does not run.
    #[error("task {task} does not run")]
    NotRunning {
        /// The task that waits or has ended.
        task: TaskId,
    },
    /// The task has no pods.
    #[error("task {task} has no pods")]
    NoPods {
        /// The refused task.
        task: TaskId,
    },
    /// The task is not elastic.
    #[error("task {task} is not elastic, or cannot be as it says")]
    NotElastic {
        /// The task with a fixed number of pods.
        task: TaskId,
    },
    /// A task that a promise keeps was to leave for a reservation.
    #[error("task {task} is no spot task at will: a reservation clears nothing else")]
    NotAtWill {
        /// The task with a promise, or of HP.
        task: TaskId,
    },
    /// The task is promised its pods.
    #[error("task {task} is hp: it is never evicted, and nothing is promised to it")]
    Promised {
        /// The task with a promise.
        task: TaskId,
    },
    /// The pods hold other GPUs than the fact names.
    #[error("task {task} has other GPUs than its pods ask for")]
    OtherGpus {
        /// The task whose pods hold other GPUs.
        task: TaskId,
    },
    /// The demand of the organization is another one than the fact implies.
    #[error("the demand of {organization} is not that of its tasks")]
    OtherDemand {
        /// The organization whose demand differs.
        organization: Organization,
    },
    /// The node is unknown.
    #[error("there is no node {node}")]
    UnknownNode {
        /// The unknown name.
        node: NodeId,
    },
    /// The node is refused.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The plan does not fit the fleet.
    #[error("the plan no longer holds: {0}")]
    Plan(#[from] PlanFault),
}
