//! Published quotas beside the pods that they hold: one that is published twice, spot pods that none holds, and quotas that are
//! published no more and still hold.

use super::api::Api;
use super::{Check, bypass};
use crate::config::Config;
use crate::publish::{AT_WILL_QUOTA, RESOURCE_QUOTA};
use crate::view::View;
use crate::view::facts::{Life, PodFacts, Uid};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{MilliGpus, TaskClass};

/// Namespaces that are named one by one.
const SHOWN: usize = 3;

/// Warnings of quotas that together hold spot to more than Headroom's.
pub async fn of(api: &Api, config: &Config, view: &View) -> Vec<Check> {
    let mut checks: Vec<Check> = twice(config).into_iter().collect();
    // The admission check counts every promise of a pool, wherever its pod is; a ResourceQuota is asked by nobody before.
    let is_asked_before = config.admission_check && !config.resource_quota;
    if config.publishes()
        && !is_asked_before
        && let Some(governed) = governed(api, config).await
    {
        checks.extend(outside(config, view, &governed));
        checks.extend(beside(api, config, view, &governed).await);
    }
    checks.extend(left(api, config).await);
    checks
}

/// `ResourceQuota`s of ours that no setting names any more: nobody raises them, and the API server goes on to refuse pods by them.
async fn left(api: &Api, config: &Config) -> Vec<Check> {
    let ours = "/api/v1/resourcequotas?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dheadroom";
    // Rights are those of namespaces with a share: who may list no others gets no warning.
    let Ok(quotas) = api.list(ours).await else { return Vec::new() };
    let is_written = |namespace: &str, name: &str| {
        let has_part = name == RESOURCE_QUOTA || config.is_apart();
        config.resource_quota && has_part && config.resource_quota_shares.0.contains_key(namespace)
    };
    let named = quotas.iter().filter_map(|quota| {
        let (namespace, name) = (quota["metadata"]["namespace"].as_str()?, quota["metadata"]["name"].as_str()?);
        let is_left = [RESOURCE_QUOTA, AT_WILL_QUOTA].contains(&name) && !is_written(namespace, name);
        is_left.then(|| {
            let found = "no setting names it any more, so nobody renews it, and new spot pods beyond it are refused";
            let fix = format!(
                "kubectl --namespace {namespace} delete resourcequota {name}, unless another release writes it"
            );
            Check::warn(format!("resourcequota {namespace}/{name}"), found, fix)
        })
    });
    named.collect()
}

fn twice(config: &Config) -> Option<Check> {
    let found = "each publishes the whole quota: spot pods in namespaces with a share come on top of those that Kueue admits elsewhere";
    let fix = "set resource_quota = false, or kueue = \"off\"";
    (config.kueue.is_on() && config.resource_quota).then(|| Check::warn("kueue beside resource_quota", found, fix))
}

/// Spot pods that pass Kueue by where it has a `LocalQueue`; a share holds every pod of its namespace.
async fn beside(api: &Api, config: &Config, view: &View, governed: &BTreeSet<String>) -> Option<Check> {
    if !config.kueue.is_on() {
        return None;
    }
    let has_share =
        |namespace: &String| config.resource_quota && config.resource_quota_shares.0.contains_key(namespace);
    let is_queued = |pod: &&PodFacts| governed.contains(&pod.namespace) && !has_share(&pod.namespace);
    let pods = view.pods().values().filter(|pod| holds_promised(pod)).filter(is_queued);
    let candidates: BTreeMap<Uid, &PodFacts> = pods.map(|pod| (pod.uid, pod)).collect();
    if candidates.is_empty() { None } else { bypass::of(api, &candidates, config.admission_check).await }
}

/// Whether it is a spot pod that holds GPUs. Those of classes at will are promised nothing, and are left out.
fn holds_promised(pod: &PodFacts) -> bool {
    pod.class == TaskClass::Spot && pod.life == Life::Runs && !pod.is_at_will && pod.amount() > MilliGpus::ZERO
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

/// Spot pods that hold GPUs elsewhere.
fn outside(config: &Config, view: &View, governed: &BTreeSet<String>) -> Option<Check> {
    let pods = view.pods().values().filter(|pod| holds_promised(pod));
    let pods: Vec<&PodFacts> = pods.filter(|pod| !governed.contains(&pod.namespace)).collect();
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
    // It counts every promise for Kueue; a ResourceQuota is asked by nobody.
    let fix = if config.admission_check {
        "give these namespaces a LocalQueue or a share"
    } else {
        "give these namespaces a LocalQueue or a share, or switch admission_check on, which counts every promise"
    };
    (!pods.is_empty()).then(|| Check::warn("spot outside of the quota", found, fix))
}
