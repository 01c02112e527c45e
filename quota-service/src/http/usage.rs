use super::ApiError;
use super::access::{Write, batch};
use super::extract::Json as Body;
use super::measured::{self, Part};
use crate::core::Core;
use crate::organizations;
use crate::refresh::Renewals;
use crate::refresh::pace::Haste;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::collections::BTreeSet;
use std::sync::Arc;
use vocab::UsageRow;
use wire::{FieldFault, Problem, UsageBatch, UsageReceipt};

/// Report the demand of past hours
///
/// Stored whole or not at all. A row replaces an earlier one of the same series and hour, so that a repeated batch
/// changes nothing. Headroom measures the demand of pools that it places, and refuses reports of it. The cluster has to be known:
/// `datasets ingest` creates it with its time zone.
#[utoipa::path(post, path = "/v1/usage", tag = "feed", request_body = UsageBatch, responses(
    (status = 200, description = "Durable", body = UsageReceipt),
    (status = 400, description = "Rows are refused, or they bring more organizations than one request or the cluster may; nothing was stored", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown cluster", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "Headroom places a pool of the rows, and measures its hours itself; nothing was stored", body = Problem, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
    (status = 507, description = "The database takes no more data; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn append(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Body(body): Body<UsageBatch>,
) -> Result<Json<UsageReceipt>, ApiError> {
    let asked = batch("rows", &body.rows);
    let rows: Vec<UsageRow> = body.try_into()?;
    for row in &rows {
        write.of_pool(&row.series.pool)?;
        write.of_organization(&row.series.organization)?;
    }
    check_over(&renewals.core, &rows)?;
    let parts = rows.iter().map(|row| (&row.series.pool, row.hour.instant()));
    measured::check(&renewals.core, &Part::list("/rows", parts), "/v1/usage/corrections").await?;
    check_organizations(&renewals.core, &rows).await?;
    let report = write.store(&renewals.core, StatusCode::OK, &asked).append(&rows, &[]).await?;
    renewals.quotas.know(rows.iter().map(|row| &row.series.pool));
    for cluster in rows.iter().map(|row| &row.series.pool.cluster).collect::<BTreeSet<_>>() {
        renewals.request_renewal(cluster, Haste::Report);
    }
    let usage = report.usage;
    Ok(Json(UsageReceipt { inserted: usage.inserted, changed: usage.changed, unchanged: usage.unchanged }))
}

/// A report may bring no more organizations than the settings say.
pub async fn check_organizations(core: &Core, rows: &[UsageRow]) -> Result<(), ApiError> {
    let fault = organizations::too_many(core.store.as_ref(), rows, &core.config).await?;
    fault.map_or(Ok(()), |fault| Err(vec![FieldFault::new("/rows", fault)].into()))
}

/// Older hours are a mistake in a unit, and would make the history of a cluster as long as they are old.
const OLDEST_YEARS: i64 = 20;
const OLDEST_S: i64 = OLDEST_YEARS * 8_766 * 3_600;

/// The peak of an hour is known when the hour is over.
pub fn check_over(core: &Core, rows: &[UsageRow]) -> Result<(), ApiError> {
    let now = core.clock.now();
    let is_over = |row: &UsageRow| row.hour.plus_hours(1).instant() <= now;
    let early = rows.iter().enumerate().filter(|(_, row)| !is_over(row));
    let faults: Vec<_> = early
        .map(|(index, row)| {
            FieldFault::new(format!("/rows/{index}/hour"), format!("{} is not over at {now}", row.hour))
        })
        .collect();
    let oldest = now.plus_s(-OLDEST_S);
    let ancient = rows.iter().enumerate().filter(|(_, row)| row.hour.instant() < oldest);
    let ancient = ancient.map(|(index, row)| {
        let detail = format!("{} is more than {OLDEST_YEARS} years ago: is it the hour that was measured?", row.hour);
        FieldFault::new(format!("/rows/{index}/hour"), detail)
    });
    let faults: Vec<_> = faults.into_iter().chain(ancient).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}
