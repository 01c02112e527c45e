//! Headroom, and whether the two fit: the checks of every connector, in the terms of this one.

use super::{Check, Facts, tracking};
use crate::config::Config;
use crate::{lease, run};
use connectors::doctor::{Asker, Gpus, headroom};

/// Checks of Headroom; `here` are the GPUs of the cluster.
pub async fn of(config: &Config, facts: Option<&Facts>, here: Option<&Gpus>) -> Vec<Check> {
    let lease = config.cluster.get().filter(|_| config.mode.publishes()).map(lease::path_of);
    let asker = Asker {
        program: "headroom-slurm",
        cluster: config.cluster.get(),
        url: &config.headroom_url,
        model_setting: "the types of Gres in slurm.conf, or gpu_model",
        reports_nodes: config.reporting,
        lease: lease.as_deref(),
    };
    let (mut checks, _) = headroom(asker, run::headroom(config), here).await;
    let misleads = |model: &str| facts.is_some_and(|facts| tracking::misleads(facts, &config.untyped(), model));
    checks.retain(|check| !check.name.strip_prefix("model ").is_some_and(misleads));
    checks
}

#[cfg(test)]
mod tests;
