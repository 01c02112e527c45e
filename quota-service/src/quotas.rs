//! The quotas as they are answered: read without a lock, replaced as a whole, counted at each publication.

use crate::core::Core;
use crate::drift::Drifts;
use crate::engine::{Limits, TaskCounts};
use crate::promises::kept::KeptByPool;
use crate::published::{Hold, Published, PublishedPool, Report, TasksNow};
use arc_swap::ArcSwap;
use placement::Limit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use vocab::{ClusterName, MilliGpus, PlacedBy, PoolId, UnixSeconds};

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
    /// Clusters whose pools no renewal could read since.
    unread: Mutex<BTreeSet<ClusterName>>,
    basis: Mutex<Basis>,
    changes: AtomicU64,
}

/// The basis of the published quotas. A publication holds its lock, so that no older answer takes the place of one that is held back.
#[derive(Default)]
struct Basis {
    /// Pools whose quotas rest on what was changed since, with the number of the change.
    outdated: BTreeMap<PoolId, Change>,
    /// The epoch of the lease under which the quotas of each pool were renewed here last.
    renewed: BTreeMap<PoolId, u64>,
    /// Pools by whose quotas the service that leads promises nothing, as their stored basis says.
    followed: BTreeMap<PoolId, Hold>,
    /// The last report of each pool of an external scheduler, and when it was stored.
    reports: BTreeMap<PoolId, (UnixSeconds, Report)>,
}

impl Basis {
    /// A pool as its last report leaves it: a renewal that began before the report was stored may not have read it.
    fn lowered(&self, pool: PublishedPool) -> PublishedPool {
        let began_at = pool.answers.first().map(|answer| answer.computed_at);
        let report = self.reports.get(&pool.id).filter(|(at, _)| began_at.is_some_and(|began_at| *at >= began_at));
        report.and_then(|(_, report)| pool.lowered(report)).unwrap_or(pool)
    }
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
            unread: Mutex::default(),
            basis: Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// Notes that what the quotas of a pool rest on has changed: nothing is promised by them until a renewal that begins from now on
    /// has published others, and the answers of a pool that is placed here say so.
    pub fn outdate(&self, pool: &PoolId) {
        let mut basis = self.basis();
        basis.outdated.insert(pool.clone(), Change(self.changes.fetch_add(1, Ordering::AcqRel) + 1));
        self.hold_back(&basis, |known| known == pool);
    }

    /// Shows that nothing is promised by the quotas of these clusters, which this service has gained: what they rest on may have
    /// changed since they were stored.
    pub fn gained(&self, clusters: &[ClusterName]) {
        self.hold_back(&self.basis(), |pool| clusters.contains(&pool.cluster));
    }

    /// Shows where the services that lead other clusters promise nothing. Returns whether any pool that was held back is no more: its
    /// stored answers stand again.
    pub fn follow_holds(&self, holds: BTreeMap<PoolId, Hold>) -> bool {
        let mut basis = self.basis();
        let before = std::mem::replace(&mut basis.followed, holds);
        self.hold_back(&basis, |pool| basis.followed.contains_key(pool));
        before.keys().any(|pool| !basis.followed.contains_key(pool))
    }

    /// Notes the side that places a pool, which may have been undecided when its quotas were read.
    pub fn note_side(&self, pool: &PoolId, side: PlacedBy) {
        let basis = self.basis();
        self.published.rcu(|published| {
            let known = published.pool(pool.cluster.as_str(), pool.gpu_model.as_str());
            let undecided = known.filter(|known| known.glance.placed_by != Some(side));
            undecided.map_or_else(
                || Arc::clone(published),
                |known| Arc::new(published.with([Arc::new(known.with_side(side))])),
            )
        });
        self.hold_back(&basis, |known| known == pool);
    }

    fn basis(&self) -> MutexGuard<'_, Basis> {
        self.basis.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold_back(&self, basis: &Basis, is_wanted: impl Fn(&PoolId) -> bool) {
        let mut has_changed = false;
        self.published.rcu(|published| {
            let wanted = published.pools().filter(|pool| is_wanted(&pool.id));
            let held: Vec<_> = wanted.filter_map(|pool| Some(Arc::new(self.held_back(basis, pool)?))).collect();
            has_changed = !held.is_empty();
            if has_changed { Arc::new(published.with(held)) } else { Arc::clone(published) }
        });
        if has_changed {
            self.publications.send_modify(|count| *count += 1);
        }
    }

    /// A pool with answers that offer nothing, where nothing is promised by them; `None` where its answers stand.
    fn held_back(&self, basis: &Basis, pool: &PublishedPool) -> Option<PublishedPool> {
        pool.held_back(self.shown_hold(basis, pool)?)
    }

    /// Why nothing is promised, where that is for this service to say: the scheduler of an external pool promises.
    fn shown_hold(&self, basis: &Basis, pool: &PublishedPool) -> Option<Hold> {
        let hold = self.hold_of(basis, &pool.id)?;
        let is_shown = match hold {
            Hold::Change => pool.glance.placed_by != Some(PlacedBy::External),
            Hold::NotRenewed => pool.glance.placed_by == Some(PlacedBy::Headroom),
        };
        is_shown.then_some(hold)
    }

    fn hold_of(&self, basis: &Basis, pool: &PoolId) -> Option<Hold> {
        let Some(led) = self.core.leases.led(&pool.cluster) else { return basis.followed.get(pool).copied() };
        if basis.outdated.contains_key(pool) {
            return Some(Hold::Change);
        }
        (basis.renewed.get(pool) != Some(&led.epoch)).then_some(Hold::NotRenewed)
    }

