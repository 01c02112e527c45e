//! What people know of the hours ahead: GPUs reserved for HP work or released from it, by whom and why.

use crate::stored::{Stamp, amount, pool, whole};
use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use vocab::{Override, OverrideId, OverrideKind, PoolId, UnixSeconds};

/// An override that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOverride {
    pub what: Override,
    pub reason: String,
    /// The name of a token, or who else it was.
    pub by: String,
    pub at: UnixSeconds,
}

/// An override as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideRecord {
    pub id: OverrideId,
    pub asked: NewOverride,
    /// When it was withdrawn, and by whom.
    pub withdrawn: Option<(UnixSeconds, String)>,
}

#[async_trait]
pub trait OverrideStore {
    /// Keeps an override, and `audit` in the same transaction. One that stands already with the same content, by the same
    /// person, is answered as it is, and nothing is written: a request may be repeated. `true` where it is new.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where its cluster is unknown.
    async fn put_override(
        &self,
        asked: &NewOverride,
        audit: &AuditRecord,
    ) -> Result<(OverrideRecord, bool), StoreError>;

    /// # Errors
    /// [`StoreError::NotFound`].
    async fn override_record(&self, id: OverrideId) -> Result<OverrideRecord, StoreError>;

    /// Takes an override out of force, and keeps it; one that was withdrawn stays as it is.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn withdraw_override(&self, id: OverrideId, at: UnixSeconds, by: &str) -> Result<OverrideRecord, StoreError>;

    /// Those of a pool, or of all, that end after `after`, by number. Withdrawn ones only where `withdrawn` asks for them.
    async fn overrides(
        &self,
        of: Option<&PoolId>,
        after: UnixSeconds,
        withdrawn: bool,
    ) -> Result<Vec<OverrideRecord>, StoreError>;
}

row! {
    pub(crate) struct OverrideRow {
        pub id: i64,
        pub cluster: String,
        pub gpu_model: String,
        pub kind: String,
        pub gpus_milli: i64,
        pub from_at: Stamp,
        pub to_at: Stamp,
        pub reason: String,
        pub created_by: String,
        pub created_at: Stamp,
        pub withdrawn_by: Option<String>,
        pub withdrawn_at: Option<Stamp>,
    }
}

impl TryFrom<OverrideRow> for OverrideRecord {
    type Error = StoreError;

    fn try_from(row: OverrideRow) -> Result<Self, StoreError> {
        let kind = OverrideKind::parse(&row.kind);
        let kind =
            kind.ok_or_else(|| StoreError::corrupt("kind of an override", &format!("{:?} is none", row.kind)))?;
        let what = Override {
            pool: pool(&row.cluster, &row.gpu_model)?,
            kind,
            gpus: amount("GPUs of an override", row.gpus_milli)?,
            from: row.from_at.0,
            to: row.to_at.0,
        };
        Ok(Self {
            id: OverrideId(whole("number of an override", row.id)?),
            asked: NewOverride { what, reason: row.reason, by: row.created_by, at: row.created_at.0 },
            withdrawn: row.withdrawn_at.zip(row.withdrawn_by).map(|(at, by)| (at.0, by)),
        })
    }
}

pub(crate) fn not_found(id: OverrideId) -> StoreError {
    StoreError::not_found("override", &id.0)
}
