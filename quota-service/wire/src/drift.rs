//! The accuracy of the forecasts of the last seven days: a section of `GET /v1/quota/explain`.

use crate::choices::StandingBody;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Forecasts of a pool against its measured demand. An issue hour is scored once, when its hours are over and measured. Hours
/// without a measurement, or with one that came more than two hours after that of the rest, are counted and not scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DriftExplanation {
    /// The first issue hour that was scored.
    pub first_issue_time: String,
    /// The last issue hour that was scored.
    pub last_issue_time: String,
    /// Issue hours, of at most 168, that were scored. One at which the service did not forecast is missing.
    pub issue_hours: usize,
    /// Hours of all organizations' forecasts: one for each issue hour, step and organization.
    pub scored_hours: u32,
    /// Hours of forecasts without a measurement.
    pub unmeasured_hours: u32,
    /// Mean absolute error of the median.
    pub mae_gpus: Option<f64>,
    /// That of the last value that was known at each issue hour, on the same hours.
    pub last_value_mae_gpus: Option<f64>,
    /// Share of hours at or below the 0.9 quantile.
    pub coverage_q90: Option<f64>,
    /// Issue hours whose bound was compared with the pool's peak.
    pub bound_issue_hours: usize,
    /// Issue hours whose peak was not measured whole.
    pub bound_unmeasured: usize,
    /// Share of bounds that held.
    pub bound_coverage: Option<f64>,
    /// Whether one of the two shares has left its band.
    pub drifts: bool,
    /// When a share left its band, as far as the service has observed since its start.
    pub outside_since: Option<String>,
    /// The coverage of the 0.9 quantile, beside its band.
    pub coverage: JudgementBody,
    /// The coverage of the pool's bound, beside its band.
    pub bound: JudgementBody,
    /// The forecasts of each organization.
    pub organizations: Vec<OrganizationDriftBody>,
}

/// A share that the promoted run states, and the band in which it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JudgementBody {
    /// The share against its band.
    pub standing: StandingBody,
    /// The judgement as a sentence.
    pub detail: String,
    /// The measured share; null without scored hours.
    pub share: Option<f64>,
    /// The share that the run promised; null where none is known.
    pub promised: Option<f64>,
    /// Lowest and highest share; none while there are too few hours.
    pub band: Option<[f64; 2]>,
    /// Issue hours of this run.
    pub issue_hours: usize,
    /// Issue hours that a judgement needs.
    pub least_issue_hours: usize,
}

/// The forecasts of one organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationDriftBody {
    /// The organization.
    pub organization: String,
    /// Hours that were scored.
    pub scored_hours: u32,
    /// Hours without a measurement.
    pub unmeasured_hours: u32,
    /// Mean absolute error of the median.
    pub mae_gpus: Option<f64>,
    /// Mean absolute error of the last known value, on the same hours.
    pub last_value_mae_gpus: Option<f64>,
    /// Share of hours at or below the 0.9 quantile.
    pub coverage_q90: Option<f64>,
}
