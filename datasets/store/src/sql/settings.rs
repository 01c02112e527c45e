use super::audit::insert as insert_audit;
use super::{SqlConnection, SqlStore};
use crate::error::unless_missing;
use crate::settings::{
    DECIDE, PlacementRow, PoolPlacement, READ, REPLACE, SettingsStore, StoredSettings, another_version, side,
};
use crate::stored::{Stamp, pool as stored_pool};
use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use std::collections::BTreeMap;
use vocab::{PlacedBy, PoolId};

#[async_trait]
impl SettingsStore for SqlStore {
    async fn put_settings_and_placement(
        &self,
        pool: &PoolId,
        settings_json: &str,
        expected: Option<i64>,
        placement: Option<&PoolPlacement>,
    ) -> Result<i64, StoreError> {
        let statement = match expected {
            None => {
                "INSERT INTO pool_settings (cluster, gpu_model, settings_json, version) VALUES ($1, $2, $3, 1)
                 ON CONFLICT (cluster, gpu_model) DO NOTHING RETURNING version"
            }
            Some(_) => {
                "UPDATE pool_settings SET settings_json = $3, version = version + 1
                 WHERE cluster = $1 AND gpu_model = $2 AND version = $4 RETURNING version"
            }
        };
        let mut query =
            sqlx::query_scalar(statement).bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(settings_json);
        if let Some(version) = expected {
            query = query.bind(version);
        }
        let mut transaction = self.begin().await?;
        let stored = query.fetch_optional(&mut *transaction).await;
        let stored = stored.map_err(unless_missing("cluster", &pool.cluster))?;
        let version = stored.ok_or_else(|| another_version(pool, expected))?;
        if let Some(placement) = placement {
            place(&mut transaction, REPLACE, pool, placement).await?;
        }
        transaction.commit().await?;
        Ok(version)
    }

    async fn settings(&self, pool: &PoolId) -> Result<Option<StoredSettings>, StoreError> {
        let query =
            sqlx::query_as("SELECT settings_json, version FROM pool_settings WHERE cluster = $1 AND gpu_model = $2");
        Ok(query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).fetch_optional(self.readers()).await?)
    }

    async fn decide_placement(
        &self,
        pool: &PoolId,
        placed_by: PlacedBy,
        audit: &AuditRecord,
    ) -> Result<PoolPlacement, StoreError> {
        let decided = PoolPlacement { placed_by, since: Some(audit.at), set_by: audit.actor.clone() };
        let mut transaction = self.begin().await?;
        if place(&mut transaction, DECIDE, pool, &decided).await? > 0 {
            insert_audit(&mut transaction, audit).await?;
        }
        let row: PlacementRow = sqlx::query_as(READ)
            .bind(pool.cluster.as_str())
            .bind(pool.gpu_model.as_str())
            .fetch_one(&mut *transaction)
            .await?;
        transaction.commit().await?;
        row.try_into()
    }

    async fn placement(&self, pool: &PoolId) -> Result<Option<PoolPlacement>, StoreError> {
        let query = sqlx::query_as::<_, PlacementRow>(READ).bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str());
        query.fetch_optional(self.readers()).await?.map(TryInto::try_into).transpose()
    }

    async fn sides(&self) -> Result<BTreeMap<PoolId, PlacedBy>, StoreError> {
        let query = sqlx::query_as("SELECT cluster, gpu_model, placed_by FROM pool_placement");
        let rows: Vec<(String, String, String)> = query.fetch_all(self.readers()).await?;
        rows.iter()
            .map(|(cluster, gpu_model, placed_by)| Ok((stored_pool(cluster, gpu_model)?, side(placed_by)?)))
            .collect()
    }
}

/// Writes a placement. Returns the number of changed rows.
async fn place(
    connection: &mut SqlConnection,
    statement: &'static str,
    pool: &PoolId,
    placement: &PoolPlacement,
) -> Result<u64, StoreError> {
    let query = sqlx::query(statement).bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str());
    let query = query.bind(placement.placed_by.as_str()).bind(placement.since.map(Stamp)).bind(&placement.set_by);
    Ok(query.execute(connection).await.map_err(unless_missing("cluster", &pool.cluster))?.rows_affected())
}
