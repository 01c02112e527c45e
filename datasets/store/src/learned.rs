//! What was learned of pools, as bytes of their learner: written with the quotas that were made of it.

use crate::StoreError;
use crate::stored::Stamp;
use async_trait::async_trait;
use vocab::{PoolId, UnixSeconds};

/// What was learned of a pool, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLearned {
    pub pool: PoolId,
    pub saved_at: UnixSeconds,
    /// What its bounds are moved by.
    pub risk: Vec<u8>,
    /// How its demand moves; `None` leaves what is there, and writes nothing where nothing is.
    pub live: Option<Vec<u8>>,
}

/// What was learned of a pool, as it was written last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLearned {
    pub saved_at: UnixSeconds,
    pub risk: Vec<u8>,
    pub live: Vec<u8>,
}

#[async_trait]
pub trait LearnedStore {
    /// What was learned of a pool; `None` before the first time.
    async fn learned(&self, pool: &PoolId) -> Result<Option<StoredLearned>, StoreError>;
}

/// With what is large.
pub(crate) const SAVE: &str =
    "INSERT INTO learned (cluster, gpu_model, saved_at, risk, live) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (cluster, gpu_model) DO UPDATE
     SET saved_at = excluded.saved_at, risk = excluded.risk, live = excluded.live";
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
