//! Tasks: submitted, ended, explained. A decision is durable before it is answered; a refusal is an answer.

use super::access::{Who, Write};
use super::extract::{Json as Body, Path, Query};
use super::{ApiError, task_names};
use crate::access::Caller;
use crate::core::Core;
use crate::engine::{Decided, EngineError, Explain, ListTasks, Order, TaskCall, TaskPage, TaskQuery, answer};
use crate::placed_by::{self, Decision};
use crate::refresh::Renewals;
use crate::start_times::StartTimes;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use placement::pool::Request;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use store::TaskStatus;
use utoipa::IntoParams;
use vocab::{ClusterName, GpuModel, PlacedBy, PoolId, TaskId};
use wire::{Problem, SpeedBody, TaskAnswer, TaskBody, TaskExplanation, TaskList};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PoolQuery {
    cluster: String,
    gpu_model: String,
}

impl PoolQuery {
    pub fn pool(&self) -> Result<PoolId, ApiError> {
        let refused = |what: &str, fault: vocab::NameError| ApiError::Query { detail: format!("{what}: {fault}") };
        Ok(PoolId {
            cluster: ClusterName::parse(&self.cluster).map_err(|fault| refused("cluster", fault))?,
            gpu_model: GpuModel::parse(&self.gpu_model).map_err(|fault| refused("gpu_model", fault))?,
        })
    }
}

/// The request under the name that is kept.
async fn named(core: &Core, caller: &Caller, pool: &PoolId, mut request: Request) -> Result<Request, ApiError> {
    request.gang.task = task_names::kept(core, caller, pool, request.gang.task).await?;
    Ok(request)
}

pub(super) fn task_id(text: &str) -> Result<TaskId, ApiError> {
    TaskId::parse(text).map_err(|fault| ApiError::Query { detail: format!("task: {fault}") })
}

/// Decides, and keeps in the audit what was done by whom, if it is a write.
async fn decided(
    renewals: &Renewals,
    pool: &PoolId,
    call: TaskCall,
    who: &Who,
    write: Option<&Write>,
) -> Result<Json<TaskAnswer>, ApiError> {
    Ok(asked(renewals, pool, call, who, write).await?)
}

async fn asked(
    renewals: &Renewals,
    pool: &PoolId,
    call: TaskCall,
    who: &Who,
    write: Option<&Write>,
) -> Result<Json<TaskAnswer>, EngineError> {
    begun(renewals, pool).await?;
    let entry = write.map(|write| write.entry(renewals.core.clock.now(), StatusCode::OK, &Value::Null));
    let decided = renewals.engine.order(pool, call, entry).await?;
    Ok(Json(task_names::shown(&who.0, answer(pool, &decided))))
}

/// Starts the writer of a pool, where it does not run.
pub(super) async fn begun(renewals: &Renewals, pool: &PoolId) -> Result<(), EngineError> {
    if !renewals.engine.is_running(pool) {
        match renewals.engine.ask(pool, Order::Pass).await {
            // To register nodes would be of no use.
            Err(EngineError::UnknownPool) if is_placed_outside(renewals, pool).await? => {
                return Err(EngineError::PlacedOutside);
            }
            passed => passed?,
        }
    }
    Ok(())
}

async fn is_placed_outside(renewals: &Renewals, pool: &PoolId) -> Result<bool, EngineError> {
    let placement = renewals.core.store.placement(pool).await?;
    Ok(placement.is_some_and(|placement| placement.placed_by == PlacedBy::External))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    cluster: String,
    gpu_model: String,
    /// `waiting` or `running`.
    status: String,
    /// The most tasks to list, 100 if not given.
    #[param(minimum = 0, maximum = 1000)]
    limit: Option<u32>,
}

/// The most tasks of one list: for each waiting one the pool finds the reason.
const MOST_LISTED: u32 = 1_000;

/// The waiting tasks of a pool with their reasons, or its running ones
#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", params(ListQuery), responses(
    (status = 200, description = "Waiting ones HP first and larger requests first, running ones by name", body = TaskList),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "The pool has no nodes", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list(
    State(renewals): State<Arc<Renewals>>,
    State(starts): State<Arc<StartTimes>>,
    Who(who): Who,
    Query(query): Query<ListQuery>,
) -> Result<Json<TaskList>, ApiError> {
    let ListQuery { cluster, gpu_model, status, limit } = query;
    let pool = PoolQuery { cluster, gpu_model }.pool()?;
    let limit = limit.unwrap_or(100);
    if limit > MOST_LISTED {
        return Err(ApiError::Query { detail: format!("limit: invalid limit {limit}: write 0 to {MOST_LISTED}") });
    }
    let known = TaskStatus::ALL.into_iter().find(|known| known.as_str() == status);
    let wanted = known.and_then(|known| TaskQuery::of(known, who.organization().cloned(), limit as usize));
    let refused = || ApiError::Query { detail: format!("status: invalid status {status:?}: write waiting or running") };
    let TaskPage { records, total } = renewals.engine.ask(&pool, ListTasks(wanted.ok_or_else(refused)?)).await?;
    let one = |record| {
        let task = starts.with_start(&pool, answer(&pool, &Decided { record, is_shadow: false }));
        task_names::shown(&who, task)
    };
    Ok(Json(TaskList { tasks: records.into_iter().map(one).collect(), total }))
}

