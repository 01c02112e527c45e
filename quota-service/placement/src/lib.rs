//! Every decision of Headroom, pure: no clock, no I/O, no log, no randomness, no floats for amounts.
//!
//! Knowledge of a pool becomes its [`Supply`]; supply, bounds and [`Eta`] become a [`Quota`] for each offered number
//! of hours, with the reasons that explain it; outcomes move eta ([`eta::decide`]); age turns a quota conservative
//! ([`staleness`]). A [`Fleet`](fleet::Fleet) is a pool's nodes with the tasks on them: [`decide`] says whether and where a
//! gang starts, and which spot tasks have to go for it; a [`Pool`](pool::Pool) does so for its queue, event by event. The service and the simulator call the same functions.

#![warn(missing_docs)]

pub mod assumed;
pub mod cluster_quota;
mod decide;
pub mod draw;
pub mod elastic;
pub mod eta;
pub mod evidence;
pub mod fleet;
pub mod invariants;
pub mod kept;
pub mod overrides;
pub mod pipeline;
pub mod policy;
pub mod pool;
pub mod power;
mod quota;
mod reason;
mod settings;
pub mod shares;
pub mod staleness;
mod supply;
pub mod timing;
pub mod topology;
pub mod what_if;
pub mod windows;

pub use decide::{
    ABOVE_FAIR_SHARE, Circumstances, Decision, Limit, Misaligned, QueueOrder, Refusal, decide, exceeded, over_quota,
};
pub use eta::{Eta, EtaError};
pub use policy::Policy;
pub use quota::{Bound, Quota, quotas};
pub use reason::Reason;
pub use settings::{PoolSettings, Promise, SettingsError};
pub use staleness::Stage;
pub use supply::{CapacitySource, Known, Supply, Unknown, supply};
