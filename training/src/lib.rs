//! Trainings as objects: what was learned from which hours, how well, and whether it serves.
//!
//! [`run::train_cluster`] trains one cluster and keeps the run; [`gate`] decides whether it may be promoted;
//! [`backtest`] plays the past again, hour by hour, and writes what it would have forecast.

pub mod args;
pub mod backtest;
pub mod demand;
pub mod error;
pub mod explain;
pub mod files;
pub mod gate;
pub mod history;
pub mod jobs;
pub mod learn;
mod lent;
pub mod losses;
mod offered;
mod parameters;
pub mod run;
pub mod runs;
pub mod scores;
pub mod shard;
pub mod spool;
pub mod tune;
pub mod usage;

pub use error::TrainingError;
