use super::{SqlConnection, SqlStore};
use crate::StoreError;
use crate::error::unless_missing;
use crate::learned::{LearnedRow, LearnedStore, NewLearned, READ, SAVE, SAVE_RISK, StoredLearned};
use crate::stored::Stamp;
use async_trait::async_trait;
use vocab::PoolId;

#[async_trait]
impl LearnedStore for SqlStore {
    async fn learned(&self, pool: &PoolId) -> Result<Option<StoredLearned>, StoreError> {
        let query = sqlx::query_as::<_, LearnedRow>(READ).bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str());
        Ok(query.fetch_optional(self.readers()).await?.map(Into::into))
    }
}

/// Writes learned state, in the transaction of the quotas that were computed from it.
pub(crate) async fn save(connection: &mut SqlConnection, learned: &NewLearned) -> Result<(), StoreError> {
    let query = sqlx::query(if learned.live.is_some() { SAVE } else { SAVE_RISK });
    let query = query.bind(learned.pool.cluster.as_str()).bind(learned.pool.gpu_model.as_str());
    let query = query.bind(Stamp(learned.saved_at)).bind(&learned.risk);
    let query = if let Some(live) = &learned.live { query.bind(live) } else { query };
    query.execute(connection).await.map_err(unless_missing("cluster", &learned.pool.cluster))?;
    Ok(())
}
