//! The quota cycle, once: the service, its what-if, the simulator and the backtest of what is served call it, and each adds
//! only where its inputs come from. Pure: no clock, no I/O, no log, no randomness.
//!
//! ```text
//! forecasts ──► forecast_bounds ──┐
//! HP demand now ──► Learned ──────┼──► bounds ──► overrides ──► eta ──► quotas with reasons
//! known, settings, outcomes ──────┘                                     and what is learned now
//! ```

#![warn(missing_docs)]

mod bounds;
mod jobs;
mod learned;
mod pool;

pub use bounds::{ForecastBound, Forecasted, Reported, covered, forecast_bounds, latest_demand, more_steps, reported};
pub use jobs::{HourUsage, JobsMissing, ListFault, hp_jobs, last_usage};
pub use learned::{Learned, Moving};
pub use pool::{Decided, Inputs, Moved, cut, decide};
