//! Lets in who may ask, and says who writes what.

use super::{ApiError, names};
use crate::access::{Caller, Need, Refused, Scoped, need, path_segment, queried, scoped_pool};
use crate::refresh::Service;
use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use serde::Serialize;
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use store::{AuditRecord, Store};
use vocab::{Organization, PoolId, TaskId, UnixSeconds};

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
        (route, Some(pool)) if route.starts_with("/v1/tasks/{id}") => {
            is_task_of(service, caller, &pool, uri, mine).await?
        }
        _ => false,
    };
    if is_mine { Ok(()) } else { Err(out_of_scope(&"what other organizations have")) }
}

/// Whether a task is of an organization. One that is not there is of nobody.
async fn is_task_of(
    service: &Service,
    caller: &Caller,
    pool: &PoolId,
    uri: &Uri,
    mine: &Organization,
) -> Result<bool, ApiError> {
    let id = path_segment(uri, 3).and_then(|id| TaskId::parse(&id).ok());
    let Some(id) = id else { return Ok(false) };
    let Ok(id) = names::kept(service, caller, pool, id).await else { return Ok(false) };
    let record = service.store.task_record(pool, &id).await?;
    Ok(record.is_some_and(|record| record.organization == *mine))
}

/// A write, as far as the head of its request says what it is: who asks, for what.
pub struct Write {
    who: Who,
    action: String,
    target: String,
}

impl FromRequestParts<Arc<Service>> for Write {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, ApiError> {
        let who = Who::from_request_parts(parts, service).await?;
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let target = parts.uri.path_and_query().map_or("", |path| path.as_str());
        Ok(Self { action: format!("{} {route}", parts.method), target: target.to_owned(), who })
    }
}

impl Deref for Write {
    type Target = Who;

    fn deref(&self) -> &Who {
        &self.who
    }
}

impl Write {
    /// The entry of the audit: `detail` is what was asked for, and what was there before.
    #[must_use]
    pub fn entry(&self, at: UnixSeconds, status: StatusCode, detail: &Value) -> AuditRecord {
        let Caller { name, token_id, .. } = self.who.0.as_ref();
        AuditRecord {
            at,
            actor: name.clone(),
            token_id: token_id.clone(),
            action: self.action.clone(),
            target: self.target.clone(),
            status: status.as_u16(),
            detail_json: (!detail.is_null()).then(|| detail.to_string()),
        }
    }

    /// The store for one write, which is in the audit once it is done.
    #[must_use]
    pub fn store(&self, service: &Service, status: StatusCode, detail: &Value) -> Arc<dyn Store> {
        service.store.audited(self.entry(service.clock.now(), status, detail))
    }
}

/// Items of a batch that the audit keeps; of a longer one it keeps the first of them, and how many there were.
const ITEMS_KEPT: usize = 1_000;

/// A batch as the audit keeps it.
#[must_use]
pub fn batch<T: Serialize>(name: &str, items: &[T]) -> Value {
    json!({ name: &items[..items.len().min(ITEMS_KEPT)], "total": items.len() })
}
