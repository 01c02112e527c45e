//! Requests to Headroom: quotas ([`offers`]) and reports ([`report`]).

mod client;
pub mod jobs;
pub mod offers;
pub mod report;

pub use client::{Headroom, HeadroomError, trusting};
pub use offers::{Offer, Offers};
pub use report::encoded;
