//! Gangs: pods that run together, as objects of several kinds state. One gang has one promise, and its missing pods are demand that waits.
//! Pure; [`watch`] feeds it.

mod attempt;
mod read;
mod runs;
mod store;
#[cfg(test)]
mod tests;
pub mod watch;

pub use attempt::Attempt;
pub use read::{GangObject, GangSet, PastEviction, SetPod, Stated, gangs_of, may_replace, named_gangs};
pub use runs::Runs;
pub use store::{Gangs, Missing};

use std::fmt;

/// Kind of a gang. Of several that name one pod the first has its promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GangKind {
    /// A PodGroup of `scheduling.k8s.io`.
    PodGroup,
    /// A group in a Workload of `scheduling.k8s.io/v1alpha1`.
    WorkloadGroup,
    /// A group of a LeaderWorkerSet.
    LeaderWorkerGroup,
    /// A JobSet.
    JobSet,
    /// A Workload of Kueue.
    KueueWorkload,
}

impl GangKind {
    const fn name(self) -> &'static str {
        match self {
            Self::PodGroup => "podgroup",
            Self::WorkloadGroup => "workloadgroup",
            Self::LeaderWorkerGroup => "leaderworkerset",
            Self::JobSet => "jobset",
            Self::KueueWorkload => "workload",
        }
    }
}

/// A gang, within its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GangKey {
    /// Kind.
    pub kind: GangKind,
    /// Name; of a group of a LeaderWorkerSet with its number, of a group of a Workload with the Workload's name before it and the
    /// replica after it.
    pub name: String,
}

/// A gang.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GangId {
    /// Namespace.
    pub namespace: String,
    /// The rest.
    pub key: GangKey,
}

impl fmt::Display for GangId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.key.kind.name(), self.namespace, self.key.name)
    }
}
