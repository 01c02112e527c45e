//! What can happen to a pool, what is decided, and what follows.

use super::Request;
use super::demand::HourOfDemand;
use crate::decide::Limit;
use crate::fleet::{GpuPlace, Guarantee, NodeError, PlanFault, PodPlace, PodRequest, Running};
use crate::kept::Period;
use std::sync::Arc;
use vocab::{HorizonHours, NodeId, Organization, OutcomeKind, TaskId, Topology, UnixSeconds};

/// What can happen to a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Submit(Request),
    /// A running task came to its end by itself.
    Finish {
        task: TaskId,
    },
    /// A user takes a task back, wherever it is.
    Delete {
        task: TaskId,
    },
    /// A running task has saved its work.
    Save {
        task: TaskId,
    },
    /// A running elastic task has worked so fast, in thousandths of a unit of its own, on so many pods.
    Measure {
        task: TaskId,
        pods: u32,
        speed_thousandths: u64,
    },
    AddNode {
        node: NodeId,
        gpus: u32,
        cpu_milli: Option<u64>,
        memory_mib: Option<u64>,
        topology: Option<Arc<Topology>>,
    },
    /// Lets new pods come to a node, or no longer.
    OpenNode {
        node: NodeId,
        is_open: bool,
    },
    /// A node is gone, with what ran on it.
    RemoveNode {
        node: NodeId,
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
    Failed,
    Drained,
}

/// How a task left for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Finished,
    Deleted,
}

/// What was decided, or happened. Facts in their order are the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    NodeAdded {
        node: NodeId,
        gpus: u32,
        cpu_milli: Option<u64>,
        memory_mib: Option<u64>,
        topology: Option<Arc<Topology>>,
    },
    NodeOpened {
        node: NodeId,
        is_open: bool,
    },
    NodeRemoved {
        node: NodeId,
        cause: NodeLoss,
    },
    LimitsSet {
        limits: Vec<Limit>,
    },
    Submitted {
        request: Request,
    },
    /// A waiting task has its places; `victims` went back to the queue for it.
    Started {
        task: TaskId,
        places: Vec<(NodeId, GpuPlace)>,
        guarantee: Option<Guarantee>,
        victims: Vec<TaskId>,
        /// When its GPUs are free: later than the fact where victims have a grace period.
        starts: UnixSeconds,
    },
    /// HP that would evict waits for a moment; until then nobody else evicts those whom it holds.
    Deferred {
        task: TaskId,
        until: UnixSeconds,
        holds: Vec<TaskId>,
    },
    /// An elastic task has other pods than before: those that it keeps, and those on lent GPUs. What it gives has to be free
    /// at `from`.
    Resized {
        task: TaskId,
        places: Vec<(NodeId, GpuPlace)>,
        lent: Vec<(NodeId, GpuPlace)>,
        why: ResizeReason,
        from: UnixSeconds,
    },
    /// A guarantee was over, and there was room for another one.
    Renewed {
        task: TaskId,
        guarantee: Guarantee,
    },
    Saved {
        task: TaskId,
    },
    Measured {
        task: TaskId,
        pods: u32,
        speed_thousandths: u64,
    },
    Ended {
        task: TaskId,
        ending: Ending,
    },
}

/// A guarantee period that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodEnd {
    pub task: TaskId,
    pub hours: HorizonHours,
    pub kind: OutcomeKind,
    /// When the run began, and when the period ended: together with the task they name the period.
    pub since: UnixSeconds,
    pub at: UnixSeconds,
    /// What the period was, up to its end.
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
    pub task: TaskId,
    pub run: Running,
    pub why: CutReason,
}

/// Why a run was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutReason {
    /// An HP task needs its GPUs.
    EvictedBy {
        task: TaskId,
    },
    Lost {
        node: NodeId,
        cause: NodeLoss,
    },
}

/// Why the pods of an elastic task change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResizeReason {
    /// There were GPUs that nobody had.
    Grows,
    /// This task gets GPUs that it was lent, or was.
    For { task: TaskId },
    /// It goes on without the pods on this node.
    Lost { node: NodeId },
}

/// Pods of an elastic task that came and went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resize {
    pub task: TaskId,
    /// What each pod has.
    pub pod: PodRequest,
    /// How many it has now.
    pub pods: u32,
    pub came: Vec<PodPlace>,
    pub went: Vec<PodPlace>,
    pub why: ResizeReason,
    /// When those that went have to be gone.
    pub from: UnixSeconds,
}

/// What follows from facts.
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
    pub facts: Vec<Fact>,
    pub consequences: Consequences,
}

/// Why a command, or a fact, was refused. Nothing changed but the time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("task {task} is there already")]
    Known { task: TaskId },
    #[error("no task {task} waits or runs")]
    UnknownTask { task: TaskId },
    #[error("task {task} does not run")]
    NotRunning { task: TaskId },
    #[error("task {task} has no pods")]
    NoPods { task: TaskId },
    #[error("task {task} is not elastic, or cannot be as it says")]
    NotElastic { task: TaskId },
    #[error("task {task} is hp: it is never evicted, and nothing is promised to it")]
    Promised { task: TaskId },
    #[error("task {task} has other GPUs than its pods ask for")]
    OtherGpus { task: TaskId },
    #[error("the demand of {organization} is not that of its tasks")]
    OtherDemand { organization: Organization },
    #[error("there is no node {node}")]
    UnknownNode { node: NodeId },
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("the plan no longer holds: {0}")]
    Plan(#[from] PlanFault),
}
