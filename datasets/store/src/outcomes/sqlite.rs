use super::{
    EndedPeriod, EtaOutcomes, OutcomeCount, OutcomeRow, OutcomeStore, PeriodRow, Recorded, counts, counts_by_day,
    eta_outcomes, first_of_each, judge,
};
use crate::StoreError;
use crate::error::unless_missing;
use crate::sqlite::SqliteStore;
use crate::stored::{Stamp, all, milli};
use async_trait::async_trait;
use sqlx::SqliteConnection;
use std::collections::BTreeMap;
use vocab::{EventId, NodeId, Outcome, OutcomeKind, PoolId, TaskId, UnixSeconds};

#[async_trait]
impl OutcomeStore for SqliteStore {
    async fn record_outcomes(
        &self,
        outcomes: &[Outcome],
        received_at: UnixSeconds,
    ) -> Result<Vec<Recorded>, StoreError> {
        let mut transaction = self.begin().await?;
        let mut stored = BTreeMap::new();
        for (event_id, outcome) in first_of_each(outcomes) {
            let is_new = insert(&mut transaction, outcome, received_at).await?;
            let known = if is_new { outcome.clone() } else { read_back(&mut transaction, event_id).await? };
            stored.insert(event_id.clone(), (known, is_new));
        }
        transaction.commit().await?;
        Ok(judge(outcomes, stored))
    }

    async fn eta_outcomes(&self, pool: &PoolId, since: UnixSeconds, at_least: u64) -> Result<EtaOutcomes, StoreError> {
        let unspent = sqlx::query_as(
            "SELECT id, kind, guarantee_hours, ended_at, began_at, gpus_milli FROM outcomes
             WHERE cluster = $1 AND gpu_model = $2 AND spent_by IS NULL AND kind IN ('kept', 'broken')
                 AND ended_at >= $3
             UNION
             SELECT id, kind, guarantee_hours, ended_at, began_at, gpus_milli FROM (
                 SELECT id, kind, guarantee_hours, ended_at, began_at, gpus_milli FROM outcomes
                 WHERE cluster = $1 AND gpu_model = $2 AND spent_by IS NULL AND kind IN ('kept', 'broken')
                 ORDER BY ended_at DESC, id DESC LIMIT $4
             ) AS newest
             ORDER BY ended_at DESC, id DESC",
        );
        let newest = sqlx::query_scalar(
            "SELECT max(ended_at) FROM outcomes WHERE cluster = $1 AND gpu_model = $2 AND kind IN ('kept', 'broken')",
        );
        let (cluster, gpu_model) = (pool.cluster.as_str(), pool.gpu_model.as_str());
        let at_least = i64::try_from(at_least).unwrap_or(i64::MAX);
        let unspent = unspent.bind(cluster).bind(gpu_model).bind(Stamp(since)).bind(at_least);
        let unspent = unspent.fetch_all(&self.readers).await?;
        eta_outcomes(&unspent, newest.bind(cluster).bind(gpu_model).fetch_one(&self.readers).await?)
    }

    async fn newest_outcome(&self, pool: &PoolId) -> Result<Option<Outcome>, StoreError> {
        sqlx::query_as::<_, OutcomeRow>(
            "SELECT * FROM outcomes WHERE cluster = $1 AND gpu_model = $2 ORDER BY ended_at DESC, id DESC LIMIT 1",
        )
        .bind(pool.cluster.as_str())
        .bind(pool.gpu_model.as_str())
        .fetch_optional(&self.readers)
        .await?
        .map(TryInto::try_into)
        .transpose()
    }

    async fn count_outcomes(
        &self,
        pool: &PoolId,
        since: UnixSeconds,
    ) -> Result<BTreeMap<OutcomeKind, u64>, StoreError> {
        let query = sqlx::query_as(
            "SELECT kind, count(*) FROM outcomes
             WHERE cluster = $1 AND gpu_model = $2 AND ended_at >= $3 GROUP BY kind",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(Stamp(since));
        counts(&query.fetch_all(&self.readers).await?)
    }

    async fn outcomes_by_day(&self, pool: &PoolId, since: UnixSeconds) -> Result<Vec<OutcomeCount>, StoreError> {
        let query = sqlx::query_as(
            "SELECT ended_at / 86400 AS day, guarantee_hours, kind, count(*) FROM outcomes
             WHERE cluster = $1 AND gpu_model = $2 AND ended_at >= $3 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(Stamp(since));
        counts_by_day(&query.fetch_all(&self.readers).await?)
    }

    async fn ended_periods(
        &self,
        pool: &PoolId,
        since: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<EndedPeriod>, StoreError> {
        let query = sqlx::query_as::<_, PeriodRow>(
            "SELECT kind, guarantee_hours, ended_at, began_at, gpus_milli FROM outcomes
             WHERE cluster = $1 AND gpu_model = $2 AND ended_at >= $3 ORDER BY ended_at DESC, id DESC LIMIT $4",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(Stamp(since));
        all(query.bind(i64::from(limit)).fetch_all(&self.readers).await?)
    }

    async fn outcomes_of_kind(
        &self,
        pool: &PoolId,
        kind: OutcomeKind,
        since: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<Outcome>, StoreError> {
        let query = sqlx::query_as::<_, OutcomeRow>(
            "SELECT * FROM outcomes WHERE cluster = $1 AND gpu_model = $2 AND kind = $3 AND ended_at >= $4
             ORDER BY ended_at DESC, id DESC LIMIT $5",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(kind.as_str());
        all(query.bind(Stamp(since)).bind(i64::from(limit)).fetch_all(&self.readers).await?)
    }
}

/// Whether the event was unknown.
pub(crate) async fn insert(
    connection: &mut SqliteConnection,
    outcome: &Outcome,
    received_at: UnixSeconds,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO outcomes
             (event_id, cluster, gpu_model, guarantee_hours, kind, ended_at, began_at, gpus_milli, task, node, received_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (event_id) DO NOTHING",
    )
    .bind(outcome.event_id.as_str())
    .bind(outcome.pool.cluster.as_str())
    .bind(outcome.pool.gpu_model.as_str())
    .bind(i64::from(outcome.guarantee_hours.get()))
    .bind(outcome.kind.as_str())
    .bind(Stamp(outcome.ended_at))
    .bind(outcome.began_at.map(Stamp))
    .bind(outcome.gpus.map(milli))
    .bind(outcome.task.as_ref().map(TaskId::as_str))
    .bind(outcome.node.as_ref().map(NodeId::as_str))
    .bind(Stamp(received_at))
    .execute(connection)
    .await
    .map_err(unless_missing("cluster", &outcome.pool.cluster))?;
    Ok(done.rows_affected() == 1)
}

async fn read_back(connection: &mut SqliteConnection, event_id: &EventId) -> Result<Outcome, StoreError> {
    let query = sqlx::query_as::<_, OutcomeRow>("SELECT * FROM outcomes WHERE event_id = $1");
    query.bind(event_id.as_str()).fetch_one(connection).await?.try_into()
}
