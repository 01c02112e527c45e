//! Serde twins of what crosses a border, converted by hand: the words inside ([`vocab`]) know no serde, and a body is
//! checked once, when it comes in. A refusal names the field by its JSON pointer. Facts and snapshots of `placement`, which
//! knows no serde either, have their twins here, so that the service and the simulator read the same.
//!
//! Amounts of GPUs are decimals (thousandths are exact), times are RFC 3339 in UTC.

mod answer;
pub mod bounds;
mod correction;
mod drift;
mod elastic;
mod explanation;
mod fact;
mod fault;
mod forecast;
mod look;
mod node;
mod outcome;
mod overrides;
mod policy;
mod pool;
mod problem;
mod snapshot;
mod strict;
mod task;
#[cfg(test)]
mod tests;
mod topology;
mod usage;
mod what_if;

pub use answer::{QuotaAnswer, QuotaHistory, QuotaRecord, ReasonBody};
pub use correction::{
    AuditEntryBody, AuditList, CorrectedOutcome, CorrectedUsage, Kinds, OutcomeCorrection, OutcomeCorrections,
    OutcomeCorrectionsReceipt, UsageCorrections, UsageCorrectionsReceipt,
};
pub use drift::{DriftExplanation, JudgementBody, OrganizationDriftBody};
pub use elastic::{ElasticBody, ElasticRecord, ResizeRecord, SpeedBody};
pub use explanation::{
    AggregationTrial, BoundExplanation, CalendarExplanation, CalibrationExplanation, CapacityExplanation,
    ConformalExplanation, EtaExplanation, EtaMoveBody, Explanation, ForecastExplanation, KeptExplanation,
    LiveExplanation, OrganizationBound, OrganizationCorrection, StepTotalBody, SupplyExplanation,
};
pub use fact::{FactRecord, GuaranteeRecord, LimitRecord, PlaceRecord, RequestRecord, node_loss};
pub use fault::FieldFault;
pub use forecast::{ForecastAnswer, OrganizationForecast, StepBody};
pub use look::{
    BrokenPromise, DemandAnswer, NodeView, NodeViews, OrganizationDemand, PromiseDay, PromiseHours, PromiseKept,
    PromiseReport, PromiseServed, PromiseWorst, PromotionBody, RunBody, RunList, ServedBounds, ServedExtreme, TaskList,
};
pub use node::{NodeBody, NodeList};
pub use outcome::{OutcomeBatch, OutcomeBody, OutcomeReceipt, OutcomeResult};
pub use overrides::{OverrideBody, OverrideList, OverrideRequest};
pub use policy::{PolicyBody, ReservationsBody, ScoreBody, VictimsBody, no_policy};
pub use pool::{PoolForecastStep, PoolList, PoolStateBody, PoolStateReceipt, PoolSummary, PoolTasks, SettingsBody};
pub use problem::{FieldError, Problem};
pub use snapshot::{
    DeferralRecord, EvictionRecord, LevelRecord, NodeRecord, RunEndRecord, RunRecord, SnapshotRecord, WaitingRecord,
    WorkloadRecord,
};
pub use strict::{Strict, from_json};
pub use task::{
    EventBody, PromiseBody, TaskAnswer, TaskBody, TaskCut, TaskDetail, TaskExplanation, TaskRun, hours_body,
};
pub use topology::{AffinityBody, NumaNodeBody, PlaceBody, TopologyBody};
pub use usage::{UsageBatch, UsageReceipt, UsageRowBody};
pub use what_if::{WhatIfAnswer, WhatIfSide};
