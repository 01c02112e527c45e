//! What was reported wrongly, put right; and the audit, which keeps both.

use crate::fault::{FieldFault, Place};
use crate::{UsageBatch, UsageRowBody};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{EventId, MilliGpus, OutcomeKind, UsageRow};

/// Of a reason, in characters: a sentence, not a report.
const LONGEST_REASON: usize = 1_000;
/// Corrections in one body: what was there before goes into one entry of the audit.
const MOST: usize = 1_000;

/// `POST /v1/usage/corrections`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageCorrections {
    /// Why, in words, for the audit.
    pub reason: String,
    pub rows: Vec<UsageRowBody>,
}

/// Events, and how their periods really ended.
pub type Kinds = Vec<(EventId, OutcomeKind)>;

/// A row with what was there before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CorrectedUsage {
    pub hour: String,
    pub cluster: String,
    pub gpu_model: String,
    pub organization: String,
    /// Absent where there was nothing.
    pub before_gpus: Option<f64>,
    pub after_gpus: f64,
}

/// What became of the corrections, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageCorrectionsReceipt {
    pub rows: Vec<CorrectedUsage>,
}

/// How a guarantee period really ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCorrection {
    pub event_id: String,
    /// `kept`, `broken`, `node_failure`, `drain` or `user_deleted`.
    pub kind: String,
}

/// `POST /v1/outcomes/corrections`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCorrections {
    /// Why, in words, for the audit.
    pub reason: String,
    pub outcomes: Vec<OutcomeCorrection>,
}

/// An outcome with how it had ended before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CorrectedOutcome {
    pub event_id: String,
    pub before: String,
    pub after: String,
    /// A move of eta had counted it before; that move stays.
    pub spent: bool,
}

/// What became of the corrections, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeCorrectionsReceipt {
    pub outcomes: Vec<CorrectedOutcome>,
}

/// A write that was acknowledged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntryBody {
    /// Rises with every entry.
    pub id: u64,
    pub at: String,
    /// The name of the token; `anyone` where there were none; `command line`.
    pub actor: String,
    pub token_id: Option<String>,
    /// Method and route, or the name of a command.
    pub action: String,
    /// The path with its query.
    pub target: String,
    /// What was answered; absent of a command.
    pub status: Option<u16>,
    /// What was before and after, and why, where that is kept.
    #[schema(value_type = Option<Object>)]
    pub detail: Option<serde_json::Value>,
}

/// `GET /v1/audit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    pub entries: Vec<AuditEntryBody>,
}

fn reason(text: &str, count: usize, of: &str) -> Result<String, FieldFault> {
    let text = text.trim();
    if text.is_empty() {
        return Err(FieldFault::new("/reason", "say why in words: the audit keeps it"));
    }
    if text.chars().count() > LONGEST_REASON {
        return Err(FieldFault::new("/reason", format!("it has more than {LONGEST_REASON} characters")));
    }
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
    #[must_use]
    pub fn of(row: &UsageRow, before: Option<MilliGpus>) -> Self {
        Self {
            hour: row.hour.to_string(),
            cluster: row.series.pool.cluster.to_string(),
            gpu_model: row.series.pool.gpu_model.to_string(),
            organization: row.series.organization.to_string(),
            before_gpus: before.map(MilliGpus::as_gpus),
            after_gpus: row.demand.as_gpus(),
        }
    }
}

impl OutcomeCorrections {
    /// The reason and the corrections.
    ///
    /// # Errors
    /// There is no reason, no correction, or too many; a name or kind is none; an event is there twice.
    pub fn parse(self) -> Result<(String, Kinds), Vec<FieldFault>> {
        let reason = reason(&self.reason, self.outcomes.len(), "/outcomes").map_err(|fault| vec![fault])?;
        let (mut corrections, mut faults) = (Vec::with_capacity(self.outcomes.len()), Vec::new());
        let mut seen = std::collections::BTreeSet::new();
        for (index, body) in self.outcomes.iter().enumerate() {
            let pointer = format!("/outcomes/{index}");
            let place = Place(&pointer);
            let known = || OutcomeKind::ALL.map(OutcomeKind::as_str).join(", ");
            let kind = OutcomeKind::parse(&body.kind).ok_or_else(|| {
                place.fault("kind", format!("{:?} is no kind of outcome; there are {}", body.kind, known()))
            });
            match (place.new_name("event_id", &body.event_id, EventId::parse), kind) {
                (Ok(event), Ok(_)) if !seen.insert(event.clone()) => {
                    faults.push(place.fault("event_id", format!("{event} is there twice: keep one of them")));
                }
                (Ok(event), Ok(kind)) => corrections.push((event, kind)),
                (Err(fault), _) | (_, Err(fault)) => faults.push(fault),
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
        let body = |reason: &str, kinds: &[&str]| {
            let one = |kind: &&str| OutcomeCorrection { event_id: "e".to_owned(), kind: (*kind).to_owned() };
            OutcomeCorrections { reason: reason.to_owned(), outcomes: kinds.iter().map(one).collect() }
        };
        let refused = |body: OutcomeCorrections| body.parse().unwrap_err()[0].to_string();
        assert_eq!(refused(body("  ", &["kept"])), "/reason: say why in words: the audit keeps it");
        assert_eq!(refused(body("why", &[])), "/outcomes: 0 corrections: send 1 to 1000 at a time");
        assert_eq!(refused(body("why", &["kept", "kept"])), "/outcomes/1/event_id: e is there twice: keep one of them");
        assert!(refused(body("why", &["gone"])).starts_with("/outcomes/0/kind: \"gone\" is no kind of outcome"));
        assert_eq!(body(" why ", &["kept"]).parse().unwrap().0, "why");
    }
}
