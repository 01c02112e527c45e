//! Writes a plan, and turns it into answers.

use super::followed_reports::FollowedReports;
use super::history::{History, news};
use super::read;
use crate::core::Core;
use crate::engine::Placed;
use crate::metrics;
use crate::plan::{self, ClusterInputs, EtaMoved, Held, PoolPlan};
use crate::published::{Answer, Glance, PublishedPool};
use crate::quotas::Quotas;
use placement::eta::EtaDecision;
use std::collections::BTreeMap;
use store::{EtaMove, NewLearned, Store, StoreError, StoredQuota};
use vocab::{HorizonHours, PlacedBy, PoolId, PoolState, UnixSeconds};
use wire::{Explanation, QuotaAnswer};

/// Moves of eta that an explanation shows.
const MOVES_SHOWN: u32 = 5;
const DAY_S: i64 = vocab::SECONDS_PER_DAY;

/// Writes moves of eta, and quotas with the learned state, through the store of the lease. Returns the pools to publish. Under a
/// virtual clock nothing is written.
pub async fn write(
    quotas: &Quotas,
    held: &dyn Store,
    inputs: &ClusterInputs,
    placed: &BTreeMap<PoolId, Placed>,
    (plans, learned): (Vec<PoolPlan>, &[NewLearned]),
    history: &mut History,
) -> Result<Vec<PublishedPool>, StoreError> {
    let mut published = Vec::with_capacity(plans.len());
    let mut stored = Vec::new();
    for (plan, pool) in plans.into_iter().zip(&inputs.pools) {
        match plan.outcome {
            Ok(quota) => {
                if let Some(moved) = &plan.moved
                    && !apply(held, &plan.id, moved, inputs.now).await?
                {
                    continue;
                }
                let moves = quotas.core.store.eta_moves(&plan.id, MOVES_SHOWN).await?;
                let mut glance = glance(&quotas.core, &plan.id, placed.get(&plan.id), inputs.now).await?;
                glance.placed_by = pool.settings.placed_by;
                let ready = PublishedPool { glance, ..PublishedPool::of(quota, plan.answers, moves) };
                stored.extend(to_store(&ready, history, quotas.core.config.explanation_s));
                published.push(ready);
            }
            Err(why) => {
                let mut kept = keep(quotas, plan.id, why.to_string(), pool.known.state.as_ref());
                kept.glance.placed_by = pool.settings.placed_by;
                kept.glance.capacity = pool.known.capacity().map(|(capacity, _)| capacity);
                published.push(kept);
            }
        }
    }
    if !quotas.core.clock.is_virtual() {
        let quotas: Vec<_> = stored.iter().map(|(quota, _)| quota.clone()).collect();
        held.insert_quotas(&quotas, learned).await?;
        history.note(&stored);
    }
    Ok(published)
}

/// Figures of a pool beside its quotas.
async fn glance(core: &Core, pool: &PoolId, placed: Option<&Placed>, now: UnixSeconds) -> Result<Glance, StoreError> {
    let outcomes_24h = core.store.count_outcomes(pool, now.plus_s(-DAY_S)).await?;
    Ok(Glance { outcomes_24h, tasks: placed.map(|placed| placed.tasks), placed_by: None, capacity: None })
}

