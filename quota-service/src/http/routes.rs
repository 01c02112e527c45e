//! The table of routes. Each row has all that holds for a route besides its handler: who may call it, how scopes and
//! organizations limit it, how it is guarded, and whether the audit keeps it. Router, access, guard, audit and the OpenAPI
//! document are made from these rows.
//!
//! A new route is a handler with `#[utoipa::path]` and a row here. What has no row needs the role `admin`, and no scope covers it.

use super::{
    audit, connectors, events, explain, health, nodes, outcomes, overrides, pools, quota, reports, reservations,
    shares, starts, statement, stream, tasks, usage,
};
use crate::access::Need::{Admin, Nothing, Place, Read, Report};
use crate::access::{Need, queried};
use crate::state::AppState;
use axum::http::{Method, Uri};
use std::collections::HashMap;
use std::sync::LazyLock;
use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

/// Method of a route. `HEAD` is answered by the row of `GET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Put,
    Post,
    Delete,
}
use Verb::{Delete, Get, Post, Put};

/// Place at which a request names the pool or cluster that its token's scope has to cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The path: `/v1/pools/{id}/…`.
    PoolInPath,
    /// The query: `cluster` and `gpu_model`.
    PoolInQuery,
    /// The query: `cluster`.
    ClusterInQuery,
    /// The body, or an answer that is cut to the scope: the handler checks it.
    Handler,
    /// No place: the route concerns everything, and no scope covers that.
    Everything,
}

/// How a token with an organization is limited to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrganizationRule {
    /// The answer has nothing of other organizations, or the handler checks it.
    Any,
    /// The query has to name it: `organization`.
    Named,
    /// The task in the path has to be its own.
    OwnTask,
    /// Refused: the answer has what other organizations have.
    Refused,
}

/// How requests are limited when too much is asked at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitClass {
    /// Health: never refused, and answered under any host name.
    Probe,
    /// Answered from memory, never refused.
    Memory,
    /// As `Memory`, and as `Stream` where the query has `wait`.
    LongPoll,
    /// A scrape: refused only where there is no room for its bytes.
    Metrics,
    /// Stays open.
    Stream,
    Read,
    /// A read whose answer grows with a pool, its organizations or its history: few are made at a time.
    LargeRead,
    /// A read that plays futures of a pool, which takes the processor: few at a time, and of one token one.
    Played,
    Write,
}

/// Whether a done request leaves an entry in the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditRule {
    /// It changes nothing.
    None,
    /// The write and its entry are one transaction.
    Entry,
}

/// Handler of a row, with its part of the OpenAPI document.
pub type Handler = fn() -> UtoipaMethodRouter<AppState>;

/// A row.
#[derive(Debug)]
pub struct Route {
    pub verb: Verb,
    pub path: &'static str,
    pub role: Need,
    /// Whether a request with `dry_run=true` changes nothing, and so needs the role `read` alone.
    pub has_dry_run: bool,
    pub scope: Scope,
    pub organization: OrganizationRule,
    pub limit: LimitClass,
    pub audit: AuditRule,
    /// `None` for what is no part of the OpenAPI document: the dashboard's files, the document, metrics.
    pub handler: Option<Handler>,
}

use LimitClass::{LargeRead, LongPoll, Memory, Metrics, Played, Probe, Read as ReadLimit, Stream, Write};
use OrganizationRule::{Any, Named, OwnTask, Refused};
use Scope::{ClusterInQuery, Everything, Handler as InHandler, PoolInPath, PoolInQuery};

/// A row that reads.
const fn read(
    path: &'static str,
    role: Need,
    scope: Scope,
    organization: OrganizationRule,
    limit: LimitClass,
) -> Route {
    let (audit, handler) = (AuditRule::None, None);
    Route { verb: Get, path, role, has_dry_run: false, scope, organization, limit, audit, handler }
}

/// A row that writes, and whose writes the audit keeps.
const fn write(verb: Verb, path: &'static str, role: Need, scope: Scope, organization: OrganizationRule) -> Route {
    let (limit, audit, handler) = (Write, AuditRule::Entry, None);
    Route { verb, path, role, has_dry_run: false, scope, organization, limit, audit, handler }
}

