use crate::{MilliGpus, NodeId, PoolId, Topology};
use std::sync::Arc;

/// A machine as placement sees it: the pool that it belongs to and what it offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name of the node.
    pub id: NodeId,
    /// Cluster and GPU model.
    pub pool: PoolId,
    /// Whole GPUs.
    pub gpus: u32,
    /// Thousandths of a virtual CPU; `None` where the source does not say.
    pub cpu_milli: Option<u64>,
    /// `None` where the source does not say.
    pub memory_mib: Option<u64>,
    /// No new pods come to it.
    pub drains: bool,
    /// How its GPUs and cores lie; `None` where the source does not say.
    pub topology: Option<Arc<Topology>>,
}

impl Node {
    /// GPUs of the node as an amount.
    #[must_use]
    pub const fn capacity(&self) -> MilliGpus {
        MilliGpus::from_gpus(self.gpus)
    }
}
