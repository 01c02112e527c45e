use crate::choices::StageBody;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Room for most answers.
const USUAL_BYTES: usize = 1_024;

/// The reason for a number or a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReasonBody {
    /// The code, for programs.
    pub code: String,
    /// The sentence, for people.
    pub detail: String,
}

/// `GET /quota`: how many GPUs of a pool spot tasks with a guarantee of at least `hours` may hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuotaAnswer {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// H.
    pub hours: u8,
    /// p.
    pub guarantee_rate: f64,
    /// Q_H = min(η · f, S0 + S_a(H)), or less at the stage `conservative`.
    pub quota_gpus: f64,
    /// S_a(H): held by spot tasks inside a guarantee of at least `hours`.
    pub used_gpus: f64,
    /// GPUs that may still be admitted.
    pub available_gpus: f64,
    /// f = max(0, capacity − demand bound).
    pub inventory_gpus: f64,
    /// C.
    pub capacity_gpus: f64,
    /// B_H, the demand bound. It is of demand, and not capped by the capacity: above it the quota is 0.
    pub demand_bound_gpus: f64,
    /// η.
    pub eta: f64,
    /// S0.
    pub idle_gpus: f64,
    /// The rule by which the forecasts of organizations became the bound.
    pub aggregation: String,
    /// The training run whose model forecast; null without one.
    pub run_id: Option<String>,
    /// When it was computed, RFC 3339.
    pub computed_at: String,
    /// When the quota becomes stale, RFC 3339.
    pub valid_until: String,
    /// The age of the numbers.
    pub stage: StageBody,
    /// Whether the stage is other than `fresh`.
    pub stale: bool,
    /// The time of a virtual clock when this was computed; absent where the service runs on the real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// The reasons for the quota.
    pub reasons: Vec<ReasonBody>,
}

impl QuotaAnswer {
    /// The body of the response. A renewal writes thousands of them, and this is compiled with the optimization of this crate, not of
    /// its callers.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut body, self).expect("an answer has finite numbers under string keys");
        body
    }
}

/// A quota as it was computed once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuotaRecord {
    /// When it was computed, RFC 3339.
    pub computed_at: String,
    /// Q_H, the quota.
    pub quota_gpus: f64,
    /// The training run whose model forecast; null without one.
    pub run_id: Option<String>,
}

/// `GET /v1/quota/history`, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuotaHistory {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// H, the guarantee hours.
    pub hours: u8,
    /// The quotas, newest first.
    pub quotas: Vec<QuotaRecord>,
}
