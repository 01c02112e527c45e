use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{DemandForecast, ForecastOrigin};

/// One hour's demand as a distribution, in GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepBody {
    /// From 1.
    pub step: u8,
    pub target_time: String,
    pub mean_gpus: f64,
    pub stddev_gpus: f64,
    pub q50_gpus: f64,
    pub q90_gpus: f64,
    pub q95_gpus: f64,
}

/// An organization's demand over the next hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationForecast {
    pub organization: String,
    /// `model`, `cold_start` where the organization is new to the model, or `left` where it has neither demand nor rows for
    /// two days.
    pub origin: String,
    pub steps: Vec<StepBody>,
}

/// `GET /v1/forecast`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForecastAnswer {
    pub cluster: String,
    pub gpu_model: String,
    pub run_id: Option<String>,
    pub model: String,
    pub issue_time: String,
    pub computed_at: String,
    pub organizations: Vec<OrganizationForecast>,
}

impl From<&DemandForecast> for OrganizationForecast {
    fn from(forecast: &DemandForecast) -> Self {
        let origin = match forecast.origin() {
            ForecastOrigin::Model => "model",
            ForecastOrigin::ColdStart => "cold_start",
            ForecastOrigin::Left => "left",
        };
        let steps = forecast.steps().iter().enumerate().map(|(index, step)| {
            let [q50_gpus, q90_gpus, q95_gpus] = step.quantiles_gpus;
            StepBody {
                step: u8::try_from(index + 1).unwrap_or(u8::MAX),
                target_time: forecast.issue().plus_hours(index as i64).to_string(),
                mean_gpus: step.mean_gpus,
                stddev_gpus: step.stddev_gpus,
                q50_gpus,
                q90_gpus,
                q95_gpus,
            }
        });
        Self {
            organization: forecast.series().organization.as_str().to_owned(),
            origin: origin.to_owned(),
            steps: steps.collect(),
        }
    }
}
