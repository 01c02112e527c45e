//! Quotas that another service computes, answered here.

use super::write;
use crate::quotas::Quotas;
use std::collections::BTreeSet;
use vocab::ClusterName;

/// Publishes what other services have stored, whenever it is new.
#[derive(Default)]
pub struct Follower {
    /// The last publication: the number of the newest quota, and the clusters that this service wrote for.
    seen: Option<(Option<i64>, BTreeSet<ClusterName>)>,
}

impl Follower {
    /// Looks for new quotas of clusters that this service does not write for. A database that does not answer has none: the
    /// last ones age.
    pub async fn follow(&mut self, quotas: &Quotas) {
        if !quotas.core.leases.follows() {
            self.seen = None;
            return;
        }
        let Ok(newest) = quotas.core.store.newest_quota().await else { return };
        let now = (newest, quotas.core.leases.led_clusters());
        if self.seen.as_ref() == Some(&now) {
            return;
        }
        match write::restored(quotas).await {
            Ok(pools) => {
                let others = pools.into_iter().filter(|pool| quotas.core.leases.led(&pool.id.cluster).is_none());
                quotas.publish(others.collect());
                quotas.set_complete();
                self.seen = Some(now);
            }
            Err(fault) => tracing::debug!(%fault, "cannot read the quotas of other services"),
        }
    }
}
