use super::audit::insert as insert_audit;
use super::dialect::clusters::lock_clusters;
use super::{SqlConnection, SqlStore};
use crate::error::unless_missing;
use crate::overrides::{NewOverride, OverrideRecord, OverrideRow, OverrideStore, not_found};
use crate::stored::{Stamp, all, milli, signed};
use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use vocab::{OverrideId, PoolId, UnixSeconds};

#[async_trait]
impl OverrideStore for SqlStore {
    async fn put_override(
        &self,
        asked: &NewOverride,
        audit: &AuditRecord,
    ) -> Result<(OverrideRecord, bool), StoreError> {
        let mut transaction = self.begin().await?;
        // Of two equal requests at the same time, the second gets the override of the first.
        lock_clusters(&mut transaction, std::iter::once(&asked.what.pool.cluster)).await?;
        if let Some(equal) = equal(&mut transaction, asked).await? {
            return Ok((equal, false));
        }
        let what = &asked.what;
        let row = sqlx::query_as::<_, OverrideRow>(
            "INSERT INTO overrides (cluster, gpu_model, kind, gpus_milli, from_at, to_at, reason, created_by, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             RETURNING id, cluster, gpu_model, kind, gpus_milli, from_at, to_at, reason, created_by, created_at,
             withdrawn_by, withdrawn_at",
        )
        .bind(what.pool.cluster.as_str())
        .bind(what.pool.gpu_model.as_str())
        .bind(what.kind.as_str())
        .bind(milli(what.gpus))
        .bind(Stamp(what.from))
        .bind(Stamp(what.to))
        .bind(&asked.reason)
        .bind(&asked.by)
        .bind(Stamp(asked.at))
        .fetch_one(&mut *transaction)
        .await
        .map_err(unless_missing("cluster", &what.pool.cluster))?;
        let record = row.try_into()?;
        insert_audit(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok((record, true))
    }

    async fn override_record(&self, id: OverrideId) -> Result<OverrideRecord, StoreError> {
        let query = sqlx::query_as::<_, OverrideRow>(
            "SELECT id, cluster, gpu_model, kind, gpus_milli, from_at, to_at, reason, created_by, created_at,
             withdrawn_by, withdrawn_at
             FROM overrides WHERE id = $1",
        );
        let row = query.bind(signed("number of an override", id.0)?).fetch_optional(self.readers()).await?;
        row.ok_or_else(|| not_found(id))?.try_into()
    }

    async fn withdraw_override(&self, id: OverrideId, at: UnixSeconds, by: &str) -> Result<OverrideRecord, StoreError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query_as::<_, OverrideRow>(
            "UPDATE overrides SET withdrawn_at = coalesce(withdrawn_at, $2), withdrawn_by = coalesce(withdrawn_by, $3)
             WHERE id = $1
             RETURNING id, cluster, gpu_model, kind, gpus_milli, from_at, to_at, reason, created_by, created_at,
             withdrawn_by, withdrawn_at",
        )
        .bind(signed("number of an override", id.0)?)
        .bind(Stamp(at))
        .bind(by)
        .fetch_optional(&mut *transaction)
        .await?;
        let record = row.ok_or_else(|| not_found(id))?.try_into()?;
        transaction.commit().await?;
        Ok(record)
    }

    async fn overrides(
        &self,
        of: Option<&PoolId>,
        after: UnixSeconds,
        withdrawn: bool,
    ) -> Result<Vec<OverrideRecord>, StoreError> {
        let query = sqlx::query_as::<_, OverrideRow>(
            "SELECT id, cluster, gpu_model, kind, gpus_milli, from_at, to_at, reason, created_by, created_at,
             withdrawn_by, withdrawn_at
             FROM overrides
             WHERE to_at > $1 AND ($2 OR withdrawn_at IS NULL) AND (CAST($3 AS text) IS NULL OR (cluster = $3 AND gpu_model = $4))
             ORDER BY id",
        );
        let (cluster, gpu_model) = (of.map(|of| of.cluster.as_str()), of.map(|of| of.gpu_model.as_str()));
        all(query.bind(Stamp(after)).bind(withdrawn).bind(cluster).bind(gpu_model).fetch_all(self.readers()).await?)
    }
}

/// An override of an earlier, equal request that is not withdrawn.
async fn equal(connection: &mut SqlConnection, asked: &NewOverride) -> Result<Option<OverrideRecord>, StoreError> {
    let what = &asked.what;
    sqlx::query_as::<_, OverrideRow>(
        "SELECT id, cluster, gpu_model, kind, gpus_milli, from_at, to_at, reason, created_by, created_at,
             withdrawn_by, withdrawn_at
             FROM overrides
         WHERE cluster = $1 AND gpu_model = $2 AND kind = $3 AND gpus_milli = $4 AND from_at = $5 AND to_at = $6
             AND reason = $7 AND created_by = $8 AND withdrawn_at IS NULL
         ORDER BY id LIMIT 1",
    )
    .bind(what.pool.cluster.as_str())
    .bind(what.pool.gpu_model.as_str())
    .bind(what.kind.as_str())
    .bind(milli(what.gpus))
    .bind(Stamp(what.from))
    .bind(Stamp(what.to))
    .bind(&asked.reason)
    .bind(&asked.by)
    .fetch_optional(connection)
    .await?
    .map(TryInto::try_into)
    .transpose()
}
