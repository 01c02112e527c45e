//! Headroom: whether it answers, knows this cluster, and has quotas for it.

use super::Check;
use super::gpus::Gpus;
use crate::config::Config;
use connectors::doctor::{Asker, headroom};
use std::collections::BTreeSet;
use wire::PoolList;

/// Pools and quotas that Headroom has for this cluster; `here` are the GPUs by the Kubernetes API.
pub async fn of(config: &Config, here: Option<&Gpus>) -> Vec<Check> {
    let asker = Asker {
        program: "headroom-kubernetes",
        cluster: config.cluster.get(),
        url: &config.headroom_url,
        model_setting: "gpu_model_label",
    };
    let (mut checks, list) = headroom(asker, crate::headroom::client(config), here).await;
    checks.extend(list.iter().flat_map(|list| flavors(config, list)));
    checks
}

/// Flavors of GPU models that no pool of the cluster has.
fn flavors(config: &Config, list: &PoolList) -> Vec<Check> {
    let cluster = config.cluster.get().map(vocab::ClusterName::as_str);
    let known = list.pools.iter().filter(|pool| Some(pool.cluster.as_str()) == cluster);
    let models: BTreeSet<&str> = known.map(|pool| pool.gpu_model.as_str()).collect();
    // Without any pool there is a check that fails already.
    let strange = config.flavors.0.iter().filter(|(_, model)| !models.is_empty() && !models.contains(model.as_str()));
    let check = |flavor: &String, model: &vocab::GpuModel| {
        let found = format!("Headroom has no pool of its GPU model {model}: its quota stays 0");
        Check::fail(format!("flavor {flavor}"), found, "correct flavors: FLAVOR=GPU_MODEL")
    };
    strange.map(|(flavor, model)| check(flavor, model)).collect()
}
