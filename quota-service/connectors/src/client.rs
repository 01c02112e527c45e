//! The client of quota-service, by the settings of a connector.

use crate::values::HeadroomUrl;
use headroom_client::Options;
use std::path::Path;

pub use headroom_client::{Client as Headroom, ClientError as HeadroomError, chain, trusting};

/// Where quota-service is, and how a connector shows who it is.
///
/// Its client sends each request once: the loops of a connector try again themselves.
#[derive(Debug, Clone, Copy)]
pub struct ServiceSettings<'a> {
    /// Its URL.
    pub url: &'a HeadroomUrl,
    /// File with the token (`headroom_token_file`).
    pub token_file: Option<&'a Path>,
    /// Authority of its certificate (`headroom_ca_file`).
    pub ca_file: Option<&'a Path>,
    /// Name and version of the connector, as `User-Agent`.
    pub agent: &'static str,
}

impl From<ServiceSettings<'_>> for Options {
    fn from(settings: ServiceSettings<'_>) -> Self {
        Self {
            url: settings.url.clone(),
            token_file: settings.token_file.map(Path::to_owned),
            ca_file: settings.ca_file.map(Path::to_owned),
            setting_prefix: "headroom_",
            user_agent: settings.agent.to_owned(),
            ..Self::default()
        }
    }
}
