use super::{
    EndedPeriod, EtaOutcomes, OutcomeCount, OutcomeRow, OutcomeStore, PeriodRow, Recorded, counts, counts_by_day,
    eta_outcomes, first_of_each, judge,
};
use crate::StoreError;
use crate::clusters::postgres::require_clusters;
use crate::postgres::PostgresStore;
use crate::stored::{Stamp, all, milli};
use async_trait::async_trait;
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{EventId, NodeId, Outcome, OutcomeKind, PoolId, TaskId, UnixSeconds};

#[async_trait]
impl OutcomeStore for PostgresStore {
    async fn record_outcomes(
        &self,
        outcomes: &[Outcome],
        received_at: UnixSeconds,
    ) -> Result<Vec<Recorded>, StoreError> {
        let mut transaction = self.begin().await?;
        require_clusters(&mut transaction, outcomes.iter().map(|outcome| &outcome.pool.cluster)).await?;
        let first: Vec<&Outcome> = first_of_each(outcomes).into_values().collect();
        let new = insert(&mut transaction, &first, received_at).await?;
        // A statement of its own: it sees what another batch has committed while the insert waited for it.
        let stored = read_back(&mut transaction, &first, &new).await?;
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
        let unspent = unspent.fetch_all(&self.pool).await?;
        eta_outcomes(&unspent, newest.bind(cluster).bind(gpu_model).fetch_one(&self.pool).await?)
    }

    async fn newest_outcome(&self, pool: &PoolId) -> Result<Option<Outcome>, StoreError> {
        sqlx::query_as::<_, OutcomeRow>(
            "SELECT * FROM outcomes WHERE cluster = $1 AND gpu_model = $2 ORDER BY ended_at DESC, id DESC LIMIT 1",
        )
        .bind(pool.cluster.as_str())
        .bind(pool.gpu_model.as_str())
        .fetch_optional(&self.pool)
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
        counts(&query.fetch_all(&self.pool).await?)
    }

    async fn outcomes_by_day(&self, pool: &PoolId, since: UnixSeconds) -> Result<Vec<OutcomeCount>, StoreError> {
        let query = sqlx::query_as(
            "SELECT (floor(extract(epoch FROM ended_at) / 86400))::bigint AS day, guarantee_hours, kind, count(*) FROM outcomes
             WHERE cluster = $1 AND gpu_model = $2 AND ended_at >= $3 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(Stamp(since));
        counts_by_day(&query.fetch_all(&self.pool).await?)
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
        all(query.bind(i64::from(limit)).fetch_all(&self.pool).await?)
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
        all(query.bind(Stamp(since)).bind(i64::from(limit)).fetch_all(&self.pool).await?)
    }
}

/// Inserts those whose event is unknown, and answers their ids.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    outcomes: &[&Outcome],
    received_at: UnixSeconds,
) -> Result<BTreeSet<String>, StoreError> {
    let texts = |text: fn(&Outcome) -> &str| outcomes.iter().map(|outcome| text(outcome)).collect::<Vec<_>>();
    let options = |text: fn(&Outcome) -> Option<&str>| outcomes.iter().map(|outcome| text(outcome)).collect::<Vec<_>>();
    let query = sqlx::query_scalar(
        "INSERT INTO outcomes
             (event_id, cluster, gpu_model, guarantee_hours, kind, ended_at, began_at, gpus_milli, task, node, received_at)
         SELECT new.*, $11
         FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::timestamptz[], $7::timestamptz[],
             $8::bigint[], $9::text[], $10::text[]) AS new
         ON CONFLICT (event_id) DO NOTHING RETURNING event_id",
    )
    .bind(texts(|outcome| outcome.event_id.as_str()))
    .bind(texts(|outcome| outcome.pool.cluster.as_str()))
    .bind(texts(|outcome| outcome.pool.gpu_model.as_str()))
    .bind(outcomes.iter().map(|outcome| i64::from(outcome.guarantee_hours.get())).collect::<Vec<_>>())
    .bind(texts(|outcome| outcome.kind.as_str()))
    .bind(outcomes.iter().map(|outcome| Stamp(outcome.ended_at)).collect::<Vec<_>>())
    .bind(outcomes.iter().map(|outcome| outcome.began_at.map(Stamp)).collect::<Vec<_>>())
    .bind(outcomes.iter().map(|outcome| outcome.gpus.map(milli)).collect::<Vec<_>>())
    .bind(options(|outcome| outcome.task.as_ref().map(TaskId::as_str)))
    .bind(options(|outcome| outcome.node.as_ref().map(NodeId::as_str)))
    .bind(Stamp(received_at));
    Ok(query.fetch_all(connection).await?.into_iter().collect())
}

async fn read_back(
    connection: &mut PgConnection,
    outcomes: &[&Outcome],
    new: &BTreeSet<String>,
) -> Result<BTreeMap<EventId, (Outcome, bool)>, StoreError> {
    let ids: Vec<&str> = outcomes.iter().map(|outcome| outcome.event_id.as_str()).collect();
    let query = sqlx::query_as::<_, OutcomeRow>("SELECT * FROM outcomes WHERE event_id = ANY ($1)").bind(ids);
    let mut stored = BTreeMap::new();
    for row in query.fetch_all(connection).await? {
        let is_new = new.contains(&row.event_id);
        let outcome = Outcome::try_from(row)?;
        stored.insert(outcome.event_id.clone(), (outcome, is_new));
    }
    Ok(stored)
}
