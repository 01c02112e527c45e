//! Reports for people: measured demand, promises and their outcomes, nodes, runs.

use crate::task::TaskAnswer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The measured demand of an organization, hour by hour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationDemand {
    /// The organization.
    pub organization: String,
    /// One value for each hour; null without a measurement.
    pub demand_gpus: Vec<Option<f64>>,
}

/// `GET /v1/demand`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DemandAnswer {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The first hour.
    pub from: String,
    /// The demand of each organization.
    pub organizations: Vec<OrganizationDemand>,
    /// The pool's own hourly peak where it is measured, else the sum over its organizations.
    pub pool: Vec<Option<f64>>,
}

/// Promises that ended in one day of UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromiseDay {
    /// The day, YYYY-MM-DD.
    pub day: String,
    /// Guarantees that were kept.
    pub kept: u64,
    /// Guarantees that HP demand broke.
    pub broken: u64,
    /// Guarantees that node failures, drains or their users ended: neither kept nor broken.
    pub other: u64,
}

/// Promises of so many hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseHours {
    /// H, the guarantee hours.
    pub hours: u8,
    /// Guarantees that were kept.
    pub kept: u64,
    /// Guarantees that HP demand broke.
    pub broken: u64,
    /// GPUs of spot tasks inside a guarantee of at least so many hours, now; null where it is unknown.
    pub sold_gpus: Option<f64>,
    /// K_H: the share of promised GPUs that HP left where they were for so many hours, as a Kaplan–Meier survival: a task that ends
    /// early is censored. Null where no period has ended.
    pub kept_rate: Option<f64>,
    /// One standard error of it, with one day left out after the other; null where all began on one day.
    pub kept_rate_deviation: Option<f64>,
    /// The same with each period counted once, for any number of GPUs.
    pub kept_rate_unweighted: Option<f64>,
    /// The same for periods that ended in the last seven days, for any `days` in the query.
    pub last_7_days: Option<PromiseKept>,
    /// The 24 h in which the promise was kept least, by when promises were given; null where no day has 20 of them.
    pub worst_day: Option<PromiseWorst>,
    /// The seven days of UTC in which it was kept least; null where none have 100 promises.
    pub worst_week: Option<PromiseWorst>,
    /// Evidence of the last 28 days that the promise fails: it fails at 20 or more, which chance alone reaches in at most one of
    /// twenty months. About 0.5 is no evidence. Null where no period is old enough.
    pub e_value: Option<f64>,
    /// The estimated begin of the failure; null without evidence against the promise.
    pub e_value_since: Option<String>,
    /// The coverage of the bounds that quotas were computed from, sold or not; null where another service computes them.
    pub served: Option<PromiseServed>,
}

/// Kept rate of some periods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseKept {
    /// K_H.
    pub kept_rate: f64,
    /// One standard error; null where all began on one day.
    pub kept_rate_deviation: Option<f64>,
    /// Guarantee periods that were counted.
    pub periods: u64,
    /// Those that HP demand broke.
    pub broken: u64,
}

/// A span of time in which a promise was kept least.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseWorst {
    /// Its begin, RFC 3339.
    pub from: String,
    /// K_H in it.
    pub kept_rate: f64,
    /// Guarantee periods in it.
    pub periods: u64,
}

/// The bounds that were served, against the measured demand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseServed {
    /// The last 24 hours.
    pub last_24_hours: ServedBounds,
    /// The last seven days.
    pub last_7_days: ServedBounds,
    /// The last 28 days.
    pub last_28_days: ServedBounds,
    /// The least coverage of 24 h in the last 28 days; null where no 24 h were observed for half of the time.
    pub least_covered_day: Option<ServedExtreme>,
    /// The least coverage of seven days in the last 28 days.
    pub least_covered_week: Option<ServedExtreme>,
    /// The largest broken share.
    pub most_broken_day: Option<ServedExtreme>,
    /// The largest broken share of seven days.
    pub most_broken_week: Option<ServedExtreme>,
}

/// Bounds that were served in some span of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServedBounds {
    /// Samples, one every quarter of an hour, whose hours are over.
    pub looks: u64,
    /// The share of samples at which demand stayed at or below the bound; null without samples.
    pub coverage: Option<f64>,
    /// GPUs that HP would have taken back, had all been sold, as a share of those that could be sold; null where none could.
    pub broken_share: Option<f64>,
}

