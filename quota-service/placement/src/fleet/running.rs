//! A task on its nodes, and what it would lose.

use super::{Guarantee, PodPlace, PodRequest};
use vocab::{TaskClass, UnixSeconds};

/// A task on its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Class of the task.
    pub class: TaskClass,
    /// Request of each pod.
    pub pod: PodRequest,
    /// Of the pods that it keeps until it ends or is evicted.
    pub places: Vec<PodPlace>,
    /// Of the pods on GPUs that an elastic task is lent.
    pub lent: Vec<PodPlace>,
    /// Start of the run.
    pub since: UnixSeconds,
    /// When its work was saved last; what came after is lost if it is evicted.
    pub saved: UnixSeconds,
    /// Its promise, while that lasts; none for HP, and for spot at will.
    pub guarantee: Option<Guarantee>,
}

impl Running {
    /// All its pods, those on lent GPUs last.
    #[must_use]
    pub fn pods(&self) -> u32 {
        (self.places.len() + self.lent.len()) as u32
    }

    /// Thousandths of a GPU over all pods that it keeps.
    #[must_use]
    pub fn gpus_milli(&self) -> u64 {
        u64::from(self.pod.gpus.milli()) * self.places.len() as u64
    }

    /// ϑ, what would be lost if it were evicted now, in thousandths of a GPU-second (GFS Eq. 17).
    #[must_use]
    pub fn waste_milli_gpu_s(&self, now: UnixSeconds) -> u64 {
        self.gpus_milli().saturating_mul(u64::try_from(now.since_s(self.saved)).unwrap_or(0))
    }

    /// Where the task stands among those that could be evicted.
    pub(super) fn waste_class(&self) -> WasteClass {
        WasteClass { is_guaranteed: self.guarantee.is_some(), gpus_milli: self.gpus_milli() }
    }
}

/// Spot tasks whose waste grows alike: of two of them the one that was saved later has less to lose, at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WasteClass {
    is_guaranteed: bool,
    gpus_milli: u64,
}
