//! Reports for people: measured demand, promises, nodes, runs, and what-if answers.

use super::ApiError;
use super::extract::{Path, Query, pool_id, published_pool, written_here};
use super::quota::nothing_for;
use crate::core::Core;
use crate::engine::{ListNodes, NodeUse};
use crate::plan::{self, Changes};
use crate::promises::{self, Present};
use crate::quotas::Quotas;
use crate::refresh::Renewals;
use crate::refresh::utilization::{Peaks, peaks_of};
use crate::settings;
use axum::Json;
use axum::extract::State;
use placement::Eta;
use placement::what_if::Change;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{NodeHour, RunRecord, StoreError};
use utoipa::IntoParams;
use vocab::{
    GuaranteeRate, HorizonHours, HourDemand, HourStart, MilliGpus, Organization, PoolId, SeriesId, UnixSeconds,
};
use wire::{
    DemandAnswer, NodeView, NodeViews, OrganizationDemand, Problem, PromotionBody, RunBody, RunList, WhatIfAnswer,
};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DemandQuery {
    cluster: String,
    gpu_model: String,
    /// Hours up to the present one, 72 if not given.
    #[param(minimum = 1, maximum = 1344)]
    hours: Option<u32>,
}

/// Demand: eight weeks. Nodes: the retention of their hours.
const MOST_DEMAND_HOURS: u32 = 1_344;
const MOST_NODE_HOURS: u32 = vocab::HOURS_PER_WEEK as u32;

fn hours_of(asked: Option<u32>, default: u32, most: u32) -> Result<i64, ApiError> {
    match asked.unwrap_or(default) {
        hours if (1..=most).contains(&hours) => Ok(i64::from(hours)),
        hours => Err(ApiError::Query { detail: format!("hours: invalid hours {hours}: write 1 to {most}") }),
    }
}

fn present(core: &Core) -> Result<HourStart, ApiError> {
    let now = core.clock.now();
    now.hour().map_err(|fault| ApiError::Query { detail: format!("the clock shows {now}: {fault}") })
}

