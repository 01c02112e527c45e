//! Lets in who may ask, and writes down who has written.

use super::ApiError;
use crate::access::{Caller, Need, Refused, Scoped, need, path_segment, queried, scoped_pool};
use crate::refresh::Service;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use store::AuditRecord;
use vocab::{Organization, PoolId, TaskId};

/// Marks an answer whose write was written down already, here or elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Audited;

/// Who asks.
pub struct Who(pub Arc<Caller>);

impl FromRequestParts<Arc<Service>> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Service>) -> Result<Self, ApiError> {
        // Every request passes `admitted` before it comes here.
        parts.extensions.get::<Arc<Caller>>().cloned().map(Self).ok_or(ApiError::NoToken(Refused::Missing))
    }
}

impl Who {
    /// Goes on where a pool is in the scope.
    pub fn of_pool(&self, pool: &PoolId) -> Result<(), ApiError> {
        if self.0.may_pool(pool) { Ok(()) } else { Err(out_of_scope(pool)) }
    }

    /// Goes on where an organization is in the scope.
    pub fn of_organization(&self, organization: &Organization) -> Result<(), ApiError> {
        if self.0.may_organization(organization) { Ok(()) } else { Err(out_of_scope(organization)) }
    }
}

fn out_of_scope(what: &impl ToString) -> ApiError {
    ApiError::Forbidden { detail: format!("{} is out of the scope of the token", what.to_string()) }
}

/// Who asks, where they may ask for this.
pub async fn admitted(
    service: &Service,
    route: Option<&str>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Arc<Caller>, ApiError> {
    let need = need(method, route);
    if need == Need::Nothing {
        return Ok(Arc::new(Caller::anyone()));
    }
    let now = service.clock.now();
    let caller = service.tokens.admit(headers.get(header::AUTHORIZATION), now).map_err(ApiError::NoToken)?;
    if !caller.may(need) {
        let detail = format!("{method} {} needs another role than the token has", route.unwrap_or_default());
        return Err(ApiError::Forbidden { detail });
    }
    if caller.is_scoped() {
        in_scope(service, &caller, method, route, uri).await?;
    }
    Ok(caller)
}

/// What the head of a request tells is in the scope; handlers see to their bodies.
async fn in_scope(
    service: &Service,
    caller: &Caller,
    method: &Method,
    route: Option<&str>,
    uri: &Uri,
) -> Result<(), ApiError> {
    let pool = match scoped_pool(method, route, uri) {
        Scoped::Pool(pool) if caller.may_pool(&pool) => Some(pool),
        Scoped::Cluster(cluster) if caller.may_cluster(&cluster) => None,
        Scoped::Body => None,
        Scoped::Pool(pool) => return Err(out_of_scope(&pool)),
        Scoped::Cluster(cluster) => return Err(out_of_scope(&cluster)),
        Scoped::Malformed => return Err(out_of_scope(&"what the request names")),
        Scoped::Everything => return Err(out_of_scope(&"everything")),
    };
    let Some(mine) = caller.organization() else { return Ok(()) };
    let is_mine = match (route.unwrap_or_default(), pool) {
        (
            "/quota" | "/v1/quota" | "/v1/quota/stream" | "/v1/quota/history" | "/v1/pools" | "/v1/tasks"
            | "/v1/tasks/dry-run" | "/v1/usage",
            _,
        ) => true,
        ("/v1/forecast", _) => queried(uri, "organization").is_some_and(|asked| asked == mine.as_str()),
        (route, Some(pool)) if route.starts_with("/v1/tasks/{id}") => is_task_of(service, &pool, uri, mine).await?,
        _ => false,
    };
    if is_mine { Ok(()) } else { Err(out_of_scope(&"what other organizations have")) }
}

/// Whether a task is of an organization. One that is not there is of nobody.
async fn is_task_of(service: &Service, pool: &PoolId, uri: &Uri, mine: &Organization) -> Result<bool, ApiError> {
    let id = path_segment(uri, 3).and_then(|id| TaskId::parse(&id).ok());
    let Some(id) = id else { return Ok(false) };
    let record = service.store.task_record(pool, &id).await?;
    Ok(record.is_some_and(|record| record.organization == *mine))
}

/// Who has written what, as far as the head of a request tells.
pub struct Write {
    caller: Arc<Caller>,
    action: String,
    target: String,
}

impl Write {
    /// Of a request before it is answered.
    #[must_use]
    pub fn of(request: &Request) -> Option<Self> {
        let caller = request.extensions().get::<Arc<Caller>>()?.clone();
        let route = request.extensions().get::<axum::extract::MatchedPath>().map_or("", |route| route.as_str());
        let target = request.uri().path_and_query().map_or("", |path| path.as_str());
        Some(Self { caller, action: format!("{} {route}", request.method()), target: target.to_owned() })
    }

    /// Writes down what was answered with success. What cannot be written down is not acknowledged.
    pub async fn audited(self, service: &Service, response: Response) -> Response {
        if !response.status().is_success() || response.extensions().get::<Audited>().is_some() {
            return response;
        }
        let record = self.record(service, response.status().as_u16(), None);
        match service.audit.record(record).await {
            Ok(()) => response,
            Err(detail) => ApiError::NotAudited { detail }.into_response(),
        }
    }

    /// The entry of the audit.
    #[must_use]
    pub fn record(&self, service: &Service, status: u16, detail_json: Option<String>) -> AuditRecord {
        let (actor, token_id) = (self.caller.name.clone(), self.caller.token_id.clone());
        let (action, target) = (self.action.clone(), self.target.clone());
        AuditRecord { at: service.clock.now(), actor, token_id, action, target, status, detail_json }
    }
}
