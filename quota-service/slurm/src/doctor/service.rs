//! Headroom, and whether the two fit: the checks of every connector, in the terms of this one.

use super::{Check, Facts, token, tracking};
use crate::config::Config;
use crate::run;
use connectors::doctor::{Asker, Gpus, headroom};
use vocab::{ClusterName, GpuModel};
use wire::PoolSummary;

/// Within the reason for which a pool without a capacity has no quota.
const NO_CAPACITY: &str = "capacity is not known";

/// Checks of Headroom; `here` are the GPUs of the cluster.
pub async fn of(config: &Config, facts: Option<&Facts>, here: Option<&Gpus>) -> Vec<Check> {
    let asker = Asker {
        program: "headroom-slurm",
        cluster: config.cluster.get(),
        url: &config.headroom_url,
        model_setting: "the types of Gres in slurm.conf, or gpu_model",
    };
    let (mut checks, list) = headroom(asker, run::headroom(config), here).await;
    let misleads = |model: &str| facts.is_some_and(|facts| tracking::misleads(facts, &config.untyped(), model));
    checks.retain(|check| !check.name.strip_prefix("model ").is_some_and(misleads));
    let pools = list.map(|list| list.pools).unwrap_or_default();
    for pool in pools.iter().filter(|pool| Some(pool.cluster.as_str()) == config.cluster.get().map(ClusterName::as_str))
    {
        if let Some(check) = without_capacity(config, pool, here) {
            checks.iter_mut().filter(|other| other.name == check.name).for_each(|other| *other = check.clone());
        }
    }
    token::judge(config, here, checks).await
}

/// A pool whose capacity is not known has no quota. The first report of its nodes brings both, so this says only that none was sent yet.
fn without_capacity(config: &Config, pool: &PoolSummary, here: Option<&Gpus>) -> Option<Check> {
    let model = GpuModel::parse(&pool.gpu_model).ok()?;
    let is_reported = config.reporting && here?.contains_key(&model);
    if !is_reported || pool.stage.is_some() || !pool.no_quota.as_ref()?.contains(NO_CAPACITY) {
        return None;
    }
    let found =
        "there is none before the first report of the nodes, which headroom-slurm run sends: its capacity is not known";
    Some(Check::warn(format!("quota {}", pool.id), found, "start headroom-slurm run; the quota follows within minutes"))
}

#[cfg(test)]
mod tests;
