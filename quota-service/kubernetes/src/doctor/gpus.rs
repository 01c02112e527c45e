//! Nodes and pods: counted and left out.

use super::Check;
use super::api::Api;
use super::published;
use crate::cluster::served::ListFault;
use crate::cluster::slim::{Node, Pod};
use crate::config::Config;
use crate::show;
use crate::view::View;
use crate::view::facts::{FactFault, Life};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{GpuModel, MilliGpus, TaskClass};

/// Faults that are printed one by one.
const SHOWN: usize = 3;
/// How GPUs are cut up, by the label that the operator of NVIDIA sets.
const SHARING: &str = "nvidia.com/gpu.sharing-strategy";

/// GPUs that could be used, by model.
pub type Gpus = BTreeMap<GpuModel, u64>;

/// Checks of nodes and pods; the GPUs, if they could be read.
pub async fn of(api: &Api, config: &Config) -> (Vec<Check>, Option<Gpus>) {
    let now = connectors::clock::now();
    let show::Read { view, faults, uncounted } = match show::read_by(api.client(), config, now).await {
        Ok(read) => read,
        // Without a name of the cluster nothing is counted; `files` reports it.
        Err(show::ShowError::Cluster(_)) => return (Vec::new(), None),
        Err(fault) => {
            let fix = "let this identity list nodes and pods";
            return (vec![Check::fail("nodes", fault, fix)], None);
        }
    };
    let mut checks: Vec<Check> = uncounted.iter().map(uncounted_kind).collect();
    checks.extend(nodes(&view, config));
    checks.extend(added_up(&view, config));
    checks.extend(pods(&view));
    checks.extend(not_read(&faults));
    checks.extend(signs(api, config).await);
    checks.extend(published::of(api, config, &view).await);
    let gpus = view.pools().iter().map(|(model, pool)| (model.clone(), pool.allocatable_gpus())).collect();
    (checks, Some(gpus))
}

/// A kind of claims, or of gangs, that cannot be listed.
fn uncounted_kind(fault: &ListFault) -> Check {
    let (resource, dra) = (fault.resource(), ["deviceclasses", "devicetaintrules", "resourceslices"]);
    let is_of_claims = dra.contains(&resource) || resource.starts_with("resourceclaim");
    let (name, setting) = if is_of_claims { ("claims", "device_classes") } else { ("gangs", "gangs") };
    let fix = match fault {
        ListFault::Refused { .. } => format!("let this identity get, list and watch {resource}, or unset {setting}"),
        ListFault::Failed { .. } => "check that the API server answers".to_owned(),
    };
    Check::fail(name, format!("none is counted in the lines below: {fault}"), fix)
}

/// A `ResourceQuota` knows no GPU models: the quotas of all pools are one amount there.
fn added_up(view: &View, config: &Config) -> Option<Check> {
    let models: Vec<&str> = view.pools().keys().map(GpuModel::as_str).collect();
    if !config.resource_quota || models.len() < 2 {
        return None;
    }
    let found = format!(
        "a ResourceQuota counts GPUs of all models together ({}): pods of one model may take what the quota leaves of another, and its promises \
         are then not kept",
        models.join(", ")
    );
    let fix = "use Kueue, which counts each model for itself, or resource_quota where all nodes are of one model";
    Some(Check::warn("resource_quota", found, fix))
}

fn nodes(view: &View, config: &Config) -> Vec<Check> {
    const NAME: &str = "nodes";
    if view.nodes().is_empty() {
        let fix = "set gpu_resource, or install the device plugin";
        return vec![Check::fail(NAME, format!("no node has {}", config.gpu_resource), fix)];
    }
    let mut by_model: BTreeMap<&GpuModel, (usize, u64)> = BTreeMap::new();
    let mut unlabelled = Vec::new();
    for node in view.nodes().values() {
        match &node.gpu_model {
            None => unlabelled.push(node.node.as_str()),
            Some(model) => {
                let entry = by_model.entry(model).or_default();
                *entry = (entry.0 + 1, entry.1 + u64::from(node.gpus));
            }
        }
    }
    let counts: Vec<String> = by_model
        .iter()
        .map(|(model, (nodes, gpus))| format!("{gpus} {model} on {}", vocab::count(nodes, "node")))
        .collect();
    let mut checks = Vec::new();
    if !counts.is_empty() {
        checks.push(Check::ok(NAME, counts.join(", ")));
    }
    if !unlabelled.is_empty() {
        let shown: Vec<&str> = unlabelled.iter().take(SHOWN).copied().collect();
        let found = format!(
            "{} no label {}: {}",
            vocab::count(unlabelled.len(), "node").verb("with GPUs has", "with GPUs have"),
            config.gpu_model_label,
            shown.join(", ")
        );
        let fix = "label them (gpu-feature-discovery does), or set gpu_model_label or default_gpu_model";
        let name = "nodes without model";
        // Where no node has one, there is no pool at all.
        checks.push(if counts.is_empty() { Check::fail(name, found, fix) } else { Check::warn(name, found, fix) });
    }
    let lost = view.nodes().values().filter(|node| !node.is_ready).count();
    if lost > 0 {
        checks.push(Check::warn("nodes not ready", format!("{lost} of {}", view.nodes().len()), "kubectl get nodes"));
    }
    checks
}

