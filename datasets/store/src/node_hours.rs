//! How full each node of a pool was, hour by hour (GFS figure 8), as its caller writes it.

use crate::StoreError;
use crate::stored::Stamp;
use async_trait::async_trait;
use vocab::{HourStart, PoolId};

/// The nodes of a pool in one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHour {
    pub hour: HourStart,
    pub peaks_json: String,
}

#[async_trait]
pub trait NodeHourStore {
    /// Replaces what is kept of an hour, and forgets the hours of the pool before `forget`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where the cluster is unknown.
    async fn put_node_hour(&self, pool: &PoolId, hour: &NodeHour, forget: HourStart) -> Result<(), StoreError>;

    /// The hours of a pool from `from` on, rising; hours of which nothing is known are not there.
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
