//! The settings of the program.

use command_line::{BadValue, print_notice};
use headroom_client::{Client, ClientError, Options, ServiceUrl};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

/// Settings of this program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// URL of quota-service.
    pub api: ServiceUrl,
    /// File with the token; empty for none.
    pub api_token_file: String,
    /// Authority (PEM) of the service's certificate; empty for the authorities that this machine trusts.
    pub api_ca_file: String,
    /// Cluster of the pool; empty: the only one that the service shows.
    pub cluster: String,
    /// GPU model of the pool; empty: the only one that the service shows.
    pub gpu_model: String,
    /// Organization of submitted tasks; empty: each names its own.
    pub default_organization: String,
    /// Seconds for which a request is sent again while the service is away or busy.
    pub patience_s: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            api: ServiceUrl::default(),
            api_token_file: String::new(),
            api_ca_file: String::new(),
            cluster: String::new(),
            gpu_model: String::new(),
            default_organization: String::new(),
            patience_s: 30,
        }
    }
}

/// The longest patience: a day.
const MOST_PATIENCE_S: u64 = 86_400;

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        if self.patience_s > MOST_PATIENCE_S {
            return Err(BadValue::new("patience_s", format!("{} is above {MOST_PATIENCE_S}, a day", self.patience_s)));
        }
        Ok(())
    }
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| text.into())
}

/// Once for each command: without it a person sees nothing for as long as the patience lasts.
fn say_that_it_waits(fault: &ClientError, pause: Duration) {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        print_notice(format_args!(
            "{fault}. Asking again in {} s, until patience_s is over",
            pause.as_secs_f64().ceil() as u64
        ));
    });
}

impl Config {
    /// A client by these settings.
    ///
    /// # Errors
    /// The authority cannot be read.
    pub fn client(&self) -> Result<Client, ClientError> {
        Client::new(Options {
            url: self.api.clone(),
            token_file: path(&self.api_token_file),
            ca_file: path(&self.api_ca_file),
            setting_prefix: "api_",
            user_agent: concat!("headroom/", env!("CARGO_PKG_VERSION")).to_owned(),
            patience: Duration::from_secs(self.patience_s),
            on_pause: Some(say_that_it_waits),
            ..Options::default()
        })
    }
}
