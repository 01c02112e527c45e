//! `GET /v1/quota/explain`: a quota step by step, enough to compute it again by hand.

use crate::answer::{QuotaAnswer, ReasonBody};
use crate::drift::DriftExplanation;
use crate::forecast::OrganizationForecast;
use crate::overrides::OverrideBody;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A quota and everything that went into it, in the order in which it was computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    pub quota: QuotaAnswer,
    /// The steps as sentences with numbers.
    pub steps: Vec<String>,
    pub what_would_change: String,
    /// Which side places the tasks of the pool: `headroom` or `external`; null while it is undecided, and in what was stored
    /// before there were sides.
    #[serde(default)]
    pub placed_by: Option<String>,
    pub capacity: CapacityExplanation,
    pub forecast: ForecastExplanation,
    /// None in explanations that were stored before there were calendars.
    #[serde(default)]
    pub calendar: Option<CalendarExplanation>,
    /// Those that the bound follows.
    #[serde(default)]
    pub overrides: Vec<OverrideBody>,
    pub bound: BoundExplanation,
    pub eta: EtaExplanation,
    pub supply: SupplyExplanation,
    /// How the forecasts of the last seven days fared, as of now; none before the first of them was scored, and none in
    /// what was stored.
    #[serde(default)]
    pub drift: Option<DriftExplanation>,
}

/// C and where it is from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CapacityExplanation {
    pub capacity_gpus: f64,
    /// `reported_state`, `nodes` or `capacity_table`.
    pub source: String,
}

/// The forecasts of the pool's organizations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForecastExplanation {
    pub run_id: Option<String>,
    pub model: String,
    /// The first instant that the model has not seen.
    pub issue_time: String,
    /// Hours between the issue time and the hour in which the quota was computed: usage that has not come yet.
    pub hours_late: u8,
    /// As they were issued.
    pub organizations: Vec<OrganizationForecast>,
    /// How they were corrected before; none in what was stored.
    #[serde(default)]
    pub calibration: Option<CalibrationExplanation>,
}

/// What earlier forecasts of the run taught, once their hours were over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CalibrationExplanation {
    /// Whether forecasts of organizations are corrected, as validation decided. Pools are followed either way.
    pub correcting: bool,
    /// The last issue time that was learned from, be it in training.
    pub newest_issue_time: Option<String>,
    /// The organizations whose forecasts were corrected.
    pub organizations: Vec<OrganizationCorrection>,
}

/// What was added to the forecast of an organization, on average over its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationCorrection {
    pub organization: String,
    /// Hours that it was learned from.
    pub residuals: usize,
    pub mean_gpus: f64,
    pub q50_gpus: f64,
    pub q90_gpus: f64,
    pub q95_gpus: f64,
}

/// The calendar that says which hours are in a day off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CalendarExplanation {
    /// `weekdays`, `CN`, a user's own, or both, as in `CN+acme`.
    pub name: String,
    pub time_zone: String,
    /// The first and the last local date whose days off are known; none where all are.
    pub covers_from: Option<String>,
    pub covers_until: Option<String>,
    /// Whether the hours of the forecast lie between them. Beyond, only Saturdays and Sundays count as days off.
    pub covered: bool,
    /// Whether the first hour of the forecast is in a day off.
    pub day_off: bool,
}

/// B_H.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BoundExplanation {
    pub aggregation: String,
    /// Whether the aggregation was chosen on validation or set for the pool.
    pub aggregation_source: String,
    /// How each aggregation fared on the validation part of the run.
    pub trials: Vec<AggregationTrial>,
    pub guarantee_rate: f64,
    /// Forecast steps that the bound covers: `hours`, and those of late usage.
    pub steps: u8,
    /// Deviations added to the mean, or under `conformal` to the centre; none for `sum-of-bounds`.
    pub multiplier: Option<f64>,
    /// The mean correlation between organizations, and that between steps, for `pooled`.
    pub mean_correlation: Option<f64>,
    pub step_correlation: Option<f64>,
    /// The pool's total at each step, as a Gaussian.
    pub totals: Vec<StepTotalBody>,
    /// The step (from 1) that decides; none for `sum-of-bounds`.
    pub deciding_step: Option<u8>,
    /// What the pool's measured peaks say, for `conformal`.
    pub conformal: Option<ConformalExplanation>,
    /// How the forecast's bound was mixed with one that follows HP demand from moment to moment; for pools whose tasks are
    /// placed here.
    pub live: Option<LiveExplanation>,
    /// What p is the probability of: `kept` or `peak`. Null in explanations of before there was a choice.
    #[serde(default)]
    pub promise: Option<String>,
    /// How the bound of the peak was moved so that promises are kept as often as was promised; under `kept`, once the pool was
    /// watched for a day.
    #[serde(default)]
    pub kept: Option<KeptExplanation>,
    /// What each organization adds under `sum-of-bounds`.
    pub organizations: Vec<OrganizationBound>,
    /// The bound before it was raised to that of fewer hours, where it was.
    pub raised_from_gpus: Option<f64>,
    /// Rounded up to a thousandth.
    pub demand_bound_gpus: f64,
}

