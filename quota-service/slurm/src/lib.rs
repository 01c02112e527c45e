//! Joins a Slurm cluster to Headroom.
//!
//! [`site`] runs Slurm's programs, [`view`] makes pools, demand and guarantees of what they print (pure), and [`accounting`]
//! usage and outcomes of finished jobs; [`run`] keeps all of it going. [`publish`] writes limits, under a lease of
//! quota-service ([`lease`]), [`hook`] the file that `job_submit.lua` reads, and [`watchdog`] lowers limits that are not
//! renewed. Every decision about quotas is made in quota-service.

pub mod accounting;
pub mod args;
pub mod config;
pub mod doctor;
pub mod heartbeat;
mod help;
pub mod hook;
pub mod lease;
pub mod limits;
pub mod outcomes;
pub mod publish;
pub mod run;
pub mod shared;
pub mod show;
pub mod sightings;
pub mod site;
pub mod view;
pub mod watchdog;

/// Begins the names of metrics.
pub const PROGRAM: &str = "headroom_slurm";
/// `User-Agent` of requests to Headroom.
pub const AGENT: &str = concat!("headroom-slurm/", env!("CARGO_PKG_VERSION"));
