use super::SqlStore;
use crate::StoreError;
use crate::error::unless_missing;
use crate::node_hours::{NodeHour, NodeHourRow, NodeHourStore};
use crate::stored::{Stamp, all};
use async_trait::async_trait;
use vocab::{HourStart, PoolId};

#[async_trait]
impl NodeHourStore for SqlStore {
    async fn put_node_hour(&self, pool: &PoolId, hour: &NodeHour, forget: HourStart) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let (cluster, gpu_model) = (pool.cluster.as_str(), pool.gpu_model.as_str());
        sqlx::query(
            "INSERT INTO node_hours (cluster, gpu_model, hour, peaks_json) VALUES ($1, $2, $3, $4)
             ON CONFLICT (cluster, gpu_model, hour) DO UPDATE SET peaks_json = excluded.peaks_json",
        )
        .bind(cluster)
        .bind(gpu_model)
        .bind(Stamp::from(hour.hour))
        .bind(&hour.peaks_json)
        .execute(&mut *transaction)
        .await
        .map_err(unless_missing("cluster", &pool.cluster))?;
        let forgetting = sqlx::query("DELETE FROM node_hours WHERE cluster = $1 AND gpu_model = $2 AND hour < $3");
        forgetting.bind(cluster).bind(gpu_model).bind(Stamp::from(forget)).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn node_hours(&self, pool: &PoolId, from: HourStart) -> Result<Vec<NodeHour>, StoreError> {
        let query = sqlx::query_as::<_, NodeHourRow>(
            "SELECT hour, peaks_json FROM node_hours WHERE cluster = $1 AND gpu_model = $2 AND hour >= $3 ORDER BY hour",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(Stamp::from(from));
        all(query.fetch_all(self.readers()).await?)
    }
}
