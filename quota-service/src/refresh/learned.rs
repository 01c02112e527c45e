//! State learned of pools from moment to moment: from one renewal to the next, and through the database past a restart
//! and a change of who writes.

use crate::plan::{ClusterInputs, ClusterPlan, PoolInputs};
use cycle::Learned;
use std::collections::BTreeMap;
use store::{NewLearned, Store, StoreError};
use vocab::{ClusterName, PoolId, UnixSeconds};

/// How demand moves is written once in so many seconds: it is large, and what is lost of it is measured again.
const LIVE_SAVED_S: i64 = 900;

/// State of the pools.
#[derive(Default)]
pub struct Known {
    pools: BTreeMap<PoolId, One>,
}

struct One {
    learned: Learned,
    /// When it was written with how demand moves.
    live_saved_at: Option<UnixSeconds>,
    /// When it learned last.
    learned_at: Option<UnixSeconds>,
}

impl Known {
    /// Takes out what was learned of a pool, as its settings are now: as it was left, as it was stored, or nothing.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn take(&mut self, store: &dyn Store, pool: &PoolInputs) -> Result<Learned, StoreError> {
        if !self.pools.contains_key(&pool.id) {
            let one = read(store, pool).await?;
            self.pools.insert(pool.id.clone(), one);
        }
        let settings = &pool.settings.pool;
        let (rate, offered) = (settings.guarantee_rate, &settings.offered_hours);
        let known = self.pools.get(&pool.id).map(|one| one.learned.clone());
        Ok(known.map_or_else(|| Learned::new(rate, offered), |learned| learned.made_for(rate, offered)))
    }

    /// Keeps what was learned; where a pool got no quota, what was before. Answers what is to be written with the quotas.
    pub fn remember(&mut self, inputs: &ClusterInputs, plan: &mut ClusterPlan) -> Vec<NewLearned> {
        let mut written = Vec::new();
        for pool in &mut plan.pools {
            let (Some(learned), Some(one)) = (pool.learned.take(), self.pools.get_mut(&pool.id)) else { continue };
            (one.learned, one.learned_at) = (learned, Some(inputs.now));
            written.push(one.to_write(&pool.id, inputs.now));
        }
        written
    }

    /// Notes what was written.
    pub fn note(&mut self, written: &[NewLearned]) {
        for new in written.iter().filter(|new| new.live.is_some()) {
            if let Some(one) = self.pools.get_mut(&new.pool) {
                one.live_saved_at = Some(new.saved_at);
            }
        }
    }

    /// How demand moves in the pools of a cluster, as far as it is not written: a service that ends writes it.
    pub fn unsaved(&self, cluster: &ClusterName) -> Vec<NewLearned> {
        let of_cluster = self.pools.iter().filter(|(pool, one)| {
            pool.cluster == *cluster && one.learned_at.is_some() && one.learned_at != one.live_saved_at
        });
        let all_of = |(pool, one): (&PoolId, &One)| {
            let (risk, live) = (one.learned.risk_bytes(), Some(one.learned.live_bytes()));
            Some(NewLearned { pool: pool.clone(), saved_at: one.learned_at?, risk, live })
        };
        of_cluster.filter_map(all_of).collect()
    }

    /// Forgets the pools for which `is_gone`: another service has learned of them meanwhile.
    pub fn forget(&mut self, is_gone: impl Fn(&PoolId) -> bool) {
        self.pools.retain(|pool, _| !is_gone(pool));
    }
}

impl One {
    fn to_write(&self, pool: &PoolId, now: UnixSeconds) -> NewLearned {
        // A clock that went back has no age to compare.
        let is_new = |before: UnixSeconds| (0..LIVE_SAVED_S).contains(&now.since_s(before));
        let live = (!self.live_saved_at.is_some_and(is_new)).then(|| self.learned.live_bytes());
        NewLearned { pool: pool.clone(), saved_at: now, risk: self.learned.risk_bytes(), live }
    }
}

/// As it was stored; what can no longer be read is logged, and the pool starts again.
async fn read(store: &dyn Store, pool: &PoolInputs) -> Result<One, StoreError> {
    let settings = &pool.settings.pool;
    let fresh = || Learned::new(settings.guarantee_rate, &settings.offered_hours);
    let stored = store.learned(&pool.id).await?;
    let learned = stored.map(|stored| Learned::from_bytes(&stored.risk, &stored.live));
    let learned = match learned {
        Some(Ok(learned)) => learned,
        Some(Err(fault)) => {
            let pool = &pool.id;
            tracing::warn!(%pool, %fault, "cannot read the learned state of the pool: for a day its bounds are those of the peak");
            fresh()
        }
        None => fresh(),
    };
    Ok(One { learned, live_saved_at: None, learned_at: None })
}
