//! Requests for renewals of the quotas, and the parts that a renewal works on.

use super::pace::{Haste, Pace};
use crate::core::Core;
use crate::engine::Engine;
use crate::quotas::Quotas;
use serving::standing::Standing;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::StoreError;
use tokio::sync::Notify;
use vocab::{ClusterName, PlacedBy, PoolId};

pub struct Renewals {
    pub core: Arc<Core>,
    pub quotas: Arc<Quotas>,
    pub engine: Arc<Engine>,
    /// Faults that last, each logged at its beginning and its end.
    pub(super) faults: Standing,
    /// Start of the renewals that reports ask for.
    pub(super) pace: Pace,
    requests: Notify,
    ends: Notify,
    /// Clusters that this service has gained, and whose pools have not begun yet.
    gained: Mutex<Vec<ClusterName>>,
}

impl Renewals {
    #[must_use]
    pub fn new(core: Arc<Core>, quotas: Arc<Quotas>, engine: Arc<Engine>) -> Self {
        let seconds = Duration::from_secs;
        let pace = Pace::new(seconds(core.config.report_refresh_s), seconds(core.config.refresh_s));
        let (faults, requests, gained) = (Standing::new(), Notify::new(), Mutex::default());
        Self { core, quotas, engine, faults, pace, requests, ends: Notify::new(), gained }
    }

    /// Requests a renewal of every cluster; several requests become one.
    pub fn request_refresh(&self) {
        self.requests.notify_one();
    }

    /// Ends the renewals, after the one that runs.
    pub fn end(&self) {
        self.ends.notify_one();
    }

    /// Returns once they are to end.
    pub(super) async fn ended(&self) {
        self.ends.notified().await;
    }

    /// Requests a renewal of a cluster, after the least interval of its haste.
    pub fn request_renewal(&self, cluster: &ClusterName, haste: Haste) {
        self.pace.want(cluster, haste);
    }

    /// Notes that people have changed what the quotas of a pool rest on: nothing is promised by them any more, and others are made at
    /// once.
    pub fn outdate(&self, pool: &PoolId) {
        self.quotas.outdate(pool);
        self.request_renewal(&pool.cluster, Haste::Urgent);
    }

    /// After a renewal of a cluster: asks for another one soon where it has failed.
    pub(super) fn try_again(&self, cluster: &ClusterName, is_done: bool) {
        if is_done {
            self.pace.succeeded(cluster);
        } else {
            self.pace.failed(cluster);
        }
    }

    /// As [`try_again`](Self::try_again), where no cluster could be renewed.
    pub(super) fn try_all_again(&self) {
        self.core.leases.led_clusters().iter().for_each(|cluster| self.pace.failed(cluster));
    }

    /// Returns once a renewal of every cluster is requested.
    pub(super) async fn requested(&self) {
        self.requests.notified().await;
    }

    /// Renews and takes leases. The engine begins with the pools of gained clusters and leaves those of lost ones.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn update_leases(&self) -> Result<(), StoreError> {
        let changes = self.core.leases.look(&self.core.store).await?;
        for cluster in &changes.lost {
            if self.core.leases.has_namesake(cluster) {
                tracing::error!(
                    %cluster, replica = %self.core.config.replica_name(),
                    "lost the lease to another service that runs under the name of this one: give each a name of its own (replica), since each \
                     start of one of them takes the lease"
                );
                continue;
            }
            tracing::warn!(%cluster, "lost the lease: another service writes for the cluster now");
        }
        self.engine.leave(&changes.lost);
        self.quotas.gained(&changes.gained);
        for cluster in &changes.gained {
            tracing::info!(%cluster, "took the lease: this service writes for the cluster now");
        }
        if !changes.gained.is_empty() {
            self.request_refresh();
        }
        // Where the database fails now, or this call is dropped, the next call begins what this one has not.
        let gained = {
            let mut gained = self.gained.lock().unwrap_or_else(PoisonError::into_inner);
            gained.extend(changes.gained);
            gained.clone()
        };
        for pool in self.engine.lead(&gained).await? {
            // Its first task may have come since its quotas were read.
            let placement = self.core.store.placement(&pool).await?;
            if placement.is_some_and(|placement| placement.placed_by == PlacedBy::Headroom) {
                self.quotas.note_side(&pool, PlacedBy::Headroom);
            }
        }
        self.gained.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}
