//! The HTTP interface (DESIGN §5): reads from memory, writes to the store, problems as RFC 9457.

mod access;
mod audit;
mod connectors;
mod dashboard;
mod document;
mod error;
mod events;
mod explain;
mod extract;
mod forward;
mod guard;
mod health;
mod measured;
mod missing_fields;
mod nodes;
mod origin;
mod outcomes;
mod overrides;
mod parameters;
mod places;
mod placing_fault;
mod pools;
mod quota;
mod refusals;
mod reports;
mod reservations;
mod routes;
mod shares;
mod starts;
mod statement;
mod stream;
mod task_names;
mod tasks;
mod transit;
mod usage;
pub mod waiting;

pub use error::ApiError;
pub use guard::{Guard, Limits};
pub use origin::only_for;

use crate::metrics::{self, Answers};
use crate::quotas::Quotas;
use crate::state::AppState;
use crate::trace;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use refusals::{Line, Refusals};
use routes::LimitClass;
use serving::hosts::Hosts;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

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

/// The routes and the document that describes them: both made of the table.
fn documented() -> OpenApiRouter<AppState> {
    let handlers = routes::ROUTES.iter().filter_map(|route| route.handler);
    handlers.fold(OpenApiRouter::with_openapi(Document::openapi()), |router, handler| router.routes(handler()))
}

/// The OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = documented().split_for_parts().1;
    document::complete(&mut document);
    document::bound(&mut document);
    document
}

/// Everything that the service answers.
pub fn router(state: AppState, render_metrics: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    let passing = Passing {
        guard: Guard::new(Limits::of(&state.core.config)),
        answers: Answers::new(),
        hosts: origin::hosts(&state.core.config),
        refusals: Refusals::default(),
        state: state.clone(),
    };
    let routes = documented().split_for_parts().0;
    routes
        .merge(dashboard::routes())
        .route("/openapi.json", document_route())
        .route("/metrics", get(move |State(quotas): State<Arc<Quotas>>| async move { scrape(&quotas, render_metrics) }))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(state.core.config.max_body_bytes))
        .layer(from_fn_with_state(Arc::new(passing), pass))
        .with_state(state)
}

/// `GET /openapi.json`.
fn document_route<S: Clone + Send + Sync + 'static>() -> MethodRouter<S> {
    let document = openapi().to_json().expect("the document is made of strings and numbers");
    let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
    get(move || async move { (json, document) })
}

fn scrape(quotas: &Quotas, render: impl Fn() -> String) -> String {
    let published = quotas.published.load();
    metrics::describe(published.pools().map(AsRef::as_ref), quotas.core.clock.now());
    metrics::describe_drift(&quotas.drift.load());
    metrics::describe_kept(published.pools().map(AsRef::as_ref), &quotas.kept.load());
    metrics::describe_leads(published.pools().map(AsRef::as_ref), &quotas.core.leases);
    render()
}

async fn not_found(request: Request) -> ApiError {
    ApiError::NoRoute { path: request.uri().path().to_owned() }
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::NoMethod { method: request.method().to_string(), path: request.uri().path().to_owned() }
}

/// The state of the layer that every request passes.
struct Passing {
    state: AppState,
    guard: Guard,
    answers: Answers,
    hosts: Hosts,
    refusals: Refusals,
}

/// Lets in who may ask, guards requests, and counts answers by route and status: one layer, since each costs a quota a microsecond.
async fn pass(State(passing): State<Arc<Passing>>, mut request: Request, next: Next) -> Response {
    let Passing { state, guard, answers, hosts, refusals } = passing.as_ref();
    let route = request.extensions().get::<axum::extract::MatchedPath>().cloned();
    let name = route.as_ref().map(axum::extract::MatchedPath::as_str);
    let row = routes::row(request.method(), name);
    let class = guard::class(row, &request);
    let caller = access::admitted(&state.access, row, request.method(), request.uri(), request.headers()).await;
    let caller = caller.and_then(|caller| {
        origin::check(&state.access, hosts, &caller, row, &request)?;
        request.extensions_mut().insert(caller);
        if let Some(row) = row {
            parameters::check(row, request.uri())?;
            request.extensions_mut().insert(row);
        }
        Ok(())
    });
    let response = match (caller, class) {
        (Err(refused), _) => {
            let response = refused.into_response();
            refusals.note(Line::of(&request), name, response.status());
            response
        }
        (Ok(()), LimitClass::Memory | LimitClass::Probe) => next.run(request).await,
        (Ok(()), LimitClass::Metrics) => guard::scraped(guard, request, next).await,
        (Ok(()), class) => {
            let (span, begun, line) = (trace::request(&request, name), Instant::now(), Line::of(&request));
            let response = guard::guarded(&state.access, &state.health, guard, class, request, next)
                .instrument(span.clone())
                .await;
            if class != LimitClass::Stream {
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
