//! Claims and the pods that use them: whose GPUs a claim is counted as, and how many.
//!
//! A claim that several pods share is counted with one of them, the first that got its node. The special claim that the scheduler
//! makes for an extended resource is named by no pod, and so is not counted: the pod's request is.

mod planned;

pub use planned::{ClaimAsk, Planner};

use super::devices::{DeviceName, Inventory};
use super::requests::{Estimate, Request, estimate};
use crate::cluster::dra::{AllocatedDevice, ClaimSpec, ClaimStatus};
use crate::cluster::slim::Pod;
use crate::view::facts::{Life, NodeFacts, PodFacts, Uid, gpus_of_pod};
use compact_str::CompactString;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{GpuModel, NodeId, UnixSeconds};

/// Namespace and name.
pub type Key = (String, String);

/// Estimates are made again so long after devices have changed: a driver that is rolled out changes those of each node.
const ESTIMATES_LAST_S: i64 = 5;

/// A claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Claim {
    requests: Vec<Request>,
    /// Devices, once it has some.
    devices: Option<Vec<AllocatedDevice>>,
    /// It was deleted, and pods that name it are still there.
    is_gone: bool,
}

/// A pod that asks by claims, or by an extended resource of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claimant {
    /// With the GPUs that it asks for by the resource of the settings.
    facts: PodFacts,
    /// Other extended resources: whether they are of a class is known once the class is.
    asked: BTreeMap<String, u32>,
    claims: BTreeSet<Key>,
    /// Templates of claims that are not made yet.
    templates: Vec<Key>,
}

/// A node as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodeBase {
    facts: NodeFacts,
    has_model: bool,
}

/// Claims, their pods, and devices.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    is_on: bool,
    /// Devices.
    pub inventory: Inventory,
    nodes: BTreeMap<NodeId, NodeBase>,
    claims: BTreeMap<Key, Claim>,
    templates: BTreeMap<Key, Vec<Request>>,
    pods: BTreeMap<Uid, Claimant>,
    users: BTreeMap<Key, BTreeSet<Uid>>,
    holders: BTreeMap<DeviceName, BTreeSet<Key>>,
    estimates: BTreeMap<Request, Estimate>,
    /// Versions of the inventory and of its taints on which they rest, and since when it is so.
    estimated: ((u64, u64), Option<UnixSeconds>),
    /// Rises with each change of a node's GPU model.
    models_version: u64,
    dirty_pods: BTreeSet<Uid>,
    dirty_nodes: BTreeSet<NodeId>,
}

/// GPUs of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sum {
    milli: u64,
    model: Option<GpuModel>,
}

impl Sum {
    fn add(&mut self, gpus_milli: u64, model: Option<&GpuModel>) {
        self.milli = self.milli.saturating_add(gpus_milli);
        if gpus_milli > 0 && self.model.is_none() {
            self.model = model.cloned();
        }
    }
}

impl Ledger {
    /// Of the classes of the settings; without one it stays empty.
    #[must_use]
    pub fn new(classes: &BTreeMap<String, Option<GpuModel>>) -> Self {
        Self { is_on: !classes.is_empty(), inventory: Inventory::new(classes), ..Self::default() }
    }

    /// Whether claims are counted.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether a pod asks for anything that is counted here.
    #[must_use]
    pub fn concerns(&self, pod: &Pod, counted_resource: &str) -> bool {
        self.is_on && (!pod.spec.resource_claims.is_empty() || !asked(pod, counted_resource).is_empty())
    }

    /// Whether it knows a pod.
    #[must_use]
    pub fn knows(&self, uid: Uid) -> bool {
        self.pods.contains_key(&uid)
    }