    /// Why nothing is promised by the quotas of a pool, by this service or by the one that leads; `None` where they stand.
    #[must_use]
    pub fn hold(&self, pool: &PoolId) -> Option<Hold> {
        self.hold_of(&self.basis(), pool)
    }

    /// Why nothing is promised by the quotas of a pool, with the fault of the last renewal.
    #[must_use]
    pub fn why_held(&self, pool: &PoolId) -> Option<String> {
        let detail = self.hold(pool)?.detail();
        let published = self.published.load();
        let known = published.pool(pool.cluster.as_str(), pool.gpu_model.as_str());
        let problem = known.and_then(|known| known.problem.as_ref());
        Some(
            problem
                .map_or_else(|| detail.to_owned(), |problem| format!("{detail} (the last one has failed: {problem})")),
        )
    }

    /// The last change so far: quotas whose inputs are read from now on know it.
    #[must_use]
    pub fn last_change(&self) -> Change {
        Change(self.changes.load(Ordering::Acquire))
    }

    /// The limits that a pool has at this time.
    #[must_use]
    pub fn limits(&self, pool: &PoolId, now: UnixSeconds) -> Limits {
        // Before the quotas: a renewal publishes them before it lets them be promised by.
        let is_held = self.hold(pool).is_some();
        match self.published.load().limits(pool, now) {
            Limits::Set(limits) if is_held => {
                Limits::Set(limits.into_iter().map(|limit| Limit { quota: MilliGpus::ZERO, ..limit }).collect())
            }
            Limits::Kept if is_held => Limits::Held,
            limits => limits,
        }
    }

    /// Publishes new quotas, whose inputs were read after `known` under the lease of an epoch.
    pub fn publish_renewed(&self, pools: Vec<PublishedPool>, known: Change, epoch: u64) {
        let mut basis = self.basis();
        for pool in pools.iter().filter(|pool| pool.problem.is_none()) {
            basis.renewed.insert(pool.id.clone(), epoch);
            if basis.outdated.get(&pool.id).is_some_and(|change| *change <= known) {
                basis.outdated.remove(&pool.id);
            }
        }
        self.publish_on(&basis, pools);
    }

    /// Brings the answers of a pool that is placed here to what its tasks hold: what may still be admitted falls with what was
    /// admitted. A raise waits for the next renewal, and so do the quotas. `counts` are those of a pool that has begun since the last one.
    pub fn follow_tasks(&self, now: &TasksNow, counts: &dyn Fn() -> TaskCounts) {
        let (cluster, gpu_model) = (now.state.pool.cluster.as_str(), now.state.pool.gpu_model.as_str());
        let (basis, mut has_changed) = (self.basis(), false);
        self.published.rcu(|published| {
            let followed = published.pool(cluster, gpu_model).and_then(|pool| pool.following(now, counts));
            has_changed = followed.is_some();
            // One that is known to be placed here only now may have to be held back.
            let shown = followed.map(|pool| self.held_back(&basis, &pool).unwrap_or(pool));
            shown.map_or_else(|| Arc::clone(published), |pool| Arc::new(published.with([Arc::new(pool)])))
        });
        drop(basis);
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

    /// Notes whether a renewal has read the pools of a cluster. Before the first one that has, any pool of it may exist.
    pub fn note_read(&self, cluster: &ClusterName, was_read: bool) {
        let is_known = was_read || self.published.load().pools().any(|pool| pool.id.cluster == *cluster);
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        if is_known {
            unread.remove(cluster);
        } else {
            unread.insert(cluster.clone());
        }
    }

    /// Whether the pools of a cluster could not be read since the start.
    #[must_use]
    pub fn is_unread(&self, cluster: &ClusterName) -> bool {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).contains(cluster)
    }

    /// Takes a stored report: lowers the published quotas of its pool at once where it leaves less than they say, and those that a
    /// renewal publishes which began before. A raise waits for the next renewal.
    pub fn take_report(&self, report: Report) {
        let mut basis = self.basis();
        self.lower_on(&basis, &report);
        basis.reports.insert(report.state.pool.clone(), (self.core.clock.now(), report));
    }

    /// Lowers the published quotas of a pool by its last report to another service.
    pub fn lower(&self, report: &Report) {
        self.lower_on(&self.basis(), report);
    }

    fn lower_on(&self, basis: &Basis, report: &Report) {
        let pool = &report.state.pool;
        let published = self.published.load();
        let lowered =
            published.pool(pool.cluster.as_str(), pool.gpu_model.as_str()).and_then(|pool| pool.lowered(report));
        if let Some(pool) = lowered {
            self.publish_on(basis, vec![pool]);
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
        self.publish_on(&self.basis(), pools);
    }

    fn publish_on(&self, basis: &Basis, pools: Vec<PublishedPool>) {
        let shown = |pool: PublishedPool| {
            let pool = basis.lowered(pool);
            Arc::new(self.held_back(basis, &pool).unwrap_or(pool))
        };
        let pools: Vec<_> = pools.into_iter().map(shown).collect();
        self.published.rcu(|published| published.with(pools.iter().cloned()));
        self.publications.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::tests::{published, reported};

    #[test]
    fn a_renewal_that_began_before_a_report_is_published_as_the_report_leaves_it() {
        let pool = published(&[(1, 60.0, 0.0)]);
        let began_at = pool.answers[0].computed_at;
        let quota_after = |after_s: i64| {
            let reports = BTreeMap::from([(pool.id.clone(), (began_at.plus_s(after_s), reported(20, &[])))]);
            Basis { reports, ..Basis::default() }.lowered(published(&[(1, 60.0, 0.0)])).answers[0].fresh.quota_gpus
        };
        assert_eq!([-1, 0, 2].map(quota_after), [60.0, 20.0, 20.0], "an earlier one was read");
    }
}
