//! Statements: where GPU time went, what became of promises, and what it costs.

use accounts::{Charges, GpuTime, Line, OrganizationRow, PoolCharges, PoolLine, PoolRow, Preemption};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The charges of a row, in units of the statement's currency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChargesBody {
    /// HP tasks.
    pub hp: f64,
    /// Spot inside its guarantee.
    pub guaranteed: f64,
    /// Spot at will.
    pub at_will: f64,
    /// Credit for what broken promises still owed; part of `total` with a minus.
    pub credit: f64,
    /// `hp` + `guaranteed` + `at_will` − `credit`.
    pub total: f64,
}

/// The costs of a pool, in units of the statement's currency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CostsBody {
    /// Of owning its GPUs.
    pub owned: f64,
    /// Of owning those that no task held.
    pub idle: f64,
    /// Of the work that evictions and lost nodes cost.
    pub lost: f64,
}

/// GPU-hours of an organization, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GpuHoursBody {
    /// HP tasks.
    pub hp: f64,
    /// Spot tasks inside their guarantee.
    pub guaranteed: f64,
    /// Spot tasks without a guarantee or after it, and pods on lent GPUs.
    pub at_will: f64,
    /// GPUs that a task has been given and that victims still leave.
    pub handover: f64,
    /// Promised by the guarantees that ended: `kept` + `broken` + `voided`.
    pub sold: f64,
    /// Promised by guarantees that were kept.
    pub kept: f64,
    /// Promised by guarantees that HP broke.
    pub broken: f64,
    /// Promised by guarantees that a lost node, a drain or the user ended.
    pub voided: f64,
    /// The part of `broken` that was still owed.
    pub owed: f64,
    /// Work of spot tasks since their last checkpoint, lost to evictions.
    pub lost_to_evictions: f64,
    /// Work since the last checkpoint, lost with nodes.
    pub lost_to_nodes: f64,
}

/// GPU-hours of a pool that no task held. What tasks held + idle + drained is the capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolGpuHoursBody {
    /// GPUs of all nodes.
    pub capacity: f64,
    /// Idle, and within the quota of the shortest guarantee.
    pub idle_offered: f64,
    /// Idle beyond the quota: kept for HP.
    pub idle_reserved: f64,
    /// Idle on nodes that take no pods.
    pub drained: f64,
    /// Kept for HP by the quota of the shortest guarantee, beyond HP demand at that moment; spot at will may have run on it.
    pub over_reserved: f64,
}

/// Guarantees that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromiseCountsBody {
    /// Kept.
    pub kept: u64,
    /// Broken by HP.
    pub broken: u64,
    /// Ended by a lost node, a drain or the user.
    pub voided: u64,
}

/// An organization in a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatementLine {
    /// The day of UTC, in a statement by day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The organization.
    pub organization: String,
    /// Its GPU-hours.
    pub gpu_hours: GpuHoursBody,
    /// Its guarantees that ended.
    pub promises: PromiseCountsBody,
    /// Evictions of its spot tasks for HP.
    pub evictions: u64,
    /// Its charges; null without prices of the GPU model.
    pub charges: Option<ChargesBody>,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatementPool {
    /// The day of UTC, in a statement by day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// Hours that were accounted for: fewer than the statement has where the accounts began later, or were not kept for a while.
    pub accounted_hours: f64,
    /// GPU-hours that no task held.
    pub pool_gpu_hours: PoolGpuHoursBody,
    /// The share of the capacity that tasks held; null without capacity.
    pub allocation: Option<f64>,
    /// The share of the capacity in which tasks ran whose work was not lost; null without capacity.
    pub goodput: Option<f64>,
    /// The sum of its organizations.
    pub gpu_hours: GpuHoursBody,
    /// Guarantees that ended.
    pub promises: PromiseCountsBody,
    /// Evictions of spot tasks for HP.
    pub evictions: u64,
    /// The sum of their charges; null without prices of the GPU model.
    pub charges: Option<ChargesBody>,
    /// Its costs; null without prices of the GPU model.
    pub costs: Option<CostsBody>,
}

/// Evictions of one organization's spot tasks by the HP tasks of another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatementPreemption {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The organization of the HP tasks.
    pub by: String,
    /// The organization of the spot tasks.
    pub of: String,
    /// Evicted runs.
    pub evictions: u64,
    /// Those of them inside a guarantee.
    pub broken: u64,
    /// Work since the last checkpoint.
    pub lost_gpu_hours: f64,
}

/// The accounts of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatementSource {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The end of what the statement has of it, RFC 3339: the present, or the end of its last stored day where another service leads it.
    pub until: String,
    /// The reason for which later time is missing; null where nothing is.
    pub missing: Option<String>,
}

