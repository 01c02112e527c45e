//! Learned state of pools, as bytes of the learner: written together with the quotas that were computed from it.

use crate::StoreError;
use crate::stored::Stamp;
use async_trait::async_trait;
use vocab::{PoolId, UnixSeconds};

/// Learned state of a pool, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLearned {
    /// The pool.
    pub pool: PoolId,
    /// Time of this state.
    pub saved_at: UnixSeconds,
    /// State of the correction of its bounds.
    pub risk: Vec<u8>,
    /// State of the model of its demand, which is large. `None` keeps the stored one; a pool without one is not written.
    pub live: Option<Vec<u8>>,
}

/// Learned state of a pool, as it was written last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLearned {
    /// Time of this state.
    pub saved_at: UnixSeconds,
    /// State of the correction of its bounds.
    pub risk: Vec<u8>,
    /// State of the model of its demand.
    pub live: Vec<u8>,
}

/// Learned state of pools; [`QuotaStore::insert_quotas`](crate::QuotaStore::insert_quotas) writes it.
#[async_trait]
pub trait LearnedStore {
    /// Learned state of a pool; `None` before the first write.
    async fn learned(&self, pool: &PoolId) -> Result<Option<StoredLearned>, StoreError>;
}

/// Writes both states.
pub(crate) const SAVE: &str =
    "INSERT INTO learned (cluster, gpu_model, saved_at, risk, live) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (cluster, gpu_model) DO UPDATE
     SET saved_at = excluded.saved_at, risk = excluded.risk, live = excluded.live";
/// Writes the small state only.
pub(crate) const SAVE_RISK: &str = "UPDATE learned SET saved_at = $3, risk = $4 WHERE cluster = $1 AND gpu_model = $2";
pub(crate) const READ: &str = "SELECT saved_at, risk, live FROM learned WHERE cluster = $1 AND gpu_model = $2";

row! {
    pub(crate) struct LearnedRow {
        pub saved_at: Stamp,
        pub risk: Vec<u8>,
        pub live: Vec<u8>,
    }
}

impl From<LearnedRow> for StoredLearned {
    fn from(row: LearnedRow) -> Self {
        Self { saved_at: row.saved_at.0, risk: row.risk, live: row.live }
    }
}
