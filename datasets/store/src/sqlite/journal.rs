use super::SqliteStore;
use crate::StoreError;
use crate::journal::{JournalEntry, PlacedPoolId, TaskRecord, TaskRow, numbers};
use crate::stored::{Stamp, all, milli, signed};
use sqlx::SqliteConnection;
use vocab::TaskId;

/// Tasks of a pool, by id.
pub(crate) async fn task_records(
    store: &SqliteStore,
    id: PlacedPoolId,
    tasks: &[TaskId],
) -> Result<Vec<TaskRecord>, StoreError> {
    let mut found: Vec<TaskRow> = Vec::with_capacity(tasks.len());
    let mut snapshot = store.begin_reading().await?;
    for task in tasks {
        let query = sqlx::query_as::<_, TaskRow>(
            "SELECT id, organization, class, gpus_per_pod_milli, pods, cpu_milli, memory_mib, guarantee_hours,
             submitted, status, updated, detail_json, affinity, elastic_json
             FROM tasks WHERE pool_id = $1 AND id = $2",
        );
        found.extend(query.bind(id.0).bind(task.as_str()).fetch_optional(&mut *snapshot).await?);
    }
    found.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    all(found)
}

/// Appends entries to the journal of a pool.
pub(crate) async fn insert_entries(
    connection: &mut SqliteConnection,
    id: PlacedPoolId,
    entries: &[JournalEntry],
    epoch: Option<i64>,
) -> Result<(), StoreError> {
    for entry in entries {
        insert_entry(&mut *connection, id, entry, epoch).await?;
    }
    Ok(())
}

/// Inserts or replaces tasks of a pool.
pub(crate) async fn put_tasks(
    connection: &mut SqliteConnection,
    id: PlacedPoolId,
    tasks: &[TaskRecord],
) -> Result<(), StoreError> {
    for task in tasks {
        put_task(&mut *connection, id, task).await?;
    }
    Ok(())
}

async fn insert_entry(
    connection: &mut SqliteConnection,
    id: PlacedPoolId,
    entry: &JournalEntry,
    epoch: Option<i64>,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO journal (pool_id, seq, at, facts_json, events_json, epoch) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(id.0)
    .bind(signed("number of an entry", entry.seq)?)
    .bind(Stamp(entry.at))
    .bind(&entry.facts_json)
    .bind(&entry.events_json)
    .bind(epoch)
    .execute(connection)
    .await?;
    Ok(())
}

async fn put_task(connection: &mut SqliteConnection, id: PlacedPoolId, task: &TaskRecord) -> Result<(), StoreError> {
    let (pods, cpu_milli, memory_mib, guarantee_hours) = numbers(task)?;
    sqlx::query(
        "INSERT INTO tasks (pool_id, id, organization, class, gpus_per_pod_milli, pods, cpu_milli, memory_mib,
             guarantee_hours, submitted, status, updated, detail_json, affinity, elastic_json)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         ON CONFLICT (pool_id, id) DO UPDATE
         SET status = excluded.status, updated = excluded.updated, detail_json = excluded.detail_json",
    )
    .bind(id.0)
    .bind(task.id.as_str())
    .bind(task.organization.as_str())
    .bind(task.class.as_str())
    .bind(milli(task.gpus_per_pod))
    .bind(pods)
    .bind(cpu_milli)
    .bind(memory_mib)
    .bind(guarantee_hours)
    .bind(Stamp(task.submitted))
    .bind(task.status.as_str())
    .bind(Stamp(task.updated))
    .bind(&task.detail_json)
    .bind(task.affinity.map(|affinity| affinity.to_string()))
    .bind(task.elastic_json.as_deref())
    .execute(connection)
    .await?;
    Ok(())
}