/// The measured demand, hour by hour
#[utoipa::path(get, path = "/v1/demand", tag = "quota", params(DemandQuery), responses(
    (status = 200, description = "Of each organization, and of the pool", body = DemandAnswer),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn demand(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<DemandQuery>,
) -> Result<Json<DemandAnswer>, ApiError> {
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    let hours = hours_of(query.hours, 72, MOST_DEMAND_HOURS)?;
    let to = present(&quotas.core)?;
    let from = to.plus_hours(-hours);
    let mut measured: BTreeMap<Organization, Vec<Option<MilliGpus>>> = BTreeMap::new();
    let mut take = |series: &SeriesId, hour: HourStart, demand: HourDemand| {
        let place = usize::try_from(hour.hours_since(from)).ok().filter(|place| *place < hours as usize);
        if let Some(place) = place {
            let of = measured.entry(series.organization.clone()).or_insert_with(|| vec![None; hours as usize]);
            of[place] = Some(demand.peak);
        }
    };
    quotas.core.store.load_pool_usage(&pool.id, from, to, &mut take).await?;
    let own = measured.remove(&Organization::pool_peak());
    let total = (0..hours as usize).map(|place| {
        let mut all = measured.values().filter_map(|of| of[place]);
        let peak = own.as_ref().and_then(|own| own[place]);
        peak.or_else(|| all.next().map(|first| all.fold(first, MilliGpus::saturating_add)))
    });
    let gpus = |one: Option<MilliGpus>| one.map(MilliGpus::as_gpus);
    let total = total.map(gpus).collect();
    let organization = |(name, of): (&Organization, &Vec<Option<MilliGpus>>)| OrganizationDemand {
        organization: name.to_string(),
        demand_gpus: of.iter().copied().map(gpus).collect(),
    };
    Ok(Json(DemandAnswer {
        cluster: query.cluster,
        gpu_model: query.gpu_model,
        from: from.to_string(),
        organizations: measured.iter().map(organization).collect(),
        pool: total,
    }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct NodesQuery {
    /// Hours up to and with the present one, 168 if not given.
    #[param(minimum = 1, maximum = 168)]
    hours: Option<u32>,
}

/// The nodes of a pool with their allocated GPUs, now and hour by hour
#[utoipa::path(get, path = "/v1/pools/{id}/nodes", tag = "pools",
    params(("id" = String, Path, description = "CLUSTER:GPU_MODEL"), NodesQuery), responses(
    (status = 200, description = "By name", body = NodeViews),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool, or it has no nodes", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn nodes(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    Query(query): Query<NodesQuery>,
) -> Result<Json<NodeViews>, ApiError> {
    let pool = pool_id(&renewals.quotas, &id)?;
    let count = hours_of(query.hours, MOST_NODE_HOURS, MOST_NODE_HOURS)?;
    let looks = renewals.engine.ask(&pool, ListNodes).await?;
    let from = present(&renewals.core)?.plus_hours(1 - count);
    let stored = renewals.core.store.node_hours(&pool, from).await?;
    let hours: Vec<HourStart> = (0..count).map(|hour| from.plus_hours(hour)).collect();
    // A week of thousands of nodes is megabytes to read: on a thread of its own, so that requests keep moving.
    let views = tokio::task::spawn_blocking(move || node_views(&pool, &looks, &hours, &stored)).await;
    let views =
        views.map_err(|fault| StoreError::Unavailable { reason: format!("the nodes were not read: {fault}") })?;
    Ok(Json(views?))
}

fn node_views(
    pool: &PoolId,
    looks: &[NodeUse],
    hours: &[HourStart],
    stored: &[NodeHour],
) -> Result<NodeViews, StoreError> {
    let peaks = stored.iter().map(|one| Ok((one.hour, peaks_of(one)?))).collect::<Result<_, StoreError>>()?;
    Ok(NodeViews {
        cluster: pool.cluster.to_string(),
        gpu_model: pool.gpu_model.to_string(),
        hours: hours.iter().map(ToString::to_string).collect(),
        nodes: looks.iter().map(|look| node_view(look, hours, &peaks)).collect(),
    })
}

fn node_view(look: &NodeUse, hours: &[HourStart], peaks: &BTreeMap<HourStart, Peaks>) -> NodeView {
    let name = look.node.to_string();
    let peak = |hour: &HourStart| {
        let [hp, spot] = *peaks.get(hour)?.get(&name)?;
        let (hp, spot) = (MilliGpus::from_milli(hp).ok()?, MilliGpus::from_milli(spot).ok()?);
        Some(hp.checked_add(spot)?.as_gpus())
    };
    NodeView {
        gpus: look.gpus,
        hp_gpus: look.hp.as_gpus(),
        spot_gpus: look.spot.as_gpus(),
        idle_gpus: look.idle().as_gpus(),
        drains: look.drains,
        evictions_24h: look.evictions,
        peak_gpus: hours.iter().map(peak).collect(),
        node: name,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunsQuery {
    cluster: String,
}

/// The training runs of a cluster with their scores and promotions
#[utoipa::path(get, path = "/v1/runs", tag = "quota", params(RunsQuery), responses(
    (status = 200, description = "Newest first", body = RunList),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown cluster", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn runs(State(core): State<Arc<Core>>, Query(query): Query<RunsQuery>) -> Result<Json<RunList>, ApiError> {
    let cluster = super::nodes::known_cluster(&core, &query.cluster).await?;
    let promoted = core.store.promoted(&cluster).await?.map(|run| run.id);
    let runs = core.store.runs(Some(&cluster)).await?;
    let promotions = core.store.promotions(&cluster).await?;
    let promotion = |one: &store::Promotion| PromotionBody {
        run_id: one.run_id.to_string(),
        promoted_at: one.promoted_at.to_string(),
        promoted_by: one.promoted_by.clone(),
        rolled_back: one.rolled_back,
    };
    Ok(Json(RunList {
        runs: runs.iter().map(|run| run_body(run, promoted == Some(run.id))).collect(),
        promotions: promotions.iter().map(promotion).collect(),
    }))
}

fn run_body(run: &RunRecord, promoted: bool) -> RunBody {
    let facts = &run.facts;
    // JSON of an older program that this one does not read is shown as empty.
    let json = |text: &str| serde_json::from_str(text).unwrap_or_default();
    RunBody {
        id: run.id.to_string(),
        cluster: facts.cluster.to_string(),
        model: facts.model.clone(),
        horizon_hours: facts.horizon.get(),
        lookback_hours: facts.lookback_hours,
        seed: facts.seed,
        data_from: facts.data_from.to_string(),
        data_until: facts.data_until.to_string(),
        series: facts.series,
        aggregation: facts.aggregation.clone(),
        created_at: facts.created_at.to_string(),
        train_ms: facts.train_ms,
        code_version: facts.code_version.clone(),
        promoted,
        scores: without_hours(json(&facts.scores_json)),
        parameters: json(&facts.parameters_json),
    }
}

/// Without the losses by issue time: they are for the gate of `train`, and too long for people.
fn without_hours(mut scores: serde_json::Value) -> serde_json::Value {
    if let Some(scores) = scores.as_object_mut() {
        scores.remove("hours");
    }
    scores
}

/// An unknown field is refused: a misspelt change would be answered without it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct WhatIfQuery {
    cluster: String,
    gpu_model: String,
    #[param(minimum = 1, maximum = 168)]
    hours: u64,
    /// GPUs added to the capacity; negative ones are taken away.
    #[param(minimum = -10_000_000, maximum = 10_000_000)]
    capacity_change_gpus: Option<f64>,
    /// GPUs added to HP demand, now and in every hour ahead; negative ones are taken away.
    #[param(minimum = -10_000_000, maximum = 10_000_000)]
    demand_change_gpus: Option<f64>,
    /// p, between 0 and 1.
    #[param(minimum = 0.000_001, maximum = 0.999_999)]
    guarantee_rate: Option<f64>,
    #[param(minimum = 0.000_001, maximum = 1_000)]
    eta: Option<f64>,
}

/// The quota under another capacity, demand, guarantee rate or eta
///
/// Computed like the quota, from its last inputs. Nothing changes.
#[utoipa::path(get, path = "/v1/quota/what-if", tag = "quota", params(WhatIfQuery), responses(
    (status = 200, description = "As it is, and as it would be", body = WhatIfAnswer),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool or hours", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No quota was computed yet", body = Problem, content_type = "application/problem+json"),
))]
pub async fn what_if(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<WhatIfQuery>,
) -> Result<Json<WhatIfAnswer>, ApiError> {
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    let refused = |name: &str, fault: String| ApiError::Query { detail: format!("{name}: {fault}") };
    let rate = query.guarantee_rate.map(GuaranteeRate::new).transpose();
    let changes = Changes {
        capacity: change("capacity_change_gpus", query.capacity_change_gpus)?,
        demand: change("demand_change_gpus", query.demand_change_gpus)?,
        guarantee_rate: rate.map_err(|fault| refused("guarantee_rate", fault.to_string()))?,
        eta: query.eta.map(Eta::nearest).transpose().map_err(|fault| refused("eta", fault.to_string()))?,
    };
    let hours = HorizonHours::new(query.hours).map_err(|_| nothing_for(&pool, query.hours))?;
    if pool.made_of.is_none() {
        // The inputs of the quota are in the memory of the leader.
        written_here(&quotas.core, &pool.id.cluster)?;
    }
    let made_of = pool.made_of.as_ref().ok_or_else(|| ApiError::NoQuotaYet { why: pool.why_none() })?;
    let answer =
        plan::what_if(made_of, hours, &changes).map_err(|fault| refused("guarantee_rate", fault.to_string()))?;
    answer.map(Json).ok_or_else(|| nothing_for(&pool, query.hours))
}

