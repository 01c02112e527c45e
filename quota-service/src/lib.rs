//! The service: reads usage and state, forecasts, cuts quotas, publishes them over HTTP.
//!
//! [`refresh`] reads the database, [`plan`] computes (pure), [`published`] holds ready answers in memory, [`http`] hands
//! them out; [`drift`] looks back at what was
//! forecast; [`retrain`] has models trained again; [`source`] reads usage
//! out of Prometheus; [`engine`] places
//! tasks by the quotas; [`start_times`] says when they start. Every decision is made in `placement` and `forecaster`; here is only the way between them.

pub mod access;
pub mod args;
pub mod clock;
pub mod config;
pub mod connectors;
pub mod core;
pub mod database;
pub mod doctor;
pub mod drift;
pub mod engine;
pub mod error;
pub mod health;
pub mod http;
pub mod leases;
pub mod metrics;
mod organizations;
pub mod placed_by;
pub mod plan;
pub mod prices;
pub mod promises;
pub mod published;
pub mod quotas;
pub mod refresh;
pub mod reservations;
pub mod retention;
pub mod retrain;
pub mod serve;
pub mod settings;
pub mod source;
pub mod start_times;
pub mod state;
pub mod topology;
pub mod trace;
mod without_database;
pub mod writes;

pub use error::ServiceError;
pub use state::{AppState, Options};
