//! Learning of deferred evictions: remaining times, and how long a deferral pays (Lazer, DAC 2026).

pub mod gaussian;
mod history;
pub mod normal;
pub mod predictor;
mod search;

pub use history::History;
