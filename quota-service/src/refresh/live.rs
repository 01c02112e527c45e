//! The live bounds of pools, from one renewal to the next.

use crate::plan::{ClusterPlan, PoolInputs};
use forecaster::live::LiveBound;
use std::collections::BTreeMap;
use vocab::PoolId;

/// The live bound of a pool as it was left: none where its tasks are not placed here, and a new one where its settings are
/// others than before.
pub fn before(known: &BTreeMap<PoolId, LiveBound>, pool: &PoolInputs) -> Option<LiveBound> {
    pool.hp_demand?;
    let settings = &pool.settings.pool;
    let (rate, offered) = (settings.guarantee_rate, &settings.offered_hours);
    let same = known.get(&pool.id).filter(|live| live.is_of(rate, offered)).cloned();
    Some(same.unwrap_or_else(|| LiveBound::new(rate, offered)))
}

/// Keeps what was learned.
pub fn remember(known: &mut BTreeMap<PoolId, LiveBound>, plan: &ClusterPlan) {
    for pool in &plan.pools {
        if let Some(live) = pool.outcome.as_ref().ok().and_then(|quota| quota.live.as_ref()) {
            known.insert(pool.id.clone(), live.bound.clone());
        }
    }
}
