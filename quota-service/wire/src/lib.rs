//! Serde twins of what crosses a border, converted by hand: the words inside ([`vocab`]) know no serde, and a body is
//! checked once, when it comes in. A refusal names the field by its JSON pointer.
//!
//! Amounts of GPUs are decimals (thousandths are exact), times are RFC 3339 in UTC.

mod answer;
mod drift;
mod explanation;
mod fault;
mod forecast;
mod node;
mod outcome;
mod pool;
mod problem;
mod usage;

pub use answer::{QuotaAnswer, QuotaHistory, QuotaRecord, ReasonBody};
pub use drift::{DriftExplanation, JudgementBody, OrganizationDriftBody};
pub use explanation::{
    AggregationTrial, BoundExplanation, CalendarExplanation, CalibrationExplanation, CapacityExplanation,
    ConformalExplanation, EtaExplanation, EtaMoveBody, Explanation, ForecastExplanation, OrganizationBound,
    OrganizationCorrection, StepTotalBody, SupplyExplanation,
};
pub use fault::FieldFault;
pub use forecast::{ForecastAnswer, OrganizationForecast, StepBody};
pub use node::{NodeBody, NodeList};
pub use outcome::{OutcomeBatch, OutcomeBody, OutcomeReceipt, OutcomeResult};
pub use pool::{PoolList, PoolStateBody, PoolStateReceipt, PoolSummary, SettingsBody};
pub use problem::{FieldError, Problem};
pub use usage::{UsageBatch, UsageReceipt, UsageRowBody};
