//! Reservations: windows of a pool that are sold ahead to an organization.

mod calendar;
mod sell;

use super::ApiError;
use super::access::{Who, Write, out_of_scope};
use super::extract::{Json as Body, Path, Query, published_pool, written_here};
use crate::core::Core;
use crate::engine::SoldBy;
use crate::quotas::Quotas;
use crate::refresh::Renewals;
use crate::refresh::pace::Haste;
use crate::reservations::{self, SHOWN_S};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use datasets::reservations::windows;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use store::{ReservationRecord, StoreError};
use utoipa::IntoParams;
use vocab::{PoolId, ReservationId, UnixSeconds};
use wire::{Problem, ReservationBody, ReservationList, ReservationRequest};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReservationsQuery {
    cluster: String,
    gpu_model: String,
    /// Also past and withdrawn reservations.
    past: Option<bool>,
}

/// The reservations of a pool
///
/// Each with its next windows, and the probability that HP demand leaves their GPUs.
#[utoipa::path(get, path = "/v1/reservations", tag = "pools", params(ReservationsQuery), responses(
    (status = 200, description = "By number", body = ReservationList),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list(
    State(quotas): State<Arc<Quotas>>,
    who: Who,
    Query(query): Query<ReservationsQuery>,
) -> Result<Json<ReservationList>, ApiError> {
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    let now = quotas.core.clock.now();
    let past = query.past.unwrap_or(false);
    let after = if past { UnixSeconds::new(0) } else { now };
    let mut records = quotas.core.store.reservations(Some(&pool.id), after, past).await?;
    records.retain(|record| who.0.may_organization(&record.asked.what.first.organization));
    let bodies = bodies(&quotas, &pool.id, records, now).await?;
    Ok(Json(ReservationList { reservations: bodies }))
}

