//! Summaries of pools, their reported states, their settings.

use super::ApiError;
use super::access::{Who, Write};
use super::extract::{Json as Body, Path, not_ahead, pool_id, written_here};
use super::placing_fault::PlacingFault;
use crate::access::Caller;
use crate::engine::{Order, TakeSnapshot};
use crate::placed_by::{self, Decision};
use crate::plan::Details;
use crate::published::{Answer, PublishedPool, Report};
use crate::quotas::Quotas;
use crate::refresh::Renewals;
use crate::refresh::pace::Haste;
use crate::settings::ServedSettings;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use forecaster::Predict;
use placement::staleness::stage;
use serde_json::json;
use std::sync::Arc;
use store::PoolPlacement;
use vocab::{HorizonHours, MilliGpus, PlacedBy, PoolId, PoolState, UnixSeconds};
use wire::{
    FieldFault, PoolList, PoolStateBody, PoolStateReceipt, PoolSummary, PoolTasks, Problem, SettingsBody,
    SnapshotRecord,
};

/// A summary of every pool
#[utoipa::path(get, path = "/v1/pools", tag = "pools", responses(
    (status = 200, description = "Every pool that has usage, a capacity or nodes", body = PoolList),
))]
pub async fn list(State(quotas): State<Arc<Quotas>>, Who(who): Who) -> Json<PoolList> {
    let (now, published) = (quotas.core.clock.now(), quotas.published.load());
    let pools = published.pools().filter(|pool| who.may_pool(&pool.id));
    Json(PoolList { pools: pools.map(|pool| summary(pool, now)).collect() })
}

fn summary(pool: &PublishedPool, now: UnixSeconds) -> PoolSummary {
    let by_hours =
        |of: &dyn Fn(&Answer) -> f64| pool.answers.iter().map(|one| (one.hours().to_string(), of(one))).collect();
    let tasks = pool.glance.tasks;
    let first = pool.answers.first();
    // Quotas of another service, or of before the start, are known by what is stored of them.
    let details = match &pool.made_of {
        Some(made_of) => Details::computed(made_of, now),
        None => Details::stored(&pool.stored_explanations, now),
    };
    PoolSummary {
        id: pool.id.to_string(),
        cluster: pool.id.cluster.to_string(),
        gpu_model: pool.id.gpu_model.to_string(),
        placed_by: pool.glance.placed_by.map(Into::into),
        organizations: details.organizations,
        offered_hours: pool.answers.iter().map(Answer::hours).collect(),
        capacity_gpus: first
            .map(|answer| answer.fresh.capacity_gpus)
            .or_else(|| pool.glance.capacity.map(MilliGpus::as_gpus)),
        latest_demand_gpus: details.latest_demand_gpus,
        quota_gpus_by_hours: by_hours(&|one| one.amounts(now).quota.as_gpus()),
        computed_quota_gpus_by_hours: by_hours(&|one| one.fresh.quota_gpus),
        eta: first.map_or(1.0, |answer| answer.fresh.eta),
        computed_at: first.map(|answer| answer.fresh.computed_at.clone()),
        stage: first.map(|answer| stage(answer.computed_at, now).0.into()),
        no_quota: pool.problem.clone(),
        valid_until: first.map(|answer| answer.fresh.valid_until.clone()),
        guarantee_rate: first.map(|answer| answer.fresh.guarantee_rate),
        idle_gpus: first.map(|answer| answer.fresh.idle_gpus),
        spot_gpus_by_hours: by_hours(&|one| one.held.spot.as_gpus()),
        available_gpus_by_hours: by_hours(&|one| one.amounts(now).available.as_gpus()),
        demand_bound_gpus_by_hours: by_hours(&|one| one.fresh.demand_bound_gpus),
        hp_demand_gpus: details.hp_demand_gpus,
        forecast: details.forecast,
        outcomes_24h: pool.glance.outcomes_24h.iter().map(|(kind, n)| (kind.as_str().to_owned(), *n)).collect(),
        tasks: tasks.map(|all| PoolTasks {
            waiting: all.hp_waiting + all.spot_waiting,
            running: all.hp_running + all.spot_running,
        }),
        overrides: details.overrides,
    }
}

