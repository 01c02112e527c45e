//! Serde twins of the types inside, converted by hand: [`vocab`] and `placement` know no serde. A body is parsed once, when it
//! comes in, and a refusal names its field by a JSON pointer. The service and the simulator read facts and snapshots of pools
//! through the same twins.
//!
//! Amounts of GPUs are decimals (thousandths are exact), times are RFC 3339 in UTC, and a field with a closed list of values is an
//! enum.
//!
//! ```
//! use vocab::{TaskClass, UnixSeconds};
//!
//! let text = r#"{"cluster": "earth", "gpu_model": "A100", "id": "sweep-1", "organization": "vision",
//!                "class": "spot", "gpus_per_pod": 0.25, "guarantee_hours": 4}"#;
//! let body: wire::TaskBody = wire::from_json(text)?;
//! let (pool, request) = body.parse(UnixSeconds::new(1_700_000_000))?;
//! assert_eq!((pool.to_string().as_str(), request.gang.class), ("earth:A100", TaskClass::Spot));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A fault names its field:
//!
//! ```
//! let text = r#"{"cluster": "earth", "gpu_model": "A100", "kind": "reserve", "gpus": 0,
//!                "from": "2024-03-01T00:00:00Z", "to": "2024-03-02T00:00:00Z", "reason": "a launch"}"#;
//! let body: wire::OverrideRequest = wire::from_json(text)?;
//! assert!(body.parse().unwrap_err().to_string().starts_with("/gpus: "));
//! # Ok::<(), serde_json::Error>(())
//! ```

#![warn(missing_docs)]

mod answer;
pub mod bounds;
mod choices;
mod correction;
mod drift;
mod elastic;
mod explanation;
mod fact;
mod fault;
mod forecast;
mod gpu_time;
mod hp_jobs;
mod lease;
mod node;
mod outcome;
mod overrides;
pub mod plain;
mod policy;
mod pool;
mod prices;
mod problem;
mod reports;
mod reservations;
mod shares;
mod snapshot;
mod start;
mod statement;
mod statement_csv;
mod strict;
mod task;
#[cfg(test)]
mod tests;
mod topology;
mod usage;
mod what_if;

pub use answer::{QuotaAnswer, QuotaHistory, QuotaRecord, ReasonBody};
pub use choices::{
    AggregationSourceBody, CapacitySourceBody, CutCodeBody, DomainBody, EndingBody, EventKindBody, ForecastOriginBody,
    HpJobStateBody, NodeLossBody, OutcomeKindBody, OutcomeResultBody, OverrideKindBody, PlacedByBody,
    ProbabilitySourceBody, PromiseKindBody, StageBody, StandingBody, StrictnessBody, TaskClassBody, TaskStatusBody,
    WeekdayBody,
};
pub use correction::{
    AuditEntryBody, AuditList, CorrectedOutcome, CorrectedUsage, Kinds, OutcomeCorrection, OutcomeCorrections,
    OutcomeCorrectionsReceipt, UsageCorrections, UsageCorrectionsReceipt,
};
pub use drift::{DriftExplanation, JudgementBody, OrganizationDriftBody};
pub use elastic::{ElasticBody, ElasticRecord, ResizeRecord, SpeedBody};
pub use explanation::{
    AggregationTrial, BoundExplanation, CalendarExplanation, CalibrationExplanation, CapacityExplanation,
    ConformalExplanation, EtaExplanation, EtaMoveBody, ExpertExplanation, Explanation, ForecastExplanation,
    JobsExplanation, KeptExplanation, LiveExplanation, OrganizationBound, OrganizationCorrection, StepTotalBody,
    SupplyExplanation,
};
pub use fact::{FactRecord, GuaranteeRecord, LimitRecord, PlaceRecord, RequestRecord};
pub use fault::FieldFault;
pub use forecast::{ForecastAnswer, OrganizationForecast, StepBody};
pub use gpu_time::{
    AccountsRecord, CausedRecord, DayRecord, LineRecord, OpenRecord, PeriodsRecord, PoolLineRecord, TotalsRecord,
};
pub use hp_jobs::HpJobBody;
pub use lease::{ConnectorLease, ConnectorLeaseRequest};
pub use node::{NodeBody, NodeList};
pub use outcome::{OutcomeBatch, OutcomeBody, OutcomeReceipt, OutcomeResult};
pub use overrides::{OverrideBody, OverrideList, OverrideRequest};
pub use policy::{PolicyBody, ReservationsBody, ScoreBody, VictimsBody, no_policy};
pub use pool::{PoolForecastStep, PoolList, PoolStateBody, PoolStateReceipt, PoolSummary, PoolTasks, SettingsBody};
pub use prices::{GpuPricesBody, PricesBody};
pub use problem::{FieldError, Problem};
pub use reports::{
    BrokenPromise, DemandAnswer, NodeView, NodeViews, OrganizationDemand, PromiseDay, PromiseHours, PromiseKept,
    PromiseReport, PromiseServed, PromiseWorst, PromotionBody, RunBody, RunList, ServedBounds, ServedExtreme, TaskList,
};
pub use reservations::{RepeatsBody, ReservationBody, ReservationList, ReservationRequest, ReservedWindowBody};
pub use shares::{ShareList, ShareStanding, ShareTask, SharesBody, UseRecord};
pub use snapshot::{
    DeferralRecord, EvictionRecord, LevelRecord, NodeRecord, RunEndRecord, RunRecord, SnapshotRecord, WaitingRecord,
    WorkloadRecord,
};
pub use start::{
    Deadline, MomentBody, PriceBody, PriceList, PriceQuestion, StartAnswer, StartBody, StartCoverageBody,
    StartIntervalBody, StartQuestion, StartSpanBody, StartedByBody,
};
pub use statement::{
    ChargesBody, CostsBody, GpuHoursBody, PoolGpuHoursBody, PromiseCountsBody, StatementAnswer, StatementLine,
    StatementPool, StatementPreemption, StatementSource,
};
pub use statement_csv::StatementTable;
pub use strict::{Strict, from_json};
pub use task::{
    EventBody, PromiseBody, TaskAnswer, TaskBody, TaskCut, TaskDetail, TaskExplanation, TaskRun, hours_body,
};
pub use topology::{AffinityBody, NumaNodeBody, PlaceBody, TopologyBody};
pub use usage::{UsageBatch, UsageReceipt, UsageRowBody};
pub use what_if::{WhatIfAnswer, WhatIfSide};
