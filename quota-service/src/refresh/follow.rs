//! Quotas that another service computes, answered here.

use super::{Service, write};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use vocab::ClusterName;

/// Publishes what other services have stored, whenever it is new.
#[derive(Default)]
pub struct Follower {
    /// What was last published: the number of the newest quota, and the clusters that this service wrote for.
    seen: Option<(Option<i64>, BTreeSet<ClusterName>)>,
}

impl Follower {
    /// Looks for new quotas of clusters that this service does not write for. A database that does not answer has none: the
    /// last ones age.
    pub async fn follow(&mut self, service: &Service) {
        if !service.leases.follows() {
            self.seen = None;
            return;
        }
        let Ok(newest) = service.store.newest_quota().await else { return };
        let now = (newest, service.leases.led_clusters());
        if self.seen.as_ref() == Some(&now) {
            return;
        }
        match write::restored(service).await {
            Ok(pools) => {
                let others = pools.into_iter().filter(|pool| service.leases.led(&pool.id.cluster).is_none());
                service.publish(others.collect());
                service.looked.store(true, Ordering::Release);
                self.seen = Some(now);
            }
            Err(fault) => tracing::debug!(%fault, "the quotas of other services were not read"),
        }
    }
}