/// The state that a scheduler last reported
///
/// `hp_jobs` has those of the caller's organization, where its token has one.
#[utoipa::path(get, path = "/v1/pools/{id}/state", tag = "pools", params(("id" = String, Path, description = "CLUSTER:GPU_MODEL")), responses(
    (status = 200, description = "The last reported state", body = PoolStateBody),
    (status = 404, description = "Unknown pool, or no report", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn get_state(
    State(quotas): State<Arc<Quotas>>,
    Path(id): Path<String>,
    Who(who): Who,
) -> Result<Json<PoolStateBody>, ApiError> {
    let pool = known(&quotas, &id)?;
    let stored = quotas.core.store.pool_state(&pool).await?.ok_or(ApiError::NoState { pool: id })?;
    let jobs = stored.hp_jobs.as_ref().map(|jobs| jobs.iter().filter(|job| who.may_organization(&job.organization)));
    Ok(Json(PoolStateBody::from(&stored.state).with_jobs(jobs)))
}

/// Report capacity, idle GPUs, spot GPUs and waiting of an external scheduler
///
/// An older report does not overwrite a newer one. A report of more than `clock_skew_s` ahead of the service is refused; one within
/// it counts as of now. With `hp_jobs` the bounds follow the HP jobs from moment to moment, as in a pool that Headroom places. A report that lowers a quota does so at once: fewer idle GPUs or a smaller capacity, and HP jobs that need more than was foreseen; a raise follows with the next renewal, at most
/// `report_refresh_s` later.
#[utoipa::path(put, path = "/v1/pools/{id}/state", tag = "pools", request_body = PoolStateBody,
    params(("id" = String, Path, description = "CLUSTER:GPU_MODEL")), responses(
    (status = 200, description = "Durable, unless a newer report is stored", body = PoolStateReceipt),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "Headroom places the pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn put_state(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    write: Write,
    Body(body): Body<PoolStateBody>,
) -> Result<Json<PoolStateReceipt>, ApiError> {
    let (state, hp_jobs) = (body.parse(known(&renewals.quotas, &id)?)?, body.jobs()?);
    let now = renewals.core.clock.now();
    written_here(&renewals.core, &state.pool.cluster)?;
    not_ahead("/as_of", state.as_of, now, renewals.core.config.clock_skew_s)?;
    // A clock that runs a little ahead must not make later reports look old.
    let state = PoolState { as_of: state.as_of.min(now), ..state };
    listens_to_reports(&renewals, &write.0, &state.pool).await?;
    // The audit has the number of the jobs: a report every few seconds with all of them would fill it.
    let detail = json!({ "state": PoolStateBody { hp_jobs: None, ..body }, "hp_jobs": hp_jobs.as_ref().map(Vec::len) });
    let store = write.store(&renewals.core, StatusCode::OK, &detail);
    let taken = store.put_pool_state(&state, hp_jobs.as_deref(), now).await?;
    if taken {
        renewals.quotas.take_report(Report::new(state.clone(), hp_jobs.as_deref()));
    }
    renewals.request_renewal(&state.pool.cluster, Haste::Report);
    Ok(Json(PoolStateReceipt { taken }))
}

/// Refuses reports of a pool that Headroom places. The first report of an undecided pool sets it to `external`.
async fn listens_to_reports(renewals: &Renewals, who: &Caller, pool: &PoolId) -> Result<(), ApiError> {
    let known = renewals.core.store.placement(pool).await?.map(|placement| placement.placed_by);
    let side = if let Some(side) = known {
        side
    } else {
        let (before, after, reason) = (None, PlacedBy::External, "first reported state");
        let target = format!("/v1/pools/{pool}/state");
        let decision = Decision { pool, before, after, reason, action: "PUT /v1/pools/{id}/state", target: &target };
        let side = placed_by::decide(&renewals.core, &renewals.engine, who, decision).await?;
        renewals.quotas.note_side(pool, side);
        side
    };
    match side {
        PlacedBy::External => Ok(()),
        PlacedBy::Headroom => Err(ApiError::Placing(PlacingFault::Here { pool: pool.to_string() })),
    }
}

/// Delete the reported state
///
/// For a pool whose scheduler no longer reports: until then its quota ages, since the GPUs of spot tasks are unknown. It needs an
/// admin, since the estimate in place of the state may raise the quota.
#[utoipa::path(delete, path = "/v1/pools/{id}/state", tag = "pools", params(("id" = String, Path, description = "CLUSTER:GPU_MODEL")), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was deleted", body = Problem, content_type = "application/problem+json"),
))]
pub async fn delete_state(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    write: Write,
) -> Result<StatusCode, ApiError> {
    let pool = known(&renewals.quotas, &id)?;
    written_here(&renewals.core, &pool.cluster)?;
    let before = renewals.core.store.pool_state(&pool).await?;
    let detail = json!({ "before": before.map(|received| PoolStateBody::from(&received.state)) });
    write.store(&renewals.core, StatusCode::NO_CONTENT, &detail).delete_pool_state(&pool).await?;
    renewals.request_renewal(&pool.cluster, Haste::Urgent);
    Ok(StatusCode::NO_CONTENT)
}

