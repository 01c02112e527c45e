//! Quotas that another service computes, answered here.

use super::bases::FollowedBases;
use super::followed::FollowedPools;
use super::{read, write};
use crate::published::{Glance, PublishedPool};
use crate::quotas::Quotas;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{ClusterName, PoolId};

/// Publishes what other services have stored, whenever it is new.
#[derive(Default)]
pub struct Follower {
    /// The last publication: the number of the newest quota, the pools, and the clusters that this service wrote for.
    seen: Option<(Option<i64>, BTreeSet<PoolId>, BTreeSet<ClusterName>)>,
    bases: FollowedBases,
    tasks: FollowedPools,
}

impl Follower {
    /// Looks for new quotas of clusters that this service does not write for, and for what their tasks have taken since. A database that
    /// does not answer has none: the last ones age.
    pub async fn follow(&mut self, quotas: &Quotas) {
        if !quotas.core.leases.follows() {
            *self = Self::default();
            quotas.follow_holds(BTreeMap::new());
            return;
        }
        match self.bases.look(quotas).await {
            // The answers that are held back have lost what they offered.
            Ok(true) => self.seen = None,
            Ok(false) => {}
            Err(fault) => tracing::debug!(%fault, "cannot read the basis of quotas of other services"),
        }
        self.quotas(quotas).await;
        self.tasks.follow(quotas).await;
    }

    async fn quotas(&mut self, quotas: &Quotas) {
        let Ok(newest) = quotas.core.store.newest_quota().await else { return };
        let Ok(stored) = quotas.core.store.stored_pools().await else { return };
        let now = (newest, stored, quotas.core.leases.led_clusters());
        if self.seen.as_ref() == Some(&now) {
            return;
        }
        match write::restored(quotas).await {
            Ok(pools) => {
                let mut missing = without_quota(quotas, &now.1, &pools);
                for pool in &mut missing {
                    let Ok((placed_by, capacity)) = read::side_and_capacity(&quotas.core, &pool.id).await else {
                        return;
                    };
                    pool.glance = Glance { placed_by, capacity, ..pool.glance.clone() };
                }
                let pools = pools.into_iter().map(|pool| self.tasks.followed(pool));
                let others = pools.chain(missing);
                quotas.publish(others.filter(|pool| quotas.core.leases.led(&pool.id.cluster).is_none()).collect());
                quotas.set_complete();
                self.seen = Some(now);
            }
            Err(fault) => tracing::debug!(%fault, "cannot read the quotas of other services"),
        }
    }
}

/// The stored pools that have no stored quota, with the reason: they are listed here as by the service that leads.
fn without_quota(quotas: &Quotas, stored: &BTreeSet<PoolId>, known: &[PublishedPool]) -> Vec<PublishedPool> {
    let known: BTreeSet<&PoolId> = known.iter().map(|pool| &pool.id).collect();
    let why = |id: &PoolId| match quotas.core.leases.leader(&id.cluster) {
        Some(leader) => leader.no_quota(),
        None => "no service leads the cluster yet: retry".to_owned(),
    };
    let missing = stored.iter().filter(|id| !known.contains(id));
    missing.map(|id| PublishedPool::without_quota(id.clone(), why(id))).collect()
}