    /// A pod that is concerned is there, or has changed. `facts` are without its claims.
    pub fn set_pod(&mut self, pod: &Pod, facts: PodFacts, counted_resource: &str) {
        let uid = facts.uid;
        let own = |name: &str| (facts.namespace.clone(), name.to_owned());
        let (mut claims, mut templates) = (BTreeSet::new(), Vec::new());
        for named in &pod.spec.resource_claims {
            let made = pod.status.resource_claim_statuses.iter().find(|one| one.name == named.name);
            if let Some(claim) = &named.resource_claim_name {
                claims.insert(own(claim));
            } else if let Some(made) = made {
                claims.extend(made.resource_claim_name.as_deref().map(own));
            } else {
                templates.extend(named.resource_claim_template_name.as_deref().map(own));
            }
        }
        let claimant = Claimant { facts, asked: asked(pod, counted_resource), claims, templates };
        if self.pods.get(&uid) == Some(&claimant) {
            return;
        }
        self.remove_pod(uid);
        for claim in &claimant.claims {
            self.users.entry(claim.clone()).or_default().insert(uid);
        }
        self.dirty(claimant.claims.iter());
        self.dirty_pods.insert(uid);
        self.pods.insert(uid, claimant);
    }

    fn dirty<'a>(&mut self, claims: impl Iterator<Item = &'a Key>) {
        for claim in claims {
            self.dirty_pods.extend(self.users.get(claim).into_iter().flatten());
        }
    }

    /// A pod has gone, has ended, or asks for nothing any more.
    pub fn remove_pod(&mut self, uid: Uid) {
        let Some(gone) = self.pods.remove(&uid) else { return };
        self.dirty_pods.remove(&uid);
        self.dirty(gone.claims.iter());
        self.dirty_pods.remove(&uid);
        for claim in &gone.claims {
            let is_unused = self.users.get_mut(claim).is_some_and(|users| {
                users.remove(&uid);
                users.is_empty()
            });
            if is_unused {
                self.users.remove(claim);
                if self.claims.get(claim).is_some_and(|claim| claim.is_gone) {
                    self.claims.remove(claim);
                }
            }
        }
    }

    /// Pods that are not among these have gone.
    pub fn keep_pods(&mut self, seen: &BTreeSet<Uid>) {
        let gone: Vec<Uid> = self.pods.keys().filter(|uid| !seen.contains(uid)).copied().collect();
        for uid in gone {
            self.remove_pod(uid);
        }
    }

    /// A claim is there, has changed, or has gone. It stays with pods that name it, since they and it end in any order.
    pub fn set_claim(&mut self, key: &Key, now_is: Option<(&ClaimSpec, &ClaimStatus)>) {
        let before = self.claims.get(key).cloned().unwrap_or_default();
        let claim = match now_is {
            Some((spec, status)) => Claim {
                requests: Request::of_claim(spec),
                devices: status.allocation.as_ref().map(|has| has.devices.results.clone()),
                is_gone: false,
            },
            None => Claim { is_gone: true, ..before.clone() },
        };
        self.hold(key, &before, false);
        if !claim.is_gone {
            self.hold(key, &claim, true);
        }
        if claim.is_gone && !self.users.contains_key(key) {
            self.claims.remove(key);
        } else {
            self.claims.insert(key.clone(), claim);
        }
        self.dirty([key].into_iter());
    }

    fn hold(&mut self, key: &Key, claim: &Claim, holds: bool) {
        for has in claim.devices.iter().flatten().filter(|has| !has.admin_access) {
            let device = name_of(has);
            // A tainted device counts while it is held.
            if self.inventory.is_tainted(&device) {
                self.dirty_nodes.extend(self.inventory.device(&device).and_then(|device| device.node.clone()));
            }
            if holds {
                self.holders.entry(device).or_default().insert(key.clone());
            } else if self.holders.get_mut(&device).is_some_and(|holders| {
                holders.remove(key);
                holders.is_empty()
            }) {
                self.holders.remove(&device);
            }
        }
    }

    /// A template is there, has changed, or has gone.
    pub fn set_template(&mut self, key: &Key, spec: Option<&ClaimSpec>) {
        match spec {
            Some(spec) => self.templates.insert(key.clone(), Request::of_claim(spec)),
            None => self.templates.remove(key),
        };
        let waits = self.pods.iter().filter(|(_, pod)| pod.templates.contains(key)).map(|(uid, _)| *uid);
        self.dirty_pods.extend(waits);
    }

    /// Nodes of which the GPUs may have changed.
    pub fn touch(&mut self, nodes: BTreeSet<NodeId>) {
        self.dirty_nodes.extend(nodes);
    }

    /// A node is there, has changed, or has gone. `facts` are without its devices.
    pub fn set_node(&mut self, node: &NodeId, facts: Option<(NodeFacts, bool)>) {
        let model = |base: Option<&NodeBase>| base.and_then(|base| base.facts.gpu_model.clone());
        let before = model(self.nodes.get(node));
        match facts {
            Some((facts, has_model)) => self.nodes.insert(node.clone(), NodeBase { facts, has_model }),
            None => self.nodes.remove(node),
        };
        self.models_version += u64::from(before != model(self.nodes.get(node)));
        self.dirty_nodes.insert(node.clone());
    }

    /// Nodes that are not among these have gone.
    pub fn keep_nodes(&mut self, seen: &BTreeSet<NodeId>) {
        let gone: Vec<NodeId> = self.nodes.keys().filter(|node| !seen.contains(*node)).cloned().collect();
        for node in gone {
            self.set_node(&node, None);
        }
    }

    /// A node with its devices; `None` where it has no GPUs. One that has a device plugin beside a driver counts the larger number: both
    /// are of the same GPUs.
    #[must_use]
    pub fn node(&self, node: &NodeId) -> Option<NodeFacts> {
        let base = self.nodes.get(node)?;
        let devices = self.inventory.gpus_of(node, |device| self.holders.contains_key(device));
        let gpus = base.facts.gpus.max(devices);
        let stated = if base.has_model { None } else { self.inventory.model_of(node) };
        let gpu_model = stated.or_else(|| base.facts.gpu_model.clone());
        (gpus > 0).then(|| NodeFacts { gpu_model, gpus, ..base.facts.clone() })
    }

    /// Nodes that may have changed since the last call.
    pub fn take_nodes(&mut self) -> BTreeSet<NodeId> {
        std::mem::take(&mut self.dirty_nodes)
    }

    /// Pods that may have changed since the last call, with their GPUs; `None` of one that is not counted.
    pub fn take_pods(&mut self, at_once: bool, now: UnixSeconds) -> Vec<(Uid, Option<PodFacts>)> {
        self.renew_estimates(at_once, now);
        let dirty = std::mem::take(&mut self.dirty_pods);
        dirty.into_iter().map(|uid| (uid, self.counted(uid))).collect()
    }

    fn renew_estimates(&mut self, at_once: bool, now: UnixSeconds) {
        let version = self.inventory.version() + self.models_version;
        let rests_on_taints = self.estimates.keys().any(Request::is_for_all);
        let (of, at) = self.estimated;
        let taints_version = if rests_on_taints { self.inventory.taints_version() } else { of.1 };
        let version = (version, taints_version);
        if of == version || !at_once && at.is_some_and(|at| now.since_s(at) < ESTIMATES_LAST_S) {
            return;
        }
        self.estimates.clear();
        self.estimated = (version, Some(now));
        self.dirty_pods.extend(self.pods.keys());
    }

    fn counted(&mut self, uid: Uid) -> Option<PodFacts> {
        let claimant = self.pods.get(&uid)?.clone();
        let mut sum = Sum { milli: u64::from(claimant.facts.gpus) * 1_000, model: claimant.facts.gpu_model.clone() };
        for request in self.by_class(&claimant.asked) {
            self.ask(&mut sum, &request);
        }
        for template in &claimant.templates {
            for request in self.templates.get(template).cloned().unwrap_or_default() {
                self.ask(&mut sum, &request);
            }
        }
        for key in &claimant.claims {
            let Some(claim) = self.claims.get(key).filter(|_| self.carrier(key) == Some(uid)).cloned() else {
                continue;
            };
            match &claim.devices {
                Some(devices) => devices.iter().for_each(|has| sum.add(self.held_milli(has, &claim), None)),
                None => claim.requests.iter().for_each(|request| self.ask(&mut sum, request)),
            }
        }
        let (gpus, share_milli) = (sum.milli / 1_000, (sum.milli % 1_000) as u16);
        let gpus = u32::try_from(gpus).unwrap_or(u32::MAX);
        (sum.milli > 0).then_some(PodFacts { gpus, share_milli, gpu_model: sum.model, ..claimant.facts })
    }

    fn ask(&mut self, sum: &mut Sum, request: &Request) {
        let estimated = self.estimated(request);
        sum.add(estimated.gpus_milli, estimated.model.as_ref());
    }

    /// GPUs of a request, as far as devices tell now.
    fn estimated(&mut self, request: &Request) -> Estimate {
        if let Some(known) = self.estimates.get(request) {
            return known.clone();
        }
        let made = self.estimate_of(request);
        self.estimates.insert(request.clone(), made.clone());
        made
    }

    fn estimate_of(&self, request: &Request) -> Estimate {
        estimate(&self.inventory, request, |node| self.model_on(node))
    }

    fn model_on(&self, node: &NodeId) -> Option<GpuModel> {
        let base = self.nodes.get(node)?;
        let stated = if base.has_model { None } else { self.inventory.model_of(node) };
        stated.or_else(|| base.facts.gpu_model.clone())
    }

    /// GPUs of templates of claims, for pods that are not there yet, in thousandths, with their model.
    pub fn of_template(&mut self, template: &Key) -> (u64, Option<GpuModel>) {
        let mut sum = Sum::default();
        for request in self.templates.get(template).cloned().unwrap_or_default() {
            self.ask(&mut sum, &request);
        }
        (sum.milli, sum.model)
    }

    /// Claims and templates that a pod names and that do not exist: what they ask for is not known.
    #[must_use]
    pub fn missing_of(&self, uid: Uid) -> Vec<String> {
        let Some(pod) = self.pods.get(&uid) else { return Vec::new() };
        let templates = pod.templates.iter().filter(|key| !self.templates.contains_key(*key));
        let claims = pod.claims.iter().filter(|key| self.claims.get(*key).is_none_or(|claim| claim.is_gone));
        let of = |kind: &str, (_, name): &Key| format!("{kind} {name}");
        let templates = templates.map(|key| of("ResourceClaimTemplate", key));
        templates.chain(claims.map(|key| of("ResourceClaim", key))).collect()
    }

    /// Thousandths of a GPU that an allocated device, or a share of one, is.
    fn held_milli(&self, has: &AllocatedDevice, claim: &Claim) -> u64 {
        if has.admin_access {
            return 0;
        }
        let name = name_of(has);
        if let Some(device) = self.inventory.gpu_device(&name) {
            return (device.gpus_milli() * device.capacities.consumed_milli(&has.consumed_capacity)).div_ceil(1_000);
        }
        // Its slice has gone, or was not seen yet: what its class says.
        let asked = has.request.split('/').next().unwrap_or_default();
        let is_gpu = claim.requests.iter().any(|one| one.name == asked && self.inventory.has_class(&one.class));
        if is_gpu && self.inventory.device(&name).is_none() { 1_000 } else { 0 }
    }

    /// The pod that a claim is counted with.
    fn carrier(&self, claim: &Key) -> Option<Uid> {
        let users = self.users.get(claim)?.iter().filter_map(|uid| self.pods.get(uid));
        users.map(|pod| &pod.facts).min_by_key(|pod| (pod.life != Life::Runs, pod.since(), pod.uid)).map(|pod| pod.uid)
    }
}

fn name_of(has: &AllocatedDevice) -> DeviceName {
    DeviceName { pool: (has.driver.clone(), has.pool.clone()), device: has.device.clone() }
}

/// Extended resources that a pod asks for, but for the one that is counted anyway. An amount that makes no sense counts as none.
fn asked(pod: &Pod, counted_resource: &str) -> BTreeMap<String, u32> {
    let all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let named = all.flat_map(|one| one.resources.requests.keys().chain(one.resources.limits.keys()));
    let extended: BTreeSet<&str> =
        named.map(CompactString::as_str).filter(|name| name.contains('/') && *name != counted_resource).collect();
    let amount = |name: &str| gpus_of_pod(pod, "", name).unwrap_or(0);
    extended.into_iter().map(|name| (name.to_owned(), amount(name))).filter(|(_, amount)| *amount > 0).collect()
}
