//! What people know of the hours ahead.

use crate::fault::{FieldFault, Place};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{ClusterName, GpuModel, Override, OverrideKind, PoolId};

/// Of a reason, in characters: a sentence, not a report.
const LONGEST_REASON: usize = 1_000;
/// Of an override: who knows what comes in two years writes a calendar.
const LONGEST_S: i64 = 366 * vocab::SECONDS_PER_DAY;

/// `POST /v1/overrides`: so many GPUs more (`reserve`) or fewer (`release`) than forecast are kept for HP work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OverrideRequest {
    pub cluster: String,
    pub gpu_model: String,
    /// `reserve`: for every promise that reaches into the time. `release`: for promises that lie wholly inside, and never
    /// below what HP work holds.
    pub kind: String,
    pub gpus: f64,
    /// RFC 3339.
    pub from: String,
    /// RFC 3339; after `from`, at most 366 days.
    pub to: String,
    /// Why, in words, for whoever asks why the quota is what it is.
    pub reason: String,
}

/// An override as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverrideBody {
    pub id: u64,
    pub cluster: String,
    pub gpu_model: String,
    /// `reserve` or `release`.
    pub kind: String,
    pub gpus: f64,
    pub from: String,
    pub to: String,
    pub reason: String,
    /// The name of a token, or who else it was.
    pub by: String,
    pub created_at: String,
    pub withdrawn_at: Option<String>,
    pub withdrawn_by: Option<String>,
    /// Whether its time is now.
    pub in_force: bool,
}

/// `GET /v1/overrides`, by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverrideList {
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
        let kind = OverrideKind::parse(&self.kind)
            .ok_or_else(|| place.fault("kind", format!("{:?} is neither reserve nor release", self.kind)))?;
        let gpus = place.gpus("gpus", self.gpus)?;
        if gpus.is_zero() {
            return Err(place.fault("gpus", "an override of 0 GPUs changes nothing"));
        }
        let (from, to) = (place.instant("from", &self.from)?, place.instant("to", &self.to)?);
        let length_s = to.since_s(from);
        if length_s <= 0 {
            return Err(place.fault("to", format!("{to} is not after {from}")));
        }
        if length_s > LONGEST_S {
            return Err(place.fault("to", format!("{to} is more than 366 days after {from}")));
        }
        let reason = self.reason.trim();
        if reason.is_empty() || reason.chars().count() > LONGEST_REASON || reason.chars().any(char::is_control) {
            return Err(place.fault("reason", format!("write 1 to {LONGEST_REASON} characters on one line")));
        }
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
            kind: "reserve".to_owned(),
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
    fn what_is_no_override_is_refused_with_its_field() {
        let faults = [
            refused(|one| one.kind = "hold".to_owned()),
            refused(|one| one.gpus = 0.0),
            refused(|one| one.gpus = f64::NAN),
            refused(|one| one.to.clone_from(&one.from)),
            refused(|one| one.to = "2028-01-01T00:00:00Z".to_owned()),
            refused(|one| one.from = "tomorrow".to_owned()),
            refused(|one| one.reason = "  ".to_owned()),
            refused(|one| one.reason = "a\nb".to_owned()),
        ];
        let fields = ["/kind", "/gpus", "/gpus", "/to", "/to", "/from", "/reason", "/reason"];
        for (fault, field) in faults.iter().zip(fields) {
            assert!(fault.starts_with(&format!("{field}: ")), "{fault}");
        }
    }
}
