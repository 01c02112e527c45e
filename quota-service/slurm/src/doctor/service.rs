//! Headroom, and whether the two fit: the checks of every connector, in the terms of this one.

use super::{Check, Facts, token, tracking};
use crate::config::Config;
use crate::run;
use connectors::doctor::{Asker, Gpus, headroom};

/// Checks of Headroom; `here` are the GPUs of the cluster.
pub async fn of(config: &Config, facts: Option<&Facts>, here: Option<&Gpus>) -> Vec<Check> {
    let asker = Asker {
        program: "headroom-slurm",
        cluster: config.cluster.get(),
        url: &config.headroom_url,
        model_setting: "the types of Gres in slurm.conf, or gpu_model",
    };
    let (mut checks, _) = headroom(asker, run::headroom(config), here).await;
    let misleads = |model: &str| facts.is_some_and(|facts| tracking::misleads(facts, &config.untyped(), model));
    checks.retain(|check| !check.name.strip_prefix("model ").is_some_and(misleads));
    token::judge(config, here, checks).await
}

#[cfg(test)]
mod tests;
