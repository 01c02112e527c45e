//! Why a quota is what it is, what it was, and the forecast behind it.

use super::ApiError;
use super::extract::{Query, published_pool, written_here};
use super::quota::nothing_for;
use crate::drift;
use crate::plan;
use crate::published::{Answer, PublishedPool};
use crate::quotas::Quotas;
use crate::start_times::StartTimes;
use axum::Json;
use axum::extract::State;
use placement::staleness::stage;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use vocab::{HorizonHours, UnixSeconds};
use wire::{Explanation, ForecastAnswer, Problem, QuotaAnswer, QuotaHistory, QuotaRecord};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExplainQuery {
    cluster: String,
    gpu_model: String,
    #[param(minimum = 1, maximum = 168)]
    hours: u64,
}

/// The computation of a quota, step by step
#[utoipa::path(get, path = "/v1/quota/explain", tag = "quota", params(ExplainQuery), responses(
    (status = 200, description = "Every number that the quota was computed from", body = Explanation),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool or hours", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No quota was computed yet", body = Problem, content_type = "application/problem+json"),
))]
pub async fn explain(
    State(quotas): State<Arc<Quotas>>,
    State(starts): State<Arc<StartTimes>>,
    Query(query): Query<ExplainQuery>,
) -> Result<Json<Explanation>, ApiError> {
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    let hours = u8::try_from(query.hours).ok();
    let found = hours.and_then(|hours| Some((hours, pool.answer(hours)?)));
    let (hours, answer) = found.ok_or_else(|| nothing_for(&pool, query.hours))?;
    let answered = answered(&pool, answer, quotas.core.clock.now());
    let computed = pool.made_of.as_ref().and_then(|made_of| {
        let quota = made_of.quotas.iter().find(|quota| quota.hours.get() == hours)?;
        let mut explanation = plan::explanation(made_of, quota, answered.clone(), &pool.eta_moves);
        explanation.forecast.calibration = Some(plan::calibration(made_of));
        Some(explanation)
    });
    let stored =
        || pool.stored_explanations.get(&hours).map(|one| Explanation { quota: answered.clone(), ..one.clone() });
    let mut explanation = computed.or_else(stored).ok_or_else(|| nothing_for(&pool, query.hours))?;
    let drifts = quotas.drift.load();
    let drift = drifts.get(&pool.id.cluster).and_then(|cluster| cluster.pools.get(&pool.id));
    // It may have been decided since the quota was computed.
    explanation.placed_by = pool.glance.placed_by.map(Into::into).or(explanation.placed_by);
    explanation.drift = drift.map(drift::explanation);
    explanation.starts = starts.coverage(&pool.id).await?;
    Ok(Json(explanation))
}

fn answered(pool: &PublishedPool, answer: &Answer, now: UnixSeconds) -> QuotaAnswer {
    plan::at_stage(&answer.fresh, stage(answer.computed_at, now).0, answer.held, pool.problem.as_deref())
}

/// Most quotas of the history in one answer.
const MOST_QUOTAS: u32 = 10_000;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct HistoryQuery {
    cluster: String,
    gpu_model: String,
    #[param(minimum = 1, maximum = 168)]
    hours: u64,
    /// The most quotas to list, up to 10,000; 288 if not given: a day of quotas renewed every 300 s.
    #[param(minimum = 0, maximum = 10_000)]
    limit: Option<u32>,
}

/// The history of the quota, newest first
#[utoipa::path(get, path = "/v1/quota/history", tag = "quota", params(HistoryQuery), responses(
    (status = 200, description = "Quotas as they were computed", body = QuotaHistory),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool or hours", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn history(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<QuotaHistory>, ApiError> {
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    let hours = HorizonHours::new(query.hours).map_err(|_| nothing_for(&pool, query.hours))?;
    let (from, to) = (UnixSeconds::new(0), quotas.core.clock.now().plus_s(1));
    let limit = query.limit.unwrap_or(288);
    if limit > MOST_QUOTAS {
        return Err(ApiError::Query { detail: format!("limit: invalid limit {limit}: write 0 to {MOST_QUOTAS}") });
    }
    let stored = quotas.core.store.quota_history(&pool.id, hours, from, to, limit).await?;
    // Hours that are no longer offered have a history, too.
    if stored.is_empty() && pool.answer(hours.get()).is_none() {
        return Err(nothing_for(&pool, query.hours));
    }
    let record = |one: &store::StoredQuota| QuotaRecord {
        computed_at: one.computed_at.to_string(),
        quota_gpus: one.quota.as_gpus(),
        run_id: one.run_id.map(|id| id.to_string()),
    };
    Ok(Json(QuotaHistory {
        cluster: query.cluster,
        gpu_model: query.gpu_model,
        hours: hours.get(),
        quotas: stored.iter().map(record).collect(),
    }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ForecastQuery {
    cluster: String,
    gpu_model: String,
    /// Only this organization.
    organization: Option<String>,
}

/// The forecast demand of each organization
#[utoipa::path(get, path = "/v1/forecast", tag = "quota", params(ForecastQuery), responses(
    (status = 200, description = "A distribution for each organization and hour", body = ForecastAnswer),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool or organization", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No forecast was made yet", body = Problem, content_type = "application/problem+json"),
))]
pub async fn forecast(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<ForecastQuery>,
) -> Result<Json<ForecastAnswer>, ApiError> {
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    if pool.made_of.is_none() {
        // The forecasts are in the memory of the leader.
        written_here(&quotas.core, &pool.id.cluster)?;
    }
    let made_of = pool.made_of.as_ref().ok_or_else(|| ApiError::NoQuotaYet { why: pool.why_none() })?;
    let answer = plan::forecast_answer(made_of, query.organization.as_deref());
    match query.organization {
        Some(asked) if answer.organizations.is_empty() => {
            let known = made_of.corrected.issued().iter().map(|one| one.series().organization.to_string()).collect();
            Err(ApiError::UnknownOrganization { asked, known })
        }
        _ => Ok(Json(answer)),
    }
}
