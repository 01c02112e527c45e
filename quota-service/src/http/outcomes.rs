use super::ApiError;
use super::access::{Write, batch};
use super::extract::{Json as Body, not_ahead, published_pool};
use super::measured::{self, Part};
use crate::metrics;
use crate::refresh::Renewals;
use crate::refresh::pace::Haste;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Recorded;
use vocab::Outcome;
use wire::{OutcomeBatch, OutcomeReceipt, OutcomeResult, OutcomeResultBody, Problem};

/// Report the ends of guarantee periods
///
/// Each event counts once, by its `event_id`, in any number of batches; the answer states for each whether it was new. Outcomes
/// move eta. Headroom counts the outcomes of pools that it places itself, and refuses reports of them.
#[utoipa::path(post, path = "/v1/outcomes", tag = "feed", request_body = OutcomeBatch, responses(
    (status = 200, description = "Durable; one result for each event, in their order", body = OutcomeReceipt),
    (status = 400, description = "Events are refused; nothing was stored", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Unknown pool", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "Headroom places a pool of the events, and counts them itself; nothing was stored", body = Problem, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer; nothing was stored", body = Problem, content_type = "application/problem+json"),
    (status = 507, description = "The database takes no more data; nothing was stored", body = Problem, content_type = "application/problem+json"),
))]
pub async fn record(
    State(renewals): State<Arc<Renewals>>,
    write: Write,
    Body(body): Body<OutcomeBatch>,
) -> Result<Json<OutcomeReceipt>, ApiError> {
    let asked = batch("outcomes", &body.outcomes);
    let outcomes: Vec<Outcome> = body.try_into()?;
    let now = renewals.core.clock.now();
    let ahead = |(index, outcome): (usize, &Outcome)| {
        not_ahead(&format!("/outcomes/{index}/ended_at"), outcome.ended_at, now, renewals.core.config.clock_skew_s)
            .err()
    };
    let faults: Vec<_> = outcomes.iter().enumerate().filter_map(ahead).collect();
    if !faults.is_empty() {
        return Err(faults.into());
    }
    for outcome in &outcomes {
        write.of_pool(&outcome.pool)?;
        published_pool(&renewals.quotas, outcome.pool.cluster.as_str(), outcome.pool.gpu_model.as_str())?;
    }
    let parts = outcomes.iter().map(|outcome| (&outcome.pool, outcome.ended_at));
    measured::check(&renewals.core, &Part::list("/outcomes", parts), "/v1/outcomes/corrections").await?;
    let recorded = write.store(&renewals.core, StatusCode::OK, &asked).record_outcomes(&outcomes, now).await?;
    for (outcome, _) in outcomes.iter().zip(&recorded).filter(|(_, recorded)| **recorded == Recorded::New) {
        metrics::outcome(outcome);
    }
    for cluster in outcomes.iter().map(|outcome| &outcome.pool.cluster).collect::<BTreeSet<_>>() {
        renewals.request_renewal(cluster, Haste::Report);
    }
    let result = |(outcome, recorded): (&Outcome, &Recorded)| {
        let result = match recorded {
            Recorded::New => OutcomeResultBody::Recorded,
            Recorded::Repeated => OutcomeResultBody::Repeated,
            Recorded::Conflicting => OutcomeResultBody::Conflicting,
        };
        OutcomeResult { event_id: outcome.event_id.to_string(), result }
    };
    Ok(Json(OutcomeReceipt { outcomes: outcomes.iter().zip(&recorded).map(result).collect() }))
}