/// Submit a task
///
/// It starts at once, with its places, or waits, with the reason. A repeated task is answered as it is now.
#[utoipa::path(post, path = "/v1/tasks", tag = "tasks", request_body = TaskBody, responses(
    (status = 200, description = "Decided, and durable", body = TaskAnswer),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "The pool has no nodes", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "An external scheduler places the pool, or a virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "A task of this id exists with another request, the task is too large for the pool, or the database cannot hold it", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; the same request again is safe", body = Problem, content_type = "application/problem+json"),
))]
pub async fn submit(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Body(body): Body<TaskBody>,
) -> Result<Json<TaskAnswer>, ApiError> {
    let (pool, request) = body.parse(renewals.core.clock.now())?;
    write.of_pool(&pool)?;
    write.of_organization(&request.organization)?;
    let request = named(&renewals.core, &write.0, &pool, request).await?;
    match asked(&renewals, &pool, TaskCall::Submit(request.clone()), &write, Some(&write)).await {
        Err(EngineError::Undecided) => {
            // A task that is refused decides nothing.
            let _ = decided(&renewals, &pool, TaskCall::DryRun(request.clone()), &write, None).await?;
            let (before, after, reason) = (None, PlacedBy::Headroom, "first task");
            let (action, target) = ("POST /v1/tasks", "/v1/tasks");
            let decision = Decision { pool: &pool, before, after, reason, action, target };
            placed_by::decide(&renewals.core, &renewals.engine, &write.0, decision).await?;
            decided(&renewals, &pool, TaskCall::Submit(request), &write, Some(&write)).await
        }
        decision => Ok(decision?),
    }
}

/// Try a task without submitting it
///
/// Decides as a submission would, and changes nothing.
#[utoipa::path(post, path = "/v1/tasks/dry-run", tag = "tasks", request_body = TaskBody, responses(
    (status = 200, description = "The decision on a submission now", body = TaskAnswer),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "The pool has no nodes", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "An external scheduler places the pool, or a virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "The task is too large for the pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn dry_run(
    State(renewals): State<Arc<Renewals>>,
    who: Who,
    Body(body): Body<TaskBody>,
) -> Result<Json<TaskAnswer>, ApiError> {
    let (pool, request) = body.parse(renewals.core.clock.now())?;
    who.of_pool(&pool)?;
    who.of_organization(&request.organization)?;
    let request = named(&renewals.core, &who.0, &pool, request).await?;
    decided(&renewals, &pool, TaskCall::DryRun(request), &who, None).await
}

/// A task as it is, or was when it ended
#[utoipa::path(get, path = "/v1/tasks/{id}", tag = "tasks", params(("id" = String, Path), PoolQuery), responses(
    (status = 200, description = "As it is stored", body = TaskAnswer),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown task", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn get(
    State(renewals): State<Arc<Renewals>>,
    State(starts): State<Arc<StartTimes>>,
    Who(who): Who,
    Path(id): Path<String>,
    Query(query): Query<PoolQuery>,
) -> Result<Json<TaskAnswer>, ApiError> {
    let pool = query.pool()?;
    let id = task_names::kept(&renewals.core, &who, &pool, task_id(&id)?).await?;
    if let Some(record) = renewals.core.store.task_record(&pool, &id).await? {
        // Why it waits has changed since it was stored. Where another service leads, or none, the stored reason is all that is known.
        let explained = match record.status {
            TaskStatus::Waiting => renewals.engine.ask_if_running(&pool, Explain(id)).await.ok().flatten(),
            _ => None,
        };
        let task = explained.map_or_else(|| answer(&pool, &Decided { record, is_shadow: false }), |one| one.task);
        return Ok(Json(task_names::shown(&who, starts.with_start(&pool, task))));
    }
    match renewals.engine.ask_if_running(&pool, TaskCall::Shadow(id.clone())).await? {
        Some(decided) => Ok(Json(task_names::shown(&who, answer(&pool, &decided)))),
        None => Err(ApiError::UnknownTask { task: id.to_string() }),
    }
}

