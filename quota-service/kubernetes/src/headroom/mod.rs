//! Requests to Headroom: quotas and reports, by the crate that connectors share, out of what the [view](crate::view) knows.

mod jobs;
mod reported;

pub use connectors::report::encoded;
pub use connectors::{Headroom, HeadroomError, Offer, Offers, offers, report, trusting};

use crate::config::Config;
use connectors::ServiceSettings;

/// The program in the names of metrics.
pub const PROGRAM: &str = "headroom_kubernetes";

/// A client by the settings.
///
/// # Errors
/// A file of the settings cannot be read, or holds no certificate.
pub fn client(config: &Config) -> Result<Headroom, HeadroomError> {
    Headroom::new(ServiceSettings {
        url: &config.headroom_url,
        token_file: config.headroom_token_file.get(),
        ca_file: config.headroom_ca_file.get(),
        agent: concat!("headroom-kubernetes/", env!("CARGO_PKG_VERSION")),
    })
}
