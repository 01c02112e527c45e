//! Reports of external schedulers to another service, and the side that places each pool: a service that follows lowers its answers by a
//! report, and shows the side, as the leader does.

use crate::published::PublishedPool;
use crate::quotas::Quotas;
use std::collections::BTreeMap;
use store::StoreError;
use vocab::{PlacedBy, PoolId, PoolState};

/// The sides of all pools, and their last reports.
pub(super) struct FollowedReports {
    sides: BTreeMap<PoolId, PlacedBy>,
    states: BTreeMap<PoolId, PoolState>,
}

impl FollowedReports {
    /// As the database has them now. Quotas that are lowered by them must have been read before: an older report would lower quotas that
    /// were computed from a newer one.
    ///
    /// # Errors
    /// The database does not answer.
    pub(super) async fn read(quotas: &Quotas) -> Result<Self, StoreError> {
        let store = quotas.core.store.as_ref();
        Ok(Self { states: store.pool_states().await?, sides: store.sides().await? })
    }

    /// Answers that are read from the database, lowered by the last report of their pool.
    pub(super) fn lowered(&self, pool: PublishedPool) -> PublishedPool {
        self.state(&pool.id).and_then(|state| pool.lowered(state)).unwrap_or(pool)
    }

    /// Brings the published answers of followed pools to them.
    pub(super) fn follow(&self, quotas: &Quotas) {
        let published = quotas.published.load();
        for pool in published.pools().filter(|pool| quotas.core.leases.led(&pool.id.cluster).is_none()) {
            let side = self.sides.get(&pool.id).copied();
            if let Some(side) = side.filter(|side| pool.glance.placed_by != Some(*side)) {
                quotas.note_side(&pool.id, side);
            }
            if let Some(state) = self.state(&pool.id) {
                quotas.lower(state);
            }
        }
    }

    /// The last report of a pool that an external scheduler places: one of before Headroom placed it is outdated.
    fn state(&self, pool: &PoolId) -> Option<&PoolState> {
        self.states.get(pool).filter(|_| self.sides.get(pool) == Some(&PlacedBy::External))
    }
}
