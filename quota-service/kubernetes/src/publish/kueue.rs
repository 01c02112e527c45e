//! Object of Kueue that carries the quota.

use super::provider::{DEFINITION, form};
use super::target::Target;
use crate::calls::{Calls, Fault};
use crate::config::{Config, KueueMode};

/// Why no object carries it.
#[derive(Debug, thiserror::Error)]
pub enum NoTarget {
    #[error(
        "the cluster has no CapacityProvider: install Kueue with the feature gate DynamicQuotaOrchestration, or set kueue to \
         cluster-queue"
    )]
    /// The mode needs a `CapacityProvider`, and the cluster has no definition of it.
    NotServed,
    /// The definition has an unknown form.
    #[error("{0}")]
    OtherForm(String),
    /// The definition cannot be read.
    #[error("whether there is a CapacityProvider cannot be read: {0}")]
    Call(#[from] Fault),
}

/// The object, and the reason for it. `None` if Kueue is off.
///
/// # Errors
/// The mode needs an object that does not exist, or has an unknown form.
pub async fn target(calls: &Calls, config: &Config) -> Result<Option<(Target, &'static str)>, NoTarget> {
    let queue = |why| Ok(Some((Target::queue(config), why)));
    let mode = config.kueue;
    match mode {
        KueueMode::Off => return Ok(None),
        KueueMode::ClusterQueue => return queue("kueue is cluster-queue"),
        KueueMode::CapacityProvider | KueueMode::Auto => {}
    }
    match calls.find(DEFINITION).await? {
        Some(definition) => {
            // Not even `auto` takes the other way then: both at once would hand the quota out twice when the form is known some day.
            let form = form(&definition).map_err(NoTarget::OtherForm)?;
            Ok(Some((Target::provider(config, form), "the cluster has CapacityProviders")))
        }
        None if mode == KueueMode::Auto => queue("the cluster has no CapacityProviders"),
        None => Err(NoTarget::NotServed),
    }
}

/// Flavors of the settings that the cluster does not have. Kueue takes a queue with such a flavor out of service.
///
/// # Errors
/// The server did not answer.
pub async fn missing_flavors(calls: &Calls, config: &Config) -> Result<Vec<String>, Fault> {
    let mut missing = Vec::new();
    for flavor in config.flavors.0.keys().chain(config.at_will_flavors.0.keys()) {
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/resourceflavors/{flavor}");
        if calls.find(&path).await?.is_none() {
            missing.push(flavor.clone());
        }
    }
    Ok(missing)
}
