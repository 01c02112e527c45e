//! Overrides: knowledge of the hours ahead that no forecast has.

use crate::choices::OverrideKindBody;
use crate::fault::{FieldFault, Place};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{ClusterName, GpuModel, Override, PoolId};

/// Characters of a reason: a sentence, not a report.
const LONGEST_REASON: usize = 1_000;
/// Seconds of an override: days off in two years belong into a calendar.
const LONGEST_S: i64 = 366 * vocab::SECONDS_PER_DAY;

/// `POST /v1/overrides`: so many GPUs more (`reserve`) or fewer (`release`) than forecast are kept for HP work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OverrideRequest {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// `reserve`: for every promise that reaches into the time. `release`: for promises that lie wholly inside, and never
    /// below what HP work holds.
    pub kind: OverrideKindBody,
    /// GPUs more or fewer.
    pub gpus: f64,
    /// RFC 3339.
    pub from: String,
    /// RFC 3339; after `from`, at most 366 days.
    pub to: String,
    /// The reason in words, for explanations of the quota.
    pub reason: String,
}

/// A stored override.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverrideBody {
    /// Its number.
    pub id: u64,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// Whether it reserves or releases.
    pub kind: OverrideKindBody,
    /// GPUs more or fewer.
    pub gpus: f64,
    /// Its begin, RFC 3339.
    pub from: String,
    /// Its end, RFC 3339.
    pub to: String,
    /// The reason, in words.
    pub reason: String,
    /// The name of a token, or another actor.
    pub by: String,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it was withdrawn; null while it is not.
    pub withdrawn_at: Option<String>,
    /// The actor who withdrew it.
    pub withdrawn_by: Option<String>,
    /// Whether now lies between `from` and `to`.
    pub in_force: bool,
}

/// `GET /v1/overrides`, by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverrideList {
    /// The overrides, by number.
    pub overrides: Vec<OverrideBody>,
}

impl OverrideRequest {
    /// The override and its reason.
    ///
    /// # Errors
    /// A field is refused.
    pub fn parse(&self) -> Result<(Override, String), FieldFault> {
        let place = Place("");
        let pool = PoolId {
            cluster: place.new_name("cluster", &self.cluster, ClusterName::parse)?,
            gpu_model: place.new_name("gpu_model", &self.gpu_model, GpuModel::parse)?,
        };
        let kind = self.kind.into();
        let gpus = place.gpus("gpus", self.gpus)?;
        if gpus.is_zero() {
            return Err(place.fault("gpus", "an override of 0 GPUs has no effect: write more than 0"));
        }
        let (from, to) = (place.instant("from", &self.from)?, place.instant("to", &self.to)?);
        let length_s = to.since_s(from);
        if length_s <= 0 {
            return Err(place.fault("to", format!("{to} is not after {from}: write a later time")));
        }
        if length_s > LONGEST_S {
            return Err(place.fault("to", format!("{to} is more than 366 days after {from}")));
        }
        let reason = self.reason.trim();
        if reason.is_empty() || reason.chars().count() > LONGEST_REASON {
            return Err(place.fault("reason", format!("write 1 to {LONGEST_REASON} characters on one line")));
        }
        place.new_text("reason", reason)?;
        Ok((Override { pool, kind, gpus, from, to }, reason.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: fn(&mut OverrideRequest)) -> String {
        let mut request = OverrideRequest {
            cluster: "earth".to_owned(),
            gpu_model: "A100".to_owned(),
            kind: OverrideKindBody::Reserve,
            gpus: 8.0,
            from: "2026-12-01T00:00:00Z".to_owned(),
            to: "2026-12-02T00:00:00Z".to_owned(),
            reason: "a launch".to_owned(),
        };
        assert_eq!(request.parse().unwrap().1, "a launch");
        change(&mut request);
        request.parse().unwrap_err().to_string()
    }

    #[test]
    fn an_invalid_override_is_refused_with_its_field() {
        let faults = [
            refused(|one| one.gpus = 0.0),
            refused(|one| one.gpus = f64::NAN),
            refused(|one| one.to.clone_from(&one.from)),
            refused(|one| one.to = "2028-01-01T00:00:00Z".to_owned()),
            refused(|one| one.from = "tomorrow".to_owned()),
            refused(|one| one.reason = "  ".to_owned()),
            refused(|one| one.reason = "a\nb".to_owned()),
            refused(|one| one.reason = "a\u{202e}b".to_owned()),
        ];
        let fields = ["/gpus", "/gpus", "/to", "/to", "/from", "/reason", "/reason", "/reason"];
        for (fault, field) in faults.iter().zip(fields) {
            assert!(fault.starts_with(&format!("{field}: ")), "{fault}");
        }
        assert!(faults[7].contains("U+202E"), "{}", faults[7]);
    }
}
