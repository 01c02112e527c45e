//! Postgres: its connections and transactions, and the statements that differ from those of SQLite.

pub(crate) mod audit;
mod clusters;
mod etas;
pub(crate) mod inspect;
mod journal;
mod leases;
pub(crate) mod objects;
mod outcomes;
mod sessions;
mod sizes;
#[path = "../sql/mod.rs"]
mod sql;
mod usage;

use crate::migrations;
use crate::transaction::Transaction;
use crate::{AuditRecord, Backend, Lease, StoreError};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, Postgres, raw_sql};
use std::sync::Arc;
use std::time::Duration;
use vocab::ClusterName;

/// Long enough for a connection across a continent, short enough that a request does not hang on a dead database.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A service needs a few: one for each pool's writer, one for the refresh, the rest for requests.
const MAX_CONNECTIONS: u32 = 10;

/// Settings of every session of this program.
const SESSION: [(&str, &str); 8] = [
    // Statements here are short or scan once: to compile them costs more (0.3 s measured for a merge) than it saves.
    ("jit", "off"),
    // No statement waits for a lock without an end. An append of a year of a large cluster takes less.
    ("lock_timeout", "30s"),
    // A program that died inside a transaction must not hold the row of a cluster.
    // It is also the time for which a stalled writer may keep another one from taking its lease.
    ("idle_in_transaction_session_timeout", "10s"),
    // A program that stalls while it sends rows holds locks, and Postgres does not count it as idle. Ordinary statements of
    // the service have a shorter limit.
    ("statement_timeout", "10min"),
    // A machine that is gone sends nothing: these settings detect it within half a minute.
    ("tcp_keepalives_idle", "15"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("timezone", "UTC"),
];

/// Gives a transaction that reads or writes much the time limit [`LONG_STATEMENT`](crate::LONG_STATEMENT).
pub(crate) const LONG: &str = "SET LOCAL statement_timeout = '10min'";

/// A Postgres database, as [`Store`](crate::Store) sees it.
#[derive(Clone)]
pub(crate) struct PostgresStore {
    /// Connections for reads and writes.
    pub pool: PgPool,
    /// A connection for leases: a beat must not wait for writers.
    pub beats: PgPool,
    /// A connection for pings and write proofs: neither a full pool nor a wait for a lease may look like a server that is
    /// gone.
    pub pulse: PgPool,
    sessions: sessions::Sessions,
    /// The lease that every write proves.
    pub lease: Option<Lease>,
    /// The audit entry that is a part of the write.
    pub audit: Option<Arc<AuditRecord>>,
}

/// The names by which the shared SQL knows this database.
pub(crate) use PostgresStore as SqlStore;
pub(crate) use sqlx::PgConnection as SqlConnection;
pub(crate) type SqlTransaction = Transaction<Postgres>;
pub(crate) const BACKEND: Backend = Backend::Postgres;

impl PostgresStore {
    /// Connects, and migrates the schema. A database of another program stays as it is.
    pub async fn connect(options: PgConnectOptions, statement_limit: Duration) -> Result<Self, StoreError> {
        let options = Self::session(options);
        let mut connection = Self::first_connection(&options).await?;
        inspect::refuse_other(&mut connection).await?;
        // Where nothing is to be done, nothing is written: programs that only read work on a database that takes no writes.
        if !inspect::schema(&mut connection).await?.fits() {
            migrations::POSTGRES.run(&mut connection).await?;
        }
        connection.close().await?;
        // If an option comes twice, Postgres takes the second.
        Ok(Self::lazily(options.options([("statement_timeout", statement_limit.as_millis().to_string())])))
    }

    /// Adds the settings of every session of this program.
    pub fn session(options: PgConnectOptions) -> PgConnectOptions {
        // Errors reach the caller, and an append of a second is no incident.
        options.application_name("headroom").options(SESSION).disable_statement_logging()
    }

    /// Opens one connection, which reports why it is refused; a pool would retry until its time is over.
    pub async fn first_connection(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
        let connecting = tokio::time::timeout(CONNECT_WITHIN, PgConnection::connect_with(options)).await;
        let late = |_| StoreError::Unavailable { reason: format!("no answer within {} s", CONNECT_WITHIN.as_secs()) };
        Ok(connecting.map_err(late)??)
    }

    /// A store that connects with its first query.
    pub fn lazily(options: PgConnectOptions) -> Self {
        let sessions = sessions::Sessions::default();
        let pool = |connections| {
            sessions.renewed_in(PgPoolOptions::new().max_connections(connections).acquire_timeout(CONNECT_WITHIN))
        };
        let beats = pool(1).connect_lazy_with(options.clone());
        let pulse = pool(1).connect_lazy_with(options.clone());
        let pool = pool(MAX_CONNECTIONS).connect_lazy_with(options);
        Self { pool, beats, pulse, sessions, lease: None, audit: None }
    }

    /// Connections for reads.
    pub fn readers(&self) -> &PgPool {
        &self.pool
    }

    /// Connections for single statements that write without a lease.
    #[expect(clippy::unnecessary_wraps, reason = "SQLite checks its file here")]
    pub fn writer(&self) -> Result<&PgPool, StoreError> {
        Ok(&self.pool)
    }

    /// The connection for write proofs.
    #[expect(clippy::unnecessary_wraps, reason = "SQLite checks its file here")]
    pub fn pulse(&self) -> Result<&PgPool, StoreError> {
        Ok(&self.pulse)
    }

    /// Begins a write that proves that the server takes writes.
    pub async fn begin_proof(&self) -> Result<Transaction<Postgres>, StoreError> {
        let mut transaction = Transaction::begin(&self.pulse, "BEGIN").await?;
        // A service that writes its proof at the same moment proves it for both.
        sqlx::query("SET LOCAL lock_timeout = '1s'").execute(&mut *transaction).await?;
        Ok(transaction)
    }

    /// Notes whether a proof of a write was refused as read-only.
    pub fn note_read_only(&self, is_refused: bool) {
        self.sessions.note(is_refused);
    }

    /// Begins a write without proof of a lease. READ COMMITTED, the default: each statement sees what was committed before
    /// it began, so that what is read after waiting for a lock is what the lock protects.
    pub async fn begin_unproved(&self) -> Result<Transaction<Postgres>, StoreError> {
        Transaction::begin(&self.pool, "BEGIN").await
    }

    /// As [`begin`](Self::begin), with the time limit of [`LONG_STATEMENT`](crate::LONG_STATEMENT).
    pub async fn begin_long(&self) -> Result<Transaction<Postgres>, StoreError> {
        let mut transaction = self.begin().await?;
        raw_sql(LONG).execute(&mut *transaction).await?;
        Ok(transaction)
    }

    /// Begins reads that see the database at one instant.
    pub async fn begin_reading(&self) -> Result<Transaction<Postgres>, StoreError> {
        Transaction::begin(&self.pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    /// Connections that read leases.
    pub fn lease_readers(&self) -> &PgPool {
        &self.beats
    }

    /// The connection that writes leases.
    #[expect(clippy::unnecessary_wraps, reason = "SQLite checks its file here")]
    pub fn lease_writer(&self) -> Result<&PgPool, StoreError> {
        Ok(&self.beats)
    }

    /// Begins a transaction that takes the lease of a cluster: it waits up to 1 s for writes under the lease.
    pub async fn begin_taking(&self, cluster: &ClusterName) -> Result<Transaction<Postgres>, StoreError> {
        let mut transaction = Transaction::begin(&self.beats, "BEGIN").await?;
        // A service that waits longer tries again at the next beat.
        sqlx::query("SET LOCAL lock_timeout = '1s'").execute(&mut *transaction).await?;
        // Stronger than the lock of an update: it waits for the writes that have proved the epoch before.
        let locking = sqlx::query("SELECT 1 FROM leases WHERE cluster = $1 FOR UPDATE").bind(cluster.as_str());
        locking.execute(&mut *transaction).await?;
        Ok(transaction)
    }

    /// The connection that a ping uses.
    pub fn ping_connections(&self) -> &PgPool {
        &self.pulse
    }

    /// Waits for running statements and closes all connections.
    pub async fn close_connections(&self) {
        self.pool.close().await;
        self.beats.close().await;
        self.pulse.close().await;
    }
}

/// Blocks other promotions; reads continue. Promotions are rare, and do not use the lock of the cluster, which an ingest may
/// hold for long.
pub(crate) async fn lock_promotions(connection: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query("LOCK TABLE promotions IN SHARE ROW EXCLUSIVE MODE").execute(connection).await?;
    Ok(())
}
