//! Refusals of nodes.

use super::GpuRequest;
use vocab::{NodeId, TopologyError};

/// Why a node was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// More GPUs than a node can have.
    #[error("node {node} has {gpus} GPUs: 0 to {most} are possible", most = GpuRequest::MOST)]
    Gpus {
        /// The refused node.
        node: NodeId,
        /// Its GPUs.
        gpus: u32,
    },
    /// A node of this name is there already.
    #[error("node {node} is there already")]
    Known {
        /// The node that is there already.
        node: NodeId,
    },
    /// The topology does not fit the node.
    #[error("the topology of node {node} is refused: {fault}")]
    Topology {
        /// The refused node.
        node: NodeId,
        /// The fault of its topology.
        fault: TopologyError,
    },
}
