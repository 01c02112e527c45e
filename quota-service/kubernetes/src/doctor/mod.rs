//! `headroom-kubernetes doctor`: checks the installation, and prints a fix for each problem. It changes nothing: it creates reviews
//! of its own access, which the API answers and does not store.
//!
//! Each part answers a list of [`Check`]s; [`examine`] puts them in order. A new source of checks is one more line there.

mod api;
mod bypass;
mod classes;
mod definitions;
mod devices;
mod files;
mod gpus;
mod headroom;
mod kueue;
mod lease;
mod permissions;
mod published;
#[cfg(test)]
mod tests;
mod unseen;

pub use command_line::{Check, Report, Status};

use crate::args::DoctorFlags;
use crate::cluster::connect;
use crate::config::Config;
use api::Api;
use command_line::{ConfigError, Entry, Exit, Failure, Settings};

/// Runs all checks, and prints the report.
///
/// # Errors
/// 4 where the settings are invalid, 1 where anything else fails, or if a check warns and `--strict` was given.
pub async fn run(
    settings: Result<Settings<Config>, ConfigError>,
    flags: DoctorFlags,
    json: bool,
) -> Result<(), Failure> {
    let examined =
        async |config: &Config, entries: &[Entry]| (Report::of(examine(config, entries).await), Exit::Failure);
    command_line::doctor("headroom-kubernetes", settings, (flags.strict, json), examined).await
}

/// Every check, in order.
pub async fn examine(config: &Config, entries: &[Entry]) -> Vec<Check> {
    // 1. This machine.
    let mut checks = vec![Check::settings(entries)];
    checks.extend(files::of(config, connectors::clock::now()));
    checks.push(lease::times(config));
    // 2. The cluster.
    let mut here = None;
    match connect(config).await {
        Err(fault) => checks.push(Check::fail("kubernetes", fault, "set kubeconfig, or run this in a pod")),
        Ok(client) => {
            let api = Api::new(client);
            let reached = api.reached(config).await;
            let is_reached = reached.iter().all(|check| check.status != Status::Fail);
            checks.extend(reached);
            if is_reached {
                here = cluster(&api, config, &mut checks).await;
            }
        }
    }
    // 3. Headroom, and whether the two fit.
    checks.extend(headroom::of(config, here.as_ref()).await);
    checks
}

/// Checks of the Kubernetes API; answers the GPUs, if they could be read.
async fn cluster(api: &Api, config: &Config, checks: &mut Vec<Check>) -> Option<gpus::Gpus> {
    let definitions = definitions::read(api, config).await;
    checks.extend(permissions::of(api, config, &definitions).await);
    checks.extend(definitions::checks(config, &definitions));
    checks.extend(classes::of(api, config).await);
    checks.extend(kueue::of(api, config, &definitions).await);
    checks.extend(lease::of(api, config).await);
    checks.extend(devices::of(api, config).await);
    let (found, gpus) = gpus::of(api, config).await;
    checks.extend(found);
    checks.extend(unseen::of(api, config).await);
    gpus
}
