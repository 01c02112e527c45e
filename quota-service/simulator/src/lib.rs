//! The simulator: a trace on a virtual clock around `placement` and `forecaster`, with no decision of its own
//! but those of [`rivals`], which the service never makes.

pub mod args;
pub mod commands;
pub mod compare;
pub mod cpu;
pub mod elastic;
mod fairness;
pub mod figures;
pub mod files;
pub mod inflate;
pub mod layout;
pub mod page;
pub mod policies;
pub mod power;
pub mod predictor;
pub mod price;
pub mod progress;
pub mod quota;
pub mod replay;
mod reservations;
pub mod rivals;
pub mod run;
pub mod saturated;
pub mod spread;
pub mod starts;
pub mod statement;
mod stretch;
pub mod tally;
pub mod timing;
mod witness;
pub mod world;

#[cfg(test)]
mod tests;
