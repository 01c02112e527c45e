//! Journals of the pools that the service places: facts and events, entry by entry, and the resulting tasks.

use crate::statements::AccountedDay;
use crate::stored::{Stamp, amount, hash, horizon, pool, signed, valid, whole};
use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use vocab::{
    Affinity, HorizonHours, MilliGpus, Organization, Outcome, PoolId, TaskClass, TaskId, UnixSeconds, UsageRow,
};

/// The number of a pool that the service places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlacedPoolId(pub(crate) i32);

/// A pool that the service places, and the position of its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedPool {
    /// Its number in the database.
    pub id: PlacedPoolId,
    /// Its cluster and GPU model.
    pub pool: PoolId,
    /// Number of the last entry; 0 before the first.
    pub seq: u64,
    /// Number of the last entry whose events the webhook has received.
    pub announced_seq: u64,
}

/// Facts of one instant and the events that follow from them, as the caller writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Position in the journal, from 1.
    pub seq: u64,
    /// Time of the facts.
    pub at: UnixSeconds,
    /// The facts.
    pub facts_json: String,
    /// The events; an empty text if there are none.
    pub events_json: String,
}

/// The state of a pool after an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSnapshot {
    /// Number of that entry.
    pub seq: u64,
    /// The state, as the caller writes it.
    pub snapshot_json: String,
    /// The accounts of GPU time after that entry, as the caller writes them; `None` beside a snapshot of a program without accounts.
    pub accounts_json: Option<String>,
}

/// The data from which a pool is rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJournal {
    /// The pool.
    pub placed: PlacedPool,
    /// Its last snapshot.
    pub snapshot: Option<PoolSnapshot>,
    /// The entries after the snapshot, in their order.
    pub entries: Vec<JournalEntry>,
}

/// Status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskStatus {
    /// In the queue.
    Waiting,
    /// Placed on nodes.
    Running,
    /// Ended by itself.
    Finished,
    /// Ended by a request.
    Deleted,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Running, Self::Finished, Self::Deleted];

    /// Its name in answers and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Deleted => "deleted",
        }
    }
}

/// A task as it is, or was when it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its name, unique in its pool.
    pub id: TaskId,
    /// The tenant.
    pub organization: Organization,
    /// HP or spot.
    pub class: TaskClass,
    /// GPUs of one pod.
    pub gpus_per_pod: MilliGpus,
    /// Number of pods.
    pub pods: u32,
    /// CPU of one pod, in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory of one pod, in MiB.
    pub memory_mib: u64,
    /// Promised hours of a spot task; `None` outside a guarantee.
    pub guarantee_hours: Option<HorizonHours>,
    /// Required location of the GPUs of a pod.
    pub affinity: Option<Affinity>,
    /// Limits of its number of pods, as the caller writes them.
    pub elastic_json: Option<String>,
    /// Time of its submission.
    pub submitted: UnixSeconds,
    /// Its status.
    pub status: TaskStatus,
    /// Time of its last change.
    pub updated: UnixSeconds,
    /// The nodes on which it runs, or the reason why it waits, as the caller writes them.
    pub detail_json: String,
}

/// The result of one turn of a pool's writer: one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// New entries, numbered on from the last one.
    pub entries: Vec<JournalEntry>,
    /// New and changed tasks, each once.
    pub tasks: Vec<TaskRecord>,
    /// Ended guarantee periods.
    pub outcomes: Vec<Outcome>,
    /// Usage of hours that are over.
    pub usage: Vec<UsageRow>,
    /// Days whose accounts are final; a day that is there is replaced.
    pub days: Vec<AccountedDay>,
    /// One audit entry for each order that was done, in their order.
    pub audit: Vec<AuditRecord>,
}

/// Journals and tasks of the pools that the service places.
#[async_trait]
pub trait JournalStore {
    /// Every pool that the service places.
    async fn placed_pools(&self) -> Result<Vec<PlacedPool>, StoreError>;

    /// The data from which a pool is rebuilt; begins an empty journal if the pool has none.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the cluster is unknown.
    async fn open_journal(&self, pool: &PoolId) -> Result<StoredJournal, StoreError>;

    /// Appends a turn after the entry `after`.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if `after` is not the last entry: another service writes for the pool.
    async fn append_turn(
        &self,
        placed: &PlacedPool,
        after: u64,
        turn: &Turn,
        now: UnixSeconds,
    ) -> Result<(), StoreError>;

    /// Replaces the snapshot of a pool, and deletes the entries up to `forget_to`, but none after the snapshot.
    async fn put_pool_snapshot(
        &self,
        id: PlacedPoolId,
        snapshot: &PoolSnapshot,
        forget_to: u64,
    ) -> Result<(), StoreError>;

    /// The last snapshot of a pool; its journal stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if its text does not match its stored checksum.
    async fn pool_snapshot(&self, id: PlacedPoolId) -> Result<Option<PoolSnapshot>, StoreError>;

    /// The named tasks that the pool has or had, by name.
    async fn task_records(&self, id: PlacedPoolId, tasks: &[TaskId]) -> Result<Vec<TaskRecord>, StoreError>;

    /// A task of a pool; `None` if it is unknown.
    async fn task_record(&self, pool: &PoolId, task: &TaskId) -> Result<Option<TaskRecord>, StoreError>;

    /// All stored entries after an entry, in their order.
    async fn journal_entries(&self, id: PlacedPoolId, after: u64) -> Result<Vec<JournalEntry>, StoreError>;

