//! The last state of each pool that an external scheduler reported.

use crate::StoreError;
use crate::stored::{Stamp, amount, horizon, pool, whole};
use async_trait::async_trait;
use vocab::{PoolId, PoolState, UnixSeconds};

/// A reported state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedState {
    /// The state.
    pub state: PoolState,
    /// Time of its arrival.
    pub received_at: UnixSeconds,
}

/// Reported states of pools.
#[async_trait]
pub trait PoolStateStore {
    /// Replaces the pool's state, unless the stored one has a later `as_of`: reports may overtake each other. A stored state
    /// from after `received_at` came from a wrong clock and is always replaced. Returns whether the state was stored.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the cluster is unknown.
    async fn put_pool_state(&self, state: &PoolState, received_at: UnixSeconds) -> Result<bool, StoreError>;

    /// Deletes the pool's state, if it has one.
    async fn delete_pool_state(&self, pool: &PoolId) -> Result<(), StoreError>;

    /// The last state; `None` if none was reported.
    async fn pool_state(&self, pool: &PoolId) -> Result<Option<ReceivedState>, StoreError>;
}

row! {
    pub(crate) struct StateRow {
        pub cluster: String,
        pub gpu_model: String,
        pub capacity_milli: i64,
        pub idle_milli: i64,
        pub longest_quota_wait_s: i64,
        pub as_of: Stamp,
        pub received_at: Stamp,
    }
}

/// A state from its rows; `spot` has guarantee hours and thousandths of GPUs.
pub(crate) fn received(row: &StateRow, spot: &[(i64, i64)]) -> Result<ReceivedState, StoreError> {
    let spot = spot.iter().map(|&(hours, milli)| Ok((horizon("guarantee hours", hours)?, amount("spot GPUs", milli)?)));
    let state = PoolState {
        pool: pool(&row.cluster, &row.gpu_model)?,
        capacity: amount("capacity", row.capacity_milli)?,
        idle: amount("idle GPUs", row.idle_milli)?,
        spot_by_guarantee: spot.collect::<Result<_, StoreError>>()?,
        longest_quota_wait_s: whole("longest quota wait", row.longest_quota_wait_s)?,
        as_of: row.as_of.0,
    };
    Ok(ReceivedState { state, received_at: row.received_at.0 })
}
