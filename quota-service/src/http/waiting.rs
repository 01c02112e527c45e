//! Answers before the database is connected: the last quotas, at their age, the health of the service, its metrics and files.

use super::access::out_of_scope;
use super::extract::Query;
use super::health::{ReadyQuery, answers_quotas, healthz};
use super::quota::{QuotaQuery, ready, respond};
use super::routes::{ROUTES, row};
use super::{ApiError, dashboard, document_route, method_not_allowed, not_found, parameters};
use crate::access::Tokens;
use crate::clock::Clock;
use crate::published::Published;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::Response;
use axum::routing::{any, get};
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::Problem;

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
        let (code, title) = ("store-unavailable", "The database does not answer");
        ApiError::Problem(Box::new(Problem {
            retry_after_s: Some(super::error::RETRY_AFTER_S),
            ..ApiError::plain(503, code, title, self.why.clone())
        }))
    }
}

/// Routes that need no database.
const ANSWERED: [&str; 8] =
    ["/", "/assets/{name}", "/openapi.json", "/metrics", "/healthz", "/readyz", "/quota", "/v1/quota"];

/// The routes: those that need a database answer 503, and paths without a route 404.
pub fn router(waiting: Arc<Waiting>, render: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    let answered =
        Router::new()
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .route("/quota", get(quota))
            .route("/v1/quota", get(quota))
            .route("/openapi.json", document_route())
            .route(
                "/metrics",
                get(move |waiting: State<Arc<Waiting>>, headers: HeaderMap| async move {
                    metrics(waiting, &headers, render)
                }),
            )
            .merge(dashboard::routes());
    let others: BTreeSet<&str> =
        ROUTES.iter().map(|route| route.path).filter(|path| !ANSWERED.contains(path)).collect();
    let unavailable = |State(waiting): State<Arc<Waiting>>| async move { waiting.unavailable() };
    let routes = others.into_iter().fold(answered, |router, path| router.route(path, any(unavailable)));
    routes.fallback(not_found).method_not_allowed_fallback(method_not_allowed).with_state(waiting)
}

/// The metrics that need no database; among them, that it does not answer.
fn metrics(
    State(waiting): State<Arc<Waiting>>,
    headers: &HeaderMap,
    render: impl Fn() -> String,
) -> Result<String, ApiError> {
    waiting.tokens.admit(headers.get(header::AUTHORIZATION), waiting.clock.now()).map_err(ApiError::NoToken)?;
    crate::metrics::database_is(false);
    Ok(render())
}

/// Ready for reads at most.
async fn readyz(
    State(waiting): State<Arc<Waiting>>,
    Query(query): Query<ReadyQuery>,
) -> Result<&'static str, ApiError> {
    if query.is_reads() { answers_quotas(&waiting.published) } else { Err(waiting.unavailable()) }
}

async fn quota(
    State(waiting): State<Arc<Waiting>>,
    query: Result<Query<QuotaQuery>, ApiError>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let now = waiting.clock.now();
    let caller = waiting.tokens.admit(headers.get(header::AUTHORIZATION), now).map_err(ApiError::NoToken)?;
    row(&Method::GET, Some("/quota")).map_or(Ok(()), |row| parameters::check(row, &uri))?;
    let Query(query) = query?;
    // The database may have a pool that the file lacks.
    let pool = waiting.published.pool(&query.cluster, &query.gpu_model).ok_or_else(|| waiting.unavailable())?;
    if !caller.may_pool(&pool.id) {
        return Err(out_of_scope(&pool.id));
    }
    Ok(respond(ready(pool, query.hours, now)?, headers.get(header::IF_NONE_MATCH)))
}
