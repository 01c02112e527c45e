//! What Headroom is asked ([`offers`]) and told ([`report`]).

mod client;
pub mod offers;
pub mod report;

pub use client::{Headroom, HeadroomError};
pub use offers::{Offer, Offers};
