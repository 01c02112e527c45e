//! Reasons why the writer of a pool refuses a call.

use crate::leases::Leader;
use placement::pool::{Beside, Fault};
use std::sync::Arc;
use store::{StoreError, TaskStatus};
use vocab::TaskId;

/// Reason why a writer refuses a call.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the pool has no nodes")]
    UnknownPool,
    #[error("under a virtual clock no task is placed: start without --as-of")]
    Virtual,
    /// Another service decides for the pool, or no service does at this moment.
    #[error("{}", .0.as_ref().map_or_else(|| "no service writes for the cluster at this moment".to_owned(), |leader| format!("{} writes for the cluster", leader.holder)))]
    Elsewhere(Option<Leader>),
    #[error("there is no task {task}")]
    UnknownTask { task: TaskId },
    #[error("task {task} exists already with another request: use another id")]
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
        "the task requests {}, and the pool has {}: at most {multiple} times the GPUs of the pool are accepted", vocab::gpus(gpus(*asked_milli)),
        gpus(*registered_milli)
    )]
    TooLarge { asked_milli: u64, registered_milli: u64, multiple: u32 },
    #[error("{}", vocab::count(*tasks, "task").verb("of the pool waits or runs", "of the pool wait or run"))]
    OpenTasks { tasks: u64 },
    /// Promises that were given before leave a new window no room.
    #[error(
        "at {} windows would have {} GPUs, and promises that last longer {}: write a later begin, or fewer GPUs", beside.at, beside.reserved,
        beside.promised
    )]
    Promised { beside: Beside },
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
    /// The same of the database, for every caller of the turn: the fault has the code that it has in a request of its own.
    #[error(transparent)]
    Turn(Arc<StoreError>),
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
