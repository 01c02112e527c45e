//! Quotas that another service computes, answered here.

use super::bases::FollowedBases;
use super::followed::FollowedPools;
use super::followed_reports::FollowedReports;
use super::{read, write};
use crate::core::Core;
use crate::plan::NoQuota;
use crate::published::{Glance, Published, PublishedPool};
use crate::quotas::Quotas;
use placement::Unknown;
use placement::staleness::usage_is_missing;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use store::StoreError;
use vocab::{ClusterName, PlacedBy, PoolId, UnixSeconds};

/// Publishes what other services have stored, whenever it is new.
#[derive(Default)]
pub struct Follower {
    /// The last publication: the number of the newest quota, the pools, and the clusters that this service wrote for.
    seen: Option<(Option<i64>, BTreeSet<PoolId>, BTreeSet<ClusterName>)>,
    bases: FollowedBases,
    tasks: FollowedPools,
    /// When the pools without a quota were read last.
    without_at: Option<UnixSeconds>,
}

impl Follower {
    /// Looks for new quotas of clusters that this service does not write for, and for what reports and tasks have taken since. A database
    /// that does not answer has none: the last ones age.
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
        match FollowedReports::read(quotas).await {
            Ok(reports) => reports.follow(quotas),
            Err(fault) => tracing::debug!(%fault, "cannot read the reports to other services"),
        }
        self.tasks.follow(quotas).await;
        // Last: many pools may take longer than a beat waits.
        self.pools_without_quota(quotas).await;
    }

    async fn quotas(&mut self, quotas: &Quotas) {
        let Ok(newest) = quotas.core.store.newest_quota().await else { return };
        let Ok(stored) = quotas.core.store.stored_pools().await else { return };
        let now = (newest, stored, quotas.core.leases.led_clusters());
        if self.seen.as_ref() == Some(&now) {
            return;
        }
        match restored(quotas, &now.1).await {
            Ok((pools, missing, reports)) => {
                let pools = pools.into_iter().map(|pool| reports.lowered(self.tasks.followed(pool)));
                let others = pools.chain(missing);
                quotas.publish(others.filter(|pool| quotas.core.leases.led(&pool.id.cluster).is_none()).collect());
                quotas.set_complete();
                self.without_at = Some(quotas.core.clock.now());
                self.seen = Some(now);
            }
            Err(fault) => tracing::debug!(%fault, "cannot read the quotas of other services"),
        }
    }

    /// Reads what is known of the pools without a quota once in `refresh_s`, as the service that leads does: no new quota asks for it.
    async fn pools_without_quota(&mut self, quotas: &Quotas) {
        let (now, every_s) = (quotas.core.clock.now(), quotas.core.config.refresh_s.cast_signed());
        if self.without_at.is_some_and(|at| (0..every_s).contains(&now.since_s(at))) {
            return;
        }
        // Before the reading: one that is given up, since it takes too long, is not begun again at every beat.
        self.without_at = Some(now);
        let published = quotas.published.load_full();
        let is_followed = |pool: &PublishedPool| quotas.core.leases.led(&pool.id.cluster).is_none();
        let without = published.pools().filter(|pool| pool.answers.is_empty() && is_followed(pool));
        match without_quota(quotas, without.map(|pool| &pool.id)).await {
            Ok(mut pools) => {
                pools.retain(|pool| is_followed(pool) && is_new(&published, pool));
                if !pools.is_empty() {
                    quotas.publish(pools);
                }
            }
            Err(fault) => {
                self.without_at = None;
                tracing::debug!(%fault, "cannot read the pools without a quota of other services");
            }
        }
    }
}

/// The stored quotas, the stored pools without one, which are listed here as by the service that leads, and the reports of later.
async fn restored(
    quotas: &Quotas,
    stored: &BTreeSet<PoolId>,
) -> Result<(Vec<PublishedPool>, Vec<PublishedPool>, FollowedReports), StoreError> {
    let pools = write::restored(quotas).await?;
    let known: BTreeSet<&PoolId> = pools.iter().map(|pool| &pool.id).collect();
    let missing = without_quota(quotas, stored.iter().filter(|id| !known.contains(id))).await?;
    Ok((pools, missing, FollowedReports::read(quotas).await?))
}

/// Pools without a stored quota, with the reason.
async fn without_quota<'a>(
    quotas: &Quotas,
    pools: impl Iterator<Item = &'a PoolId>,
) -> Result<Vec<PublishedPool>, StoreError> {
    let (mut all, mut missing) = (Vec::new(), BTreeMap::new());
    for id in pools {
        let (placed_by, capacity) = read::side_and_capacity(&quotas.core, id).await?;
        if let Entry::Vacant(new) = missing.entry(id.cluster.clone()) {
            new.insert(Missing::of(&quotas.core, &id.cluster).await?);
        }
        let of_cluster = missing.get(&id.cluster).and_then(|missing| missing.why(placed_by));
        let why = of_cluster.or_else(|| capacity.is_none().then(|| NoQuota::from(Unknown::Capacity)));
        let why = why.map_or_else(|| of_leader(quotas, &id.cluster), |why| why.to_string());
        let pool = PublishedPool::without_quota(id.clone(), why);
        all.push(PublishedPool { glance: Glance { placed_by, capacity, ..pool.glance.clone() }, ..pool });
    }
    Ok(all)
}

/// The reason where the database has none: that of the leader is in its memory.
fn of_leader(quotas: &Quotas, cluster: &ClusterName) -> String {
    match quotas.core.leases.leader(cluster) {
        Some(leader) => leader.no_quota(),
        None => "no service leads the cluster yet: retry".to_owned(),
    }
}

/// Inputs of all quotas of a cluster that the database does not have, in the order in which a renewal asks for it.
enum Missing {
    Nothing,
    Run,
    Usage,
    RecentUsage { newest_end: UnixSeconds },
}

impl Missing {
    async fn of(core: &Core, cluster: &ClusterName) -> Result<Self, StoreError> {
        if core.store.promoted(cluster).await?.is_none() {
            return Ok(Self::Run);
        }
        let Some((_, last)) = core.store.measured_range(cluster).await? else { return Ok(Self::Usage) };
        let newest_end = last.plus_hours(1).instant();
        let is_old = usage_is_missing(newest_end, core.clock.now());
        Ok(if is_old { Self::RecentUsage { newest_end } } else { Self::Nothing })
    }

    /// Why a pool has no quota, as the leader has it.
    fn why(&self, side: Option<PlacedBy>) -> Option<NoQuota> {
        match *self {
            Self::Nothing => None,
            Self::Run => Some(NoQuota::NoRun),
            Self::Usage => Some(NoQuota::NoUsage),
            Self::RecentUsage { newest_end } if side == Some(PlacedBy::Headroom) => {
                Some(NoQuota::OldUsageHere { newest_end })
            }
            Self::RecentUsage { newest_end } => Some(NoQuota::OldUsage { newest_end }),
        }
    }
}

/// Whether a pool without a quota differs from what is published of it.
fn is_new(published: &Published, pool: &PublishedPool) -> bool {
    let known = published.pool(pool.id.cluster.as_str(), pool.id.gpu_model.as_str());
    let shown = |pool: &PublishedPool| (pool.problem.clone(), pool.glance.placed_by, pool.glance.capacity);
    known.is_none_or(|known| shown(known) != shown(pool))
}
