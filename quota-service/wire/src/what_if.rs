use crate::answer::ReasonBody;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A quota as it is, or would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfSide {
    /// Q_H, the quota.
    pub quota_gpus: f64,
    /// GPUs that could still be admitted while the quota is not `conservative`: `/quota` says at which stage it is.
    pub available_gpus: f64,
    /// C, the capacity.
    pub capacity_gpus: f64,
    /// B_H, the demand bound.
    pub demand_bound_gpus: f64,
    /// f, the inventory.
    pub inventory_gpus: f64,
    /// S0, idle GPUs.
    pub idle_gpus: f64,
    /// S_a(H), GPUs of spot tasks inside a guarantee.
    pub used_gpus: f64,
    /// η, the safety coefficient.
    pub eta: f64,
    /// p, the guarantee rate.
    pub guarantee_rate: f64,
    /// The reasons for the quota.
    pub reasons: Vec<ReasonBody>,
}

/// `GET /v1/quota/what-if`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfAnswer {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// H, the guarantee hours.
    pub hours: u8,
    /// As it was last computed.
    pub now: WhatIfSide,
    /// As it would be.
    pub then: WhatIfSide,
    /// The differences, in the order of the computation.
    pub steps: Vec<String>,
}