impl Route {
    const fn by(mut self, handler: Handler) -> Self {
        self.handler = Some(handler);
        self
    }

    /// The role that a request needs.
    #[must_use]
    pub fn role_of(&self, uri: &Uri) -> Need {
        if self.has_dry_run && queried(uri, "dry_run").as_deref() == Some("true") { Read } else { self.role }
    }

    /// Whether the route is answered to everyone, always.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.limit == Probe
    }
}

/// All routes: method and path, role, scope, organization rule, limit class, audit rule, handler.
#[rustfmt::skip]
pub static ROUTES: &[Route] = &[
    read("/",                        Nothing, Everything,     Refused, Memory),
    read("/assets/{name}",           Nothing, Everything,     Refused, Memory),
    read("/openapi.json",            Nothing, Everything,     Refused, ReadLimit),
    read("/metrics",                 Read,    Everything,     Refused, Metrics),
    read("/healthz",                 Nothing, Everything,     Refused, Probe).by(|| routes!(health::healthz)),
    read("/readyz",                  Nothing, Everything,     Refused, Probe).by(|| routes!(health::readyz)),
    read("/quota",                   Read,    PoolInQuery,    Any,     LongPoll).by(|| routes!(quota::quota)),
    read("/v1/quota",                Read,    PoolInQuery,    Any,     LongPoll).by(|| routes!(quota::quota_v1)),
    read("/v1/quota/stream",         Read,    PoolInQuery,    Any,     Stream).by(|| routes!(stream::stream)),
    read("/v1/quota/explain",        Read,    PoolInQuery,    Refused, LargeRead).by(|| routes!(explain::explain)),
    read("/v1/quota/history",        Read,    PoolInQuery,    Any,     LargeRead).by(|| routes!(explain::history)),
    read("/v1/quota/what-if",        Read,    PoolInQuery,    Refused, LargeRead).by(|| routes!(reports::what_if)),
    read("/v1/forecast",             Read,    PoolInQuery,    Named,   LargeRead).by(|| routes!(explain::forecast)),
    read("/v1/demand",               Read,    PoolInQuery,    Refused, LargeRead).by(|| routes!(reports::demand)),
    read("/v1/promises",             Read,    PoolInQuery,    Refused, ReadLimit).by(|| routes!(reports::promises)),
    read("/v1/statement",            Read,    InHandler,      Named,   LargeRead).by(|| routes!(statement::statement)),
    read("/v1/runs",                 Read,    ClusterInQuery, Refused, ReadLimit).by(|| routes!(reports::runs)),
    read("/v1/overrides",            Read,    PoolInQuery,    Refused, ReadLimit).by(|| routes!(overrides::list)),
    write(Post, "/v1/overrides",           Admin,  InHandler, Refused).by(|| routes!(overrides::create)),
    write(Delete, "/v1/overrides/{id}",    Admin,  InHandler, Refused).by(|| routes!(overrides::delete)),
    read("/v1/reservations",         Read,    PoolInQuery,    Any,     LargeRead).by(|| routes!(reservations::list)),
    read("/v1/reservations.ics",     Read,    PoolInQuery,    Any,     LargeRead).by(|| routes!(reservations::ics)),
    read("/v1/reservations/{id}",    Read,    InHandler,      Any,     LargeRead).by(|| routes!(reservations::one)),
    Route { has_dry_run: true, ..write(Post, "/v1/reservations", Admin, InHandler, Any) }
        .by(|| routes!(reservations::create)),
    write(Delete, "/v1/reservations/{id}", Admin,  InHandler, Any).by(|| routes!(reservations::delete)),
    read("/v1/pools",                Read,    InHandler,      Any,     ReadLimit).by(|| routes!(pools::list)),
    read("/v1/pools/{id}/nodes",     Read,    PoolInPath,     Refused, LargeRead).by(|| routes!(reports::nodes)),
    read("/v1/pools/{id}/shares",    Read,    PoolInPath,     Refused, LargeRead).by(|| routes!(shares::list)),
    read("/v1/pools/{id}/snapshot",  Read,    PoolInPath,     Refused, LargeRead).by(|| routes!(pools::snapshot)),
    read("/v1/pools/{id}/state",     Read,    PoolInPath,     Refused, ReadLimit).by(|| routes!(pools::get_state)),
    write(Put, "/v1/pools/{id}/state",     Report, PoolInPath, Refused).by(|| routes!(pools::put_state)),
    // Without a state the quota of a pool is an estimate, and may rise.
    write(Delete, "/v1/pools/{id}/state",  Admin,  PoolInPath, Refused).by(|| routes!(pools::delete_state)),
    read("/v1/pools/{id}/settings",  Read,    PoolInPath,     Refused, ReadLimit).by(|| routes!(pools::get_settings)),
    write(Put, "/v1/pools/{id}/settings",  Admin,  PoolInPath, Refused).by(|| routes!(pools::put_settings)),
    write(Post, "/v1/usage",               Report, InHandler, Any).by(|| routes!(usage::append)),
    write(Post, "/v1/usage/corrections",   Admin,  Everything, Refused).by(|| routes!(audit::correct_usage)),
    read("/v1/nodes",                Read,    ClusterInQuery, Refused, LargeRead).by(|| routes!(nodes::list)),
    write(Put, "/v1/nodes/{id}",           Report, InHandler, Refused).by(|| routes!(nodes::put)),
    write(Delete, "/v1/nodes/{id}",        Report, InHandler, Refused).by(|| routes!(nodes::delete)),
    // In memory alone: renewals every few seconds are no acts that an audit is read for.
    Route { verb: Put, audit: AuditRule::None, ..read("/v1/connectors/lease", Report, ClusterInQuery, Refused, ReadLimit) }
        .by(|| routes!(connectors::take)),
    Route { verb: Delete, audit: AuditRule::None, ..read("/v1/connectors/lease", Report, ClusterInQuery, Refused, ReadLimit) }
        .by(|| routes!(connectors::give_back)),
    write(Post, "/v1/outcomes",            Report, InHandler, Refused).by(|| routes!(outcomes::record)),
    write(Post, "/v1/outcomes/corrections", Admin, Everything, Refused).by(|| routes!(audit::correct_outcomes)),
    read("/v1/tasks",                Read,    PoolInQuery,    Any,     LargeRead).by(|| routes!(tasks::list)),
    write(Post, "/v1/tasks",               Place,  InHandler, Any).by(|| routes!(tasks::submit)),
    // Decides, and changes nothing.
    Route { verb: Post, audit: AuditRule::None, ..read("/v1/tasks/dry-run", Read, InHandler, Any, ReadLimit) }
        .by(|| routes!(tasks::dry_run)),
    // Forecasts, and changes nothing.
    Route { verb: Post, audit: AuditRule::None, ..read("/v1/tasks/eta", Read, InHandler, Any, Played) }
        .by(|| routes!(starts::of_new)),
    Route { verb: Post, audit: AuditRule::None, ..read("/v1/tasks/prices", Read, InHandler, Any, Played) }
        .by(|| routes!(starts::prices)),
    read("/v1/tasks/{id}",           Read,    PoolInQuery,    OwnTask, ReadLimit).by(|| routes!(tasks::get)),
    write(Delete, "/v1/tasks/{id}",          Place, PoolInQuery, OwnTask).by(|| routes!(tasks::delete)),
    write(Post, "/v1/tasks/{id}/finish",     Place, PoolInQuery, OwnTask).by(|| routes!(tasks::finish)),
    write(Post, "/v1/tasks/{id}/checkpoint", Place, PoolInQuery, OwnTask).by(|| routes!(tasks::checkpoint)),
    write(Post, "/v1/tasks/{id}/speed",      Place, PoolInQuery, OwnTask).by(|| routes!(tasks::speed)),
    read("/v1/tasks/{id}/explain",   Read,    PoolInQuery,    OwnTask, ReadLimit).by(|| routes!(tasks::explain)),
    read("/v1/tasks/{id}/eta",       Read,    PoolInQuery,    OwnTask, Played).by(|| routes!(starts::of_task)),
    read("/v1/events",               Read,    PoolInQuery,    Refused, Stream).by(|| routes!(events::events)),
    read("/v1/audit",                Admin,   Everything,     Refused, LargeRead).by(|| routes!(audit::list)),
];

