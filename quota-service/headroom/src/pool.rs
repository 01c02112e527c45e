//! The pool that a command is about.

use crate::config::Config;
use crate::failure;
use command_line::{Exit, Failure};
use headroom_client::{Client, Pool};
use wire::{PoolList, PoolSummary};

/// The pools that the settings allow.
///
/// # Errors
/// The service does not answer, or has none of them.
pub async fn allowed(client: &Client, config: &Config) -> Result<Vec<PoolSummary>, Failure> {
    among(client.pools().await.map_err(|fault| failure::of(&fault))?, config)
}

fn among(list: PoolList, config: &Config) -> Result<Vec<PoolSummary>, Failure> {
    let PoolList { pools } = list;
    let is = |wanted: &str, name: &str| wanted.is_empty() || wanted == name;
    let known: Vec<String> = pools.iter().map(|pool| pool.id.clone()).collect();
    let found: Vec<PoolSummary> = pools
        .into_iter()
        .filter(|pool| is(&config.cluster, &pool.cluster) && is(&config.gpu_model, &pool.gpu_model))
        .collect();
    if found.is_empty() {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Failure::new(Exit::Failure, format_args!("{} has no such pool; its pools: {known}", config.api)));
    }
    Ok(found)
}

/// The pool of the settings, or the only one that they allow.
///
/// # Errors
/// The service does not answer, has none of them, or several.
pub async fn chosen(client: &Client, config: &Config) -> Result<Pool, Failure> {
    if let Some(named) = named(client, config) {
        return Ok(named);
    }
    only(client, config, client.pools().await.map_err(|fault| failure::of(&fault))?)
}

/// The pool that the settings name whole.
#[must_use]
pub fn named(client: &Client, config: &Config) -> Option<Pool> {
    let is_named = !config.cluster.is_empty() && !config.gpu_model.is_empty();
    is_named.then(|| client.pool(&config.cluster, &config.gpu_model))
}

/// The only one of these pools that the settings allow.
///
/// # Errors
/// There is none of them, or several.
pub fn only(client: &Client, config: &Config, list: PoolList) -> Result<Pool, Failure> {
    match among(list, config)?.as_slice() {
        [only] => Ok(client.pool(&only.cluster, &only.gpu_model)),
        several => {
            let names: Vec<&str> = several.iter().map(|pool| pool.id.as_str()).collect();
            let text = format!("several pools: choose one with --cluster and --gpu-model: {}", names.join(", "));
            Err(Failure::new(Exit::Usage, text))
        }
    }
}
