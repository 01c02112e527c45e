//! SQLite: its file, its connections and transactions, and the statements that differ from those of Postgres.

pub(crate) mod audit;
mod clusters;
mod etas;
pub(crate) mod inspect;
mod journal;
mod leases;
pub(crate) mod leftover;
mod opened;
mod outcomes;
pub(crate) mod owner;
mod sizes;
#[path = "../sql/mod.rs"]
mod sql;
mod usage;
pub(crate) mod wal_index;

use self::opened::Opened;
use crate::file::DatabaseFile;
use crate::migrations;
use crate::transaction::Transaction;
use crate::{AuditRecord, Backend, Lease, Store, StoreError};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Sqlite, SqliteConnection};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocab::ClusterName;

/// Longest wait for a writer in another process.
const BUSY_WITHIN: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for a writer in this process, such as the ingest of a year.
const WRITER_WITHIN: Duration = Duration::from_secs(30);
/// Longest save of a log that was taken away: a proof of a write has 3 s, and a clean end saves the rest.
const SAVES_WITHIN: Duration = Duration::from_secs(2);
/// Enough for requests beside a load. Each reader is a thread.
const READERS: u32 = 4;

/// An SQLite database, as [`Store`] sees it.
#[derive(Clone)]
pub(crate) struct SqliteStore {
    /// The one connection for writes.
    pub writer: SqlitePool,
    /// Connections for reads.
    pub readers: SqlitePool,
    /// The file that was opened; `None` if the store is read-only.
    file: Option<Arc<Opened>>,
    /// The lease that every write proves.
    pub lease: Option<Lease>,
    /// The audit entry that is a part of the write.
    pub audit: Option<Arc<AuditRecord>>,
}

/// The names by which the shared SQL knows this database.
pub(crate) use SqliteStore as SqlStore;
pub(crate) use sqlx::SqliteConnection as SqlConnection;
pub(crate) type SqlTransaction = Transaction<Sqlite>;
pub(crate) const BACKEND: Backend = Backend::Sqlite;

impl SqliteStore {
    /// Opens a file, creates it if it is missing, and migrates the schema. A file of another program stays as it is.
    pub async fn connect(path: &str, statement_limit: Duration) -> Result<Self, StoreError> {
        leftover::check(path).await?;
        // Another fault is one of the opening, which names what to check.
        if let Err(fault @ StoreError::OtherDatabase { .. }) = owner::owner(path).await {
            return Err(fault);
        }
        let options = Self::options(path)
            .busy_timeout(BUSY_WITHIN.min(statement_limit))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // In WAL mode, NORMAL may lose the last commits when the power fails: acknowledged writes must stay.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true);
        let writer = open_writer(&options).await?;
        migrate(&writer).await?;
        let file = DatabaseFile::opened(path)?;
        // From now on a missing file was deleted: a new one in its place would be an empty database.
        let options = options.create_if_missing(false);
        writer.set_connect_options(options.clone());
        // One stays open: a first connection creates a file beside the database, which a full disk refuses.
        let readers = lasting().max_connections(READERS).min_connections(1).acquire_timeout(BUSY_WITHIN);
        let readers = readers.connect_lazy_with(options.pragma("query_only", "on"));
        let file = Arc::new(Opened::new(file, writer.clone(), readers.clone()));
        let store = Self { writer, readers, file: Some(file), lease: None, audit: None };
        store.ping().await?;
        Ok(store)
    }

    /// Options for every connection to a file.
    pub fn options(path: &str) -> SqliteConnectOptions {
        // Errors reach the caller, and an append of a second is no incident.
        SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_WITHIN).disable_statement_logging()
    }

    /// A store that opens the file with its first query.
    pub fn lazily(options: SqliteConnectOptions) -> Self {
        let pool = || SqlitePoolOptions::new().max_connections(1).acquire_timeout(BUSY_WITHIN);
        let writer = pool().connect_lazy_with(options.clone());
        let readers = pool().max_connections(READERS).connect_lazy_with(options);
        Self { writer, readers, file: None, lease: None, audit: None }
    }

    /// Connections for reads.
    pub fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// Connections for reads, after a check that the file is the one that was opened, and a database.
    pub fn pulse(&self) -> Result<&SqlitePool, StoreError> {
        self.file.as_deref().map_or(Ok(()), Opened::check_header)?;
        Ok(&self.readers)
    }

    /// Begins a write that proves that the file takes writes.
    pub async fn begin_proof(&self) -> Result<Transaction<Sqlite>, StoreError> {
        self.check_file().await?;
        let transaction = self.begin_unproved().await?;
        let Some(opened) = self.file.as_deref() else { return Ok(transaction) };
        match opened.file.log().check() {
            Ok(()) => {
                opened.file.note();
                return Ok(transaction);
            }
            Err(StoreError::Lost { .. }) => {}
            Err(fault) => return Err(fault),
        }
        // Its connection goes back to the pool, and has the log open that was taken away.
        drop(transaction);
        Err(opened.lose_log().await)
    }

    /// Does nothing: all writes are those of the one connection that proves them.
    #[expect(clippy::unused_self, reason = "Postgres closes its sessions")]
    pub const fn note_read_only(&self, _is_refused: bool) {}

    /// As [`begin`](Self::begin): statements have no time limit here.
    pub async fn begin_long(&self) -> Result<Transaction<Sqlite>, StoreError> {
        self.begin().await
    }

    /// Begins a write without proof of a lease. IMMEDIATE, so that it waits for another writer here: SQLite refuses a
    /// transaction that begins by reading and then writes where another one wrote in between, however long the timeout.
    pub async fn begin_unproved(&self) -> Result<Transaction<Sqlite>, StoreError> {
        let transaction = Transaction::begin(self.writer()?, "BEGIN IMMEDIATE").await?;
        let Some(opened) = self.file.clone() else { return Ok(transaction) };
        // It may have waited.
        opened.check_commit()?;
        // A commit may be followed by a checkpoint.
        Ok(transaction.checked(Box::new(move || opened.check_commit())))
    }

    /// Begins reads that see the database at one instant.
    pub async fn begin_reading(&self) -> Result<Transaction<Sqlite>, StoreError> {
        Transaction::begin(&self.readers, "BEGIN").await
    }

    /// The connection for writes, after a check that the file is the one that was opened, and its log whole.
    pub fn writer(&self) -> Result<&SqlitePool, StoreError> {
        self.file.as_deref().map_or(Ok(()), Opened::check)?;
        Ok(&self.writer)
    }

    /// Connections that read leases.
    pub fn lease_readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// The connection that writes leases.
    pub fn lease_writer(&self) -> Result<&SqlitePool, StoreError> {
        self.writer()
    }

    /// Begins a transaction that takes the lease of a cluster: no write is under way while it holds the lock of the database.
    pub async fn begin_taking(&self, _cluster: &ClusterName) -> Result<Transaction<Sqlite>, StoreError> {
        self.begin_unproved().await
    }

    /// Connections that a ping uses.
    pub fn ping_connections(&self) -> &SqlitePool {
        &self.readers
    }

    /// Waits for running statements and closes all connections.
    pub async fn close_connections(&self) {
        if let Some(opened) = &self.file {
            opened.close().await;
            return;
        }
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Checks that the file is the one that was opened, and a database. Where another one took its place, the log is left so that
    /// the other one does not get it.
    async fn check_file(&self) -> Result<(), StoreError> {
        let Some(opened) = self.file.as_deref() else { return Ok(()) };
        let checked = opened.check_header();
        if checked.is_err() {
            opened.leave_log().await;
        }
        checked
    }
}