/// B_H between two forecasts: `share` of the live bound and the rest of the forecast's, no less than what HP needs now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveExplanation {
    /// HP GPUs, running and waiting, when the quota was computed.
    pub hp_demand_gpus: f64,
    pub forecast_bound_gpus: f64,
    /// What demand is now, and how far it rises at the guarantee rate; none in the first hour.
    pub live_bound_gpus: Option<f64>,
    /// The proportion that would have lost least over the last days.
    pub share: f64,
}

/// Up to λ = 1, B_H = needed + λ · (bound of the peak − needed), where needed is what HP needs now; from there on it goes from the
/// bound of the peak to all GPUs of the pool, which it reaches at 3. λ rises where promises break more often than they may, and
/// falls where they break less often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeptExplanation {
    /// What HP demand stays below with probability p.
    pub peak_bound_gpus: f64,
    pub lambda: f64,
}

/// What the residuals of a pool's measured peaks over the last week say: B_H is the centre and `multiplier` deviations. The
/// multiplier is the weighted mean of the two order statistics; with less than a day of residuals it leans on `pooled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConformalExplanation {
    /// Sum over organizations of their largest 0.9 quantile.
    pub sum_gpus: f64,
    /// The largest 0.9 quantile of their total, were they independent Gaussians.
    pub total_gpus: f64,
    /// The share of the total in the centre: the one whose bounds would have lost least over the last week.
    pub total_share: f64,
    /// (1 − share) × sum + share × total.
    pub centre_gpus: f64,
    pub deviation_gpus: f64,
    /// ⌈(n+1)p⌉-th smallest of the pool's own residuals, in deviations.
    pub own_order_statistic: f64,
    /// Its weight; the shared one has the rest.
    pub own_weight: f64,
    /// The same of all pools of the cluster.
    pub shared_order_statistic: f64,
    /// Own residuals in the window.
    pub residuals: u64,
    /// The share of them that the weighted mean of the two covers.
    pub coverage: f64,
}

/// One aggregation on the validation part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AggregationTrial {
    pub aggregation: String,
    pub coverage: f64,
    /// 90 % interval over days.
    pub coverage_interval: [f64; 2],
    pub pinball_gpus: f64,
    pub over_reserved_gpus: f64,
}

/// The pool's total at one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepTotalBody {
    pub step: u8,
    pub mean_gpus: f64,
    pub stddev_gpus: f64,
}

/// An organization's own bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationBound {
    pub organization: String,
    pub step: u8,
    pub mean_gpus: f64,
    pub stddev_gpus: f64,
    pub bound_gpus: f64,
}

/// η and how it came to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EtaExplanation {
    pub eta: f64,
    /// Why it stayed or moved when the quota was computed.
    pub last_decision: ReasonBody,
    /// The last five moves, newest first.
    pub moves: Vec<EtaMoveBody>,
}

/// A move of η.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EtaMoveBody {
    pub at: String,
    pub from: f64,
    pub to: f64,
    pub reason: String,
    pub kept: u64,
    pub broken: u64,
}

/// S0 and Sa.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SupplyExplanation {
    pub idle_gpus: f64,
    /// S_a(H).
    pub spot_gpus: f64,
    /// S0 + S_a(H).
    pub ceiling_gpus: f64,
    /// No fresh state was reported: S0 is capacity less the latest demand, and Sa counts as none.
    pub estimated: bool,
    pub latest_demand_gpus: f64,
    pub longest_quota_wait_s: u64,
}
