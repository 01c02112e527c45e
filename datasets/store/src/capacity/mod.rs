//! Capacities of pools; written by [`UsageStore::append`](crate::UsageStore::append), read here.

mod postgres;
mod sqlite;

use crate::StoreError;
use crate::stored::{Stamp, amount, pool};
use async_trait::async_trait;
use vocab::{CapacityRow, ClusterName, HourStart, PoolId};

#[async_trait]
pub trait CapacityStore {
    /// The row that holds at that hour: the latest that begins at it or before.
    async fn capacity_at(&self, pool: &PoolId, hour: HourStart) -> Result<Option<CapacityRow>, StoreError>;

    /// All rows of the cluster, by pool, then hour.
    async fn capacities(&self, cluster: &ClusterName) -> Result<Vec<CapacityRow>, StoreError>;
}

#[derive(sqlx::FromRow)]
struct StoredCapacity {
    cluster: String,
    gpu_model: String,
    from_hour: Stamp,
    capacity_milli: i64,
}

impl TryFrom<StoredCapacity> for CapacityRow {
    type Error = StoreError;

    fn try_from(row: StoredCapacity) -> Result<Self, StoreError> {
        let pool = pool(&row.cluster, &row.gpu_model)?;
        Ok(Self { pool, from: row.from_hour.hour()?, capacity: amount("capacity", row.capacity_milli)? })
    }
}
