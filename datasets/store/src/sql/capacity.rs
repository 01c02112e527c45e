use super::SqlStore;
use crate::StoreError;
use crate::capacity::{CapacityStore, StoredCapacity};
use crate::stored::{Stamp, all, pool};
use async_trait::async_trait;
use std::collections::BTreeSet;
use vocab::{CapacityRow, ClusterName, HourStart, PoolId};

#[async_trait]
impl CapacityStore for SqlStore {
    async fn stored_pools(&self) -> Result<BTreeSet<PoolId>, StoreError> {
        let query = sqlx::query_as::<_, (String, String)>(
            "SELECT cluster, gpu_model FROM series UNION SELECT cluster, gpu_model FROM nodes
             UNION SELECT cluster, gpu_model FROM capacity",
        );
        query.fetch_all(self.readers()).await?.iter().map(|(cluster, gpu_model)| pool(cluster, gpu_model)).collect()
    }

    async fn capacity_at(&self, pool: &PoolId, hour: HourStart) -> Result<Option<CapacityRow>, StoreError> {
        sqlx::query_as::<_, StoredCapacity>(
            "SELECT cluster, gpu_model, from_hour, capacity_milli FROM capacity
             WHERE cluster = $1 AND gpu_model = $2 AND from_hour <= $3 ORDER BY from_hour DESC LIMIT 1",
        )
        .bind(pool.cluster.as_str())
        .bind(pool.gpu_model.as_str())
        .bind(Stamp::from(hour))
        .fetch_optional(self.readers())
        .await?
        .map(TryInto::try_into)
        .transpose()
    }

    async fn capacities(&self, cluster: &ClusterName) -> Result<Vec<CapacityRow>, StoreError> {
        let query = sqlx::query_as::<_, StoredCapacity>(
            "SELECT cluster, gpu_model, from_hour, capacity_milli FROM capacity
             WHERE cluster = $1 ORDER BY gpu_model, from_hour",
        );
        all(query.bind(cluster.as_str()).fetch_all(self.readers()).await?)
    }
}