/// Rows of a path, by [`Verb`].
type Rows = [Option<&'static Route>; 4];

static BY_PATH: LazyLock<HashMap<&'static str, Rows>> = LazyLock::new(|| {
    let mut rows: HashMap<&'static str, Rows> = HashMap::new();
    for route in ROUTES {
        rows.entry(route.path).or_default()[route.verb as usize] = Some(route);
    }
    rows
});

/// Row of a request by its method and the path of the route that matches it; `None` where the table has none.
#[must_use]
pub fn row(method: &Method, path: Option<&str>) -> Option<&'static Route> {
    let verb = match *method {
        Method::GET | Method::HEAD => Get,
        Method::PUT => Put,
        Method::POST => Post,
        Method::DELETE => Delete,
        _ => return None,
    };
    BY_PATH.get(path?)?[verb as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi;
    use std::collections::BTreeSet;

    fn documented() -> BTreeSet<(String, String)> {
        let document = serde_json::to_value(openapi()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let verbs = |(path, item): (&String, &serde_json::Value)| {
            item.as_object().unwrap().keys().map(|verb| (verb.clone(), path.clone())).collect::<Vec<_>>()
        };
        paths.iter().flat_map(verbs).collect()
    }

    #[test]
    fn the_table_and_the_openapi_document_have_the_same_routes() {
        let listed = ROUTES.iter().filter(|route| route.handler.is_some());
        let listed: Vec<(String, String)> =
            listed.map(|route| (format!("{:?}", route.verb).to_lowercase(), route.path.to_owned())).collect();
        assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), documented());
        assert_eq!(listed.len(), documented().len(), "a row stands twice");
    }

    #[test]
    fn each_handler_stands_in_the_row_of_its_own_path() {
        for route in ROUTES {
            let Some(handler) = route.handler else { continue };
            let (_, paths, _) = handler();
            let found: Vec<&str> = paths.paths.keys().map(String::as_str).collect();
            assert_eq!(found, [route.path]);
        }
    }

    #[test]
    fn every_write_is_in_the_audit_and_needs_more_than_reading() {
        for route in ROUTES.iter().filter(|route| route.limit == Write) {
            assert_eq!(route.audit, AuditRule::Entry, "{route:?}");
            assert!(!matches!(route.role, Nothing | Read), "{route:?}");
        }
    }

    #[test]
    fn a_dry_run_of_a_reservation_needs_reading_alone_and_nothing_else_becomes_one() {
        let reserve = row(&Method::POST, Some("/v1/reservations")).unwrap();
        let need = |query: &str| reserve.role_of(&format!("/v1/reservations{query}").parse().unwrap());
        assert_eq!(need("?dry_run=true"), Read);
        for other in
            ["", "?dry_run=false", "?dry_run", "?dry_run=true&dry_run=false", "?dry_run=TRUE", "?x=dry_run=true"]
        {
            assert_eq!(need(other), Admin, "{other}");
        }
        let settings = row(&Method::PUT, Some("/v1/pools/{id}/settings")).unwrap();
        assert_eq!(settings.role_of(&"/v1/pools/a:b/settings?dry_run=true".parse().unwrap()), Admin);
    }

    #[test]
    fn a_scope_in_the_path_has_a_pool_there_and_a_task_rule_a_task() {
        for route in ROUTES {
            assert_eq!(route.scope == PoolInPath, route.path.starts_with("/v1/pools/{id}/"), "{route:?}");
            assert_eq!(route.organization == OwnTask, route.path.starts_with("/v1/tasks/{id}"), "{route:?}");
        }
    }

    #[test]
    fn a_request_finds_its_row_and_an_unlisted_one_none() {
        let path = |method: &Method, path: &str| row(method, Some(path)).map(|route| route.path);
        assert_eq!(path(&Method::HEAD, "/quota"), Some("/quota"));
        assert_eq!(row(&Method::DELETE, Some("/v1/pools/{id}/state")).map(|route| route.role), Some(Admin));
        assert_eq!(path(&Method::PATCH, "/quota"), None);
        assert_eq!(path(&Method::GET, "/v1/unlisted"), None);
        assert!(row(&Method::GET, None).is_none());
    }
}
