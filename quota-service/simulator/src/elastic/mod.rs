//! `simulate elastic`: jobs whose GPUs come and go one by one, by number alone, under Cornucopia and its rivals.

pub mod args;
mod commands;
pub(crate) mod draws;
pub mod labels;
pub mod profiles;
pub mod run;
mod show;
mod tally;
#[cfg(test)]
mod tests;
pub mod trace;

pub use commands::{ElasticError, command, scheduler};
pub use tally::{Summary, summary};
