//! What was written, by whom. A write through [`Store::audited`](crate::Store::audited) and its entry are one transaction.

use crate::StoreError;
use crate::stored::{Stamp, whole};
use async_trait::async_trait;
use vocab::UnixSeconds;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    pub at: UnixSeconds,
    /// The name of a token, or who else it was.
    pub actor: String,
    pub token_id: Option<String>,
    /// `POST /v1/tasks`, say, or the name of a command.
    pub action: String,
    /// What it was done to: the path with its query.
    pub target: String,
    /// HTTP status; 0 of a command.
    pub status: u16,
    /// What was before and after, and why, as the caller writes it.
    pub detail_json: Option<String>,
}

/// A write as it is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Rises with every entry.
    pub id: u64,
    pub record: AuditRecord,
}

#[async_trait]
pub trait AuditStore {
    async fn record_audit(&self, records: &[AuditRecord]) -> Result<(), StoreError>;

    /// Entries from `from` on and before `to`, newest first, at most `limit`.
    async fn audit(&self, from: UnixSeconds, to: UnixSeconds, limit: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Forgets entries from before `before`. Answers how many.
    async fn delete_audit_before(&self, before: UnixSeconds, of: AuditOf) -> Result<u64, StoreError>;
}

/// Which entries of the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOf {
    Everything,
    /// The states of pools that schedulers report, taken or refused: thousands an hour, each outdated by the next. That the first
    /// report decided who places a pool is not one of them.
    ReportedStates,
}

impl AuditOf {
    /// The rows of a batch: `$1` is the time, `$2` the size.
    pub(crate) const fn delete(self) -> &'static str {
        match self {
            Self::Everything => {
                "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY at, id LIMIT $2)"
            }
            Self::ReportedStates => {
                r#"DELETE FROM audit WHERE id IN (
                       SELECT id FROM audit
                       WHERE at < $1 AND action = 'PUT /v1/pools/{id}/state'
                         AND (detail_json IS NULL OR detail_json LIKE '{"state":%')
                       ORDER BY at, id LIMIT $2)"#
            }
        }
    }
}

/// An entry that the database refuses: the write that it tells of is not done either. A database that is away, busy or full stays
/// what it is.
pub(crate) fn not_audited(fault: StoreError) -> StoreError {
    match fault {
        fault if fault.is_retryable() => fault,
        StoreError::Full { .. } => fault,
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
