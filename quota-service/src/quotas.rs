//! The quotas as they are answered: read without a lock, replaced as a whole, counted at each publication.

use crate::core::Core;
use crate::drift::Drifts;
use crate::promises::kept::KeptByPool;
use crate::published::{Published, PublishedPool};
use arc_swap::ArcSwap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;
use vocab::{PoolId, PoolState};

pub struct Quotas {
    pub core: Arc<Core>,
    pub published: ArcSwap<Published>,
    /// Scores of the forecasts of the last seven days.
    pub drift: ArcSwap<Drifts>,
    /// Kept and broken promises of the last days.
    pub kept: ArcSwap<KeptByPool>,
    /// Number of publications; long polls and streams wait for the next one.
    pub publications: watch::Sender<u64>,
    /// Whether the pools of the database were read once.
    is_complete: AtomicBool,
}

impl Quotas {
    #[must_use]
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            published: ArcSwap::default(),
            drift: ArcSwap::default(),
            kept: ArcSwap::default(),
            publications: watch::Sender::new(0),
            is_complete: AtomicBool::new(false),
        }
    }

    /// Whether all pools of the database were read since the start. Before, a pool that is not published may exist.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    /// Notes that all pools of the database were read.
    pub fn set_complete(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// Lowers the published quotas of a pool at once where its reported state leaves less than they say. A raise waits for
    /// the next renewal.
    pub fn lower(&self, state: &PoolState) {
        let (cluster, gpu_model) = (state.pool.cluster.as_str(), state.pool.gpu_model.as_str());
        let published = self.published.load();
        // Headroom knows the state of a pool that it places from the tasks.
        let reported = published.pool(cluster, gpu_model).filter(|pool| pool.glance.tasks.is_none());
        let lowered = reported.and_then(|pool| pool.lowered(state));
        if let Some(pool) = lowered {
            self.publish(vec![pool]);
        }
    }

    /// Makes pools known of which nodes or usage were just stored: they are listed, and their settings can be read and changed,
    /// before their first renewal.
    pub fn know<'a>(&self, pools: impl IntoIterator<Item = &'a PoolId>) {
        let is_known =
            |published: &Published, id: &PoolId| published.pool(id.cluster.as_str(), id.gpu_model.as_str()).is_some();
        let mut new: BTreeSet<&PoolId> = pools.into_iter().collect();
        new.retain(|id| !is_known(&self.published.load(), id));
        if new.is_empty() {
            return;
        }
        // A renewal may publish them meanwhile, with more than is known here.
        self.published.rcu(|published| {
            let missing = new.iter().filter(|id| !is_known(published, id));
            let why = "its first computation runs: retry".to_owned();
            published.with(missing.map(|id| Arc::new(PublishedPool::without_quota((*id).clone(), why.clone()))))
        });
        self.publications.send_modify(|count| *count += 1);
    }

    /// Replaces the pools of the same ids.
    pub fn publish(&self, pools: Vec<PublishedPool>) {
        let pools: Vec<_> = pools.into_iter().map(Arc::new).collect();
        self.published.rcu(|published| published.with(pools.iter().cloned()));
        self.publications.send_modify(|count| *count += 1);
    }
}
