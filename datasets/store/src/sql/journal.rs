use super::dialect::audit::insert_all as insert_audit;
use super::dialect::journal::{insert_entries, put_tasks};
use super::dialect::outcomes::insert as insert_outcomes;
use super::dialect::usage::append_in;
use super::statements::put_days;
use super::{SqlStore, dialect};
use crate::StoreError;
use crate::error::unless_missing;
use crate::journal::{
    EntryRow, JournalEntry, JournalStore, PlacedPool, PlacedPoolId, PlacedRow, PoolSnapshot, SnapshotRow,
    StoredJournal, TaskRecord, TaskRow, Turn, last_seq, other_writer,
};
use crate::stored::{all, hash, signed};
use async_trait::async_trait;
use vocab::{PoolId, TaskId, UnixSeconds};

/// A program without checksums or accounts moves `seq` alone.
const SNAPSHOT: &str = "SELECT seq, snapshot_json, CASE WHEN sha256_seq = seq THEN sha256 END AS sha256,
         CASE WHEN accounts_seq = seq THEN accounts_json END AS accounts_json
     FROM pool_snapshots WHERE pool_id = $1";

#[async_trait]
impl JournalStore for SqlStore {
    async fn placed_pools(&self) -> Result<Vec<PlacedPool>, StoreError> {
        let query = sqlx::query_as::<_, PlacedRow>(
            "SELECT id, cluster, gpu_model, seq, announced_seq
             FROM placed_pools ORDER BY cluster, gpu_model",
        );
        all(query.fetch_all(self.readers()).await?)
    }

