use super::dialect::clusters::require_clusters;
use super::dialect::lock_promotions;
use super::{SqlConnection, SqlStore};
use crate::StoreError;
use crate::error::unless_missing;
use crate::runs::{
    NewRun, NextPromotion, Promotion, PromotionRow, RunId, RunRecord, RunRow, RunStore, nothing_before, verified,
};
use crate::stored::{Stamp, all, hash, signed};
use async_trait::async_trait;
use vocab::{ClusterName, UnixSeconds};

#[async_trait]
impl RunStore for SqlStore {
    async fn insert_run(&self, run: &NewRun) -> Result<RunId, StoreError> {
        let mut transaction = self.begin().await?;
        let id = insert_facts(&mut transaction, run).await?;
        sqlx::query("INSERT INTO checkpoints (run_id, sha256, bytes) VALUES ($1, $2, $3)")
            .bind(id)
            .bind(&hash(&run.checkpoint)[..])
            .bind(&run.checkpoint)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(RunId::new(id))
    }

    async fn run(&self, id: RunId) -> Result<RunRecord, StoreError> {
        record(&mut *self.readers().acquire().await?, id).await
    }

    async fn runs(&self, cluster: Option<&ClusterName>) -> Result<Vec<RunRecord>, StoreError> {
        let query = sqlx::query_as::<_, RunRow>(
            "SELECT id, cluster, model, horizon_hours, lookback_hours, seed, data_from, data_until, data_sha256,
             series, aggregation, parameters_json, scores_json, code_version, created_at, train_ms,
             sha256, CAST(length(bytes) AS bigint) AS checkpoint_bytes
             FROM runs JOIN checkpoints ON run_id = id
             WHERE $1 IS NULL OR cluster = $1 ORDER BY id DESC",
        );
        all(query.bind(cluster.map(ClusterName::as_str)).fetch_all(self.readers()).await?)
    }

    async fn checkpoint(&self, id: RunId) -> Result<Vec<u8>, StoreError> {
        let query = sqlx::query_as("SELECT sha256, bytes FROM checkpoints WHERE run_id = $1");
        verified(id, query.bind(id.get()).fetch_optional(self.readers()).await?)
    }

    async fn promote(&self, id: RunId, at: UnixSeconds, by: &str) -> Result<RunRecord, StoreError> {
        let mut transaction = self.begin().await?;
        let run = record(&mut transaction, id).await?;
        let cluster = &run.facts.cluster;
        lock_promotions(&mut transaction).await?;
        let current = current(&mut transaction, cluster).await?;
        if current.as_ref().is_none_or(|current| current.run_id != id.get()) {
            let previous = current.map(|current| current.id);
            let next = NextPromotion { cluster, run_id: id, at, by, rolled_back: false, previous };
            append(&mut transaction, &next).await?;
        }
        transaction.commit().await?;
        Ok(run)
    }

