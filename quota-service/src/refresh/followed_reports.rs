//! Reports of external schedulers to another service, and the side that places each pool: a service that follows lowers its answers by a
//! report, and shows the side, as the leader does.

use crate::published::{PublishedPool, Report};
use crate::quotas::Quotas;
use std::collections::BTreeMap;
use store::StoreError;
use vocab::{PlacedBy, PoolId};

/// The sides of all pools, and their last reports.
pub(super) struct FollowedReports {
    sides: BTreeMap<PoolId, PlacedBy>,
    reports: BTreeMap<PoolId, Report>,
}

impl FollowedReports {
    /// As the database has them now. Quotas that are lowered by them must have been read before: an older report would lower quotas that
    /// were computed from a newer one.
    ///
    /// # Errors
    /// The database does not answer.
    pub(super) async fn read(quotas: &Quotas) -> Result<Self, StoreError> {
        let store = quotas.core.store.as_ref();
        // Their HP jobs, of which there may be thousands, are not read at each beat: the renewals of the service that leads count them.
        let report = |(pool, state)| (pool, Report::new(state, None));
        Ok(Self { reports: store.pool_states().await?.into_iter().map(report).collect(), sides: store.sides().await? })
    }

    /// Answers that are read from the database, lowered by the last report of their pool.
    pub(super) fn lowered(&self, pool: PublishedPool) -> PublishedPool {
        self.report(&pool.id).and_then(|report| pool.lowered(report)).unwrap_or(pool)
    }

    /// Brings the published answers of followed pools to them.
    pub(super) fn follow(&self, quotas: &Quotas) {
        let published = quotas.published.load();
        for pool in published.pools().filter(|pool| quotas.core.leases.led(&pool.id.cluster).is_none()) {
            let side = self.sides.get(&pool.id).copied();
            if let Some(side) = side.filter(|side| pool.glance.placed_by != Some(*side)) {
                quotas.note_side(&pool.id, side);
            }
            if let Some(report) = self.report(&pool.id) {
                quotas.lower(report);
            }
        }
    }

    /// The last report of a pool that an external scheduler places: one of before Headroom placed it is outdated.
    fn report(&self, pool: &PoolId) -> Option<&Report> {
        self.reports.get(pool).filter(|_| self.sides.get(pool) == Some(&PlacedBy::External))
    }
}
