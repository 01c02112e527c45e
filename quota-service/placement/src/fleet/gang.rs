//! Tasks and the places of their pods.

use super::{GpuPlace, PodRequest};
use vocab::{TaskClass, TaskId};

/// A pod on its node, by the node's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodPlace {
    /// Number of the node in the fleet.
    pub node: usize,
    /// GPUs of the node that the pod has.
    pub gpus: GpuPlace,
}

/// A task as placement sees it: its pods, all or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gang {
    /// The task of the pods.
    pub task: TaskId,
    /// HP or spot.
    pub class: TaskClass,
    /// The request of each pod.
    pub pod: PodRequest,
    /// The number of pods; at least 1.
    pub pods: u32,
}
