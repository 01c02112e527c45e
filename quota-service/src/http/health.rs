use super::ApiError;
use super::extract::Query;
use crate::health::Health;
use crate::published::{Published, PublishedPool};
use crate::quotas::Quotas;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use wire::Problem;

const RENEWALS_FAIL: &str = "no renewal since the start has succeeded: the log of the service says why";

/// Whether the process runs
#[utoipa::path(get, path = "/healthz", tag = "service", responses((status = 200, description = "It runs", body = String)))]
pub async fn healthz() -> &'static str {
    "ok\n"
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReadyQuery {
    /// The requests that it has to be ready for: `all` (the default), or `reads` alone. Quotas are answered while the database is
    /// away, so a load balancer asks for `reads`.
    #[serde(rename = "for", default)]
    #[param(inline)]
    of: ReadyFor,
}

impl ReadyQuery {
    pub fn is_reads(&self) -> bool {
        self.of == ReadyFor::Reads
    }
}

/// The requests that a service is ready for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadyFor {
    /// Quotas and writes.
    #[default]
    All,
    /// Quotas.
    Reads,
}

/// Whether the service answers quotas and takes writes
///
/// After a restart it is ready once each pool that it writes for was computed again, or could not be: until then, and while no pool
/// can be renewed because the database cannot be read, quotas of before the start are answered (`for=reads`), and `/v1/forecast` has none. Before any pool has a first quota it is not ready, and says what
/// is missing; it takes usage and nodes before that, too.
#[utoipa::path(get, path = "/readyz", tag = "service", params(ReadyQuery), responses(
    (status = 200, description = "Both; with `for=reads`, quotas are answered", body = String),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No quota was computed yet, or none since the start, or the database takes no writes; see the detail", body = Problem, content_type = "application/problem+json"),
))]
pub async fn readyz(
    State(health): State<Arc<Health>>,
    State(quotas): State<Arc<Quotas>>,
    Query(query): Query<ReadyQuery>,
) -> Result<&'static str, ApiError> {
    let published = quotas.published.load();
    if !query.is_reads() {
        if let Some(why) = health.problem() {
            return Err(ApiError::NoWrites { why });
        }
        // Of pools that another service writes for nothing is computed here.
        let is_written_here = |pool: &PublishedPool| quotas.core.leases.led(&pool.id.cluster).is_some();
        let here = || published.pools().filter(|pool| is_written_here(pool));
        if let Some(pool) = here().find(|pool| pool.awaits_renewal()) {
            return Err(ApiError::NoQuotaYet { why: format!("{}: {}", pool.id, pool.why_none()) });
        }
        // Where any pool was renewed the fault is of single clusters. Every caller may read it: its own text names tables and users.
        let failed = here().find(|pool| pool.has_only_failed());
        if let Some(pool) = failed.filter(|_| !here().any(|pool| pool.made_of.is_some())) {
            return Err(ApiError::NoQuotaYet { why: format!("{}: {RENEWALS_FAIL}", pool.id) });
        }
    }
    answers_quotas(&published)
}

/// # Errors
/// There is no quota of any pool.
pub fn answers_quotas(published: &Published) -> Result<&'static str, ApiError> {
    if published.has_quota() {
        return Ok("ready\n");
    }
    let problems: Vec<_> = published.pools().filter_map(|pool| pool.problem.as_deref()).collect();
    let why = problems.first().map_or_else(|| "no pool is known yet".to_owned(), |first| (*first).to_owned());
    Err(ApiError::NoQuotaYet { why })
}