    async fn promote_first(&self, id: RunId, at: UnixSeconds, by: &str) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let run = record(&mut transaction, id).await?;
        let cluster = &run.facts.cluster;
        lock_promotions(&mut transaction).await?;
        if current(&mut transaction, cluster).await?.is_some() {
            return Ok(false);
        }
        let first = NextPromotion { cluster, run_id: id, at, by, rolled_back: false, previous: None };
        append(&mut transaction, &first).await?;
        transaction.commit().await?;
        Ok(true)
    }

    async fn rollback(&self, cluster: &ClusterName, at: UnixSeconds, by: &str) -> Result<RunRecord, StoreError> {
        let mut transaction = self.begin().await?;
        require_clusters(&mut transaction, [cluster].into_iter()).await?;
        lock_promotions(&mut transaction).await?;
        let Some(current) = current(&mut transaction, cluster).await? else { return Err(nothing_before(cluster)) };
        let Some(previous) = current.previous else { return Err(nothing_before(cluster)) };
        let (run_id, previous): (i64, Option<i64>) =
            sqlx::query_as("SELECT run_id, previous FROM promotions WHERE id = $1")
                .bind(previous)
                .fetch_one(&mut *transaction)
                .await?;
        let run_id = RunId::new(run_id);
        append(&mut transaction, &NextPromotion { cluster, run_id, at, by, rolled_back: true, previous }).await?;
        let run = record(&mut transaction, run_id).await?;
        transaction.commit().await?;
        Ok(run)
    }

    async fn promoted(&self, cluster: &ClusterName) -> Result<Option<RunRecord>, StoreError> {
        sqlx::query_as::<_, RunRow>(
            "SELECT id, cluster, model, horizon_hours, lookback_hours, seed, data_from, data_until, data_sha256,
             series, aggregation, parameters_json, scores_json, code_version, created_at, train_ms,
             sha256, CAST(length(bytes) AS bigint) AS checkpoint_bytes
             FROM runs JOIN checkpoints ON run_id = id
             WHERE id = (SELECT run_id FROM promotions WHERE cluster = $1 ORDER BY id DESC LIMIT 1)",
        )
        .bind(cluster.as_str())
        .fetch_optional(self.readers())
        .await?
        .map(TryInto::try_into)
        .transpose()
    }

    async fn promotions(&self, cluster: &ClusterName) -> Result<Vec<Promotion>, StoreError> {
        let query = sqlx::query_as::<_, PromotionRow>(
            "SELECT id, run_id, promoted_at, promoted_by, rolled_back, previous
             FROM promotions WHERE cluster = $1 ORDER BY id DESC",
        );
        let rows = query.bind(cluster.as_str()).fetch_all(self.readers()).await?;
        Ok(rows.into_iter().map(Promotion::from).collect())
    }
}

async fn insert_facts(connection: &mut SqlConnection, run: &NewRun) -> Result<i64, StoreError> {
    let facts = &run.facts;
    let query = sqlx::query_scalar(
        "INSERT INTO runs (cluster, model, horizon_hours, lookback_hours, seed, data_from, data_until, data_sha256,
             series, aggregation, parameters_json, scores_json, code_version, created_at, train_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING id",
    )
    .bind(facts.cluster.as_str())
    .bind(&facts.model)
    .bind(i64::from(facts.horizon.get()))
    .bind(i64::from(facts.lookback_hours))
    .bind(facts.seed.to_string())
    .bind(Stamp::from(facts.data_from))
    .bind(Stamp::from(facts.data_until))
    .bind(&facts.data_sha256[..])
    .bind(i64::from(facts.series))
    .bind(&facts.aggregation)
    .bind(&facts.parameters_json)
    .bind(&facts.scores_json)
    .bind(&facts.code_version)
    .bind(Stamp(facts.created_at))
    .bind(signed("training time", facts.train_ms)?);
    query.fetch_one(connection).await.map_err(unless_missing("cluster", &facts.cluster))
}

async fn record(connection: &mut SqlConnection, id: RunId) -> Result<RunRecord, StoreError> {
    sqlx::query_as::<_, RunRow>(
        "SELECT id, cluster, model, horizon_hours, lookback_hours, seed, data_from, data_until, data_sha256,
         series, aggregation, parameters_json, scores_json, code_version, created_at, train_ms,
         sha256, CAST(length(bytes) AS bigint) AS checkpoint_bytes
         FROM runs JOIN checkpoints ON run_id = id WHERE id = $1",
    )
    .bind(id.get())
    .fetch_optional(connection)
    .await?
    .ok_or_else(|| StoreError::not_found("run", &id))?
    .try_into()
}

async fn current(connection: &mut SqlConnection, cluster: &ClusterName) -> Result<Option<PromotionRow>, StoreError> {
    let query = sqlx::query_as(
        "SELECT id, run_id, promoted_at, promoted_by, rolled_back, previous
             FROM promotions WHERE cluster = $1 ORDER BY id DESC LIMIT 1",
    );
    Ok(query.bind(cluster.as_str()).fetch_optional(connection).await?)
}

async fn append(connection: &mut SqlConnection, next: &NextPromotion<'_>) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO promotions (cluster, run_id, promoted_at, promoted_by, rolled_back, previous)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(next.cluster.as_str())
    .bind(next.run_id.get())
    .bind(Stamp(next.at))
    .bind(next.by)
    .bind(next.rolled_back)
    .bind(next.previous)
    .execute(connection)
    .await?;
    Ok(())
}
