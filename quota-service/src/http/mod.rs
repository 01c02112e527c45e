//! The HTTP interface (DESIGN §5): reads from memory, writes to the store, problems as RFC 9457.

mod access;
mod audit;
mod dashboard;
mod document;
mod error;
mod events;
mod explain;
mod extract;
mod forward;
mod guard;
mod health;
mod look;
mod measured;
mod missing;
mod names;
mod nodes;
mod origin;
mod outcomes;
mod overrides;
mod placing_fault;
mod pools;
mod quota;
mod refusals;
mod stream;
mod tasks;
mod transit;
mod usage;
pub mod waiting;

pub use error::ApiError;
pub use guard::{Guard, Limits};
pub use origin::only_for;

use crate::metrics::{self, Answers};
use crate::refresh::Service;
use crate::trace;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use refusals::{Line, Refusals};
use serving::hosts::Hosts;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(OpenApi)]
#[openapi(
    info(title = "Headroom", description = "Spot quotas for GPU clusters that keep their promise"),
    tags(
        (name = "quota", description = "What spot tasks may hold, and why"),
        (name = "pools", description = "Pools, their state and settings"),
        (name = "feed", description = "Usage, nodes and outcomes, reported to Headroom"),
        (name = "tasks", description = "Tasks, placed by the quotas"),
        (name = "service", description = "Health and metrics")
    )
)]
struct Document;

/// The routes and the document that describes them: made from one list, so that they cannot disagree.
fn documented() -> OpenApiRouter<Arc<Service>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(quota::quota))
        .routes(routes!(quota::quota_v1))
        .routes(routes!(stream::stream))
        .routes(routes!(explain::explain))
        .routes(routes!(explain::history))
        .routes(routes!(explain::forecast))
        .routes(routes!(look::what_if))
        .routes(routes!(look::demand))
        .routes(routes!(look::promises))
        .routes(routes!(look::runs))
        .routes(routes!(overrides::list, overrides::create))
        .routes(routes!(overrides::delete))
        .routes(routes!(look::nodes))
        .routes(routes!(pools::list))
        .routes(routes!(pools::get_state, pools::put_state, pools::delete_state))
        .routes(routes!(pools::get_settings, pools::put_settings))
        .routes(routes!(usage::append))
        .routes(routes!(audit::correct_usage))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::put, nodes::delete))
        .routes(routes!(outcomes::record))
        .routes(routes!(audit::correct_outcomes))
        .routes(routes!(tasks::list, tasks::submit))
        .routes(routes!(tasks::dry_run))
        .routes(routes!(tasks::get, tasks::delete))
        .routes(routes!(tasks::finish))
        .routes(routes!(tasks::checkpoint))
        .routes(routes!(tasks::speed))
        .routes(routes!(tasks::explain))
        .routes(routes!(pools::snapshot))
        .routes(routes!(events::events))
        .routes(routes!(audit::list))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
}

/// The OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = documented().split_for_parts().1;
    document::complete(&mut document);
    document
}

/// Everything that the service answers.
pub fn router(service: Arc<Service>, render_metrics: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    let passing = Passing {
        service: service.clone(),
        guard: Guard::new(service.config.limits()),
        answers: Answers::new(),
        hosts: origin::hosts(&service.config),
        refusals: Refusals::default(),
    };
    let routes = documented().split_for_parts().0;
    let document = openapi().to_json().expect("the document is made of strings and numbers");
    let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
    routes
        .merge(dashboard::routes())
        .route("/openapi.json", get(move || async move { (json, document) }))
        .route(
            "/metrics",
            get(move |State(service): State<Arc<Service>>| async move { scrape(&service, render_metrics) }),
        )
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(service.config.max_body_bytes))
        .layer(from_fn_with_state(Arc::new(passing), pass))
        .with_state(service)
}

fn scrape(service: &Service, render: impl Fn() -> String) -> String {
    let published = service.published.load();
    metrics::describe(published.pools().map(AsRef::as_ref), service.clock.now());
    metrics::describe_drift(&service.drift.load());
    metrics::describe_kept(published.pools().map(AsRef::as_ref), &service.kept.load());
    metrics::describe_leads(published.pools().map(AsRef::as_ref), &service.leases);
    render()
}

async fn not_found(State(_): State<Arc<Service>>, request: Request) -> ApiError {
    ApiError::NoRoute { path: request.uri().path().to_owned() }
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::NoMethod { method: request.method().to_string(), path: request.uri().path().to_owned() }
}

/// What every request passes.
struct Passing {
    service: Arc<Service>,
    guard: Guard,
    answers: Answers,
    hosts: Hosts,
    refusals: Refusals,
}

/// Lets in who may ask, guards requests, and counts answers by route and status: one layer, since each costs a quota a microsecond.
async fn pass(State(passing): State<Arc<Passing>>, mut request: Request, next: Next) -> Response {
    let Passing { service, guard, answers, hosts, refusals } = passing.as_ref();
    let route = request.extensions().get::<axum::extract::MatchedPath>().cloned();
    let name = route.as_ref().map(axum::extract::MatchedPath::as_str);
    let kind = guard::Kind::of(name, &request);
    let caller = access::admitted(service, name, request.method(), request.uri(), request.headers()).await;
    let caller = caller.and_then(|caller| {
        origin::check(service, hosts, &caller, name, &request)?;
        request.extensions_mut().insert(caller);
        Ok(())
    });
    let response = match (caller, kind) {
        (Err(refused), _) => {
            let response = refused.into_response();
            refusals.note(Line::of(&request), name, response.status());
            response
        }
        (Ok(()), guard::Kind::Quota) => next.run(request).await,
        (Ok(()), guard::Kind::Metrics) => guard::scraped(guard, request, next).await,
        (Ok(()), kind) => {
            let (span, begun, line) = (trace::request(&request, name), Instant::now(), Line::of(&request));
            let response = guard::guarded(service, guard, kind, request, next).instrument(span.clone()).await;
            if kind != guard::Kind::Stream {
                metrics::requested(name.unwrap_or("none"), begun.elapsed());
            }
            trace::answered(&span, &response);
            refusals.note(line, name, response.status());
            response
        }
    };
    answers.count(name.unwrap_or("none"), response.status().as_u16());
    response
}
