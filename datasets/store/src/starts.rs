//! Knowledge of the starts of a pool's tasks, as bytes of the learner.

use crate::StoreError;
use async_trait::async_trait;
use vocab::{PoolId, UnixSeconds};

/// Knowledge of starts, by pool.
#[async_trait]
pub trait StartStore {
    /// Stores what was learned of a pool, in place of an earlier state.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the cluster is unknown.
    async fn put_starts(&self, pool: &PoolId, saved_at: UnixSeconds, learned: &[u8]) -> Result<(), StoreError>;

    /// As it was stored last; `None` before the first time.
    async fn starts(&self, pool: &PoolId) -> Result<Option<Vec<u8>>, StoreError>;
}
