//! Utilization of each node of a pool, hour by hour (GFS figure 8), as the caller writes it.

use crate::StoreError;
use crate::stored::Stamp;
use async_trait::async_trait;
use vocab::{HourStart, PoolId};

/// The nodes of a pool in one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHour {
    /// The hour.
    pub hour: HourStart,
    /// The peaks of the nodes, as the caller writes them.
    pub peaks_json: String,
}

/// Utilization of nodes by hour.
#[async_trait]
pub trait NodeHourStore {
    /// Stores or replaces an hour, and deletes the hours of the pool before `forget`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the cluster is unknown.
    async fn put_node_hour(&self, pool: &PoolId, hour: &NodeHour, forget: HourStart) -> Result<(), StoreError>;

    /// The stored hours of a pool at `from` or later, ascending.
    async fn node_hours(&self, pool: &PoolId, from: HourStart) -> Result<Vec<NodeHour>, StoreError>;
}

row! {
    pub(crate) struct NodeHourRow {
        pub hour: Stamp,
        pub peaks_json: String,
    }
}

impl TryFrom<NodeHourRow> for NodeHour {
    type Error = StoreError;

    fn try_from(row: NodeHourRow) -> Result<Self, StoreError> {
        Ok(Self { hour: row.hour.hour()?, peaks_json: row.peaks_json })
    }
}
