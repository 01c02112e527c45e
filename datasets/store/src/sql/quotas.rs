use super::learned::save;
use super::{SqlConnection, SqlStore};
use crate::error::unless_missing;
use crate::quotas::{BASES, BasisRow, LATEST, QuotaBasis, QuotaRow, QuotaStore, StoredQuota, in_order, kept, owners};
use crate::stored::{Stamp, all, milli};
use crate::{NewLearned, RunId, StoreError};
use async_trait::async_trait;
use vocab::{ClusterName, HorizonHours, PoolId, UnixSeconds};

#[async_trait]
impl QuotaStore for SqlStore {
    async fn insert_quotas(&self, quotas: &[StoredQuota], learned: &[NewLearned]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for quota in in_order(quotas) {
            let id = insert(&mut transaction, quota).await?;
            point_to_newest(&mut transaction, quota, id).await?;
        }
        for one in learned {
            save(&mut transaction, one).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn latest_quotas(&self, cluster: Option<&ClusterName>) -> Result<Vec<StoredQuota>, StoreError> {
        let query = sqlx::query_as::<_, QuotaRow>(LATEST);
        all(query.bind(cluster.map(ClusterName::as_str)).fetch_all(self.readers()).await?)
    }

    async fn newest_quota(&self) -> Result<Option<i64>, StoreError> {
        Ok(sqlx::query_scalar("SELECT max(quota_id) FROM newest_quotas").fetch_one(self.readers()).await?)
    }

    async fn quota_bases(&self) -> Result<Vec<QuotaBasis>, StoreError> {
        all(sqlx::query_as::<_, BasisRow>(BASES).fetch_all(self.readers()).await?)
    }

    async fn quota_history(
        &self,
        pool: &PoolId,
        hours: HorizonHours,
        from: UnixSeconds,
        to: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<StoredQuota>, StoreError> {
        let query = sqlx::query_as::<_, QuotaRow>(
            "SELECT cluster, gpu_model, hours, computed_at, quota_milli, run_id, settings_version, answer_json,
             explanation_json
             FROM quotas
             WHERE cluster = $1 AND gpu_model = $2 AND hours = $3 AND computed_at >= $4 AND computed_at < $5
             ORDER BY computed_at DESC, id DESC LIMIT $6",
        )
        .bind(pool.cluster.as_str())
        .bind(pool.gpu_model.as_str())
        .bind(i64::from(hours.get()))
        .bind(Stamp(from))
        .bind(Stamp(to))
        .bind(i64::from(limit));
        all(query.fetch_all(self.readers()).await?)
    }

    async fn first_quota_at(&self, pool: &PoolId, hours: HorizonHours) -> Result<Option<UnixSeconds>, StoreError> {
        let query = sqlx::query_scalar::<_, Option<Stamp>>(
            "SELECT min(computed_at) FROM quotas WHERE cluster = $1 AND gpu_model = $2 AND hours = $3",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(i64::from(hours.get()));
        Ok(query.fetch_one(self.readers()).await?.map(|first| first.0))
    }

    async fn delete_quotas_before(&self, before: UnixSeconds) -> Result<u64, StoreError> {
        let statement = "DELETE FROM quotas WHERE id IN (
                 SELECT id FROM quotas
                 WHERE computed_at < $1 AND id NOT IN (SELECT quota_id FROM newest_quotas)
                     AND EXISTS (
                         SELECT 1 FROM quotas AS earlier
                         WHERE earlier.cluster = quotas.cluster AND earlier.gpu_model = quotas.gpu_model
                             AND earlier.hours = quotas.hours AND earlier.computed_at < quotas.computed_at
                     )
                 ORDER BY id LIMIT $2
             )";
        self.delete_in_batches(statement, before).await
    }
}

async fn insert(connection: &mut SqlConnection, quota: &StoredQuota) -> Result<i64, StoreError> {
    let (answer, explanation) = kept(quota);
    // A writer under a lease has proved it in this transaction.
    sqlx::query_scalar(
        "INSERT INTO quotas
             (cluster, gpu_model, hours, computed_at, quota_milli, run_id, answer_json, explanation_json, settings_version,
              lease_epoch)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, (SELECT epoch FROM leases WHERE cluster = $1)) RETURNING id",
    )
    .bind(quota.pool.cluster.as_str())
    .bind(quota.pool.gpu_model.as_str())
    .bind(i64::from(quota.hours.get()))
    .bind(Stamp(quota.computed_at))
    .bind(milli(quota.quota))
    .bind(quota.run_id.map(RunId::get))
    .bind(answer)
    .bind(explanation)
    .bind(quota.settings_version)
    .fetch_one(connection)
    .await
    .map_err(unless_missing("cluster", owners(quota)))
}

/// Replaces the last quota of its pool and hours.
async fn point_to_newest(connection: &mut SqlConnection, quota: &StoredQuota, id: i64) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO newest_quotas
             (cluster, gpu_model, hours, quota_id, whole_id, answer_json, explanation_json)
         VALUES ($1, $2, $3, $4, $4, $5, $6)
         ON CONFLICT (cluster, gpu_model, hours) DO UPDATE
         SET quota_id = excluded.quota_id, whole_id = excluded.whole_id, answer_json = excluded.answer_json,
             explanation_json = excluded.explanation_json",
    )
    .bind(quota.pool.cluster.as_str())
    .bind(quota.pool.gpu_model.as_str())
    .bind(i64::from(quota.hours.get()))
    .bind(id)
    .bind(&quota.answer_json)
    .bind(&quota.explanation_json)
    .execute(connection)
    .await?;
    Ok(())
}
