//! Overrides in the reasons of a quota.

use super::cluster::PoolQuota;
use placement::{Quota, Reason};
use store::{NewOverride, OverrideRecord};
use vocab::{Override, OverrideId, UnixSeconds};
use wire::{OverrideBody, OverrideKindBody};

/// As placement takes them.
pub fn asked(records: &[OverrideRecord]) -> Vec<(OverrideId, Override)> {
    records.iter().map(|one| (one.id, one.asked.what.clone())).collect()
}

/// Whether an override stands, and its time is `now`.
#[must_use]
pub fn has_its_time(one: &OverrideRecord, now: UnixSeconds) -> bool {
    one.withdrawn.is_none() && one.asked.what.from <= now && now < one.asked.what.to
}

/// Effect of overrides on the bound of a quota.
pub fn asked_for(pool: &PoolQuota, quota: &Quota) -> Vec<Reason> {
    let one = pool.demand.iter().find(|one| one.bound.hours == quota.hours);
    let reserved = one.filter(|one| !one.reserved.is_zero()).map(|one| Reason::Reserved { gpus: one.reserved });
    let released = one.filter(|one| !one.released.is_zero()).map(|one| Reason::Released { gpus: one.released });
    reserved.into_iter().chain(released).collect()
}

/// How many overrides have their time at `now`.
#[must_use]
pub fn overrides_at(pool: &PoolQuota, now: UnixSeconds) -> usize {
    pool.overrides.iter().filter(|one| has_its_time(one, now)).count()
}

/// The overrides that a quota follows.
pub fn followed(pool: &PoolQuota, quota: &Quota) -> Vec<OverrideBody> {
    let applied = pool.demand.iter().find(|one| one.bound.hours == quota.hours).map(|one| one.applied.as_slice());
    let is_applied = |one: &&OverrideRecord| applied.is_some_and(|applied| applied.contains(&one.id));
    pool.overrides.iter().filter(is_applied).map(|one| override_body(one, pool.computed_at)).collect()
}

/// An override as it is answered at `now`.
#[must_use]
pub fn override_body(one: &OverrideRecord, now: UnixSeconds) -> OverrideBody {
    let NewOverride { what, reason, by, at } = &one.asked;
    OverrideBody {
        id: one.id.0,
        cluster: what.pool.cluster.to_string(),
        gpu_model: what.pool.gpu_model.to_string(),
        kind: what.kind.into(),
        gpus: what.gpus.as_gpus(),
        from: what.from.to_string(),
        to: what.to.to_string(),
        reason: reason.clone(),
        by: by.clone(),
        created_at: at.to_string(),
        withdrawn_at: one.withdrawn.as_ref().map(|(at, _)| at.to_string()),
        withdrawn_by: one.withdrawn.as_ref().map(|(_, by)| by.clone()),
        in_force: has_its_time(one, now),
    }
}

/// How far overrides moved the bound, and whose they are.
pub fn sentence(pool: &PoolQuota, quota: &Quota) -> String {
    let Some(one) = pool.demand.iter().find(|one| one.bound.hours == quota.hours) else { return String::new() };
    let texts = followed(pool, quota).into_iter().map(|one| {
        let word = if one.kind == OverrideKindBody::Reserve { '+' } else { '−' };
        format!("override {}: {word}{:.3} ({}, {})", one.id, one.gpus, one.by, one.reason)
    });
    let texts: Vec<_> = texts.collect();
    let least = if one.released.is_zero() { "" } else { "; no less than HP holds now" };
    if texts.is_empty() {
        texts.concat()
    } else {
        format!("; {} before overrides; {}{least}", one.before, texts.join("; "))
    }
}
