use super::ApiError;
use crate::refresh::Service;
use axum::extract::State;
use std::sync::Arc;
use wire::Problem;

/// Whether the process runs
#[utoipa::path(get, path = "/healthz", tag = "service", responses((status = 200, description = "It does", body = String)))]
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether quotas are answered and writes taken
#[utoipa::path(get, path = "/readyz", tag = "service", responses(
    (status = 200, description = "Both", body = String),
    (status = 503, description = "None was computed yet, or the database takes no writes; the detail says why", body = Problem, content_type = "application/problem+json"),
))]
pub async fn readyz(State(service): State<Arc<Service>>) -> Result<&'static str, ApiError> {
    if let Some(why) = service.health.problem() {
        return Err(ApiError::NoWrites { why });
    }
    let published = service.published.load();
    if published.has_quota() {
        return Ok("ready\n");
    }
    let problems: Vec<_> = published.pools().filter_map(|pool| pool.problem.as_deref()).collect();
    let why = problems.first().map_or_else(|| "no pool is known yet".to_owned(), |first| (*first).to_owned());
    Err(ApiError::NoQuotaYet { why })
}
