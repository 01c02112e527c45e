//! How the forecasts of the last seven days fared: a section of `GET /v1/quota/explain`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Forecasts of a pool held against what came. An issue hour is scored once, when its hours are over and measured; hours
/// without a measurement, or with one that came more than two hours after that of the rest, are counted and not scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DriftExplanation {
    pub first_issue_time: String,
    pub last_issue_time: String,
    /// Issue hours, of at most 168, that were scored. One at which the service did not forecast is missing.
    pub issue_hours: usize,
    /// Hours of all organizations' forecasts: one for each issue hour, step and organization.
    pub scored_hours: u32,
    pub unmeasured_hours: u32,
    /// Mean absolute error of the median.
    pub mae_gpus: Option<f64>,
    /// That of the last value that was known at each issue hour, on the same hours.
    pub last_value_mae_gpus: Option<f64>,
    /// Share of hours at or below the 0.9 quantile.
    pub coverage_q90: Option<f64>,
    /// Issue hours whose bound could be held against the pool's peak.
    pub bound_issue_hours: usize,
    /// Issue hours whose peak was not measured whole.
    pub bound_unmeasured: usize,
    /// Share of bounds that held.
    pub bound_coverage: Option<f64>,
    /// Whether one of the two shares has left its band.
    pub drifts: bool,
    /// Since when, as far as the service has seen since its start.
    pub outside_since: Option<String>,
    /// The coverage of the 0.9 quantile, beside its band.
    pub coverage: JudgementBody,
    /// The coverage of the pool's bound, beside its band.
    pub bound: JudgementBody,
    pub organizations: Vec<OrganizationDriftBody>,
}

/// A share of what the run said that serves, beside the band in which it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JudgementBody {
    /// `too_few_hours`, `inside`, `below` or `above`.
    pub standing: String,
    pub detail: String,
    pub share: Option<f64>,
    pub promised: Option<f64>,
    /// Lowest and highest share; none while there are too few hours.
    pub band: Option<[f64; 2]>,
    /// Issue hours of this run, and how many it takes to judge.
    pub issue_hours: usize,
    pub least_issue_hours: usize,
}

/// The forecasts of one organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationDriftBody {
    pub organization: String,
    pub scored_hours: u32,
    pub unmeasured_hours: u32,
    pub mae_gpus: Option<f64>,
    pub last_value_mae_gpus: Option<f64>,
    pub coverage_q90: Option<f64>,
}
