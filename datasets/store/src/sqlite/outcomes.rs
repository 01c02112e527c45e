use crate::StoreError;
use crate::error::unless_missing;
use crate::outcomes::{OutcomeRow, first_of_each};
use crate::stored::{Stamp, milli};
use sqlx::SqliteConnection;
use std::collections::BTreeMap;
use vocab::{EventId, NodeId, Outcome, TaskId, UnixSeconds};

/// An outcome before its correction, which no other transaction changes until this one ends.
pub(crate) const LOCK_OUTCOME: &str =
    "SELECT cluster, gpu_model, kind, spent_by IS NOT NULL AS spent FROM outcomes WHERE event_id = $1";

/// Outcomes of a pool by day since 1970, guarantee and kind.
pub(crate) const BY_DAY: &str = "SELECT ended_at / 86400 AS day, guarantee_hours, kind, count(*) FROM outcomes
     WHERE cluster = $1 AND gpu_model = $2 AND ended_at >= $3 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";

/// Inserts the outcomes whose event is unknown. Returns the stored outcome of each event, and whether it is new.
pub(crate) async fn record(
    connection: &mut SqliteConnection,
    outcomes: &[Outcome],
    received_at: UnixSeconds,
) -> Result<BTreeMap<EventId, (Outcome, bool)>, StoreError> {
    let mut stored = BTreeMap::new();
    for (event_id, outcome) in first_of_each(outcomes) {
        let is_new = insert_one(&mut *connection, outcome, received_at).await?;
        let known = if is_new { outcome.clone() } else { read_back(&mut *connection, event_id).await? };
        stored.insert(event_id.clone(), (known, is_new));
    }
    Ok(stored)
}

/// Inserts the outcomes whose event is unknown.
pub(crate) async fn insert(
    connection: &mut SqliteConnection,
    outcomes: &[Outcome],
    received_at: UnixSeconds,
) -> Result<(), StoreError> {
    for outcome in outcomes {
        insert_one(&mut *connection, outcome, received_at).await?;
    }
    Ok(())
}

/// Inserts an outcome if its event is unknown. Returns whether it did.
async fn insert_one(
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
    let query = sqlx::query_as::<_, OutcomeRow>(
        "SELECT event_id, cluster, gpu_model, guarantee_hours, kind, ended_at, began_at, gpus_milli, task,
             node
             FROM outcomes WHERE event_id = $1",
    );
    query.bind(event_id.as_str()).fetch_one(connection).await?.try_into()
}
