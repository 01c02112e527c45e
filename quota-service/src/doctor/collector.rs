//! Check of the collector of traces.

use super::Check;
use crate::config::Config;
use std::time::Duration;
use tokio::net::TcpStream;

const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// The check, if the settings name a collector.
pub async fn of(config: &Config) -> Option<Check> {
    // That it is a URL with a host was checked with the settings.
    let endpoint = config.otlp_endpoint.get()?;
    let host = endpoint.host()?.trim_start_matches('[').trim_end_matches(']');
    // Without its path and user, which may be secrets.
    let shown = format!("{host}:{}", endpoint.port_u16().unwrap_or(80));
    let connecting = TcpStream::connect((host, endpoint.port_u16().unwrap_or(80)));
    let why = match tokio::time::timeout(ANSWERS_WITHIN, connecting).await {
        Ok(Ok(_)) => return Some(Check::ok("traces", format!("{shown} listens"))),
        Ok(Err(fault)) => fault.to_string(),
        Err(_) => "no answer".to_owned(),
    };
    let found = format!("{shown}: {why}; spans are dropped");
    Some(Check::warn("traces", found, "start the collector, or set otlp_endpoint = \"\""))
}