    /// Entries after an entry that have events, in their order, at most `limit`.
    async fn entries_with_events(
        &self,
        id: PlacedPoolId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<JournalEntry>, StoreError>;

    /// Deletes tasks that ended before `before`, in batches. Returns their number. A later task may have the same name.
    async fn delete_ended_tasks_before(&self, before: UnixSeconds) -> Result<u64, StoreError>;

    /// Records that the webhook has received all events up to an entry.
    async fn put_announced(&self, id: PlacedPoolId, seq: u64) -> Result<(), StoreError>;
}

row! {
    pub(crate) struct PlacedRow {
        pub id: i32,
        pub cluster: String,
        pub gpu_model: String,
        pub seq: i64,
        pub announced_seq: i64,
    }
}

impl TryFrom<PlacedRow> for PlacedPool {
    type Error = StoreError;

    fn try_from(row: PlacedRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: PlacedPoolId(row.id),
            pool: pool(&row.cluster, &row.gpu_model)?,
            seq: whole("number of an entry", row.seq)?,
            announced_seq: whole("number of an entry", row.announced_seq)?,
        })
    }
}

row! {
    pub(crate) struct EntryRow {
        pub seq: i64,
        pub at: Stamp,
        pub facts_json: String,
        pub events_json: String,
    }
}

impl TryFrom<EntryRow> for JournalEntry {
    type Error = StoreError;

    fn try_from(row: EntryRow) -> Result<Self, StoreError> {
        let (facts_json, events_json) = (row.facts_json, row.events_json);
        Ok(Self { seq: whole("number of an entry", row.seq)?, at: row.at.0, facts_json, events_json })
    }
}

row! {
    pub(crate) struct SnapshotRow {
        pub seq: i64,
        pub snapshot_json: String,
        /// `None` for a snapshot of a program without checksums.
        pub sha256: Option<Vec<u8>>,
        /// `None` beside a snapshot of a program without accounts.
        pub accounts_json: Option<String>,
    }
}

impl TryFrom<SnapshotRow> for PoolSnapshot {
    type Error = StoreError;

    fn try_from(row: SnapshotRow) -> Result<Self, StoreError> {
        if row.sha256.is_some_and(|expected| hash(row.snapshot_json.as_bytes())[..] != expected[..]) {
            let what = format!("the snapshot of entry {}", row.seq);
            return Err(StoreError::corrupt(what, &"its text does not match its stored checksum"));
        }
        let (snapshot_json, accounts_json) = (row.snapshot_json, row.accounts_json);
        Ok(Self { seq: whole("number of an entry", row.seq)?, snapshot_json, accounts_json })
    }
}

row! {
    pub(crate) struct TaskRow {
        pub id: String,
        pub organization: String,
        pub class: String,
        pub gpus_per_pod_milli: i64,
        pub pods: i64,
        pub cpu_milli: i64,
        pub memory_mib: i64,
        pub guarantee_hours: Option<i64>,
        pub submitted: Stamp,
        pub status: String,
        pub updated: Stamp,
        pub detail_json: String,
        pub affinity: Option<String>,
        pub elastic_json: Option<String>,
    }
}

impl TryFrom<TaskRow> for TaskRecord {
    type Error = StoreError;

    fn try_from(row: TaskRow) -> Result<Self, StoreError> {
        let unknown = |what: &'static str, text: &str| StoreError::corrupt(what, &format!("unknown value {text:?}"));
        let class = TaskClass::parse(&row.class).ok_or_else(|| unknown("class of a task", &row.class))?;
        let status = TaskStatus::ALL.into_iter().find(|status| status.as_str() == row.status);
        Ok(Self {
            id: valid("task", TaskId::parse(&row.id))?,
            organization: valid("organization", Organization::parse(&row.organization))?,
            class,
            gpus_per_pod: amount("GPUs of a pod", row.gpus_per_pod_milli)?,
            pods: whole("pods", row.pods)?,
            cpu_milli: whole("CPUs of a pod", row.cpu_milli)?,
            memory_mib: whole("memory of a pod", row.memory_mib)?,
            guarantee_hours: row.guarantee_hours.map(|hours| horizon("guarantee hours", hours)).transpose()?,
            affinity: row.affinity.as_deref().map(affinity).transpose()?,
            elastic_json: row.elastic_json,
            submitted: row.submitted.0,
            status: status.ok_or_else(|| unknown("status of a task", &row.status))?,
            updated: row.updated.0,
            detail_json: row.detail_json,
        })
    }
}

fn affinity(text: &str) -> Result<Affinity, StoreError> {
    Affinity::parse(text).ok_or_else(|| StoreError::corrupt("affinity of a task", &format!("unknown value {text:?}")))
}

/// The numbers of a task as the databases hold them: pods, CPU, memory, guarantee hours.
pub(crate) fn numbers(task: &TaskRecord) -> Result<(i64, i64, i64, Option<i64>), StoreError> {
    let (cpu, memory) = (signed("CPUs of a pod", task.cpu_milli)?, signed("memory of a pod", task.memory_mib)?);
    Ok((i64::from(task.pods), cpu, memory, task.guarantee_hours.map(|hours| i64::from(hours.get()))))
}

pub(crate) fn last_seq(after: u64, turn: &Turn) -> u64 {
    turn.entries.last().map_or(after, |entry| entry.seq)
}

pub(crate) fn other_writer(placed: &PlacedPool) -> StoreError {
    StoreError::conflict("pool", &placed.pool, "another service writes its journal; try again")
}
