//! Overrides: GPUs that operators reserve for HP work, or release from it, for some time.

use super::ApiError;
use super::access::{Write, out_of_scope};
use super::extract::{Json as Body, Path, Query, published_pool, written_here};
use crate::core::Core;
use crate::plan::override_body;
use crate::quotas::Quotas;
use crate::refresh::Renewals;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use store::{NewOverride, StoreError};
use utoipa::IntoParams;
use vocab::{OverrideId, PoolId, UnixSeconds};
use wire::{FieldFault, OverrideBody, OverrideList, OverrideRequest, Problem};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct OverridesQuery {
    cluster: String,
    gpu_model: String,
    /// Also past and withdrawn overrides.
    past: Option<bool>,
}

/// The overrides of a pool
#[utoipa::path(get, path = "/v1/overrides", tag = "pools", params(OverridesQuery), responses(
    (status = 200, description = "By number", body = OverrideList),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list(
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<OverridesQuery>,
) -> Result<Json<OverrideList>, ApiError> {
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    let now = quotas.core.clock.now();
    let past = query.past.unwrap_or(false);
    let after = if past { UnixSeconds::new(0) } else { now };
    let records = quotas.core.store.overrides(Some(&pool.id), after, past).await?;
    Ok(Json(OverrideList { overrides: records.iter().map(|one| override_body(one, now)).collect() }))
}

/// Reserve GPUs for HP work, or release them from it, for some time
///
/// Quotas follow at once. A repeated override is answered as stored. The audit keeps it with its reason.
#[utoipa::path(post, path = "/v1/overrides", tag = "pools", request_body = OverrideRequest, responses(
    (status = 200, description = "It is stored already", body = OverrideBody),
    (status = 201, description = "Durable", body = OverrideBody),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn create(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Body(body): Body<OverrideRequest>,
) -> Result<(StatusCode, Json<OverrideBody>), ApiError> {
    let (what, reason) = body.parse()?;
    let pool = what.pool.clone();
    write.of_pool(&pool)?;
    real_time(&renewals.core)?;
    if let Err(fault) = published_pool(&renewals.quotas, pool.cluster.as_str(), pool.gpu_model.as_str()) {
        // A service that follows knows no pool without a quota: the one that it follows does.
        if matches!(fault, ApiError::NoQuotaYet { .. }) {
            written_here(&renewals.core, &pool.cluster)?;
        }
        return Err(fault);
    }
    written_here(&renewals.core, &pool.cluster)?;
    let now = renewals.core.clock.now();
    if what.to <= now {
        let detail = format!("{} is past at {now}: write a time in the hours ahead", what.to);
        return Err(FieldFault::new("/to", detail).into());
    }
    let asked = NewOverride { what, reason, by: write.0.name.clone(), at: now };
    let entry = write.entry(now, StatusCode::CREATED, &json!(body));
    let (record, is_new) = renewals.core.store.put_override(&asked, &entry).await?;
    renewals.outdate(&pool);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(override_body(&record, now))))
}

/// Withdraw an override
///
/// It stays in the list of past overrides. A second withdrawal changes nothing.
#[utoipa::path(delete, path = "/v1/overrides/{id}", tag = "pools", params(("id" = u64, Path)), responses(
    (status = 204, description = "Withdrawn"),
    (status = 404, description = "Unknown override", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; it stays", body = Problem, content_type = "application/problem+json"),
))]
pub async fn delete(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    // A number beyond those of the database is unknown.
    let number = id.parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
    let found = match number {
        Some(number) => renewals.core.store.override_record(OverrideId(number)).await,
        None => Err(StoreError::NotFound { what: "override", id: id.clone() }),
    };
    let refused = || out_of_scope(&format!("override {id}"));
    let record = match found {
        // Which numbers there are is nothing for a scope.
        Err(StoreError::NotFound { .. }) if write.0.is_scoped() => {
            return Err(refused());
        }
        found => found?,
    };
    let pool: &PoolId = &record.asked.what.pool;
    write.of_pool(pool).map_err(|_| refused())?;
    real_time(&renewals.core)?;
    written_here(&renewals.core, &pool.cluster)?;
    let now = renewals.core.clock.now();
    let store = write.store(&renewals.core, StatusCode::NO_CONTENT, &json!({ "before": override_body(&record, now) }));
    store.withdraw_override(record.id, now, &write.0.name).await?;
    renewals.outdate(pool);
    Ok(StatusCode::NO_CONTENT)
}

/// Under a virtual clock no decision is stored.
fn real_time(core: &Core) -> Result<(), ApiError> {
    if core.clock.is_virtual() { Err(ApiError::VirtualClock) } else { Ok(()) }
}