/// Does nothing: a transaction that writes locks the whole database.
pub(crate) async fn lock_promotions(_connection: &mut SqliteConnection) -> Result<(), StoreError> {
    Ok(())
}

/// Writes a database into a new file.
pub(crate) async fn copy(path: &str, file: &str) -> Result<(), StoreError> {
    leftover::check(file).await?;
    leftover::check(path).await?;
    let mut connection = SqliteStore::options(path).connect().await?;
    sqlx::query("VACUUM INTO $1").bind(file).execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

/// Migrates the schema in one transaction, since the migrator itself takes no lock on SQLite.
async fn migrate(writer: &SqlitePool) -> Result<(), StoreError> {
    let mut connection = writer.acquire().await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    migrations::SQLITE.run(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Connections that are not replaced by new ones from time to time: where all of them ended together, the last one would take the log
/// away, and another one would lie in its place.
fn lasting() -> SqlitePoolOptions {
    SqlitePoolOptions::new().max_lifetime(None).idle_timeout(None)
}

/// Opens the connection for writes. If several programs switch a new file to WAL at once, SQLite refuses all but one as busy,
/// without waiting; so this tries again.
async fn open_writer(options: &SqliteConnectOptions) -> Result<SqlitePool, StoreError> {
    let deadline = Instant::now() + BUSY_WITHIN;
    loop {
        let writer = lasting().max_connections(1).acquire_timeout(WRITER_WITHIN);
        match writer.connect_with(options.clone()).await.map_err(StoreError::from) {
            Err(StoreError::Busy { .. }) if Instant::now() < deadline => tokio::time::sleep(BUSY_PAUSE).await,
            opened => return opened,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, ClusterStore, UsageStore};
    use vocab::{ClusterName, HourStart, MilliGpus, Organization, PoolId, SeriesId, UsageRow};

    #[tokio::test]
    async fn connections_of_an_open_file_have_no_age_at_which_they_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quiet.db");
        let store = SqliteStore::connect(path.to_str().unwrap(), BUSY_WITHIN).await.unwrap();
        for pool in [&store.writer, &store.readers] {
            let options = pool.options();
            assert_eq!((options.get_max_lifetime(), options.get_idle_timeout()), (None, None));
        }
    }

    #[tokio::test]
    async fn an_append_that_fills_the_disk_leaves_nothing_and_the_next_one_works() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::connect(folder.path().join("small.db").to_str().unwrap(), BUSY_WITHIN).await.unwrap();
        let name = ClusterName::parse("earth").unwrap();
        let cluster = Cluster { name: name.clone(), time_zone: "UTC".to_owned(), calendar: "none".to_owned() };
        store.put_cluster(&cluster).await.unwrap();
        let series =
            SeriesId { pool: PoolId::parse("earth:A100").unwrap(), organization: Organization::parse("x").unwrap() };
        let hour = |index: i64| HourStart::from_unix_s(index * 3_600).unwrap();
        let row = |index| UsageRow {
            series: series.clone(),
            hour: hour(index),
            demand: MilliGpus::from_gpus(1),
            at_end: None,
        };
        let rows: Vec<_> = (0..20_000).map(row).collect();
        sqlx::query("PRAGMA max_page_count = 60").execute(&store.writer).await.unwrap();
        let fault = store.append(&rows, &[]).await.unwrap_err();
        assert!(matches!(fault, StoreError::Full { .. }), "{fault}");
        assert_eq!(store.usage_range(&name).await.unwrap(), None);
        sqlx::query("PRAGMA max_page_count = 100000").execute(&store.writer).await.unwrap();
        assert_eq!(store.append(&rows, &[]).await.unwrap().usage.inserted, 20_000);
    }
}
