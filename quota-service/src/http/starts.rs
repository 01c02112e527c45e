//! When tasks start: a forecast, which changes nothing.

use super::ApiError;
use super::access::Who;
use super::extract::{Json as Body, Path, Query};
use super::task_names;
use super::tasks::{PoolQuery, begun, task_id};
use crate::refresh::Renewals;
use crate::settings;
use crate::start_times::{StartTimes, Wanted};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use wire::{PriceList, PriceQuestion, Problem, StartAnswer, StartQuestion, TaskClassBody};

/// When a task starts
///
/// A waiting task: the distribution of its start over simulated futures of the pool, as earlier forecasts correct it. A running one:
/// when it has started.
#[utoipa::path(get, path = "/v1/tasks/{id}/eta", tag = "tasks", params(("id" = String, Path), PoolQuery), responses(
    (status = 200, description = "Its start, and why the forecast may be off", body = StartAnswer),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown task", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "It has ended, or a virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn of_task(
    State(renewals): State<Arc<Renewals>>,
    State(starts): State<Arc<StartTimes>>,
    Who(who): Who,
    Path(id): Path<String>,
    Query(query): Query<PoolQuery>,
) -> Result<Json<StartAnswer>, ApiError> {
    let (pool, shown) = (query.pool()?, id.clone());
    let id = task_names::kept(&renewals.core, &who, &pool, task_id(&id)?).await?;
    begun(&renewals, &pool).await?;
    let answer = starts.of_task(&pool, &id).await?;
    let waits = answer.waits.map(|why| task_names::shown_reason(&who, why));
    Ok(Json(StartAnswer { task: Some(shown), waits, ..answer }))
}

/// When a task would start
///
/// Forecasts the start of a task that is not submitted, as if it were submitted now.
#[utoipa::path(post, path = "/v1/tasks/eta", tag = "tasks", request_body = StartQuestion, responses(
    (status = 200, description = "Its start, and why the forecast may be off", body = StartAnswer),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "The pool has no nodes", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "An external scheduler places the pool, or a virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "The task is too large for the pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn of_new(
    State(renewals): State<Arc<Renewals>>,
    State(starts): State<Arc<StartTimes>>,
    who: Who,
    Body(body): Body<StartQuestion>,
) -> Result<Json<StartAnswer>, ApiError> {
    let (pool, request) = body.parse(renewals.core.clock.now())?;
    who.of_pool(&pool)?;
    who.of_organization(&request.organization)?;
    begun(&renewals, &pool).await?;
    let answer = starts.of_new(&pool, request).await?;
    let waits = answer.waits.map(|why| task_names::shown_reason(&who.0, why));
    Ok(Json(StartAnswer { waits, ..answer }))
}

/// The price of each class and guarantee in waiting
///
/// The start of the same task at will, under each guarantee that the pool offers, and as HP. With `runs_s` its end; with `ends_by` whether it
/// ends in time, the latest submission, and the cheapest way.
#[utoipa::path(post, path = "/v1/tasks/prices", tag = "tasks", request_body = PriceQuestion, responses(
    (status = 200, description = "A price for each class and guarantee", body = PriceList),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "The pool has no nodes", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "An external scheduler places the pool, or a virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "The task is too large for the pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn prices(
    State(renewals): State<Arc<Renewals>>,
    State(starts): State<Arc<StartTimes>>,
    who: Who,
    Body(body): Body<PriceQuestion>,
) -> Result<Json<PriceList>, ApiError> {
    let now = renewals.core.clock.now();
    let at_will = body.of(TaskClassBody::Spot, None);
    let (pool, request) = at_will.parse(now)?;
    let (runs_s, deadline) = body.parse(now)?;
    who.of_pool(&pool)?;
    who.of_organization(&request.organization)?;
    let settings = settings::load(renewals.core.store.as_ref(), &pool).await?.pool;
    let offered = settings.offered_hours.iter().map(|hours| (TaskClassBody::Spot, Some(u64::from(hours.get()))));
    let mut requests = vec![request];
    for (class, hours) in offered.chain([(TaskClassBody::Hp, None)]) {
        requests.push(body.of(class, hours).parse(now)?.1);
    }
    begun(&renewals, &pool).await?;
    Ok(Json(starts.prices(&pool, requests, Wanted { runs_s, deadline }, settings.guarantee_rate).await?))
}
