//! Settings of pools, texts that this crate does not parse, and the scheduler of each pool.

use crate::stored::Stamp;
use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use std::collections::BTreeMap;
use vocab::{PlacedBy, PoolId, UnixSeconds};

row! {
    /// Settings of a pool.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredSettings {
        /// The settings, as the caller writes them.
        pub settings_json: String,
        /// 1 for the first text of a pool; each replacement adds 1.
        pub version: i64,
    }
}

/// The side that places the tasks of a pool, and the author of that decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolPlacement {
    /// The service, or an external scheduler.
    pub placed_by: PlacedBy,
    /// Time of the decision; `None` if the migration to this schema decided.
    pub since: Option<UnixSeconds>,
    /// The name of a token, or `migration`.
    pub set_by: String,
}

/// Settings and placement of pools.
#[async_trait]
pub trait SettingsStore: Sync {
    /// Stores the text if the stored version is the `expected` one; `None` expects that nothing is stored yet. Returns the
    /// new version.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if another version is stored; [`StoreError::NotFound`] if the cluster is unknown.
    async fn put_settings(&self, pool: &PoolId, settings_json: &str, expected: Option<i64>) -> Result<i64, StoreError> {
        self.put_settings_and_placement(pool, settings_json, expected, None).await
    }

    /// As [`put_settings`](Self::put_settings), and replaces the placement in the same transaction.
    ///
    /// # Errors
    /// As there.
    async fn put_settings_and_placement(
        &self,
        pool: &PoolId,
        settings_json: &str,
        expected: Option<i64>,
        placement: Option<&PoolPlacement>,
    ) -> Result<i64, StoreError>;

    /// Settings of a pool; `None` if nothing is stored.
    async fn settings(&self, pool: &PoolId) -> Result<Option<StoredSettings>, StoreError>;

    /// Decides the placement of an undecided pool, and writes the audit entry with it. Returns the valid placement, which may
    /// be an earlier decision.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the cluster is unknown.
    async fn decide_placement(
        &self,
        pool: &PoolId,
        placed_by: PlacedBy,
        audit: &AuditRecord,
    ) -> Result<PoolPlacement, StoreError>;

    /// The placement of a pool; `None` while it is undecided.
    async fn placement(&self, pool: &PoolId) -> Result<Option<PoolPlacement>, StoreError>;

    /// The side that places each pool whose side is decided.
    async fn sides(&self) -> Result<BTreeMap<PoolId, PlacedBy>, StoreError>;
}

pub(crate) const DECIDE: &str =
    "INSERT INTO pool_placement (cluster, gpu_model, placed_by, since, set_by) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (cluster, gpu_model) DO NOTHING";
pub(crate) const REPLACE: &str =
    "INSERT INTO pool_placement (cluster, gpu_model, placed_by, since, set_by) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (cluster, gpu_model) DO UPDATE
     SET placed_by = excluded.placed_by, since = excluded.since, set_by = excluded.set_by";
pub(crate) const READ: &str =
    "SELECT placed_by, since, set_by FROM pool_placement WHERE cluster = $1 AND gpu_model = $2";

row! {
    pub(crate) struct PlacementRow {
        pub placed_by: String,
        pub since: Option<Stamp>,
        pub set_by: String,
    }
}

impl TryFrom<PlacementRow> for PoolPlacement {
    type Error = StoreError;

    fn try_from(row: PlacementRow) -> Result<Self, StoreError> {
        let placed_by = side(&row.placed_by)?;
        Ok(Self { placed_by, since: row.since.map(|since| since.0), set_by: row.set_by })
    }
}

pub(crate) fn side(text: &str) -> Result<PlacedBy, StoreError> {
    let unknown = || StoreError::corrupt("placed_by", &format!("unknown value {text:?}"));
    PlacedBy::parse(text).ok_or_else(unknown)
}

pub(crate) fn another_version(pool: &PoolId, expected: Option<i64>) -> StoreError {
    let expected = expected.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
    let what = format!(
        "another version is stored, and {expected} was given: GET the settings, change them, and send all of them with the version that they have"
    );
    StoreError::conflict("settings of", pool, what)
}
