//! What a writer can be asked, and what it answers.

use super::look::{NodeLook, TaskCounts, Wanted};
use crate::leases::Leader;
use crate::settings::PlacementSettings;
use placement::Limit;
use placement::pool::{Fault, NodeLoss, Request, Snapshot};
use store::{PoolPlacement, StoreError, TaskRecord, TaskStatus};
use vocab::{MilliGpus, NodeId, PoolState, TaskId};
use wire::TaskExplanation;

/// A question to the writer of a pool, or an order.
#[derive(Debug, Clone)]
pub enum Ask {
    Submit(Request),
    Finish(TaskId),
    Delete(TaskId),
    Save(TaskId),
    /// Pods, and the speed on them in thousandths of a unit.
    Measure(TaskId, u32, u64),
    /// What would become of a task, without it.
    Try(Request),
    Explain(TaskId),
    /// A task that is decided in the shadow.
    Shadow(TaskId),
    Snapshot,
    /// Tasks that wait or run.
    Tasks(Wanted),
    /// What is allocated on each node.
    Nodes,
    /// The pool to cut quota from, if Headroom places it, or if it is undecided and has had tasks.
    State,
    SetLimits(Vec<Limit>),
    /// The quotas are too old to promise by.
    HoldLimits,
    /// Nodes of the store are those of the pool.
    TakeInNodes,
    RemoveNode(NodeId, NodeLoss),
    Settings(Box<PlacementSettings>),
    /// Which side places the pool from now on. Refused while tasks are open that the other side would not see.
    PlacedBy(Option<PoolPlacement>),
    /// Time alone.
    Pass,
}

impl Ask {
    /// What is asked, for a trace; `None` for what decides nothing.
    #[must_use]
    pub const fn decides(&self) -> Option<&'static str> {
        match self {
            Self::Submit(_) => Some("submit"),
            Self::Finish(_) => Some("finish"),
            Self::Delete(_) => Some("delete"),
            Self::Save(_) => Some("checkpoint"),
            Self::Measure(..) => Some("speed"),
            Self::Try(_) => Some("dry run"),
            Self::SetLimits(_) | Self::HoldLimits => Some("limits"),
            Self::RemoveNode(..) => Some("remove node"),
            Self::TakeInNodes => Some("take in nodes"),
            Self::Explain(_)
            | Self::Shadow(_)
            | Self::Snapshot
            | Self::Tasks(_)
            | Self::Nodes
            | Self::State
            | Self::Settings(_)
            | Self::PlacedBy(_)
            | Self::Pass => None,
        }
    }
}

/// A task as it was decided.
#[derive(Debug, Clone)]
pub struct Decided {
    pub record: TaskRecord,
    /// Nothing was done.
    pub is_shadow: bool,
}

/// A pool whose tasks are placed here, to cut quota from.
#[derive(Debug, Clone)]
pub struct Placed {
    pub state: PoolState,
    /// HP GPUs, running and waiting, now.
    pub hp_demand: MilliGpus,
    pub tasks: TaskCounts,
    pub nodes: Vec<NodeLook>,
}

/// What a writer answers, once it is durable.
#[derive(Debug)]
pub enum Reply {
    Task(Box<Decided>),
    Explanation(Box<TaskExplanation>),
    Snapshot(Box<Snapshot>),
    /// Some of them, and how many there are.
    Tasks(Vec<TaskRecord>, u64),
    Nodes(Vec<NodeLook>),
    State(Option<Box<Placed>>),
    Done,
}

/// Why the writer did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the pool has no nodes")]
    UnknownPool,
    #[error("a virtual clock runs: tasks are placed in real time only")]
    Virtual,
    /// Another service decides for the pool, or nobody does at this moment.
    #[error("{}", .0.as_ref().map_or_else(|| "nobody writes for the cluster at this moment".to_owned(), |leader| format!("{} writes for the cluster", leader.holder)))]
    Elsewhere(Option<Leader>),
    #[error("there is no task {task}")]
    UnknownTask { task: TaskId },
    #[error("task {task} is there already, and asks for something else")]
    Differs { task: TaskId },
    #[error("task {task} is {status}", status = status.as_str())]
    HasEnded { task: TaskId, status: TaskStatus },
    #[error("an external scheduler places the pool")]
    PlacedOutside,
    /// The pool has not been placed by either side.
    #[error("placed_by of the pool is undecided")]
    Undecided,
    /// Thousandths of a GPU.
    #[error(
        "it asks for {} GPUs, and the pool has {}: at most {multiple} times as many are taken", gpus(*asked_milli),
        gpus(*registered_milli)
    )]
    TooLarge { asked_milli: u64, registered_milli: u64, multiple: u32 },
    #[error("{tasks} tasks of the pool wait or run")]
    OpenTasks { tasks: u64 },
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The order itself cannot be written: the same again is refused again.
    #[error("{detail}")]
    Refused { detail: String },
    /// A bug: the decision on the order broke off, and nothing of it was done.
    #[error("{detail}")]
    Broken { detail: String },
    /// Nothing was acknowledged; what is stored is read again before the next decision.
    #[error("{detail}")]
    Unavailable { detail: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EngineError {
    pub(super) fn stopped() -> Self {
        Self::Unavailable { detail: "the service is stopping".to_owned() }
    }
}

/// As it is written: whole, or to a thousandth.
fn gpus(milli: u64) -> String {
    if milli.is_multiple_of(1_000) {
        (milli / 1_000).to_string()
    } else {
        format!("{}.{:03}", milli / 1_000, milli % 1_000)
    }
}
