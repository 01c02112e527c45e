//! The sum of the owners of data.

use crate::{
    AuditRecord, AuditStore, CalendarStore, CapacityStore, ClusterStore, CorrectionStore, EtaStore, JournalStore,
    LearnedStore, Lease, LeaseStore, LedgerStore, NodeHourStore, NodeStore, OutcomeStore, OverrideStore,
    PoolStateStore, ProofStore, QuotaStore, RunStore, SettingsStore, SizeStore, StoreError, TokenStore, UsageStore,
};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;

/// The kind of database behind a [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    Postgres,
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

/// Everything that Headroom keeps. Shared as `Arc<dyn Store>`; its methods may be called concurrently.
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
    + NodeHourStore
    + ProofStore
    + SizeStore
    + Send
    + Sync
{
    fn backend(&self) -> Backend;

    /// The same database in the hands of whoever holds a lease: everything that is written through it proves, in the same
    /// transaction, that the lease is still held, and is refused with [`StoreError::Fenced`] where it is not.
    fn held(&self, lease: Lease) -> Arc<dyn Store>;

    /// The same database, for one write: the write and this entry of the audit are one transaction. A write that is refused, or that
    /// the audit does not take ([`StoreError::NotAudited`]), leaves neither.
    fn audited(&self, record: AuditRecord) -> Arc<dyn Store>;

    /// Asks the database for an answer, on a connection that serves nothing else.
    ///
    /// # Errors
    /// There is none within the time limit of a connection, 5 s.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Waits for what is under way and closes the connections; later calls answer [`StoreError::Unavailable`].
    async fn close(&self);
}
