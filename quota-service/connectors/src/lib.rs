//! Shared parts of the programs that join a scheduler to Headroom.
//!
//! [`client`] asks quota-service, [`offers`] are its quotas at their age, and [`report`] sends it usage, states and outcomes.
//! [`plan`] says when a published limit changes, [`health`] answers probes. Nothing here knows a scheduler.

pub mod client;
pub mod clock;
pub mod doctor;
pub mod health;
pub mod log;
pub mod offers;
pub mod plan;
pub mod report;
pub mod values;

pub use client::{Headroom, HeadroomError, ServiceSettings, chain, trusting};
pub use offers::{Holdings, Offer, Offers};
pub use report::Reported;
