//! `GET /v1/quota/explain`: a quota step by step, enough to compute it again by hand.

use crate::answer::{QuotaAnswer, ReasonBody};
use crate::choices::{AggregationSourceBody, CapacitySourceBody, PlacedByBody, PromiseKindBody};
use crate::drift::DriftExplanation;
use crate::forecast::OrganizationForecast;
use crate::overrides::OverrideBody;
use crate::start::StartCoverageBody;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A quota and everything that went into it, in the order in which it was computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The quota.
    pub quota: QuotaAnswer,
    /// The steps as sentences with numbers.
    pub steps: Vec<String>,
    /// The input that would change the quota first.
    pub what_would_change: String,
    /// The side that places the tasks of the pool; null while it is undecided, and in explanations stored before there were sides.
    #[serde(default)]
    pub placed_by: Option<PlacedByBody>,
    /// C.
    pub capacity: CapacityExplanation,
    /// The forecasts.
    pub forecast: ForecastExplanation,
    /// Null in explanations that were stored before there were calendars.
    #[serde(default)]
    pub calendar: Option<CalendarExplanation>,
    /// The overrides that the bound follows.
    #[serde(default)]
    pub overrides: Vec<OverrideBody>,
    /// B_H.
    pub bound: BoundExplanation,
    /// η.
    pub eta: EtaExplanation,
    /// S0 and S_a(H).
    pub supply: SupplyExplanation,
    /// The accuracy of the forecasts of the last seven days, as of now; null before the first of them was scored, and null in
    /// stored explanations.
    #[serde(default)]
    pub drift: Option<DriftExplanation>,
    /// How forecasts of starts fared, by class, as of now; empty while few starts were forecast, where an external scheduler places the
    /// pool, and in stored explanations.
    #[serde(default)]
    pub starts: Vec<StartCoverageBody>,
}

/// C and its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CapacityExplanation {
    /// C, the capacity.
    pub capacity_gpus: f64,
    /// The source of the capacity.
    pub source: CapacitySourceBody,
}

/// The forecasts of the pool's organizations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForecastExplanation {
    /// The training run whose model forecast.
    pub run_id: Option<String>,
    /// The name of the model.
    pub model: String,
    /// The first instant that the model has not seen.
    pub issue_time: String,
    /// Hours between the issue time and the hour in which the quota was computed: their usage has not arrived yet.
    pub hours_late: u8,
    /// Organizations that have not reported the hour before the issue time, and did report one of the two days before: their last
    /// known demand stands for it. Empty where Headroom places the tasks, and in stored explanations.
    #[serde(default)]
    pub not_reported: Vec<String>,
    /// Organizations whose demand was forecast; 0 in explanations stored before they were counted.
    #[serde(default)]
    pub organization_count: usize,
    /// As they were issued. Empty in stored explanations.
    pub organizations: Vec<OrganizationForecast>,
    /// Their earlier corrections; null in stored explanations.
    #[serde(default)]
    pub calibration: Option<CalibrationExplanation>,
}

/// Corrections learned from earlier forecasts of the run, once their hours were over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CalibrationExplanation {
    /// Whether forecasts of organizations are corrected, as validation decided. Pools are tracked either way.
    pub correcting: bool,
    /// The last issue time that a correction was learned from, in training or since.
    pub newest_issue_time: Option<String>,
    /// The organizations whose forecasts were corrected.
    pub organizations: Vec<OrganizationCorrection>,
}

/// The correction of an organization's forecast, on average over its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationCorrection {
    /// The organization.
    pub organization: String,
    /// Hours that it was learned from.
    pub residuals: usize,
    /// The mean.
    pub mean_gpus: f64,
    /// The median.
    pub q50_gpus: f64,
    /// The 0.9 quantile.
    pub q90_gpus: f64,
    /// The 0.95 quantile.
    pub q95_gpus: f64,
    /// How far demand had fallen below the peak of the hour before by the end of it, which mean and median follow; 0 where the end is
    /// not known.
    pub fallen_gpus: f64,
}

