//! Every decision of Headroom, pure: no clock, no I/O, no log, no randomness, no floats for amounts.
//!
//! What is known of a pool becomes its [`Supply`]; supply, bounds and [`Eta`] become a [`Quota`] for each offered number
//! of hours, with the reasons that explain it; outcomes move eta ([`eta::decide`]); age turns a quota conservative
//! ([`staleness`]). The service and the simulator call the same functions.

pub mod eta;
pub mod invariants;
mod quota;
mod reason;
mod settings;
pub mod staleness;
mod supply;

pub use eta::{Eta, EtaError};
pub use quota::{Bound, Quota, quotas};
pub use reason::Reason;
pub use settings::{PoolSettings, SettingsError};
pub use staleness::Stage;
pub use supply::{CapacitySource, Known, Supply, Unknown, supply};
