use crate::answer::ReasonBody;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A quota as it is, or would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfSide {
    pub quota_gpus: f64,
    pub available_gpus: f64,
    pub capacity_gpus: f64,
    pub demand_bound_gpus: f64,
    pub inventory_gpus: f64,
    pub idle_gpus: f64,
    pub used_gpus: f64,
    pub eta: f64,
    pub guarantee_rate: f64,
    pub reasons: Vec<ReasonBody>,
}

/// `GET /v1/quota/what-if`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfAnswer {
    pub cluster: String,
    pub gpu_model: String,
    pub hours: u8,
    /// As it was last computed.
    pub now: WhatIfSide,
    pub then: WhatIfSide,
    /// What differs, in the order of the computation.
    pub steps: Vec<String>,
}
