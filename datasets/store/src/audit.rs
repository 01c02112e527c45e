//! The audit log: every write, and its author. A write through [`Store::audited`](crate::Store::audited) and its entry are one
//! transaction.

use crate::StoreError;
use crate::stored::{Stamp, whole};
use async_trait::async_trait;
use vocab::UnixSeconds;

/// One write, as an entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Time of the write.
    pub at: UnixSeconds,
    /// The name of a token, or of another author.
    pub actor: String,
    /// The public part of the token, if there was one.
    pub token_id: Option<String>,
    /// The route, such as `POST /v1/tasks`, or the name of a command.
    pub action: String,
    /// The object of the action: the path with its query.
    pub target: String,
    /// HTTP status; 0 for a command.
    pub status: u16,
    /// Values before and after, and the reason, as the caller writes them.
    pub detail_json: Option<String>,
}

/// A stored entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Rises with every entry.
    pub id: u64,
    /// The write.
    pub record: AuditRecord,
}

/// The audit log.
#[async_trait]
pub trait AuditStore {
    /// Appends entries, in their order.
    async fn record_audit(&self, records: &[AuditRecord]) -> Result<(), StoreError>;

    /// Entries from `from` on and before `to`, newest first, at most `limit`.
    async fn audit(&self, from: UnixSeconds, to: UnixSeconds, limit: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Deletes entries before `before`, in batches. Returns their number.
    async fn delete_audit_before(&self, before: UnixSeconds, of: AuditOf) -> Result<u64, StoreError>;
}

/// A selection of audit entries, for retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOf {
    /// All entries.
    Everything,
    /// Reports of pool states by schedulers, accepted or refused: thousands an hour, each outdated by the next. The entry of
    /// the first report, which decides the placement of a pool, is not one of them.
    ReportedStates,
}

impl AuditOf {
    /// Deletes one batch: `$1` is the time, `$2` the size.
    pub(crate) const fn delete(self) -> &'static str {
        match self {
            Self::Everything => {
                "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY at, id LIMIT $2)"
            }
            Self::ReportedStates => {
                r#"DELETE FROM audit WHERE id IN (
                       SELECT id FROM audit
                       WHERE at < $1 AND action = 'PUT /v1/pools/{id}/state'
                         AND (detail_json IS NULL OR detail_json LIKE '{"state":%' OR detail_json LIKE '{"hp_jobs":%')
                       ORDER BY at, id LIMIT $2)"#
            }
        }
    }
}

/// Maps the failure of an audit entry, whose write then fails too. A database that is unavailable, busy or full keeps its
/// error.
pub(crate) fn not_audited(fault: sqlx::Error) -> StoreError {
    match StoreError::from(fault) {
        fault if fault.is_retryable() => fault,
        full @ StoreError::Full { .. } => full,
        other => StoreError::NotAudited { reason: other.to_string() },
    }
}

row! {
    pub(crate) struct AuditRow {
        pub id: i64,
        pub at: Stamp,
        pub actor: String,
        pub token_id: Option<String>,
        pub action: String,
        pub target: String,
        pub status: i64,
        pub detail_json: Option<String>,
    }
}

impl TryFrom<AuditRow> for AuditEntry {
    type Error = StoreError;

    fn try_from(row: AuditRow) -> Result<Self, StoreError> {
        let record = AuditRecord {
            at: row.at.0,
            actor: row.actor,
            token_id: row.token_id,
            action: row.action,
            target: row.target,
            status: whole("status of a write", row.status)?,
            detail_json: row.detail_json,
        };
        Ok(Self { id: whole("number of a write", row.id)?, record })
    }
}
