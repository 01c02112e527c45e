//! Forecasts of high-priority GPU demand as probability distributions, and what follows from them.
//!
//! [`fit()`] turns a panel and a split into a [`Model`]; every model answers through [`Predict`]; [`forecast`] adds the
//! rules for series that are new or have left; [`scores`] says how good a forecast was; [`bound`] turns the forecasts of a
//! pool's organizations into B_H, the upper bound of their common demand; [`calibration`] corrects both by what came of
//! earlier ones; [`drift`] compares forecasts with the demand, [`watched`] the served bounds; [`checkpoint`]
//! makes a model a row of bytes.
//!
//! ```
//! use datasets::{Calendar, PanelBuilder, TimeSplit};
//! use forecaster::blend::Settings;
//! use forecaster::bound::{Aggregation, bounds};
//! use forecaster::{Fit, ModelKind, ModelSpec, fit, forecast};
//! use vocab::{GuaranteeRate, HorizonHours, HourStart, Organization, PoolId, SeriesId};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Three weeks up to 08:00: 12 GPUs from 8 to 18 o'clock, 2 at night.
//! let series = SeriesId { pool: PoolId::parse("earth:V100")?, organization: Organization::parse("vision")? };
//! let (start, hours) = (HourStart::from_unix_s(0)?, 21 * 24 + 8);
//! let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS)?;
//! let mut demand = PanelBuilder::new(series.pool.cluster.clone(), calendar, start, start.plus_hours(hours));
//! for hour in 0..hours {
//!     let gpus = if (8..18).contains(&(hour % 24)) { 12.0 } else { 2.0 };
//!     demand.push(&series, start.plus_hours(hour), gpus)?;
//! }
//! let panel = demand.finish()?;
//!
//! // Fit the rule "as yesterday", forecast the next four hours, bound their demand at p = 0.9.
//! let horizon = HorizonHours::new(4)?;
//! let spec = ModelSpec { kind: ModelKind::Seasonal24h, horizon, lookback_hours: 168, seed: 0 };
//! let split = TimeSplit::new(panel.start(), panel.end(), spec.lookback_hours, horizon)?;
//! let model = fit(&Fit { panel: &panel, split, spec, settings: Settings::DEFAULT }, &mut |_| ())?;
//! let forecasts = forecast(&model, &panel, panel.end())?;
//! assert_eq!(forecasts[0].steps()[0].mean_gpus, 12.0);
//!
//! let members: Vec<_> = forecasts.iter().collect();
//! let bound = bounds(&members, Aggregation::SumOfBounds, None, None, GuaranteeRate::GFS, &[horizon])?;
//! assert_eq!(bound[0].bound.milli(), 12_000);
//! # Ok(())
//! # }
//! ```
//!
//! The crate is pure: no clock, no I/O, no log, and no randomness but from the seed that the caller passes.

#![warn(missing_docs)]

pub mod baseline;
pub mod blend;
pub mod bound;
pub mod bytes;
pub mod calibration;
pub mod checkpoint;
mod cold_start;
mod descent;
pub mod drift;
pub mod fit;
pub mod gaussian;
pub mod jobs;
mod left;
pub mod live;
pub mod mixture;
pub mod model;
mod nearness;
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
pub use rows::{History, HistoryFault, Source};
pub use side_by_side::side_by_side;
pub use trained::{TrainError, Trained, train};
