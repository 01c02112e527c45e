//! A quota as it would be under another capacity, demand, rate or eta: the computation of the plan once more.

use super::cluster::{BoundsOf, PoolQuota};
use super::explain::reason;
use super::kept::not_supported_at;
use super::overrides::asked;
use forecaster::bound::BoundError;
use placement::overrides::overridden;
use placement::what_if::{Change, changed_bounds, changed_supply, moved_bounds};
use placement::{Bound, Eta, Quota, Supply};
use vocab::{GuaranteeRate, HorizonHours, MilliGpus};
use wire::{WhatIfAnswer, WhatIfSide};

/// Assumed changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changes {
    pub capacity: Change,
    pub demand: Change,
    pub guarantee_rate: Option<GuaranteeRate>,
    pub eta: Option<Eta>,
}

/// The quota of some hours now, and under changes; `None` where those hours are not offered.
///
/// # Errors
/// The bound at the other rate is none.
pub fn what_if(pool: &PoolQuota, hours: HorizonHours, changes: &Changes) -> Result<Option<WhatIfAnswer>, BoundError> {
    let Some(place) = pool.quotas.iter().position(|one| one.hours == hours) else { return Ok(None) };
    // 1. Bounds: those of the plan, moved by what another rate does to the forecast's.
    let rate = changes.guarantee_rate.unwrap_or(pool.settings.pool.guarantee_rate);
    let before: Vec<Bound> = pool.demand.iter().map(|one| Bound { bound: one.before, ..one.bound }).collect();
    let at_rate = match changes.guarantee_rate {
        Some(rate) => at_rate(pool, &before, rate)?,
        None => before,
    };
    let needed = changes.demand.of(held_by_hp(pool));
    let demand = changed_bounds(&at_rate, changes.demand);
    let demand: Vec<Bound> = demand.iter().map(|one| Bound { bound: one.bound.max(needed), ..*one }).collect();
    // 2. Supply, and what people asked for, which stays as it is.
    let supply = changed_supply(&pool.supply, changes.capacity, changes.demand);
    let asked_for = overridden(&demand, &asked(&pool.overrides), needed, pool.computed_at);
    // 3. Quotas.
    let now = &pool.quotas[place];
    let eta = changes.eta.unwrap_or(now.eta);
    let then = &cycle::cut(&supply, &asked_for, eta)[place];
    Ok(Some(WhatIfAnswer {
        cluster: pool.id.cluster.to_string(),
        gpu_model: pool.id.gpu_model.to_string(),
        hours: hours.get(),
        now: side(pool, now, pool.settings.pool.guarantee_rate),
        then: side(pool, then, rate),
        steps: changed(pool, now, then, rate),
    }))
}

/// HP GPUs now, as well as they are known.
fn held_by_hp(pool: &PoolQuota) -> MilliGpus {
    pool.hp_demand.unwrap_or(pool.supply.latest_demand)
}

/// The bounds at another guarantee rate. Experts are weighed at each rate by itself, so that the mixture of a higher one may state a little less:
/// a higher rate never has a lower bound here, nor a lower one a higher.
fn at_rate(pool: &PoolQuota, before: &[Bound], rate: GuaranteeRate) -> Result<Vec<Bound>, BoundError> {
    let (set, more_steps) = (Some(pool.aggregation), pool.more_steps);
    let of = BoundsOf { forecasts: pool.corrected.issued(), corrected: &pool.corrected, set, more_steps };
    let at_rate = of.at(&pool.id, &pool.settings.pool.offered_hours, rate)?.bounds;
    let is_higher = rate.as_f64() > pool.settings.pool.guarantee_rate.as_f64();
    let in_order = |from: MilliGpus, to: MilliGpus| if is_higher { to.max(from) } else { to.min(from) };
    let bounds = pool.bounds.iter().zip(&at_rate).map(|(one, other)| (one.bound, in_order(one.bound, other.bound)));
    let (from, to): (Vec<_>, Vec<_>) = bounds.unzip();
    Ok(moved_bounds(before, &from, &to))
}

fn side(pool: &PoolQuota, quota: &Quota, rate: GuaranteeRate) -> WhatIfSide {
    let reasons = quota.reasons.iter().cloned().chain(not_supported_at(pool, quota, rate));
    WhatIfSide {
        quota_gpus: quota.quota.as_gpus(),
        available_gpus: quota.available.as_gpus(),
        capacity_gpus: quota.capacity.as_gpus(),
        demand_bound_gpus: quota.demand_bound.as_gpus(),
        inventory_gpus: quota.inventory.as_gpus(),
        idle_gpus: quota.idle.as_gpus(),
        used_gpus: quota.used.as_gpus(),
        eta: quota.eta.as_f64(),
        guarantee_rate: rate.as_f64(),
        reasons: reasons.map(|one| reason(&one)).collect(),
    }
}

/// Differences, a sentence each, in the order of the computation.
fn changed(pool: &PoolQuota, now: &Quota, then: &Quota, rate: GuaranteeRate) -> Vec<String> {
    let Supply { capacity, idle, .. } = &pool.supply;
    let hours = now.hours;
    let mut steps = Vec::new();
    if then.capacity != *capacity {
        steps.push(format!("C = {} GPUs instead of {capacity}", then.capacity));
    }
    if rate != pool.settings.pool.guarantee_rate {
        steps.push(format!("p = {rate} instead of {}", pool.settings.pool.guarantee_rate));
    }
    if then.demand_bound != now.demand_bound {
        steps.push(format!("B_{hours} = {} GPUs instead of {}", then.demand_bound, now.demand_bound));
    }
    steps.push(format!("f = max(0, {} − {}) = {}", then.capacity, then.demand_bound, then.inventory));
    steps.push(format!("η · f = {} × {} = {}, rounded down", then.eta, then.inventory, then.scaled_inventory));
    if then.idle != *idle {
        steps.push(format!("S0 = {} GPUs instead of {idle}: idle GPUs come and go first", then.idle));
    }
    let decided = then.reasons.first().map(ToString::to_string).unwrap_or_default();
    let (scaled, ceiling) = (then.scaled_inventory, then.ceiling);
    steps.push(format!("Q_{hours} = min({scaled}, {ceiling}) = {} instead of {}: {decided}", then.quota, now.quota));
    steps
}