/// The settings of a pool
#[utoipa::path(get, path = "/v1/pools/{id}/settings", tag = "pools", params(("id" = String, Path, description = "CLUSTER:GPU_MODEL")), responses(
    (status = 200, description = "The settings; without a version they are the defaults", body = SettingsBody),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn get_settings(
    State(quotas): State<Arc<Quotas>>,
    Path(id): Path<String>,
) -> Result<Json<SettingsBody>, ApiError> {
    let pool = known(&quotas, &id)?;
    Ok(Json(crate::settings::load(quotas.core.store.as_ref(), &pool).await?.body()))
}

/// Change the settings
///
/// The body states the version that it changes (none for the first change); another version is a conflict, but for a change that
/// is sent again: where the next version is just that, it is answered. A pool with open tasks does not change from `headroom` to `external`.
#[utoipa::path(put, path = "/v1/pools/{id}/settings", tag = "pools", request_body = SettingsBody,
    params(("id" = String, Path, description = "CLUSTER:GPU_MODEL")), responses(
    (status = 200, description = "The settings, with their new version", body = SettingsBody),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "The settings have another version, or the pool has open tasks", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn put_settings(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
    write: Write,
    Body(body): Body<SettingsBody>,
) -> Result<Json<SettingsBody>, ApiError> {
    let pool = known(&renewals.quotas, &id)?;
    written_here(&renewals.core, &pool.cluster)?;
    let settings = ServedSettings::parse(&body, horizon(&renewals.quotas, &pool))?;
    check_durations(&body)?;
    if settings.placement.policy().score.needs_power() {
        renewals.engine.power(&pool).map_err(|fault| FieldFault::new("/policy", format!("{fault} (power_file)")))?;
    }
    let placement = Box::new(settings.placement.clone());
    let body = put(&renewals, &write, &pool, settings).await?;
    // Before the order, whose turn would place by the limits of before.
    renewals.outdate(&pool);
    renewals.engine.ask_if_running(&pool, Order::Settings(placement)).await?;
    Ok(Json(body))
}

/// No duration of a pool is longer than a day: a longer one is a slip that would keep old numbers fresh. Stored settings are not
/// checked.
fn check_durations(body: &SettingsBody) -> Result<(), ApiError> {
    const MOST_S: u32 = vocab::SECONDS_PER_DAY as u32;
    let all = [
        ("/state_fresh_s", Some(body.state_fresh_s)),
        ("/grace_s", body.grace_s),
        ("/load_s", body.load_s),
        ("/resize_rest_s", body.resize_rest_s),
    ];
    let too_long = all.into_iter().filter(|(_, seconds)| seconds.is_some_and(|seconds| seconds > MOST_S));
    let faults: Vec<_> =
        too_long.map(|(field, _)| FieldFault::new(field, format!("more than {MOST_S} s, a day: write less"))).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}

/// Stores settings, and the side of the pool where it changes; answers the valid ones.
async fn put(
    renewals: &Renewals,
    write: &Write,
    pool: &PoolId,
    settings: ServedSettings,
) -> Result<SettingsBody, ApiError> {
    let known = renewals.core.store.placement(pool).await?;
    let side = known.as_ref().map(|placement| placement.placed_by);
    let placement = settings.placed_by.filter(|after| Some(*after) != side).map(|placed_by| PoolPlacement {
        placed_by,
        since: Some(renewals.core.clock.now()),
        set_by: write.0.name.clone(),
    });
    let stored = SettingsBody { version: None, placed_by: None, ..settings.body() };
    let text = serde_json::to_string(&stored).expect("settings have finite numbers under string keys");
    let valid = settings.placed_by.or(side).map(Into::into);
    let after = SettingsBody { placed_by: valid, ..stored };
    // The settings of the replaced version: if another version is stored meanwhile, the store refuses.
    let before = crate::settings::load(renewals.core.store.as_ref(), pool).await?.body();
    if placement.is_none() && is_repeated(&before, &after, settings.version) {
        return Ok(before);
    }
    let moved = placement.as_ref().map(|to| placed_by::change(side, to.placed_by, "setting"));
    let detail = json!({ "before": before, "after": after, "pool": pool.to_string(), "placed_by": moved });
    if let Some(placement) = &placement {
        placed_by::switch(&renewals.engine, pool, Some(placement.clone())).await?;
    }
    let store = write.store(&renewals.core, StatusCode::OK, &detail);
    match store.put_settings_and_placement(pool, &text, settings.version, placement.as_ref()).await {
        Ok(version) => {
            if let Some(PoolPlacement { placed_by, set_by, .. }) = &placement {
                tracing::info!(%pool, placed_by = placed_by.as_str(), by = set_by, "placed_by of the pool was changed");
            }
            let placed_by = placement.map(|placement| placement.placed_by).or(side);
            Ok(ServedSettings { version: Some(version), placed_by, ..settings }.body())
        }
        Err(fault) => {
            if placement.is_some() {
                placed_by::switch(&renewals.engine, pool, known).await?;
            }
            Err(fault.into())
        }
    }
}

/// Whether a change is stored already, as the version that it makes: its caller had no answer, and sends it again.
fn is_repeated(stored: &SettingsBody, asked: &SettingsBody, changes: Option<i64>) -> bool {
    stored.version == Some(changes.unwrap_or(0).saturating_add(1))
        && SettingsBody { version: None, ..stored.clone() } == *asked
}

/// The snapshot of a pool that Headroom places
///
/// Counts are integers: thousandths, and seconds since 1970. `simulate --snapshot` continues from it.
#[utoipa::path(get, path = "/v1/pools/{id}/snapshot", tag = "tasks", params(("id" = String, Path, description = "CLUSTER:GPU_MODEL")), responses(
    (status = 200, description = "As of the last decision", body = SnapshotRecord),
    (status = 404, description = "Unknown pool, or it has no nodes", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn snapshot(
    State(renewals): State<Arc<Renewals>>,
    Path(id): Path<String>,
) -> Result<Json<SnapshotRecord>, ApiError> {
    let pool = pool_id(&renewals.quotas, &id)?;
    let snapshot = renewals.engine.ask(&pool, TakeSnapshot).await?;
    Ok(Json(SnapshotRecord::from(&snapshot)))
}

fn known(quotas: &Quotas, id: &str) -> Result<PoolId, ApiError> {
    let pool = pool_id(quotas, id)?;
    super::extract::published_pool(quotas, pool.cluster.as_str(), pool.gpu_model.as_str())?;
    Ok(pool)
}

/// How far the run that serves the pool forecasts.
fn horizon(quotas: &Quotas, pool: &PoolId) -> Option<HorizonHours> {
    let published = quotas.published.load();
    let served = published.pool(pool.cluster.as_str(), pool.gpu_model.as_str())?;
    served.made_of.as_ref().map(|made_of| made_of.run.trained.horizon())
}
