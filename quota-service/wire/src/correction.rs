//! Corrections of wrong reports, and the audit, which keeps the report and its correction.

use crate::choices::OutcomeKindBody;
use crate::fault::{FieldFault, Place};
use crate::{UsageBatch, UsageRowBody};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{EventId, HourDemand, MilliGpus, OutcomeKind, UsageRow};

/// Characters of a reason: a sentence, not a report.
const LONGEST_REASON: usize = 1_000;
/// Corrections in one body: all values before them go into one entry of the audit.
const MOST: usize = 1_000;

/// `POST /v1/usage/corrections`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageCorrections {
    /// The reason in words, for the audit.
    pub reason: String,
    /// The corrected rows.
    pub rows: Vec<UsageRowBody>,
}

/// Events, and the actual ends of their periods.
pub type Kinds = Vec<(EventId, OutcomeKind)>;

/// A row with its demand before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CorrectedUsage {
    /// The start of the hour, RFC 3339.
    pub hour: String,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The organization.
    pub organization: String,
    /// The demand before the correction; null without a row.
    pub before_gpus: Option<f64>,
    /// The demand after the correction.
    pub after_gpus: f64,
    /// The demand at the end of the hour before the correction; null where it was not known.
    pub before_at_end_gpus: Option<f64>,
    /// The demand at the end of the hour after the correction; null where it is not known. A correction that states none keeps it where
    /// the demand stays.
    pub after_at_end_gpus: Option<f64>,
}

/// One result for each correction, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageCorrectionsReceipt {
    /// The rows with their demand before and after.
    pub rows: Vec<CorrectedUsage>,
}

/// The actual end of a guarantee period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCorrection {
    /// The event, as it was reported.
    pub event_id: String,
    /// How the period ended in fact.
    pub kind: OutcomeKindBody,
}

/// `POST /v1/outcomes/corrections`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCorrections {
    /// The reason in words, for the audit.
    pub reason: String,
    /// The corrected outcomes.
    pub outcomes: Vec<OutcomeCorrection>,
}

/// An outcome with its kind before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CorrectedOutcome {
    /// The id of the event.
    pub event_id: String,
    /// The kind before the correction.
    pub before: OutcomeKindBody,
    /// The kind after the correction.
    pub after: OutcomeKindBody,
    /// Whether a move of eta counted it before; that move stays.
    pub spent: bool,
}

/// One result for each correction, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeCorrectionsReceipt {
    /// The outcomes with their kinds before and after.
    pub outcomes: Vec<CorrectedOutcome>,
}

/// An acknowledged write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntryBody {
    /// The number of the entry; it rises with each one.
    pub id: u64,
    /// When it was written, RFC 3339.
    pub at: String,
    /// The name of the token; `anyone` on a service without tokens; `command line`.
    pub actor: String,
    /// The id of the token; null without one.
    pub token_id: Option<String>,
    /// Method and route, or the name of a command.
    pub action: String,
    /// The path with its query.
    pub target: String,
    /// The HTTP status; null for a command.
    pub status: Option<u16>,
    /// The values before and after, and the reason, where the audit keeps them.
    #[schema(value_type = Option<Object>)]
    pub detail: Option<serde_json::Value>,
}

/// `GET /v1/audit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The entries, newest first.
    pub entries: Vec<AuditEntryBody>,
}

fn reason(text: &str, count: usize, of: &str) -> Result<String, FieldFault> {
    let text = text.trim();
    if text.is_empty() {
        return Err(FieldFault::new("/reason", "the reason is empty: write it in words, for the audit"));
    }
    if text.chars().count() > LONGEST_REASON {
        return Err(FieldFault::new(
            "/reason",
            format!("the reason has more than {LONGEST_REASON} characters: shorten it"),
        ));
    }
    Place("").new_text("reason", text)?;
    if !(1..=MOST).contains(&count) {
        return Err(FieldFault::new(of, format!("{count} corrections: send 1 to {MOST} at a time")));
    }
    Ok(text.to_owned())
}

impl UsageCorrections {
    /// The reason and the rows.
    ///
    /// # Errors
    /// There is no reason, no row, or too many; or rows are refused as in a report.
    pub fn parse(self) -> Result<(String, Vec<UsageRow>), Vec<FieldFault>> {
        let reason = reason(&self.reason, self.rows.len(), "/rows").map_err(|fault| vec![fault])?;
        Ok((reason, UsageBatch { rows: self.rows }.try_into()?))
    }
}

impl CorrectedUsage {
    /// The correction of a row that had `before`.
    #[must_use]
    pub fn of(row: &UsageRow, before: Option<HourDemand>) -> Self {
        let at_end_before = before.and_then(|before| before.at_end);
        let is_same = before.is_some_and(|before| before.peak == row.demand);
        let at_end_after = row.at_end.or_else(|| at_end_before.filter(|_| is_same));
        Self {
            hour: row.hour.to_string(),
            cluster: row.series.pool.cluster.to_string(),
            gpu_model: row.series.pool.gpu_model.to_string(),
            organization: row.series.organization.to_string(),
            before_gpus: before.map(|before| before.peak.as_gpus()),
            after_gpus: row.demand.as_gpus(),
            before_at_end_gpus: at_end_before.map(MilliGpus::as_gpus),
            after_at_end_gpus: at_end_after.map(MilliGpus::as_gpus),
        }
    }
}

impl OutcomeCorrections {
    /// The reason and the corrections.
    ///
    /// # Errors
    /// There is no reason, no correction, or too many; a name is malformed; an event stands there twice.
    pub fn parse(self) -> Result<(String, Kinds), Vec<FieldFault>> {
        let reason = reason(&self.reason, self.outcomes.len(), "/outcomes").map_err(|fault| vec![fault])?;
        let (mut corrections, mut faults) = (Vec::with_capacity(self.outcomes.len()), Vec::new());
        let mut seen = std::collections::BTreeSet::new();
        for (index, body) in self.outcomes.iter().enumerate() {
            let pointer = format!("/outcomes/{index}");
            let place = Place(&pointer);
            match place.new_name("event_id", &body.event_id, EventId::parse) {
                Ok(event) if !seen.insert(event.clone()) => {
                    faults.push(place.fault("event_id", format!("{event} is listed twice: keep one of them")));
                }
                Ok(event) => corrections.push((event, body.kind.into())),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok((reason, corrections)) } else { Err(faults) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_without_a_reason_or_of_an_event_twice_is_refused() {
        let body = |reason: &str, count: usize| {
            let one = OutcomeCorrection { event_id: "e".to_owned(), kind: OutcomeKindBody::Kept };
            OutcomeCorrections { reason: reason.to_owned(), outcomes: vec![one; count] }
        };
        let refused = |body: OutcomeCorrections| body.parse().unwrap_err()[0].to_string();
        assert_eq!(refused(body("  ", 1)), "/reason: the reason is empty: write it in words, for the audit");
        let mirrored = "/reason: the text contains the invisible character U+202E: remove it";
        assert_eq!(refused(body("a\u{202e}b", 1)), mirrored);
        assert_eq!(refused(body("why", 0)), "/outcomes: 0 corrections: send 1 to 1000 at a time");
        assert_eq!(refused(body("why", 2)), "/outcomes/1/event_id: e is listed twice: keep one of them");
        assert_eq!(body(" why ", 1).parse().unwrap().0, "why");
    }
}
