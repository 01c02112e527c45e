//! What people look at: measured demand, promises and what became of them, nodes, runs.

use crate::task::TaskAnswer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The measured demand of an organization, hour by hour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrganizationDemand {
    pub organization: String,
    /// One for each hour; null where nothing was measured.
    pub demand_gpus: Vec<Option<f64>>,
}

/// `GET /v1/demand`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DemandAnswer {
    pub cluster: String,
    pub gpu_model: String,
    /// The first hour.
    pub from: String,
    pub organizations: Vec<OrganizationDemand>,
    /// The pool's own hourly peak where it is measured, else the sum over its organizations.
    pub pool: Vec<Option<f64>>,
}

/// Promises that ended in one day of UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromiseDay {
    pub day: String,
    pub kept: u64,
    pub broken: u64,
    /// Ended by node failures, drains and their users: neither kept nor broken.
    pub other: u64,
}

/// Promises of so many hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseHours {
    pub hours: u8,
    pub kept: u64,
    pub broken: u64,
    /// GPUs of spot tasks inside a guarantee of at least so many hours, now; null where it is not known.
    pub sold_gpus: Option<f64>,
    /// K_H: the share of promised GPUs that HP left where they were for so many hours, as a Kaplan–Meier survival. A task that ends
    /// early says nothing of what would have come after. Null where no period has ended.
    pub kept_rate: Option<f64>,
    /// One standard error of it, with one day left out after the other; null where all began on one day.
    pub kept_rate_deviation: Option<f64>,
    /// The same with each period counted once, whatever its GPUs.
    pub kept_rate_unweighted: Option<f64>,
    /// The same of the periods that ended in the last seven days, whichever days were asked for.
    pub last_7_days: Option<PromiseKept>,
    /// The 24 h in which the promise was kept least, by when promises were given; null where no day has 20 of them.
    pub worst_day: Option<PromiseWorst>,
    /// The seven days of UTC in which it was kept least; null where none have 100 promises.
    pub worst_week: Option<PromiseWorst>,
    /// Evidence that the promise fails, of the last 28 days: at 20 or more it does, which chance alone shows in at most one of twenty
    /// months. About 0.5 says nothing. Null where no period is old enough.
    pub e_value: Option<f64>,
    /// Since when it fails, at a guess; null where nothing speaks against the promise.
    pub e_value_since: Option<String>,
    /// How the bounds fared that quotas were cut from, sold or not; null where another service computes them.
    pub served: Option<PromiseServed>,
}

/// Kept rate of some periods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseKept {
    pub kept_rate: f64,
    /// One standard error; null where all began on one day.
    pub kept_rate_deviation: Option<f64>,
    pub periods: u64,
    pub broken: u64,
}

/// A span of time in which a promise was kept least.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseWorst {
    pub from: String,
    pub kept_rate: f64,
    pub periods: u64,
}

/// The bounds that were served, held against the demand that came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseServed {
    pub last_24_hours: ServedBounds,
    pub last_7_days: ServedBounds,
    pub last_28_days: ServedBounds,
    /// The least coverage of 24 h in the last 28 days; null where none were watched for half of the time.
    pub least_covered_day: Option<ServedExtreme>,
    pub least_covered_week: Option<ServedExtreme>,
    /// The largest broken share.
    pub most_broken_day: Option<ServedExtreme>,
    pub most_broken_week: Option<ServedExtreme>,
}

/// Bounds that were served in some span of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServedBounds {
    /// Times at which one was looked at, every quarter of an hour, and whose hours are over.
    pub looks: u64,
    /// The share of these at which demand stayed at or below the bound; null of none.
    pub coverage: Option<f64>,
    /// GPUs that HP would have taken back, had all been sold, of those that could be sold; null where none could.
    pub broken_share: Option<f64>,
}

/// A span of time at which something was worst.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServedExtreme {
    pub from: String,
    pub value: f64,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokenPromise {
    pub event_id: String,
    pub ended_at: String,
    pub hours: u8,
    pub task: Option<String>,
    pub node: Option<String>,
    pub why: String,
}

/// `GET /v1/promises`: what was sold, kept and broken, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromiseReport {
    pub cluster: String,
    pub gpu_model: String,
    pub from: String,
    pub to: String,
    /// p, as it is set now.
    pub guarantee_rate: f64,
    /// q = 1 − p.
    pub target_eviction_rate: f64,
    /// Guarantee periods that ended in the time, however they did, and those that are open.
    pub sold: u64,
    pub kept: u64,
    pub broken: u64,
    /// Periods that run now; null where the tasks are not placed here.
    pub open: Option<u64>,
    /// broken / (kept + broken); null where there was none.
    pub guarantee_eviction_rate: Option<f64>,
    /// `kept`, `broken`, `node_failure`, `drain`, `user_deleted`.
    pub by_kind: BTreeMap<String, u64>,
    pub by_hours: Vec<PromiseHours>,
    /// Rising; days without a promise that ended are there, too.
    pub days: Vec<PromiseDay>,
    /// The newest 50.
    pub broken_ones: Vec<BrokenPromise>,
}

/// `GET /v1/tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskList {
    /// Those that wait in the order of the queue, those that run by name.
    pub tasks: Vec<TaskAnswer>,
    /// How many there are, of which as many are listed as was asked for.
    pub total: u64,
}

/// A node with what is allocated on it, and was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    pub node: String,
    pub gpus: u32,
    pub hp_gpus: f64,
    /// Lent GPUs included.
    pub spot_gpus: f64,
    pub idle_gpus: f64,
    pub drains: bool,
    /// Spot tasks that were evicted from it in the last 24 h, as far as that still counts.
    pub evictions_24h: u64,
    /// The most GPUs that were allocated in each hour, at the renewals of the quotas; null where nothing is known.
    pub peak_gpus: Vec<Option<f64>>,
}

/// `GET /v1/pools/{id}/nodes` (GFS figure 8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeViews {
    pub cluster: String,
    pub gpu_model: String,
    pub hours: Vec<String>,
    pub nodes: Vec<NodeView>,
}

/// A training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunBody {
    pub id: String,
    pub cluster: String,
    pub model: String,
    pub horizon_hours: u8,
    pub lookback_hours: u32,
    pub seed: u64,
    pub data_from: String,
    /// The first hour after its data.
    pub data_until: String,
    pub series: u32,
    pub aggregation: String,
    pub created_at: String,
    pub train_ms: u64,
    pub code_version: String,
    /// Whether it serves.
    pub promoted: bool,
    #[schema(value_type = Object)]
    pub scores: serde_json::Value,
    #[schema(value_type = Object)]
    pub parameters: serde_json::Value,
}

/// A run that came to serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromotionBody {
    pub run_id: String,
    pub promoted_at: String,
    pub promoted_by: String,
    /// Whether it came back because a later one was given up.
    pub rolled_back: bool,
}

/// `GET /v1/runs`, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    pub runs: Vec<RunBody>,
    pub promotions: Vec<PromotionBody>,
}