/// The calendar of days off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CalendarExplanation {
    /// `weekdays`, `CN`, a user's own, or both, as in `CN+acme`.
    pub name: String,
    /// The time zone of the cluster.
    pub time_zone: String,
    /// The first local date whose days off are known; null where all are.
    pub covers_from: Option<String>,
    /// The last local date whose days off are known; null where all are.
    pub covers_until: Option<String>,
    /// Whether the hours of the forecast lie between the two dates. Beyond them, only Saturdays and Sundays count as days off.
    pub covered: bool,
    /// Whether the first hour of the forecast is in a day off.
    pub day_off: bool,
}

/// B_H.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BoundExplanation {
    /// The rule by which the forecasts of organizations become a bound.
    pub aggregation: String,
    /// Whether the aggregation was chosen on validation or set for the pool.
    pub aggregation_source: AggregationSourceBody,
    /// The score of each aggregation on the validation part of the run.
    pub trials: Vec<AggregationTrial>,
    /// p, the guarantee rate.
    pub guarantee_rate: f64,
    /// Forecast steps that the bound covers: `hours`, and those of late usage.
    pub steps: u8,
    /// Deviations added to the mean, or under `conformal` to the centre; null for `sum-of-bounds` and `mixture`.
    pub multiplier: Option<f64>,
    /// The mean correlation between organizations, for `pooled`.
    pub mean_correlation: Option<f64>,
    /// The mean correlation between steps, for `pooled`.
    pub step_correlation: Option<f64>,
    /// The pool's total at each step, as a Gaussian.
    pub totals: Vec<StepTotalBody>,
    /// The step (from 1) that decides; null for `sum-of-bounds`.
    pub deciding_step: Option<u8>,
    /// The statistics of the pool's measured peaks, for `conformal` and `mixture`.
    pub conformal: Option<ConformalExplanation>,
    /// The experts whose bounds were mixed, for `mixture`: B_H is the sum of weight × bound. Empty for other aggregations, and in
    /// explanations stored before there was a mixture.
    #[serde(default)]
    pub experts: Vec<ExpertExplanation>,
    /// The mix of the forecast's bound with a live one, which follows HP demand from moment to moment; for pools that Headroom
    /// places.
    pub live: Option<LiveExplanation>,
    /// The event whose probability is p. Null in explanations stored before there was a choice.
    #[serde(default)]
    pub promise: Option<PromiseKindBody>,
    /// The correction of the peak's bound by which promises are kept as often as p demands; under `kept`, after a day of
    /// observation.
    #[serde(default)]
    pub kept: Option<KeptExplanation>,
    /// The bound of each organization under `sum-of-bounds`.
    pub organizations: Vec<OrganizationBound>,
    /// The bound before it was raised to that of fewer hours; null where it was not.
    pub raised_from_gpus: Option<f64>,
    /// The demand that the pool usually returns to where a day off ends within the hours, or ended in the half day before; the bound is
    /// no less. Null where none does, and in explanations stored before it was known.
    #[serde(default)]
    pub returns_gpus: Option<f64>,
    /// Rounded up to a thousandth.
    pub demand_bound_gpus: f64,
}

/// B_H between two forecasts: `share` of the live bound and the rest of the forecast's; where HP jobs are known, `jobs.share` of
/// their bound and the rest of that; no less than what HP needs now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveExplanation {
    /// HP GPUs, running and waiting, when the quota was computed.
    pub hp_demand_gpus: f64,
    /// The bound of the forecast.
    pub forecast_bound_gpus: f64,
    /// Demand now, and its rise at the guarantee rate; null in the first hour.
    pub live_bound_gpus: Option<f64>,
    /// The share with the least loss over the last days.
    pub share: f64,
    /// The bound mixed of forecast and live bound, where that over fewer hours is larger and holds here too; null where it is not, and
    /// in explanations stored by earlier versions.
    #[serde(default)]
    pub raised_from_gpus: Option<f64>,
    /// The bound of the HP jobs; null where they are not known, and in explanations stored before they were.
    #[serde(default)]
    pub jobs: Option<JobsExplanation>,
}

/// The bound that is drawn from the HP jobs that run, wait and came before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobsExplanation {
    /// Jobs that run.
    pub running: u64,
    /// Jobs that wait.
    pub waiting: u64,
    /// Jobs whose ends it has watched.
    pub ended: u64,
    /// Jobs of the list that its run was trained with.
    pub listed: u64,
    /// The p-quantile of the peaks of the drawn paths; null until enough arrivals were seen.
    pub bound_gpus: Option<f64>,
    /// Its share, by its losses of the last days beside those of the other bounds.
    pub share: f64,
    /// The bound mixed of it and the others, where that over fewer hours is larger and holds here too; null where it is not, and
    /// in explanations stored by earlier versions.
    #[serde(default)]
    pub raised_from_gpus: Option<f64>,
}

