//! [`Store`]: the sum of the traits of all tables.

use crate::{
    AuditRecord, AuditStore, CalendarStore, CapacityStore, ClusterStore, CorrectionStore, EtaStore, JournalStore,
    LearnedStore, Lease, LeaseStore, LedgerStore, NodeHourStore, NodeStore, OutcomeStore, OverrideStore,
    PoolStateStore, ProofStore, QuotaStore, ReservationStore, RunStore, SettingsStore, SizeStore, StartStore,
    StatementStore, StoreError, TokenStore, UsageStore,
};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;

/// The kind of database behind a [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    /// A Postgres server: the store of record.
    Postgres,
    /// An SQLite file: the embedded default.
    Sqlite,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        })
    }
}

/// The database of Headroom. Shared as `Arc<dyn Store>`; its methods may be called concurrently.
#[async_trait]
pub trait Store:
    ClusterStore
    + CalendarStore
    + UsageStore
    + CapacityStore
    + RunStore
    + QuotaStore
    + EtaStore
    + LedgerStore
    + LearnedStore
    + StartStore
    + LeaseStore
    + JournalStore
    + NodeStore
    + PoolStateStore
    + SettingsStore
    + OutcomeStore
    + TokenStore
    + AuditStore
    + CorrectionStore
    + OverrideStore
    + ReservationStore
    + NodeHourStore
    + ProofStore
    + SizeStore
    + StatementStore
    + Send
    + Sync
{
    /// The kind of database.
    fn backend(&self) -> Backend;

    /// The same database for the holder of a lease: each write proves in its own transaction that the lease is still held,
    /// and fails with [`StoreError::Fenced`] if it is not. Not checked are clusters, calendars, and appends of usage on Postgres.
    fn held(&self, lease: Lease) -> Arc<dyn Store>;

    /// The same database for one write, whose transaction also writes this audit entry. If either fails
    /// ([`StoreError::NotAudited`] for the entry), neither is stored.
    fn audited(&self, record: AuditRecord) -> Arc<dyn Store>;

    /// Runs an empty query; on Postgres on a connection of its own.
    ///
    /// # Errors
    /// The database does not answer within the time limit of a connection, 5 s.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Waits for running operations and closes the connections; later calls return [`StoreError::Unavailable`].
    async fn close(&self);
}
