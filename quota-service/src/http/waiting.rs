//! Answers before the database is connected: the last quotas, at their age, and the health of the service.

use super::ApiError;
use super::health::{ReadyQuery, answers_quotas, healthz};
use super::quota::{QuotaQuery, ready, respond};
use crate::access::Tokens;
use crate::clock::Clock;
use crate::published::Published;
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::get;
use std::sync::Arc;
use store::StoreError;
use vocab::PoolId;

/// The state without the database.
pub struct Waiting {
    pub published: Published,
    pub tokens: Tokens,
    pub clock: Clock,
    /// The reason for which the database is not connected.
    pub why: String,
}

impl Waiting {
    fn unavailable(&self) -> ApiError {
        ApiError::Store(StoreError::Unavailable { reason: self.why.clone() })
    }
}

/// The routes.
pub fn router(waiting: Arc<Waiting>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/quota", get(quota))
        .route("/v1/quota", get(quota))
        .fallback(|State(waiting): State<Arc<Waiting>>, _: Request| async move { waiting.unavailable() })
        .with_state(waiting)
}

/// Ready for reads at most.
async fn readyz(
    State(waiting): State<Arc<Waiting>>,
    query: Result<Query<ReadyQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<&'static str, ApiError> {
    let Query(query) = query.map_err(|fault| ApiError::Query { detail: fault.body_text() })?;
    if query.is_reads() { answers_quotas(&waiting.published) } else { Err(waiting.unavailable()) }
}

async fn quota(
    State(waiting): State<Arc<Waiting>>,
    query: Result<Query<QuotaQuery>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let now = waiting.clock.now();
    let caller = waiting.tokens.admit(headers.get(header::AUTHORIZATION), now).map_err(ApiError::NoToken)?;
    let Query(query) = query.map_err(|fault| ApiError::Query { detail: fault.body_text() })?;
    // The database may have a pool that the file lacks.
    let pool = waiting.published.pool(&query.cluster, &query.gpu_model).ok_or_else(|| waiting.unavailable())?;
    if !caller.may_pool(&pool.id) {
        return Err(out_of_scope(&pool.id));
    }
    Ok(respond(ready(pool, query.hours, now)?, headers.get(header::IF_NONE_MATCH)))
}

fn out_of_scope(pool: &PoolId) -> ApiError {
    ApiError::Forbidden { detail: format!("{pool} is out of the scope of the token") }
}