/// One reservation
#[utoipa::path(get, path = "/v1/reservations/{id}", tag = "pools", params(("id" = u64, Path)), responses(
    (status = 200, description = "With its next windows", body = ReservationBody),
    (status = 404, description = "Unknown reservation", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn one(
    State(quotas): State<Arc<Quotas>>,
    who: Who,
    Path(id): Path<String>,
) -> Result<Json<ReservationBody>, ApiError> {
    let record = found(&quotas.core, &who, &id).await?;
    let pool = record.asked.what.pool.clone();
    let now = quotas.core.clock.now();
    let missing = || StoreError::NotFound { what: "reservation", id };
    Ok(Json(bodies(&quotas, &pool, vec![record], now).await?.pop().ok_or_else(missing)?))
}

/// The windows of a pool as a calendar
///
/// iCalendar (RFC 5545): an event for each window of the next 12 weeks, in UTC.
#[utoipa::path(get, path = "/v1/reservations.ics", tag = "pools", params(ReservationsQuery), responses(
    (status = 200, description = "The calendar", body = String, content_type = "text/calendar"),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn ics(
    State(quotas): State<Arc<Quotas>>,
    who: Who,
    Query(query): Query<ReservationsQuery>,
) -> Result<Response, ApiError> {
    let pool = published_pool(&quotas, &query.cluster, &query.gpu_model)?;
    let (store, now) = (quotas.core.store.as_ref(), quotas.core.clock.now());
    let after = if query.past == Some(true) { UnixSeconds::new(0) } else { now };
    let mut records = store.reservations(Some(&pool.id), after, false).await?;
    let zone = reservations::zone_of(store, &pool.id).await?;
    records.retain(|record| who.0.may_organization(&record.asked.what.first.organization));
    let id = pool.id.clone();
    // Tens of thousands of events where many reservations repeat: off the threads that serve requests.
    let written = tokio::task::spawn_blocking(move || {
        let numbered = records.iter().flat_map(|record| {
            let from = after.max(record.asked.what.first.from);
            let ahead = windows(&record.asked.what, zone, from, now.plus_s(SHOWN_S));
            ahead.into_iter().map(|window| (record.id.0, window))
        });
        calendar::calendar(&id, &numbered.collect::<Vec<_>>(), now)
    });
    let text = written.await.map_err(|_| ApiError::Broken)?;
    Ok(([(header::CONTENT_TYPE, "text/calendar; charset=utf-8")], text).into_response())
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CreateQuery {
    /// Whether to answer the windows and their probability alone, and to store nothing: the role `read` is enough then.
    dry_run: Option<bool>,
}

/// Reserve GPUs of a pool for an organization, once or each week
///
/// No promise reaches into a window from then on, spot at will leaves before it, and while it lasts its GPUs are for the HP tasks
/// of the organization. A repeated reservation is answered as stored.
#[utoipa::path(post, path = "/v1/reservations", tag = "pools", params(CreateQuery), request_body = ReservationRequest, responses(
    (status = 200, description = "It is stored already, or was only tried", body = ReservationBody),
    (status = 201, description = "Durable", body = ReservationBody),
    (status = 400, description = "The body is refused", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "Other windows or promises have the GPUs, the pool has no usage or its cluster no model, or a virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "No quota was computed yet, or the database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn create(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Query(query): Query<CreateQuery>,
    Body(body): Body<ReservationRequest>,
) -> Result<(StatusCode, Json<ReservationBody>), ApiError> {
    let what = body.parse()?;
    let pool = what.pool.clone();
    write.of_pool(&pool)?;
    write.of_organization(&what.first.organization)?;
    let core = &renewals.core;
    if core.clock.is_virtual() && query.dry_run != Some(true) {
        return Err(ApiError::VirtualClock);
    }
    let published = published_pool(&renewals.quotas, pool.cluster.as_str(), pool.gpu_model.as_str());
    if matches!(published, Err(ApiError::NoQuotaYet { .. })) {
        // A service that follows knows no pool without a quota: the one that it follows does.
        written_here(core, &pool.cluster)?;
    }
    let published = published?;
    written_here(core, &pool.cluster)?;
    // One at a time: two that fit alone may not fit together.
    let _turn = core.reservations.lock().await;
    let now = core.clock.now();
    let asked = store::NewReservation { what, by: write.0.name.clone(), at: now };
    let sale = sell::Sale::of(core, &published, &asked, now).await?;
    if let Some(equal) = &sale.equal {
        return Ok((StatusCode::OK, Json(self::body(&renewals.quotas, equal.clone(), Some(equal.id.0), now).await?)));
    }
    sale.check()?;
    let by = if query.dry_run == Some(true) { SoldBy::Trial } else { SoldBy::Sale };
    sale.keep(&renewals.engine, by).await?;
    if query.dry_run == Some(true) {
        let tried = ReservationRecord { id: ReservationId(0), asked, withdrawn: None };
        return Ok((StatusCode::OK, Json(self::body(&renewals.quotas, tried, None, now).await?)));
    }
    let entry = write.entry(now, StatusCode::CREATED, &json!(body));
    let stored = core.store.put_reservation(&asked, &entry).await;
    renewals.request_renewal(&pool.cluster, Haste::Urgent);
    let (record, is_new) = stored?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let id = record.id.0;
    Ok((status, Json(self::body(&renewals.quotas, record, Some(id), now).await?)))
}

/// Withdraw a reservation
///
/// Quotas follow at once. It stays in the list of past reservations. A second withdrawal changes nothing.
#[utoipa::path(delete, path = "/v1/reservations/{id}", tag = "pools", params(("id" = u64, Path)), responses(
    (status = 204, description = "Withdrawn"),
    (status = 404, description = "Unknown reservation", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; it stays", body = Problem, content_type = "application/problem+json"),
))]
pub async fn delete(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let core = &renewals.core;
    let record = found(core, &write, &id).await?;
    let pool = record.asked.what.pool.clone();
    if core.clock.is_virtual() {
        return Err(ApiError::VirtualClock);
    }
    written_here(core, &pool.cluster)?;
    let _turn = core.reservations.lock().await;
    let now = core.clock.now();
    let before = ReservationRequest::from(&record.asked.what);
    let store = write.store(core, StatusCode::NO_CONTENT, &json!({ "id": record.id.0, "before": before }));
    store.withdraw_reservation(record.id, now, &write.0.name).await?;
    renewals.request_renewal(&pool.cluster, Haste::Urgent);
    Ok(StatusCode::NO_CONTENT)
}

/// A reservation by its number, where the caller may see it.
async fn found(core: &Core, who: &Who, id: &str) -> Result<ReservationRecord, ApiError> {
    // A number beyond those of the database is unknown.
    let number = id.parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
    let found = match number {
        Some(number) => core.store.reservation_record(ReservationId(number)).await,
        None => Err(StoreError::NotFound { what: "reservation", id: id.to_owned() }),
    };
    let refused = || out_of_scope(&format!("reservation {id}"));
    let record = match found {
        // Which numbers there are is nothing for a scope.
        Err(StoreError::NotFound { .. }) if who.0.is_scoped() => return Err(refused()),
        found => found?,
    };
    who.of_pool(&record.asked.what.pool).map_err(|_| refused())?;
    who.of_organization(&record.asked.what.first.organization).map_err(|_| refused())?;
    Ok(record)
}

async fn body(
    quotas: &Quotas,
    record: ReservationRecord,
    id: Option<u64>,
    now: UnixSeconds,
) -> Result<ReservationBody, ApiError> {
    let pool = record.asked.what.pool.clone();
    let body = bodies(quotas, &pool, vec![record], now).await?.pop();
    body.map(|body| ReservationBody { id, ..body }).ok_or(ApiError::Broken)
}

/// Reservations of one pool as they are answered.
async fn bodies(
    quotas: &Quotas,
    pool: &PoolId,
    records: Vec<ReservationRecord>,
    now: UnixSeconds,
) -> Result<Vec<ReservationBody>, ApiError> {
    let store = quotas.core.store.as_ref();
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let zone = reservations::zone_of(store, pool).await?;
    let history = crate::refresh::history_of(store, pool, reservations::WEEKS, now).await?;
    let made_of = published_pool(quotas, pool.cluster.as_str(), pool.gpu_model.as_str())?.made_of.clone();
    // Bounds at several rates for each window: off the threads that serve requests.
    let worked = tokio::task::spawn_blocking(move || {
        let known = (made_of.as_deref(), history.as_ref());
        records.iter().map(|one| reservations::body(one, Some(one.id.0), known, (zone, now))).collect()
    });
    worked.await.map_err(|_| ApiError::Broken)
}