    async fn open_journal(&self, pool: &PoolId) -> Result<StoredJournal, StoreError> {
        let (cluster, gpu_model) = (pool.cluster.as_str(), pool.gpu_model.as_str());
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO placed_pools (cluster, gpu_model, seq, announced_seq) VALUES ($1, $2, 0, 0)
             ON CONFLICT DO NOTHING",
        )
        .bind(cluster)
        .bind(gpu_model)
        .execute(&mut *transaction)
        .await
        .map_err(unless_missing("cluster", &pool.cluster))?;
        transaction.commit().await?;
        // One snapshot for all statements: number, state and entries must fit together.
        let mut snapshot = self.begin_reading().await?;
        let placed: PlacedPool = sqlx::query_as::<_, PlacedRow>(
            "SELECT id, cluster, gpu_model, seq, announced_seq
             FROM placed_pools WHERE cluster = $1 AND gpu_model = $2",
        )
        .bind(cluster)
        .bind(gpu_model)
        .fetch_one(&mut *snapshot)
        .await?
        .try_into()?;
        let stored: Option<PoolSnapshot> = sqlx::query_as::<_, SnapshotRow>(SNAPSHOT)
            .bind(placed.id.0)
            .fetch_optional(&mut *snapshot)
            .await?
            .map(TryInto::try_into)
            .transpose()?;
        let after = signed("number of an entry", stored.as_ref().map_or(0, |stored| stored.seq))?;
        let entries = sqlx::query_as::<_, EntryRow>(
            "SELECT seq, at, facts_json, events_json FROM journal WHERE pool_id = $1 AND seq > $2 ORDER BY seq",
        );
        let entries = all(entries.bind(placed.id.0).bind(after).fetch_all(&mut *snapshot).await?)?;
        Ok(StoredJournal { placed, snapshot: stored, entries })
    }

    async fn append_turn(
        &self,
        placed: &PlacedPool,
        after: u64,
        turn: &Turn,
        now: UnixSeconds,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        // Usage first, since it locks the row of the cluster: holders of that lock never wait for this pool.
        if !turn.usage.is_empty() {
            append_in(&mut transaction, &turn.usage).await?;
        }
        let moving = sqlx::query("UPDATE placed_pools SET seq = $3 WHERE id = $1 AND seq = $2");
        let last = signed("number of an entry", last_seq(after, turn))?;
        let moving = moving.bind(placed.id.0).bind(signed("number of an entry", after)?).bind(last);
        if moving.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Err(other_writer(placed));
        }
        insert_entries(&mut transaction, placed.id, &turn.entries, self.epoch()?).await?;
        put_tasks(&mut transaction, placed.id, &turn.tasks).await?;
        put_days(&mut transaction, placed.id, &turn.days).await?;
        insert_outcomes(&mut transaction, &turn.outcomes, now).await?;
        insert_audit(&mut transaction, &turn.audit).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn put_pool_snapshot(
        &self,
        id: PlacedPoolId,
        snapshot: &PoolSnapshot,
        forget_to: u64,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO pool_snapshots (pool_id, seq, snapshot_json, sha256, sha256_seq, accounts_json, accounts_seq)
             VALUES ($1, $2, $3, $4, $2, $5, $2)
             ON CONFLICT (pool_id) DO UPDATE
             SET seq = excluded.seq, snapshot_json = excluded.snapshot_json, sha256 = excluded.sha256,
                 sha256_seq = excluded.sha256_seq, accounts_json = excluded.accounts_json,
                 accounts_seq = excluded.accounts_seq",
        )
        .bind(id.0)
        .bind(signed("number of an entry", snapshot.seq)?)
        .bind(&snapshot.snapshot_json)
        .bind(&hash(snapshot.snapshot_json.as_bytes())[..])
        .bind(snapshot.accounts_json.as_deref())
        .execute(&mut *transaction)
        .await?;
        let forgetting = sqlx::query("DELETE FROM journal WHERE pool_id = $1 AND seq <= $2");
        let forget_to = signed("number of an entry", forget_to.min(snapshot.seq))?;
        forgetting.bind(id.0).bind(forget_to).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn pool_snapshot(&self, id: PlacedPoolId) -> Result<Option<PoolSnapshot>, StoreError> {
        let query = sqlx::query_as::<_, SnapshotRow>(SNAPSHOT);
        query.bind(id.0).fetch_optional(self.readers()).await?.map(TryInto::try_into).transpose()
    }

    async fn task_records(&self, id: PlacedPoolId, tasks: &[TaskId]) -> Result<Vec<TaskRecord>, StoreError> {
        dialect::journal::task_records(self, id, tasks).await
    }

    async fn task_record(&self, pool: &PoolId, task: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        sqlx::query_as::<_, TaskRow>(
            "SELECT tasks.id, organization, class, gpus_per_pod_milli, pods, cpu_milli, memory_mib, guarantee_hours,
             submitted, status, updated, detail_json, affinity, elastic_json
             FROM tasks JOIN placed_pools ON placed_pools.id = pool_id
             WHERE cluster = $1 AND gpu_model = $2 AND tasks.id = $3",
        )
        .bind(pool.cluster.as_str())
        .bind(pool.gpu_model.as_str())
        .bind(task.as_str())
        .fetch_optional(self.readers())
        .await?
        .map(TryInto::try_into)
        .transpose()
    }

    async fn journal_entries(&self, id: PlacedPoolId, after: u64) -> Result<Vec<JournalEntry>, StoreError> {
        let query = sqlx::query_as::<_, EntryRow>(
            "SELECT seq, at, facts_json, events_json FROM journal WHERE pool_id = $1 AND seq > $2 ORDER BY seq",
        );
        all(query.bind(id.0).bind(signed("number of an entry", after)?).fetch_all(self.readers()).await?)
    }

    async fn entries_with_events(
        &self,
        id: PlacedPoolId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        let query = sqlx::query_as::<_, EntryRow>(
            "SELECT seq, at, facts_json, events_json FROM journal
             WHERE pool_id = $1 AND seq > $2 AND events_json <> '' ORDER BY seq LIMIT $3",
        );
        let after = signed("number of an entry", after)?;
        // Planned again each time: a plan from the time when the table was small reads all of it after it has grown.
        let query = query.bind(id.0).bind(after).bind(i64::from(limit)).persistent(false);
        all(query.fetch_all(self.readers()).await?)
    }

    async fn delete_ended_tasks_before(&self, before: UnixSeconds) -> Result<u64, StoreError> {
        let statement = "DELETE FROM tasks WHERE (pool_id, id) IN (
                 SELECT pool_id, id FROM tasks WHERE status IN ('finished', 'deleted') AND updated < $1 LIMIT $2
             )";
        self.delete_in_batches(statement, before).await
    }

    async fn put_announced(&self, id: PlacedPoolId, seq: u64) -> Result<(), StoreError> {
        let noting = sqlx::query("UPDATE placed_pools SET announced_seq = $2 WHERE id = $1");
        let mut transaction = self.begin().await?;
        noting.bind(id.0).bind(signed("number of an entry", seq)?).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}