/// The worst span of time by one measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServedExtreme {
    /// Its begin, RFC 3339.
    pub from: String,
    /// The share.
    pub value: f64,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokenPromise {
    /// The id of the event.
    pub event_id: String,
    /// When it was broken, RFC 3339.
    pub ended_at: String,
    /// Its guarantee hours.
    pub hours: u8,
    /// The task; null where it was not reported.
    pub task: Option<String>,
    /// The node; null where it was not reported.
    pub node: Option<String>,
    /// The reason, as a sentence.
    pub why: String,
}

/// `GET /v1/promises`: promises sold, kept and broken, with reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseReport {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The begin of the report, RFC 3339.
    pub from: String,
    /// Its end, RFC 3339.
    pub to: String,
    /// p, as it is set now.
    pub guarantee_rate: f64,
    /// q = 1 − p.
    pub target_eviction_rate: f64,
    /// Guarantee periods that ended in the time, for any reason, and open ones.
    pub sold: u64,
    /// Guarantees that were kept.
    pub kept: u64,
    /// Guarantees that HP demand broke.
    pub broken: u64,
    /// Periods that run now; null in a pool of an external scheduler.
    pub open: Option<u64>,
    /// broken / (kept + broken); null where there was none.
    pub guarantee_eviction_rate: Option<f64>,
    /// `kept`, `broken`, `node_failure`, `drain`, `user_deleted`.
    pub by_kind: BTreeMap<String, u64>,
    /// The promises of each number of guarantee hours.
    pub by_hours: Vec<PromiseHours>,
    /// The days, rising, with those on which no promise ended.
    pub days: Vec<PromiseDay>,
    /// The newest 50.
    pub broken_ones: Vec<BrokenPromise>,
}

/// `GET /v1/tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskList {
    /// Waiting tasks in the order of the queue, running tasks by name.
    pub tasks: Vec<TaskAnswer>,
    /// The number of tasks, listed or not.
    pub total: u64,
}

/// A node with its allocated GPUs, now and hour by hour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// The id of the node.
    pub node: String,
    /// The number of GPUs.
    pub gpus: u32,
    /// GPUs of HP tasks.
    pub hp_gpus: f64,
    /// Lent GPUs included.
    pub spot_gpus: f64,
    /// GPUs without a task.
    pub idle_gpus: f64,
    /// Whether it takes no new pods.
    pub drains: bool,
    /// Spot tasks that were evicted from it in the last 24 h, as far as the pool still counts them.
    pub evictions_24h: u64,
    /// The most allocated GPUs of each hour, at the renewals of the quotas; null where they are unknown.
    pub peak_gpus: Vec<Option<f64>>,
}

/// `GET /v1/pools/{id}/nodes` (GFS figure 8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeViews {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The hours of `peak_gpus`, RFC 3339.
    pub hours: Vec<String>,
    /// The nodes, by name.
    pub nodes: Vec<NodeView>,
}

/// A training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunBody {
    /// The id of the run.
    pub id: String,
    /// The cluster.
    pub cluster: String,
    /// The name of the model.
    pub model: String,
    /// Hours ahead that it forecasts.
    pub horizon_hours: u8,
    /// Hours of the past that it reads.
    pub lookback_hours: u32,
    /// The seed of its random numbers.
    pub seed: u64,
    /// The first hour of its data.
    pub data_from: String,
    /// The first hour after its data.
    pub data_until: String,
    /// Series that it was trained on.
    pub series: u32,
    /// The rule by which the forecasts of organizations become a bound.
    pub aggregation: String,
    /// When it was stored, RFC 3339.
    pub created_at: String,
    /// How long the training took, in milliseconds.
    pub train_ms: u64,
    /// The version of the program.
    pub code_version: String,
    /// Whether it serves.
    pub promoted: bool,
    /// The scores on its validation and test parts.
    #[schema(value_type = Object)]
    pub scores: serde_json::Value,
    /// The parameters of the training.
    #[schema(value_type = Object)]
    pub parameters: serde_json::Value,
}

/// The promotion of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromotionBody {
    /// The promoted run.
    pub run_id: String,
    /// When, RFC 3339.
    pub promoted_at: String,
    /// Its actor: an operator, or the program that retrains.
    pub promoted_by: String,
    /// Whether a rollback of a later run promoted it.
    pub rolled_back: bool,
}

/// `GET /v1/runs`, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs, newest first.
    pub runs: Vec<RunBody>,
    /// The promotions, newest first.
    pub promotions: Vec<PromotionBody>,
}