/// Delete a task, waiting or running
#[utoipa::path(delete, path = "/v1/tasks/{id}", tag = "tasks", params(("id" = String, Path), PoolQuery), responses(
    (status = 200, description = "It is deleted", body = TaskAnswer),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown task", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "It has finished", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "The database cannot hold the result; nothing was done", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; the same request again is safe", body = Problem, content_type = "application/problem+json"),
))]
pub async fn delete(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    Query(query): Query<PoolQuery>,
    write: Write,
) -> Result<Json<TaskAnswer>, ApiError> {
    let pool = query.pool()?;
    let id = task_names::kept(&renewals.core, &write.0, &pool, task_id(&id)?).await?;
    decided(&renewals, &pool, TaskCall::Delete(id), &write, Some(&write)).await
}

/// Report the end of a running task
#[utoipa::path(post, path = "/v1/tasks/{id}/finish", tag = "tasks", params(("id" = String, Path), PoolQuery), responses(
    (status = 200, description = "It is finished, now or before", body = TaskAnswer),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown task", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "It does not run: it was evicted, or deleted", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "The database cannot hold the result; nothing was done", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; the same request again is safe", body = Problem, content_type = "application/problem+json"),
))]
pub async fn finish(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    Query(query): Query<PoolQuery>,
    write: Write,
) -> Result<Json<TaskAnswer>, ApiError> {
    let pool = query.pool()?;
    let id = task_names::kept(&renewals.core, &write.0, &pool, task_id(&id)?).await?;
    decided(&renewals, &pool, TaskCall::Finish(id), &write, Some(&write)).await
}

/// Report a checkpoint of a running task
///
/// Work before it is not lost by an eviction, and tasks that lose least are evicted first.
#[utoipa::path(post, path = "/v1/tasks/{id}/checkpoint", tag = "tasks", params(("id" = String, Path), PoolQuery), responses(
    (status = 200, description = "Stored", body = TaskAnswer),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown task", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "It does not run", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "The database cannot hold the result; nothing was done", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; the same request again is safe", body = Problem, content_type = "application/problem+json"),
))]
pub async fn checkpoint(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    Query(query): Query<PoolQuery>,
    write: Write,
) -> Result<Json<TaskAnswer>, ApiError> {
    let pool = query.pool()?;
    let id = task_names::kept(&renewals.core, &write.0, &pool, task_id(&id)?).await?;
    decided(&renewals, &pool, TaskCall::Checkpoint(id), &write, Some(&write)).await
}

/// Report the speed of an elastic task on its present pods
///
/// A task without speeds in its request is lent a pod while the last one was worth it. A report replaces an earlier one of as many
/// pods.
#[utoipa::path(post, path = "/v1/tasks/{id}/speed", tag = "tasks", params(("id" = String, Path), PoolQuery), request_body = SpeedBody, responses(
    (status = 200, description = "Stored", body = TaskAnswer),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown task", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "It does not run, or is not elastic", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "The database cannot hold the result; nothing was done", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; the same request again is safe", body = Problem, content_type = "application/problem+json"),
))]
pub async fn speed(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    Query(query): Query<PoolQuery>,
    write: Write,
    Body(body): Body<SpeedBody>,
) -> Result<Json<TaskAnswer>, ApiError> {
    let (pods, speed_thousandths) = body.parse()?;
    let pool = query.pool()?;
    let id = task_names::kept(&renewals.core, &write.0, &pool, task_id(&id)?).await?;
    decided(&renewals, &pool, TaskCall::Speed(id, pods, speed_thousandths), &write, Some(&write)).await
}

/// The reason for the state of a task
#[utoipa::path(get, path = "/v1/tasks/{id}/explain", tag = "tasks", params(("id" = String, Path), PoolQuery), responses(
    (status = 200, description = "The reason now, with its numbers", body = TaskExplanation),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown task", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn explain(
    State(renewals): State<Arc<Renewals>>,
    Who(who): Who,
    Path(id): Path<String>,
    Query(query): Query<PoolQuery>,
) -> Result<Json<TaskExplanation>, ApiError> {
    let pool = query.pool()?;
    let id = task_names::kept(&renewals.core, &who, &pool, task_id(&id)?).await?;
    let explanation = renewals.engine.ask(&pool, Explain(id)).await?;
    let reason = task_names::shown_reason(&who, explanation.reason);
    Ok(Json(TaskExplanation { task: task_names::shown(&who, explanation.task), reason, ..explanation }))
}
