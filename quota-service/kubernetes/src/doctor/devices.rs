//! Device classes of the settings: a misspelt one counts no GPU, and says nothing.

use super::Check;
use super::api::Api;
use crate::claims::watch::CLASSES;
use crate::cluster::served::{in_words, served};
use crate::config::Config;
use serde_json::Value;
use std::collections::BTreeSet;

/// A warning for each class of `device_classes` that does not exist.
pub async fn of(api: &Api, config: &Config) -> Vec<Check> {
    if config.device_classes.0.is_empty() {
        return Vec::new();
    }
    // Classes that cannot be listed are reported by `gpus`.
    let Ok(classes) = classes(api).await else { return Vec::new() };
    let existing: BTreeSet<&str> = classes.iter().filter_map(|class| class["metadata"]["name"].as_str()).collect();
    let missing = config.device_classes.0.keys().filter(|name| !existing.contains(name.as_str()));
    missing.map(|name| absent(name, &existing)).collect()
}

/// The classes in the version that the connector reads.
async fn classes(api: &Api) -> Result<Vec<Value>, String> {
    match served(api.client(), CLASSES).await.map_err(|fault| in_words(&fault))? {
        None => Ok(Vec::new()),
        Some(kind) => api.list(&format!("/apis/{}/{}", kind.api_version, kind.plural)).await,
    }
}

fn absent(name: &str, existing: &BTreeSet<&str>) -> Check {
    let all = existing.iter().copied().collect::<Vec<_>>().join(", ");
    let there = if all.is_empty() { "there are none".to_owned() } else { format!("there are {all}") };
    let found = format!("no DeviceClass has this name, and it counts no GPUs; {there}");
    Check::warn(format!("device class {name}"), found, "install its driver, or correct device_classes")
}
