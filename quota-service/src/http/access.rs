//! Admits callers, and names them in the audit.

use super::routes::{AuditRule, OrganizationRule, Route, Scope};
use super::{ApiError, task_names};
use crate::access::{
    Access, Caller, Need, Refused, cluster_in_query, path_segment, pool_in_path, pool_in_query, queried,
};
use crate::core::Core;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use serde::Serialize;
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use store::{AuditRecord, Store};
use vocab::{ClusterName, Organization, PoolId, TaskId, UnixSeconds};

/// The caller.
pub struct Who(pub Arc<Caller>);

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // Every request passes `admitted` before it comes here.
        parts.extensions.get::<Arc<Caller>>().cloned().map(Self).ok_or(ApiError::NoToken(Refused::Missing))
    }
}

impl Who {
    /// Refuses a pool outside the scope.
    pub fn of_pool(&self, pool: &PoolId) -> Result<(), ApiError> {
        if self.0.may_pool(pool) { Ok(()) } else { Err(out_of_scope(pool)) }
    }

    /// Refuses a cluster of which the scope has not every pool.
    pub fn of_cluster(&self, cluster: &ClusterName) -> Result<(), ApiError> {
        if self.0.may_cluster(cluster) { Ok(()) } else { Err(out_of_scope(cluster)) }
    }

    /// Refuses an organization outside the scope.
    pub fn of_organization(&self, organization: &Organization) -> Result<(), ApiError> {
        if self.0.may_organization(organization) { Ok(()) } else { Err(out_of_scope(organization)) }
    }
}

/// A refusal of a name. Whether it exists stays hidden.
pub fn out_of_scope(what: &impl ToString) -> ApiError {
    let remedy = "check the name, or ask an admin for a token with this in its scope";
    ApiError::Forbidden { detail: format!("{} is out of the scope of the token: {remedy}", what.to_string()) }
}

/// A refusal of a request that no name in it would admit, with what to do.
fn refused_by_scope(what: &str, remedy: &str) -> ApiError {
    ApiError::Forbidden { detail: format!("{what} is out of the scope of the token: {remedy}") }
}

/// Caller of a request, where its token allows the request. A request without a row in the table needs the role `admin`.
pub async fn admitted(
    access: &Access,
    row: Option<&Route>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Arc<Caller>, ApiError> {
    let need = row.map_or(Need::Admin, |row| row.role_of(uri));
    if need == Need::Nothing {
        return Ok(Arc::new(Caller::anyone()));
    }
    let now = access.core.clock.now();
    let caller = access.tokens.admit_new(headers.get(header::AUTHORIZATION), now).await.map_err(ApiError::NoToken)?;
    if !caller.may(need) {
        let path = row.map_or(uri.path(), |row| row.path);
        let role = need.role();
        let detail = format!("the role of the token does not allow {method} {path}: use a token of the role {role}");
        return Err(ApiError::Forbidden { detail });
    }
    if caller.is_scoped() {
        in_scope(access, &caller, row, uri).await?;
    }
    Ok(caller)
}

/// Refuses a path or query outside the scope of the token; handlers check bodies.
async fn in_scope(access: &Access, caller: &Caller, row: Option<&Route>, uri: &Uri) -> Result<(), ApiError> {
    let scope = row.map_or(Scope::Everything, |row| row.scope);
    let malformed =
        |remedy: &'static str| move || refused_by_scope("a request without one valid pool or cluster", remedy);
    let pool = match scope {
        Scope::PoolInPath => {
            Some(pool_in_path(uri).ok_or_else(malformed("write CLUSTER:GPU_MODEL as the pool in the path"))?)
        }
        Scope::PoolInQuery => {
            Some(pool_in_query(uri).ok_or_else(malformed("write cluster and gpu_model once each in the query"))?)
        }
        Scope::ClusterInQuery => {
            let cluster = cluster_in_query(uri).ok_or_else(malformed("write cluster once in the query"))?;
            if !caller.may_cluster(&cluster) {
                return Err(out_of_scope(&cluster));
            }
            None
        }
        Scope::Handler => None,
        Scope::Everything => {
            return Err(refused_by_scope("a request for every pool", "use a token without organization and pools"));
        }
    };
    if let Some(pool) = pool.as_ref().filter(|pool| !caller.may_pool(pool)) {
        return Err(out_of_scope(pool));
    }
    let Some(mine) = caller.organization() else { return Ok(()) };
    let rule = row.map_or(OrganizationRule::Refused, |row| row.organization);
    let is_mine = match (rule, &pool) {
        (OrganizationRule::Any, _) => true,
        (OrganizationRule::Named, _) => queried(uri, "organization").is_some_and(|asked| asked == mine.as_str()),
        (OrganizationRule::OwnTask, Some(pool)) => is_task_of(access, caller, pool, uri, mine).await?,
        (OrganizationRule::OwnTask, None) | (OrganizationRule::Refused, _) => false,
    };
    if is_mine { Ok(()) } else { Err(of_others(rule, mine, uri)) }
}

/// A refusal of what may belong to other organizations. Whether a task exists there stays hidden.
fn of_others(rule: OrganizationRule, mine: &Organization, uri: &Uri) -> ApiError {
    let what = "data of other organizations";
    match rule {
        OrganizationRule::OwnTask => {
            let id = path_segment(uri, 3).unwrap_or_default();
            let detail = format!(
                "organization {mine} has no task {id} in the pool, and the token sees the tasks of {mine} alone: check the id, or use a token of the task's organization"
            );
            ApiError::Forbidden { detail }
        }
        OrganizationRule::Named => refused_by_scope(
            what,
            &format!("write organization={mine} once in the query, or use a token without an organization"),
        ),
        OrganizationRule::Any | OrganizationRule::Refused => {
            refused_by_scope(what, "use a token without an organization")
        }
    }
}

/// Whether a task belongs to an organization. An unknown task belongs to none.
async fn is_task_of(
    access: &Access,
    caller: &Caller,
    pool: &PoolId,
    uri: &Uri,
    mine: &Organization,
) -> Result<bool, ApiError> {
    let id = path_segment(uri, 3).and_then(|id| TaskId::parse(&id).ok());
    let Some(id) = id else { return Ok(false) };
    let Ok(id) = task_names::kept(&access.core, caller, pool, id).await else { return Ok(false) };
    let record = access.core.store.task_record(pool, &id).await?;
    Ok(record.is_some_and(|record| record.organization == *mine))
}

/// The head of a write: its caller, action and target.
pub struct Write {
    who: Who,
    action: String,
    target: String,
}

impl<S: Sync> FromRequestParts<S> for Write {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let who = Who::from_request_parts(parts, state).await?;
        let row = parts.extensions.get::<&'static Route>().copied();
        debug_assert!(
            row.is_none_or(|row| row.audit == AuditRule::Entry),
            "the row of a handler that writes has the audit rule `Entry`"
        );
        let route = row.map_or("", |row| row.path);
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
    /// The entry of the audit: `detail` is the request, and the values before.
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

    /// The store for one write, which adds its entry to the audit.
    #[must_use]
    pub fn store(&self, core: &Core, status: StatusCode, detail: &Value) -> Arc<dyn Store> {
        core.store.audited(self.entry(core.clock.now(), status, detail))
    }
}

/// Items of a batch that the audit keeps; of a longer one it keeps the first of them, and the total.
const ITEMS_KEPT: usize = 1_000;

/// A batch as the audit keeps it.
#[must_use]
pub fn batch<T: Serialize>(name: &str, items: &[T]) -> Value {
    json!({ name: &items[..items.len().min(ITEMS_KEPT)], "total": items.len() })
}
