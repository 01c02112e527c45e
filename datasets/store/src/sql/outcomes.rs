use super::SqlStore;
use super::dialect::outcomes::{BY_DAY, record};
use crate::StoreError;
use crate::outcomes::{
    EndedPeriod, EtaOutcomes, OutcomeCount, OutcomeRow, OutcomeStore, PeriodRow, Recorded, counts, counts_by_day,
    eta_outcomes, judge,
};
use crate::stored::{Stamp, all};
use async_trait::async_trait;
use std::collections::BTreeMap;
use vocab::{Outcome, OutcomeKind, PoolId, UnixSeconds};

#[async_trait]
impl OutcomeStore for SqlStore {
    async fn record_outcomes(
        &self,
        outcomes: &[Outcome],
        received_at: UnixSeconds,
    ) -> Result<Vec<Recorded>, StoreError> {
        let mut transaction = self.begin().await?;
        let stored = record(&mut transaction, outcomes, received_at).await?;
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
        let unspent = unspent.fetch_all(self.readers()).await?;
        eta_outcomes(&unspent, newest.bind(cluster).bind(gpu_model).fetch_one(self.readers()).await?)
    }

    async fn newest_outcome(&self, pool: &PoolId) -> Result<Option<Outcome>, StoreError> {
        sqlx::query_as::<_, OutcomeRow>(
            "SELECT event_id, cluster, gpu_model, guarantee_hours, kind, ended_at, began_at, gpus_milli, task,
             node
             FROM outcomes WHERE cluster = $1 AND gpu_model = $2 ORDER BY ended_at DESC, id DESC LIMIT 1",
        )
        .bind(pool.cluster.as_str())
        .bind(pool.gpu_model.as_str())
        .fetch_optional(self.readers())
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
        counts(&query.fetch_all(self.readers()).await?)
    }

    async fn outcomes_by_day(&self, pool: &PoolId, since: UnixSeconds) -> Result<Vec<OutcomeCount>, StoreError> {
        let query = sqlx::query_as(BY_DAY);
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(Stamp(since));
        counts_by_day(&query.fetch_all(self.readers()).await?)
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
        all(query.bind(i64::from(limit)).fetch_all(self.readers()).await?)
    }

    async fn outcomes_of_kind(
        &self,
        pool: &PoolId,
        kind: OutcomeKind,
        since: UnixSeconds,
        limit: u32,
    ) -> Result<Vec<Outcome>, StoreError> {
        let query = sqlx::query_as::<_, OutcomeRow>(
            "SELECT event_id, cluster, gpu_model, guarantee_hours, kind, ended_at, began_at, gpus_milli, task,
             node
             FROM outcomes WHERE cluster = $1 AND gpu_model = $2 AND kind = $3 AND ended_at >= $4
             ORDER BY ended_at DESC, id DESC LIMIT $5",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(kind.as_str());
        all(query.bind(Stamp(since)).bind(i64::from(limit)).fetch_all(self.readers()).await?)
    }
}
