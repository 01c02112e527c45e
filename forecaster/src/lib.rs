//! Forecasts of high-priority GPU demand as probability distributions, and what follows from them.
//!
//! [`fit()`] turns a panel and a split into a [`Model`]; every model answers through [`Predict`]; [`forecast`] adds the
//! rules for series that are new or have left; [`scores`] says how good a forecast was; [`bound`] turns the forecasts of a
//! pool's organizations into B_H, the upper bound of their common demand; [`calibration`] corrects both by what came of
//! earlier ones; [`drift`] compares forecasts with the demand, [`watched`] the served bounds; [`checkpoint`]
//! makes a model a row of bytes.
//!
//! The crate is pure: no clock, no I/O, no log, and no randomness but from the seed that the caller passes.

pub mod baseline;
pub mod blend;
pub mod bound;
mod bytes;
pub mod calibration;
pub mod checkpoint;
mod cold_start;
mod descent;
pub mod drift;
pub mod fit;
pub mod gaussian;
mod left;
pub mod live;
pub mod model;
pub mod network;
pub mod orglinear;
pub mod peers;
pub mod predict;
pub mod risk;
mod rows;
pub mod scores;
mod side_by_side;
pub mod trained;
pub mod trees;
pub mod watched;

pub use bytes::DamagedBytes;
pub use fit::{Fit, FitError, FitProgress, fit};
pub use left::LEFT_AFTER_HOURS;
pub use model::{Family, Model, ModelKind, ModelSpec, UnknownModel};
pub use predict::{Predict, PredictError, forecast, roll};
pub use trained::{TrainError, Trained, train};
