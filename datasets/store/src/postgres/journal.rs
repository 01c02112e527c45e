use crate::StoreError;
use crate::journal::{JournalEntry, PlacedPoolId, TaskRecord, TaskRow, numbers};
use crate::stored::{Stamp, all, milli, signed};
use sqlx::PgConnection;
use vocab::TaskId;

use super::PostgresStore;

/// Tasks of a pool, by id.
pub(crate) async fn task_records(
    store: &PostgresStore,
    id: PlacedPoolId,
    tasks: &[TaskId],
) -> Result<Vec<TaskRecord>, StoreError> {
    let query = sqlx::query_as::<_, TaskRow>(
        "SELECT id, organization, class, gpus_per_pod_milli, pods, cpu_milli, memory_mib, guarantee_hours,
             submitted, status, updated, detail_json, affinity, elastic_json
             FROM tasks WHERE pool_id = $1 AND id = ANY ($2) ORDER BY id",
    );
    let ids: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    // Planned again each time: a plan from the time when the table was small reads all of it after it has grown.
    all(query.bind(id.0).bind(ids).persistent(false).fetch_all(&store.pool).await?)
}

/// Appends entries to the journal of a pool.
pub(crate) async fn insert_entries(
    connection: &mut PgConnection,
    id: PlacedPoolId,
    entries: &[JournalEntry],
    epoch: Option<i64>,
) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let seqs = entries.iter().map(|entry| signed("number of an entry", entry.seq)).collect::<Result<Vec<_>, _>>()?;
    sqlx::query(
        "INSERT INTO journal (pool_id, epoch, seq, at, facts_json, events_json)
         SELECT $1, $6, new.* FROM unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::text[]) AS new",
    )
    .bind(id.0)
    .bind(seqs)
    .bind(entries.iter().map(|entry| Stamp(entry.at)).collect::<Vec<_>>())
    .bind(entries.iter().map(|entry| entry.facts_json.as_str()).collect::<Vec<_>>())
    .bind(entries.iter().map(|entry| entry.events_json.as_str()).collect::<Vec<_>>())
    .bind(epoch)
    .execute(connection)
    .await?;
    Ok(())
}

/// Inserts or replaces tasks of a pool.
pub(crate) async fn put_tasks(
    connection: &mut PgConnection,
    id: PlacedPoolId,
    tasks: &[TaskRecord],
) -> Result<(), StoreError> {
    if tasks.is_empty() {
        return Ok(());
    }
    let texts = |text: fn(&TaskRecord) -> &str| tasks.iter().map(text).collect::<Vec<_>>();
    let counted = tasks.iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
    sqlx::query(
        "INSERT INTO tasks (pool_id, id, organization, class, gpus_per_pod_milli, pods, cpu_milli, memory_mib,
             guarantee_hours, submitted, status, updated, detail_json, affinity, elastic_json)
         SELECT $1, new.* FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
             $8::bigint[], $9::bigint[], $10::timestamptz[], $11::text[], $12::timestamptz[], $13::text[],
             $14::text[], $15::text[]) AS new
         ON CONFLICT (pool_id, id) DO UPDATE
         SET status = excluded.status, updated = excluded.updated, detail_json = excluded.detail_json",
    )
    .bind(id.0)
    .bind(texts(|task| task.id.as_str()))
    .bind(texts(|task| task.organization.as_str()))
    .bind(texts(|task| task.class.as_str()))
    .bind(tasks.iter().map(|task| milli(task.gpus_per_pod)).collect::<Vec<_>>())
    .bind(counted.iter().map(|(pods, ..)| *pods).collect::<Vec<_>>())
    .bind(counted.iter().map(|(_, cpu, ..)| *cpu).collect::<Vec<_>>())
    .bind(counted.iter().map(|(_, _, memory, _)| *memory).collect::<Vec<_>>())
    .bind(counted.iter().map(|(.., hours)| *hours).collect::<Vec<_>>())
    .bind(tasks.iter().map(|task| Stamp(task.submitted)).collect::<Vec<_>>())
    .bind(texts(|task| task.status.as_str()))
    .bind(tasks.iter().map(|task| Stamp(task.updated)).collect::<Vec<_>>())
    .bind(texts(|task| task.detail_json.as_str()))
    .bind(tasks.iter().map(|task| task.affinity.map(|affinity| affinity.to_string())).collect::<Vec<_>>())
    .bind(tasks.iter().map(|task| task.elastic_json.as_deref()).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}