/// `GET /v1/statement`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatementAnswer {
    /// The first instant, RFC 3339.
    pub from: String,
    /// The first instant after it, RFC 3339.
    pub to: String,
    /// ISO 4217; null without a file of prices.
    pub currency: Option<String>,
    /// The accounts that it is made of, by pool.
    pub sources: Vec<StatementSource>,
    /// By pool; none in the statement of one organization.
    pub pools: Vec<StatementPool>,
    /// By pool and organization.
    pub organizations: Vec<StatementLine>,
    /// Preemptions by pair of organizations, the most lost work first.
    pub preemptions: Vec<StatementPreemption>,
}

impl From<&Charges> for ChargesBody {
    fn from(charges: &Charges) -> Self {
        let Charges { hp, guaranteed, at_will, credit } = *charges;
        let [hp, guaranteed, at_will, credit] = [hp, guaranteed, at_will, credit].map(accounts::Micros::units);
        Self { hp, guaranteed, at_will, credit, total: charges.total().units() }
    }
}

impl From<&PoolCharges> for CostsBody {
    fn from(costs: &PoolCharges) -> Self {
        let [owned, idle, lost] = [costs.owned, costs.idle, costs.lost].map(accounts::Micros::units);
        Self { owned, idle, lost }
    }
}

impl From<&Line> for GpuHoursBody {
    fn from(line: &Line) -> Self {
        let hours = GpuTime::gpu_hours;
        Self {
            hp: hours(line.hp),
            guaranteed: hours(line.guaranteed),
            at_will: hours(line.at_will),
            handover: hours(line.handover),
            sold: hours(line.sold()),
            kept: hours(line.kept.promised),
            broken: hours(line.broken.promised),
            voided: hours(line.voided.promised),
            owed: hours(line.broken.promised.less(line.broken.served)),
            lost_to_evictions: hours(line.lost_to_evictions),
            lost_to_nodes: hours(line.lost_to_nodes),
        }
    }
}

impl From<&PoolLine> for PoolGpuHoursBody {
    fn from(line: &PoolLine) -> Self {
        let [capacity, idle_offered, idle_reserved, drained, over_reserved] =
            [line.capacity, line.idle_offered, line.idle_reserved, line.drained, line.over_reserved]
                .map(GpuTime::gpu_hours);
        Self { capacity, idle_offered, idle_reserved, drained, over_reserved }
    }
}

impl From<&Line> for PromiseCountsBody {
    fn from(line: &Line) -> Self {
        Self { kept: line.kept.count, broken: line.broken.count, voided: line.voided.count }
    }
}

impl From<&OrganizationRow> for StatementLine {
    fn from(row: &OrganizationRow) -> Self {
        Self {
            day: row.day.map(|day| day.to_string()),
            cluster: row.pool.cluster.to_string(),
            gpu_model: row.pool.gpu_model.to_string(),
            organization: row.organization.to_string(),
            gpu_hours: (&row.line).into(),
            promises: (&row.line).into(),
            evictions: row.line.evictions(),
            charges: row.charges.as_ref().map(Into::into),
        }
    }
}

impl From<&PoolRow> for StatementPool {
    fn from(row: &PoolRow) -> Self {
        Self {
            day: row.day.map(|day| day.to_string()),
            cluster: row.pool.cluster.to_string(),
            gpu_model: row.pool.gpu_model.to_string(),
            accounted_hours: row.accounted_s as f64 / 3_600.0,
            pool_gpu_hours: (&row.line).into(),
            allocation: row.allocation(),
            goodput: row.goodput(),
            gpu_hours: (&row.total).into(),
            promises: (&row.total).into(),
            evictions: row.total.evictions(),
            charges: row.charges.as_ref().map(Into::into),
            costs: row.costs.as_ref().map(Into::into),
        }
    }
}

impl From<&Preemption> for StatementPreemption {
    fn from(one: &Preemption) -> Self {
        Self {
            cluster: one.pool.cluster.to_string(),
            gpu_model: one.pool.gpu_model.to_string(),
            by: one.by.to_string(),
            of: one.of.to_string(),
            evictions: one.caused.evictions,
            broken: one.caused.broken,
            lost_gpu_hours: one.caused.lost.gpu_hours(),
        }
    }
}

impl StatementAnswer {
    /// The answer of a statement between two instants.
    #[must_use]
    pub fn of(statement: &accounts::Statement, from: String, to: String, currency: Option<String>) -> Self {
        Self {
            from,
            to,
            currency,
            sources: Vec::new(),
            pools: statement.pools.iter().map(Into::into).collect(),
            organizations: statement.organizations.iter().map(Into::into).collect(),
            preemptions: statement.preemptions.iter().map(Into::into).collect(),
        }
    }
}
