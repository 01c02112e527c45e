use super::SqlStore;
use crate::error::unless_missing;
use crate::stored::Stamp;
use crate::{StartStore, StoreError};
use async_trait::async_trait;
use vocab::{PoolId, UnixSeconds};

#[async_trait]
impl StartStore for SqlStore {
    async fn put_starts(&self, pool: &PoolId, saved_at: UnixSeconds, learned: &[u8]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO starts (cluster, gpu_model, saved_at, learned) VALUES ($1, $2, $3, $4)
             ON CONFLICT (cluster, gpu_model) DO UPDATE SET saved_at = excluded.saved_at, learned = excluded.learned",
        )
        .bind(pool.cluster.as_str())
        .bind(pool.gpu_model.as_str())
        .bind(Stamp(saved_at))
        .bind(learned.to_vec())
        .execute(&mut *transaction)
        .await
        .map_err(unless_missing("cluster", &pool.cluster))?;
        transaction.commit().await?;
        Ok(())
    }

    async fn starts(&self, pool: &PoolId) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query_scalar("SELECT learned FROM starts WHERE cluster = $1 AND gpu_model = $2");
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str());
        Ok(query.fetch_optional(self.readers()).await?)
    }
}