/// Writes a move of eta. `false` where another writer moved it meanwhile: the next renewal reads that move.
async fn apply(held: &dyn Store, pool: &PoolId, moved: &EtaMoved, now: UnixSeconds) -> Result<bool, StoreError> {
    let EtaDecision::Move { to, reason, .. } = moved.decision else { return Ok(true) };
    let step = EtaMove {
        pool: pool.clone(),
        at: now,
        from_micro: moved.from.eta.micro(),
        to_micro: to.micro(),
        reason: reason.to_string(),
        kept: moved.kept,
        broken: moved.broken,
    };
    match held.apply_eta_move(&step, &moved.spent).await {
        Ok(()) => {
            metrics::eta_moved(pool, to > moved.from.eta);
            tracing::info!(pool = %pool, from = %moved.from.eta, to = %to, why = %reason, "eta moved");
            Ok(true)
        }
        Err(StoreError::Conflict { .. }) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// The rows of a pool's new quotas. Their explanations leave out the forecasts of single organizations, and who has not reported,
/// which the run and the usage give again. Each with its news.
fn to_store(pool: &PublishedPool, history: &History, every_s: u64) -> Vec<(StoredQuota, String)> {
    let Some(made_of) = &pool.made_of else { return Vec::new() };
    let row = |quota: &placement::Quota| {
        let answer = pool.answer(quota.hours.get())?;
        let mut explanation = plan::explanation(made_of, quota, answer.fresh.clone(), &pool.eta_moves);
        explanation.forecast.organizations.clear();
        explanation.forecast.not_reported.clear();
        let news = news(&answer.fresh, &explanation);
        let row = StoredQuota {
            pool: pool.id.clone(),
            hours: quota.hours,
            computed_at: made_of.computed_at,
            quota: quota.quota,
            run_id: Some(made_of.run.id),
            settings_version: made_of.settings.version,
            answer_json: json(&answer.fresh),
            explanation_json: json(&explanation),
            is_explained: true,
        };
        let is_explained = history.is_new(&row, &news, every_s);
        Some((StoredQuota { is_explained, ..row }, news))
    };
    made_of.quotas.iter().filter_map(row).collect()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("answers have finite numbers under string keys")
}

/// Hours of a stored answer as a type.
fn horizon(hours: u8) -> Option<HorizonHours> {
    HorizonHours::new(u64::from(hours)).ok()
}

/// The last answers of a pool, with the reason why they are not newer and with what spot tasks hold by the last report.
fn keep(quotas: &Quotas, id: PoolId, problem: String, state: Option<&PoolState>) -> PublishedPool {
    let held = |hours: u8| Some(state?.spot(horizon(hours)?));
    let last = quotas.published.load();
    match last.pool(id.cluster.as_str(), id.gpu_model.as_str()) {
        Some(known) => known.with_problem(Some(problem), &held),
        None => PublishedPool::without_quota(id, problem),
    }
}

/// As [`keep`], for the pools of a cluster for which nothing could be planned.
pub async fn kept(quotas: &Quotas, pools: Vec<PoolId>, problem: &str) -> Result<Vec<PublishedPool>, StoreError> {
    let mut all = Vec::with_capacity(pools.len());
    for id in pools {
        let (placed_by, capacity) = read::side_and_capacity(&quotas.core, &id).await?;
        let mut one = keep(quotas, id, problem.to_owned(), None);
        one.glance = Glance { placed_by, capacity, ..one.glance };
        all.push(one);
    }
    Ok(all)
}

/// The quotas that were stored last, as answers. One that no longer parses is left out and logged.
pub async fn restored(quotas: &Quotas) -> Result<Vec<PublishedPool>, StoreError> {
    let mut pools: BTreeMap<PoolId, PublishedPool> = BTreeMap::new();
    for stored in quotas.core.store.latest_quotas(None).await? {
        let fresh: Result<QuotaAnswer, _> = serde_json::from_str(&stored.answer_json);
        let explanation: Result<Explanation, _> = serde_json::from_str(&stored.explanation_json);
        let (fresh, explanation) = match (fresh, explanation) {
            (Ok(fresh), Ok(explanation)) => (fresh, explanation),
            (Err(fault), _) | (_, Err(fault)) => {
                tracing::warn!(pool = %stored.pool, %fault, "cannot read a stored quota: it is left out");
                continue;
            }
        };
        let placed_by = quotas.core.store.placement(&stored.pool).await?.map(|placement| placement.placed_by);
        // A state that was reported before Headroom placed the pool is outdated.
        let state = match placed_by {
            Some(PlacedBy::Headroom) => None,
            _ => quotas.core.store.pool_state(&stored.pool).await?,
        };
        let spot = state.map_or(plan::amount(fresh.used_gpus), |received| received.state.spot(stored.hours));
        let held = Held { spot, available: plan::amount(fresh.available_gpus) };
        let pool = pools.entry(stored.pool.clone()).or_insert_with(|| PublishedPool {
            problem: None,
            ..PublishedPool::without_quota(stored.pool.clone(), String::new())
        });
        if pool.answers.is_empty() {
            let since = quotas.core.clock.now().plus_s(-DAY_S);
            let outcomes_24h = quotas.core.store.count_outcomes(&stored.pool, since).await?;
            pool.glance = Glance { outcomes_24h, placed_by, ..pool.glance.clone() };
        }
        pool.answers.push(Answer::new(fresh, stored.computed_at, held, None));
        pool.answers.sort_by_key(Answer::hours);
        pool.stored_explanations.insert(stored.hours.get(), explanation);
    }
    // Once more with all hours at hand, which hold each other's availability.
    Ok(pools.into_values().map(|pool| offered(pool).with_problem(None, &|_| None)).collect())
}

/// The hours of the newest renewal alone: the others are no longer offered.
fn offered(mut pool: PublishedPool) -> PublishedPool {
    let newest = pool.answers.iter().map(|answer| answer.computed_at).max();
    pool.answers.retain(|answer| Some(answer.computed_at) == newest);
    let PublishedPool { answers, stored_explanations, .. } = &mut pool;
    stored_explanations.retain(|hours, _| answers.iter().any(|answer| answer.hours() == *hours));
    pool
}

/// Restores the quotas that were stored before a restart, lowered by the reports that were stored after them: they age from the time of
/// their computation.
///
/// # Errors
/// The database does not answer.
pub async fn restore(quotas: &Quotas) -> Result<(), StoreError> {
    if quotas.core.clock.is_virtual() {
        return Ok(());
    }
    let restored = restored(quotas).await?;
    if !restored.is_empty() {
        let reports = FollowedReports::read(quotas).await?;
        quotas.publish(restored.into_iter().map(|pool| reports.lowered(pool)).collect());
    }
    Ok(())
}