fn pods(view: &View) -> Vec<Check> {
    let count = |class, life| view.pods().values().filter(|pod| pod.class == class && pod.life == life).count();
    let missing =
        view.pools().keys().map(|model| view.missing_gpus(model)).fold(MilliGpus::ZERO, MilliGpus::saturating_add);
    let missing = if missing == MilliGpus::ZERO {
        String::new()
    } else {
        format!(", gangs miss {}", vocab::gpus(missing.as_gpus()))
    };
    let found = format!(
        "HP: {} run, {} wait{missing}; spot: {} run, {} wait",
        count(TaskClass::Hp, Life::Runs),
        count(TaskClass::Hp, Life::Waits),
        count(TaskClass::Spot, Life::Runs),
        count(TaskClass::Spot, Life::Waits)
    );
    let mut checks = vec![Check::ok("pods", found)];
    if !view.without_model.is_empty() {
        let found = format!(
            "{} to no pool, for want of a GPU model",
            vocab::count(view.without_model.len(), "pod").verb("belongs", "belong")
        );
        let fix = "set default_gpu_model, or let them select by gpu_model_label";
        checks.push(Check::warn("pods without model", found, fix));
    }
    let named: BTreeSet<&str> = view.pods().values().filter_map(|pod| Some(pod.node.as_ref()?.as_str())).collect();
    let known: BTreeSet<&str> = view.nodes().keys().map(vocab::NodeId::as_str).collect();
    let strange: Vec<&str> = named.difference(&known).take(SHOWN).copied().collect();
    if !strange.is_empty() {
        let found = format!("pods with GPUs run on nodes that are not here, or have none: {}", strange.join(", "));
        let fix = "check that the kubeconfig belongs to one cluster, and check these nodes";
        checks.push(Check::warn("pods of other nodes", found, fix));
    }
    checks
}

/// One line for objects that do not count, and one for those that count without what cannot be read.
fn not_read(faults: &[FactFault]) -> Vec<Check> {
    let line = |name: &str, counts: bool| {
        let faults: Vec<&FactFault> = faults.iter().filter(|fault| fault.counts_anyway() == counts).collect();
        let shown: Vec<String> = faults.iter().take(SHOWN).map(ToString::to_string).collect();
        let more = if faults.len() > SHOWN { ", …" } else { "" };
        let (one, several) =
            if counts { ("counts, without what", "count, without what") } else { ("does not count", "do not count") };
        let found = format!(
            "{}{}: {}{more}",
            vocab::count(faults.len(), "object").verb(one, several),
            if counts { " cannot be read" } else { "" },
            shown.join("; ")
        );
        (!faults.is_empty())
            .then(|| Check::warn(name, found, "correct these objects; headroom-kubernetes show lists all"))
    };
    [line("not read", false), line("read in part", true)].into_iter().flatten().collect()
}

/// Signs of ways to share GPUs that are counted otherwise.
async fn signs(api: &Api, config: &Config) -> Vec<Check> {
    let mut signs: BTreeMap<&str, usize> = BTreeMap::new();
    let looked = show::each::<Node>(api.client(), "nodes", |node| {
        let labels = node.metadata.labels.as_ref();
        let sharing = labels.and_then(|labels| labels.get(SHARING)).map(String::as_str);
        if node.status.allocatable.keys().any(|name| name.starts_with("nvidia.com/mig-")) {
            *signs.entry("MIG: slices are resources of their own, and only gpu_resource is counted").or_default() += 1;
        }
        if matches!(sharing, Some("time-slicing" | "mps")) {
            *signs.entry("time slicing or MPS: each slice counts as a GPU").or_default() += 1;
        }
    });
    let mut checks = Vec::new();
    if looked.await.is_ok() {
        checks.extend(signs.into_iter().map(|(sign, nodes)| {
            let fix = format!(
                "leave such nodes out by their label, or set gpu_resource ({}) to what is handed out",
                config.gpu_resource
            );
            Check::warn("shared GPUs", format!("{} {sign}", vocab::count(nodes, "node").verb("has", "have")), fix)
        }));
    }
    if config.device_classes.0.is_empty() {
        checks.extend(claims(api).await);
    }
    checks
}

/// Devices that are claimed stand in no request of a pod.
async fn claims(api: &Api) -> Option<Check> {
    const NAME: &str = "claimed devices";
    match api.list("/apis/resource.k8s.io/v1/resourceclaims").await {
        Ok(claims) if claims.is_empty() => None,
        Ok(claims) => {
            let found = format!("{}: claimed GPUs (DRA) are not counted", vocab::count(claims.len(), "ResourceClaim"));
            Some(Check::warn(NAME, found, "set device_classes to the classes that are GPUs"))
        }
        // Objects that may not be read are not none, and pods say whether there are some that matter.
        Err(why) => Some(unread_claims(NAME, &why, pods_with_claims(api).await)),
    }
}

/// Pods that ask by claims; `None` where pods cannot be listed.
async fn pods_with_claims(api: &Api) -> Option<usize> {
    let mut count = 0;
    let looked = show::each::<Pod>(api.client(), "pods", |pod| {
        let is_over = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        count += usize::from(!is_over && !pod.spec.resource_claims.is_empty());
    });
    looked.await.is_ok().then_some(count)
}

/// The connector has no right to claims without `device_classes`: that matters to clusters with DRA alone.
fn unread_claims(name: &str, why: &str, pods: Option<usize>) -> Check {
    let asks = match pods {
        Some(0) => return Check::ok(name, "no pod asks by ResourceClaims (DRA)"),
        Some(pods) => format!("{} by ResourceClaims (DRA)", vocab::count(pods, "pod").verb("asks", "ask")),
        None => "pods may ask by ResourceClaims (DRA)".to_owned(),
    };
    Check::warn(
        name,
        format!("{asks}, and not known is whether for GPUs, which are not counted: {why}"),
        "set device_classes to the classes that are GPUs, where there are such; else run doctor as an administrator",
    )
}
