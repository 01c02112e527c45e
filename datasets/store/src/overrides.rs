//! Overrides: GPUs that an operator reserves for HP work, or releases from it, for some hours ahead.

use crate::stored::{Stamp, amount, pool, whole};
use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use vocab::{Override, OverrideId, OverrideKind, PoolId, UnixSeconds};

/// A requested override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOverride {
    /// Pool, kind, GPUs and hours.
    pub what: Override,
    /// The reason, as its author writes it.
    pub reason: String,
    /// Its author: the name of a token, or another name.
    pub by: String,
    /// Time of the request.
    pub at: UnixSeconds,
}

/// A stored override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideRecord {
    /// Its number.
    pub id: OverrideId,
    /// The request.
    pub asked: NewOverride,
    /// Time and author of its withdrawal.
    pub withdrawn: Option<(UnixSeconds, String)>,
}

/// Overrides.
#[async_trait]
pub trait OverrideStore {
    /// Stores an override, and `audit` in the same transaction. Returns it, and `true` if it is new. If a valid override has
    /// the same content and author, it is returned and nothing is written: a request may be repeated.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if its cluster is unknown.
    async fn put_override(
        &self,
        asked: &NewOverride,
        audit: &AuditRecord,
    ) -> Result<(OverrideRecord, bool), StoreError>;

    /// One override, valid or withdrawn.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn override_record(&self, id: OverrideId) -> Result<OverrideRecord, StoreError>;

    /// Withdraws an override, which stays stored. A second withdrawal changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn withdraw_override(&self, id: OverrideId, at: UnixSeconds, by: &str) -> Result<OverrideRecord, StoreError>;

    /// Overrides of a pool, or of all pools, that end after `after`, by number; withdrawn ones only if `withdrawn` is true.
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
            kind.ok_or_else(|| StoreError::corrupt("kind of an override", &format!("unknown value {:?}", row.kind)))?;
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
