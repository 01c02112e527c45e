//! When a waiting task will start: its distribution over simulated futures of a pool. Pure.
//!
//! [`PoolFacts`] are what a pool says of itself: idle GPUs by node, running and waiting tasks, quotas. A [`StartExpert`] watches
//! them: it learns how long jobs run and what arrives ([`forecaster::jobs`]), and how quotas follow HP demand. A future goes
//! on from the facts in steps: jobs end by their hazards, past windows of arrivals come again, quotas follow demand, and
//! waiting tasks are tried in the order of the policy, HP on the GPUs of spot, too. It is coarser than `placement`: GPUs of a
//! node are counted, not numbered, CPU, memory and topology do not bind, and a victim is the cheapest of a few. What that costs
//! is measured (DECISIONS.md); what is left of it, earlier forecasts correct ([`Calibration`]), and past waits of the class count as
//! far as they would have forecast better.

#![warn(missing_docs)]

mod agenda;
mod calibration;
mod course;
mod expert;
mod facts;
mod forecast;
mod kind;
mod memory;
mod mixing;
mod path;
mod plan;
mod ranked;
mod room;
mod saved;
mod starts;
mod steps;
mod strata;
mod waits;

pub use calibration::{Calibration, Coverage, LEVELS};
pub use expert::{Doubt, Ends, Forecast, StartExpert};
pub use facts::{Ask, PoolFacts, Size};
pub use forecast::{futures_of, planned_s};
pub use kind::Kind;
pub use memory::JobMemory;
pub use starts::Starts;
pub use steps::HORIZON_S;
