use crate::choices::ForecastOriginBody;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::DemandForecast;

/// One hour's demand as a distribution, in GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepBody {
    /// From 1.
    pub step: u8,
    /// The start of the hour that is forecast.
    pub target_time: String,
    /// The mean. Rare jumps count in it, so that it may be above the 0.95 quantile where demand stands still.
    pub mean_gpus: f64,
    /// The standard deviation.
    pub stddev_gpus: f64,
    /// The median.
    pub q50_gpus: f64,
    /// The 0.9 quantile.
    pub q90_gpus: f64,
    /// The 0.95 quantile.
    pub q95_gpus: f64,
}

/// An organization's demand over the next hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationForecast {
    /// The organization.
    pub organization: String,
    /// The origin of the forecast.
    pub origin: ForecastOriginBody,
    /// One distribution for each hour ahead.
    pub steps: Vec<StepBody>,
}

/// `GET /v1/forecast`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForecastAnswer {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The training run; null without one.
    pub run_id: Option<String>,
    /// The name of the model.
    pub model: String,
    /// The first hour that the model has not seen.
    pub issue_time: String,
    /// When it was computed, RFC 3339.
    pub computed_at: String,
    /// The forecast of each organization.
    pub organizations: Vec<OrganizationForecast>,
}

impl From<&DemandForecast> for OrganizationForecast {
    fn from(forecast: &DemandForecast) -> Self {
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
            origin: forecast.origin().into(),
            steps: steps.collect(),
        }
    }
}