fn change(name: &str, gpus: Option<f64>) -> Result<Change, ApiError> {
    let Some(gpus) = gpus else { return Ok(Change::None) };
    let amount = MilliGpus::stated(MilliGpus::exact(gpus.abs()));
    let amount = amount.map_err(|fault| ApiError::Query { detail: format!("{name}: {fault}") })?;
    Ok(if gpus < 0.0 { Change::Less(amount) } else { Change::More(amount) })
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PromisesQuery {
    cluster: String,
    gpu_model: String,
    /// Days of UTC up to the present one, 28 if not given.
    #[param(minimum = 1, maximum = 400)]
    days: Option<u32>,
}

/// The promises of a pool and their outcomes
#[utoipa::path(get, path = "/v1/promises", tag = "quota", params(PromisesQuery), responses(
    (status = 200, description = "Promises sold, kept and broken, with reasons", body = wire::PromiseReport),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn promises(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<PromisesQuery>,
) -> Result<Json<wire::PromiseReport>, ApiError> {
    let pool: PoolId = published_pool(&quotas, &query.cluster, &query.gpu_model)?.id.clone();
    let days = query.days.unwrap_or(28);
    if !(1..=400).contains(&days) {
        return Err(ApiError::Query { detail: format!("days: invalid days {days}: write 1 to 400") });
    }
    let now: UnixSeconds = quotas.core.clock.now();
    let rate = settings::load(quotas.core.store.as_ref(), &pool).await?.pool.guarantee_rate;
    let published = quotas.published.load();
    let present = published.pool(&query.cluster, &query.gpu_model).map(|pool| Present::of(pool)).unwrap_or_default();
    Ok(Json(promises::report(quotas.core.store.as_ref(), &pool, rate, days, now, present).await?))
}
