use super::clusters::require_clusters;
use crate::StoreError;
use crate::outcomes::{OutcomeRow, first_of_each};
use crate::stored::{Stamp, milli};
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{EventId, NodeId, Outcome, TaskId, UnixSeconds};

/// An outcome before its correction, which no other transaction changes until this one ends.
pub(crate) const LOCK_OUTCOME: &str =
    "SELECT cluster, gpu_model, kind, spent_by IS NOT NULL AS spent FROM outcomes WHERE event_id = $1 FOR UPDATE";

/// Outcomes of a pool by day since 1970, guarantee and kind.
pub(crate) const BY_DAY: &str =
    "SELECT (floor(extract(epoch FROM ended_at) / 86400))::bigint AS day, guarantee_hours, kind, count(*) FROM outcomes
     WHERE cluster = $1 AND gpu_model = $2 AND ended_at >= $3 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";

/// Inserts the outcomes whose event is unknown. Returns the stored outcome of each event, and whether it is new.
pub(crate) async fn record(
    connection: &mut PgConnection,
    outcomes: &[Outcome],
    received_at: UnixSeconds,
) -> Result<BTreeMap<EventId, (Outcome, bool)>, StoreError> {
    require_clusters(&mut *connection, outcomes.iter().map(|outcome| &outcome.pool.cluster)).await?;
    let first: Vec<&Outcome> = first_of_each(outcomes).into_values().collect();
    let new = insert_new(&mut *connection, &first, received_at).await?;
    // A statement of its own: it sees what another batch has committed while the insert waited for it.
    read_back(connection, &first, &new).await
}

/// Inserts the outcomes whose event is unknown.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    outcomes: &[Outcome],
    received_at: UnixSeconds,
) -> Result<(), StoreError> {
    if outcomes.is_empty() {
        return Ok(());
    }
    insert_new(connection, &outcomes.iter().collect::<Vec<_>>(), received_at).await.map(drop)
}

/// Inserts the outcomes whose event is unknown. Returns their event ids.
async fn insert_new(
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
    let query = sqlx::query_as::<_, OutcomeRow>(
        "SELECT event_id, cluster, gpu_model, guarantee_hours, kind, ended_at, began_at, gpus_milli, task,
             node
             FROM outcomes WHERE event_id = ANY ($1)",
    )
    .bind(ids);
    let mut stored = BTreeMap::new();
    for row in query.fetch_all(connection).await? {
        let is_new = new.contains(&row.event_id);
        let outcome = Outcome::try_from(row)?;
        stored.insert(outcome.event_id.clone(), (outcome, is_new));
    }
    Ok(stored)
}
