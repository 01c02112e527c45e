use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a number is what it is: a code for programs, a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReasonBody {
    pub code: String,
    pub detail: String,
}

/// `GET /quota`: how many GPUs of a pool spot tasks with a guarantee of at least `hours` may hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuotaAnswer {
    pub cluster: String,
    pub gpu_model: String,
    /// H.
    pub hours: u8,
    /// p.
    pub guarantee_rate: f64,
    /// Q_H = min(η · f, S0 + S_a(H)), or less where the stage says so.
    pub quota_gpus: f64,
    /// S_a(H): held by spot tasks inside a guarantee of at least `hours`.
    pub used_gpus: f64,
    /// What may still be admitted.
    pub available_gpus: f64,
    /// f = max(0, capacity − demand bound).
    pub inventory_gpus: f64,
    /// C.
    pub capacity_gpus: f64,
    /// B_H.
    pub demand_bound_gpus: f64,
    /// η.
    pub eta: f64,
    /// S0.
    pub idle_gpus: f64,
    /// How the forecasts of organizations became the bound.
    pub aggregation: String,
    /// The training run whose model forecast.
    pub run_id: Option<String>,
    pub computed_at: String,
    pub valid_until: String,
    /// `fresh`, `stale` (the last value stands) or `conservative` (nothing new is admitted).
    pub stage: String,
    /// Whether the stage is other than `fresh`.
    pub stale: bool,
    /// Where the service runs on a virtual clock: its time when this was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    pub reasons: Vec<ReasonBody>,
}

/// A quota as it was computed once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuotaRecord {
    pub computed_at: String,
    pub quota_gpus: f64,
    pub run_id: Option<String>,
}

/// `GET /v1/quota/history`, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuotaHistory {
    pub cluster: String,
    pub gpu_model: String,
    pub hours: u8,
    pub quotas: Vec<QuotaRecord>,
}
