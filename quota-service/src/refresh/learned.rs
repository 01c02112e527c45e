//! What was learned of pools from moment to moment, from one renewal to the next.

use crate::plan::{ClusterInputs, ClusterPlan, PoolInputs};
use cycle::Learned;
use std::collections::BTreeMap;
use vocab::PoolId;

/// Takes out what was learned of a pool, as its settings are now.
pub fn take(known: &mut BTreeMap<PoolId, Learned>, pool: &PoolInputs) -> Learned {
    let settings = &pool.settings.pool;
    let (rate, offered) = (settings.guarantee_rate, &settings.offered_hours);
    match known.remove(&pool.id) {
        Some(learned) => learned.made_for(rate, offered),
        None => Learned::new(rate, offered),
    }
}

/// Keeps what was learned; where a pool got no quota, what was before.
pub fn remember(known: &mut BTreeMap<PoolId, Learned>, inputs: &mut ClusterInputs, plan: &mut ClusterPlan) {
    for (before, pool) in inputs.pools.iter_mut().zip(&mut plan.pools) {
        if let Some(learned) = pool.learned.take().or_else(|| before.learned.take()) {
            known.insert(pool.id.clone(), learned);
        }
    }
}
