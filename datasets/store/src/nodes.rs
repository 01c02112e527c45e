//! Nodes, each with a name that is unique within its cluster.

use crate::StoreError;
use crate::stored::{pool, valid, whole};
use async_trait::async_trait;
use std::sync::Arc;
use vocab::{ClusterName, Node, NodeId, PoolId, Topology};

/// Nodes.
#[async_trait]
pub trait NodeStore {
    /// Creates the node or replaces it, its GPU model included.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if its cluster is unknown.
    async fn put_node(&self, node: &Node) -> Result<(), StoreError>;

    /// Deletes a node.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn delete_node(&self, cluster: &ClusterName, id: &NodeId) -> Result<(), StoreError>;

    /// All nodes of the cluster, by name.
    async fn nodes(&self, cluster: &ClusterName) -> Result<Vec<Node>, StoreError>;

    /// All nodes of the pool, by name.
    async fn pool_nodes(&self, pool: &PoolId) -> Result<Vec<Node>, StoreError>;
}

row! {
    pub(crate) struct NodeRow {
        pub cluster: String,
        pub id: String,
        pub gpu_model: String,
        pub gpus: i64,
        pub cpu_milli: Option<i64>,
        pub memory_mib: Option<i64>,
        pub drains: bool,
        pub topology: Option<String>,
    }
}

impl TryFrom<NodeRow> for Node {
    type Error = StoreError;

    fn try_from(row: NodeRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: valid("node", NodeId::parse(&row.id))?,
            pool: pool(&row.cluster, &row.gpu_model)?,
            gpus: whole("GPUs of a node", row.gpus)?,
            cpu_milli: row.cpu_milli.map(|milli| whole("CPUs of a node", milli)).transpose()?,
            memory_mib: row.memory_mib.map(|mib| whole("memory of a node", mib)).transpose()?,
            drains: row.drains,
            topology: row
                .topology
                .map(|text| valid("topology of a node", Topology::parse(&text)))
                .transpose()?
                .map(Arc::new),
        })
    }
}
