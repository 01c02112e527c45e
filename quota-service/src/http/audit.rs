//! The audit, and corrections of wrong reports.

use super::ApiError;
use super::access::Write;
use super::extract::{Json as Body, Query};
use crate::core::Core;
use crate::refresh::Renewals;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use store::{AuditRecord, OutcomeBefore};
use utoipa::IntoParams;
use vocab::{HourDemand, UnixSeconds};
use wire::{
    AuditEntryBody, AuditList, CorrectedOutcome, CorrectedUsage, OutcomeCorrections, OutcomeCorrectionsReceipt,
    Problem, UsageCorrections, UsageCorrectionsReceipt,
};

/// The most entries of one answer.
const MOST_ENTRIES: u32 = 10_000;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// From this time on, RFC 3339.
    from: Option<String>,
    /// Before this time.
    to: Option<String>,
    /// The most entries to list, 1000 if not given.
    #[param(minimum = 0, maximum = 10_000)]
    limit: Option<u32>,
}

/// The writes and their actors, newest first
#[utoipa::path(get, path = "/v1/audit", tag = "service", params(AuditQuery), responses(
    (status = 200, description = "Acknowledged writes", body = AuditList),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list(State(core): State<Arc<Core>>, Query(query): Query<AuditQuery>) -> Result<Json<AuditList>, ApiError> {
    let time = |name: &str, text: Option<String>, default: UnixSeconds| match text {
        None => Ok(default),
        Some(text) => {
            command_line::instant(&text).map_err(|fault| ApiError::Query { detail: format!("{name}: {fault}") })
        }
    };
    let from = time("from", query.from, UnixSeconds::new(0))?;
    let to = time("to", query.to, core.clock.now().plus_s(1))?;
    let limit = query.limit.unwrap_or(1_000);
    if limit > MOST_ENTRIES {
        return Err(ApiError::Query { detail: format!("limit: invalid limit {limit}: write 0 to {MOST_ENTRIES}") });
    }
    let entries = core.store.audit(from, to, limit).await?;
    Ok(Json(AuditList { entries: entries.into_iter().map(entry).collect() }))
}

fn entry(entry: store::AuditEntry) -> AuditEntryBody {
    let AuditRecord { at, actor, token_id, action, target, status, detail_json } = entry.record;
    AuditEntryBody {
        id: entry.id,
        at: at.to_string(),
        actor,
        token_id,
        action,
        target,
        status: (status > 0).then_some(status),
        detail: detail_json.and_then(|text| serde_json::from_str(&text).ok()),
    }
}

/// Correct reported usage
///
/// Stored whole or not at all. The audit keeps the reason and the values before.
#[utoipa::path(post, path = "/v1/usage/corrections", tag = "feed", request_body = UsageCorrections, responses(
    (status = 200, description = "Durable; one result for each row, in their order", body = UsageCorrectionsReceipt),
    (status = 400, description = "Rows are refused, bring too many organizations, or there is no reason; nothing was stored", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown cluster", body = Problem, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn correct_usage(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Body(body): Body<UsageCorrections>,
) -> Result<Json<UsageCorrectionsReceipt>, ApiError> {
    let now = renewals.core.clock.now();
    let (reason, rows) = body.parse()?;
    super::usage::check_over(&renewals.core, &rows)?;
    super::usage::check_organizations(&renewals.core, &rows).await?;
    for row in &rows {
        write.of_pool(&row.series.pool)?;
        write.of_organization(&row.series.organization)?;
    }
    let corrected = |before: &[Option<HourDemand>]| -> Vec<CorrectedUsage> {
        let one = |(row, before): (&vocab::UsageRow, &Option<HourDemand>)| CorrectedUsage::of(row, *before);
        rows.iter().zip(before).map(one).collect()
    };
    let entry = |before: &[Option<HourDemand>]| {
        let detail = json!({ "reason": reason, "rows": corrected(before) });
        write.entry(now, StatusCode::OK, &detail)
    };
    let before = renewals.core.store.correct_usage(&rows, &entry).await?;
    renewals.request_refresh();
    Ok(Json(UsageCorrectionsReceipt { rows: corrected(&before) }))
}

/// Correct the ends of guarantee periods
///
/// Stored whole or not at all. The audit keeps the reason and the values before. A move of eta that has counted an outcome stays:
/// then `spent` is true.
#[utoipa::path(post, path = "/v1/outcomes/corrections", tag = "feed", request_body = OutcomeCorrections, responses(
    (status = 200, description = "Durable; one result for each event, in their order", body = OutcomeCorrectionsReceipt),
    (status = 400, description = "Events are refused, or there is no reason; nothing was stored", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "An event was never reported", body = Problem, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn correct_outcomes(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Body(body): Body<OutcomeCorrections>,
) -> Result<Json<OutcomeCorrectionsReceipt>, ApiError> {
    if write.0.is_scoped() {
        let detail = "the scope of the token is too small: correct outcomes with a token of every pool".to_owned();
        return Err(ApiError::Forbidden { detail });
    }
    let now = renewals.core.clock.now();
    let (reason, corrections) = body.parse()?;
    let corrected = |before: &[OutcomeBefore]| -> Vec<CorrectedOutcome> {
        let one = |(before, (_, after)): (&OutcomeBefore, &(vocab::EventId, vocab::OutcomeKind))| CorrectedOutcome {
            event_id: before.event_id.to_string(),
            before: before.kind.into(),
            after: (*after).into(),
            spent: before.spent,
        };
        before.iter().zip(&corrections).map(one).collect()
    };
    let entry = |before: &[OutcomeBefore]| {
        let detail = json!({ "reason": reason, "outcomes": corrected(before) });
        write.entry(now, StatusCode::OK, &detail)
    };
    let before = renewals.core.store.correct_outcomes(&corrections, &entry).await?;
    renewals.request_refresh();
    Ok(Json(OutcomeCorrectionsReceipt { outcomes: corrected(&before) }))
}
