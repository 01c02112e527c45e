//! What is published beside what holds pods to it: a quota that is published twice, and spot pods that nothing holds to any.

use super::Check;
use super::api::Api;
use crate::config::Config;
use crate::view::View;
use crate::view::facts::{Life, PodFacts};
use std::collections::BTreeSet;
use vocab::{MilliGpus, TaskClass};

/// Namespaces that are named one by one.
const SHOWN: usize = 3;

/// Warnings of quotas that together hold spot to more than Headroom's.
pub async fn of(api: &Api, config: &Config, view: &View) -> Vec<Check> {
    let mut checks: Vec<Check> = twice(config).into_iter().collect();
    // The admission check counts every promise of a pool, wherever its pod is; a ResourceQuota is asked by nobody before.
    if config.publishes() && (config.resource_quota || !config.admission_check) {
        checks.extend(governed(api, config).await.and_then(|governed| outside(view, &governed)));
    }
    checks
}

fn twice(config: &Config) -> Option<Check> {
    let found = "each publishes the whole quota: spot pods in namespaces with a share come on top of those that Kueue admits elsewhere";
    let fix = "set resource_quota = false, or kueue = \"off\"";
    (config.kueue.is_on() && config.resource_quota).then(|| Check::warn("kueue beside resource_quota", found, fix))
}

/// Namespaces with a share or with a `LocalQueue`; none where it is not known.
async fn governed(api: &Api, config: &Config) -> Option<BTreeSet<String>> {
    let shares = config.resource_quota_shares.0.keys().filter(|_| config.resource_quota);
    let mut governed: BTreeSet<String> = shares.cloned().collect();
    if config.kueue.is_on() {
        // No mode needs that: who has no right to it gets no warning.
        let queues = api.list("/apis/kueue.x-k8s.io/v1beta2/localqueues").await.ok()?;
        let namespaces = queues.iter().filter_map(|queue| queue["metadata"]["namespace"].as_str());
        governed.extend(namespaces.map(str::to_owned));
    }
    Some(governed)
}

/// Spot pods that hold GPUs elsewhere. Those of classes at will are promised nothing, and are left out.
fn outside(view: &View, governed: &BTreeSet<String>) -> Option<Check> {
    let is_outside = |pod: &&PodFacts| {
        pod.class == TaskClass::Spot
            && pod.life == Life::Runs
            && !pod.is_at_will
            && pod.amount() > MilliGpus::ZERO
            && !governed.contains(&pod.namespace)
    };
    let pods: Vec<&PodFacts> = view.pods().values().filter(is_outside).collect();
    let gpus = pods.iter().fold(MilliGpus::ZERO, |sum, pod| sum.saturating_add(pod.amount()));
    let namespaces: BTreeSet<&str> = pods.iter().map(|pod| pod.namespace.as_str()).collect();
    let shown: Vec<&str> = namespaces.iter().take(SHOWN).copied().collect();
    let found = format!(
        "{} {} on top of the published quota, in namespaces without a LocalQueue or a share: {}{}",
        vocab::count(pods.len(), "spot pod").verb("holds", "hold"),
        vocab::gpus(gpus.as_gpus()),
        shown.join(", "),
        if namespaces.len() > SHOWN { ", …" } else { "" }
    );
    let fix = "give these namespaces a LocalQueue or a share, or switch admission_check on, which counts every promise";
    (!pods.is_empty()).then(|| Check::warn("spot outside of the quota", found, fix))
}
