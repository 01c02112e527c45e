//! Capacities of pools; written by [`UsageStore::append`](crate::UsageStore::append), read here.

use crate::StoreError;
use crate::stored::{Stamp, amount, pool};
use async_trait::async_trait;
use std::collections::BTreeSet;
use vocab::{CapacityRow, ClusterName, HourStart, PoolId};

/// Capacities of pools, for reading.
#[async_trait]
pub trait CapacityStore {
    /// Every pool with usage, nodes or a capacity.
    async fn stored_pools(&self) -> Result<BTreeSet<PoolId>, StoreError>;

    /// The row that is valid at `hour`: the latest that begins at it or before.
    async fn capacity_at(&self, pool: &PoolId, hour: HourStart) -> Result<Option<CapacityRow>, StoreError>;

    /// All rows of the cluster, by pool, then hour.
    async fn capacities(&self, cluster: &ClusterName) -> Result<Vec<CapacityRow>, StoreError>;
}

row! {
    pub(crate) struct StoredCapacity {
        pub cluster: String,
        pub gpu_model: String,
        pub from_hour: Stamp,
        pub capacity_milli: i64,
    }
}

impl TryFrom<StoredCapacity> for CapacityRow {
    type Error = StoreError;

    fn try_from(row: StoredCapacity) -> Result<Self, StoreError> {
        let pool = pool(&row.cluster, &row.gpu_model)?;
        Ok(Self { pool, from: row.from_hour.hour()?, capacity: amount("capacity", row.capacity_milli)? })
    }
}
