//! Capacity, state and outcomes of a pool.

use crate::{EventId, HorizonHours, HourStart, MilliGpus, NodeId, PoolId, TaskId, UnixSeconds};
use std::collections::BTreeMap;

/// A capacity that holds from `from` until the next row of the same pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityRow {
    /// The pool.
    pub pool: PoolId,
    /// First hour with this capacity.
    pub from: HourStart,
    /// GPUs that work.
    pub capacity: MilliGpus,
}

/// Which side places the tasks of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlacedBy {
    /// Tasks come to Headroom; the state of the pool is its own.
    Headroom,
    /// A scheduler outside: its reports are the state of the pool.
    External,
}

impl PlacedBy {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Headroom, Self::External];

    /// As it is written in settings and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Headroom => "headroom",
            Self::External => "external",
        }
    }

    /// Reads the text of `as_str`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.as_str() == text)
    }
}

/// The view of a scheduler that places by itself (`PUT /v1/pools/{id}/state`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolState {
    /// The pool.
    pub pool: PoolId,
    /// GPUs that work.
    pub capacity: MilliGpus,
    /// S0.
    pub idle: MilliGpus,
    /// GPUs held by spot tasks inside their guarantee period, by the hours that they were promised. What `S_a(H)` counts
    /// is the sum over all hours of at least H.
    pub spot_by_guarantee: BTreeMap<HorizonHours, MilliGpus>,
    /// l: the longest that a spot task waits now because quota refused it, though it would fit.
    pub longest_quota_wait_s: u64,
    /// Time of the report.
    pub as_of: UnixSeconds,
}

impl PoolState {
    /// S_a(H): GPUs of spot tasks inside a guarantee of at least `hours`.
    #[must_use]
    pub fn spot(&self, hours: HorizonHours) -> MilliGpus {
        spot_of_at_least(&self.spot_by_guarantee, hours)
    }
}

/// S_a(H) of GPUs by guarantee hours. A sum beyond what an amount holds stays at what it holds: such a state is refused
/// when it is reported.
#[must_use]
pub fn spot_of_at_least(by_guarantee: &BTreeMap<HorizonHours, MilliGpus>, hours: HorizonHours) -> MilliGpus {
    let inside = by_guarantee.range(hours..).map(|(_, gpus)| *gpus);
    inside.fold(MilliGpus::ZERO, |sum, gpus| sum.checked_add(gpus).unwrap_or(sum))
}

/// How a guarantee period of a spot run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeKind {
    /// It ran to the end of its guarantee, or finished before.
    Kept,
    /// HP demand evicted it inside.
    Broken,
    /// Reported apart; does not move eta.
    NodeFailure,
    /// Reported apart; does not move eta.
    Drain,
    /// Its user deleted it; reported apart, does not move eta.
    UserDeleted,
}

impl OutcomeKind {
    /// All values.
    pub const ALL: [Self; 5] = [Self::Kept, Self::Broken, Self::NodeFailure, Self::Drain, Self::UserDeleted];

    /// As it is written in requests and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::NodeFailure => "node_failure",
            Self::Drain => "drain",
            Self::UserDeleted => "user_deleted",
        }
    }

    /// Reads the text of `as_str`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One ended guarantee period. `event_id` is the reporter's own; the same id counts once however often it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Id of the report: a repeated id counts once.
    pub event_id: EventId,
    /// The pool.
    pub pool: PoolId,
    /// Guarantee hours that were promised.
    pub guarantee_hours: HorizonHours,
    /// How the guarantee ended.
    pub kind: OutcomeKind,
    /// End of the guarantee.
    pub ended_at: UnixSeconds,
    /// When the promise was given; `None` where the reporter did not say.
    pub began_at: Option<UnixSeconds>,
    /// GPUs that were promised, over all pods; `None` where the reporter did not say.
    pub gpus: Option<MilliGpus>,
    /// Task with the guarantee, if known.
    pub task: Option<TaskId>,
    /// Node of the task, if known.
    pub node: Option<NodeId>,
}
