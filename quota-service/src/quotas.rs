//! The quotas as they are answered: read without a lock, replaced as a whole, counted at each publication.

use crate::core::Core;
use crate::drift::Drifts;
use crate::engine::{Limits, TaskCounts};
use crate::promises::kept::KeptByPool;
use crate::published::{Published, PublishedPool};
use arc_swap::ArcSwap;
use placement::Limit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use vocab::{MilliGpus, PoolId, PoolState, UnixSeconds};

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
    /// Pools whose quotas rest on what was changed since, with the number of the change.
    outdated: Mutex<BTreeMap<PoolId, Change>>,
    changes: AtomicU64,
}

/// The number of a change by which quotas are outdated; later ones are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change(u64);

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
            outdated: Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// Notes that what the quotas of a pool rest on has changed: nothing is promised by them until a renewal that begins from now on
    /// has published others.
    pub fn outdate(&self, pool: &PoolId) {
        let mut outdated = self.outdated.lock().unwrap_or_else(PoisonError::into_inner);
        outdated.insert(pool.clone(), Change(self.changes.fetch_add(1, Ordering::AcqRel) + 1));
    }

    /// The last change so far: quotas whose inputs are read from now on know it.
    #[must_use]
    pub fn last_change(&self) -> Change {
        Change(self.changes.load(Ordering::Acquire))
    }

    /// The limits that a pool has at this time.
    #[must_use]
    pub fn limits(&self, pool: &PoolId, now: UnixSeconds) -> Limits {
        let limits = self.published.load().limits(pool, now);
        match limits {
            Limits::Set(limits) if self.is_outdated(pool) => {
                Limits::Set(limits.into_iter().map(|limit| Limit { quota: MilliGpus::ZERO, ..limit }).collect())
            }
            limits => limits,
        }
    }

    fn is_outdated(&self, pool: &PoolId) -> bool {
        self.outdated.lock().unwrap_or_else(PoisonError::into_inner).contains_key(pool)
    }

    /// Publishes new quotas, whose inputs were read after `known`.
    pub fn publish_renewed(&self, pools: Vec<PublishedPool>, known: Change) {
        let ids: Vec<PoolId> = pools.iter().map(|pool| pool.id.clone()).collect();
        self.publish(pools);
        let mut outdated = self.outdated.lock().unwrap_or_else(PoisonError::into_inner);
        outdated.retain(|pool, change| *change > known || !ids.contains(pool));
    }

    /// Brings the answers of a pool that is placed here to what its tasks hold: what may still be admitted falls with what was
    /// admitted. A raise waits for the next renewal, and so do the quotas. `counts` are those of a pool that has begun since the last one.
    pub fn follow_tasks(&self, state: &PoolState, promised: u64, counts: &dyn Fn() -> TaskCounts) {
        let (cluster, gpu_model) = (state.pool.cluster.as_str(), state.pool.gpu_model.as_str());
        let mut has_changed = false;
        self.published.rcu(|published| {
            let followed = published.pool(cluster, gpu_model).and_then(|pool| pool.following(state, promised, counts));
            has_changed = followed.is_some();
            followed.map_or_else(|| Arc::clone(published), |pool| Arc::new(published.with([Arc::new(pool)])))
        });
        if has_changed {
            self.publications.send_modify(|count| *count += 1);
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