/// Up to λ = 1, B_H = needed + λ · (bound of the peak − needed), where needed is the HP demand now; from there on it goes from the
/// bound of the peak to all GPUs of the pool, which it reaches at 3. λ rises where promises break more often than they may, and
/// falls where they break less often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeptExplanation {
    /// The bound that HP demand stays below with probability p.
    pub peak_bound_gpus: f64,
    /// λ.
    pub lambda: f64,
}

/// Statistics of the residuals of a pool's measured peaks over the last week: B_H is the centre and `multiplier` deviations. The
/// multiplier is the weighted mean of the two order statistics; with less than a day of residuals it leans on `pooled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConformalExplanation {
    /// Sum over organizations of their largest 0.9 quantile.
    pub sum_gpus: f64,
    /// The largest 0.9 quantile of their total, were they independent Gaussians.
    pub total_gpus: f64,
    /// The share of the total in the centre: the one with the least loss of its bounds over the last week.
    pub total_share: f64,
    /// (1 − share) × sum + share × total.
    pub centre_gpus: f64,
    /// One deviation, in GPUs.
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

/// One expert on a pool's peak. Its weight follows the losses of the bounds that it stated before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExpertExplanation {
    /// The name of the expert.
    pub expert: String,
    /// Its bound; null while it knows too little.
    pub bound_gpus: Option<f64>,
    /// Its weight; the weights sum to 1.
    pub weight: f64,
}

/// One aggregation on the validation part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AggregationTrial {
    /// The name of the aggregation.
    pub aggregation: String,
    /// Share of hours whose demand stayed at or below the bound.
    pub coverage: f64,
    /// 90 % interval over days.
    pub coverage_interval: [f64; 2],
    /// Pinball loss at the guarantee rate.
    pub pinball_gpus: f64,
    /// Mean GPUs of the bound above demand.
    pub over_reserved_gpus: f64,
}

/// The pool's total at one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepTotalBody {
    /// The hour ahead, from 1.
    pub step: u8,
    /// The mean that bounds rest on.
    pub mean_gpus: f64,
    /// The standard deviation.
    pub stddev_gpus: f64,
    /// By how much less the forecast expects where demand fell within the last hour; a peak may come again, so that bounds do not
    /// follow. 0 in explanations stored before it was known.
    #[serde(default)]
    pub lowered_gpus: f64,
}

/// An organization's own bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationBound {
    /// The organization.
    pub organization: String,
    /// The step (from 1) that decides.
    pub step: u8,
    /// The mean.
    pub mean_gpus: f64,
    /// The standard deviation.
    pub stddev_gpus: f64,
    /// The bound.
    pub bound_gpus: f64,
}

/// η and its last moves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EtaExplanation {
    /// η.
    pub eta: f64,
    /// The reason for which it stayed or moved when the quota was computed.
    pub last_decision: ReasonBody,
    /// The last five moves, newest first.
    pub moves: Vec<EtaMoveBody>,
}

/// A move of η.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EtaMoveBody {
    /// When η moved, RFC 3339.
    pub at: String,
    /// η before.
    pub from: f64,
    /// η after.
    pub to: f64,
    /// The code of the reason.
    pub reason: String,
    /// Kept guarantees that the move counted.
    pub kept: u64,
    /// Broken guarantees that the move counted.
    pub broken: u64,
}

/// S0 and Sa.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SupplyExplanation {
    /// S0.
    pub idle_gpus: f64,
    /// S_a(H).
    pub spot_gpus: f64,
    /// S0 + S_a(H).
    pub ceiling_gpus: f64,
    /// Whether no fresh state was reported: then S0 is capacity less the latest demand, and Sa is 0.
    pub estimated: bool,
    /// The HP demand of the last measured hour.
    pub latest_demand_gpus: f64,
    /// The longest wait of a spot task that only the quota refuses, in seconds.
    pub longest_quota_wait_s: u64,
}
