//! Pools, demand and guarantees as nodes and pods make them. Pure: time is passed in.
//!
//! A pool is the nodes of one GPU model, kept as a [`Fleet`] whose tasks are pods, named by their UIDs. The API does not
//! report which GPUs of a node a pod has: pods get the lowest idle numbers, which counts right and ignores topology.

mod claimed;
pub mod facts;
mod ganged;
mod large;
mod outcomes;
mod peaks;
mod pool;
mod sold;
#[cfg(test)]
pub(crate) mod tests;
mod uid;

pub use claimed::{ClaimChange, SeenPod};
pub use outcomes::{End, event_id};
pub use peaks::HourPeaks;
pub use pool::{PoolView, fits_a_fleet, gang_of, task_of};

use crate::claims::Ledger;
use facts::{Life, NodeFacts, PodFacts, Reading, Uid};
use ganged::Ganged;
use peaks::Level;
use placement::{Limit, Policy};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{
    ClusterName, GpuModel, MilliGpus, NodeId, Organization, Outcome, PoolId, PoolState, TaskClass, UnixSeconds,
    UsageRow,
};

/// Known state of the cluster.
#[derive(Debug, Clone)]
pub struct View {
    cluster: ClusterName,
    reading: Reading,
    policy: Policy,
    nodes: BTreeMap<NodeId, NodeFacts>,
    pods: BTreeMap<Uid, PodFacts>,
    /// The pool that each pod is counted in: which one it is may be another one later.
    counted: BTreeMap<Uid, GpuModel>,
    /// Pods whose node is not known, by the node that they name: it comes later, or has gone.
    homeless: BTreeMap<NodeId, BTreeSet<Uid>>,
    pools: BTreeMap<GpuModel, PoolView>,
    /// The pool that sold each promise that lasts: the node may say another model later, or be gone.
    sold: BTreeMap<Uid, GpuModel>,
    /// Pods that wait and belong to no pool, since they select no GPU model.
    pub without_model: BTreeSet<Uid>,
    demand: HourPeaks,
    /// Ended promises that are not reported yet.
    outcomes: Vec<Outcome>,
    /// GPUs that pods ask for by claims, and devices.
    claims: Ledger,
    ganged: Ganged,
    /// The priority class of pods that name none, where one is the default.
    default_class: Option<String>,
    /// Promised pods that had ended when they were first seen, until the view begins; `None` from then on.
    ended_before: Option<BTreeMap<Uid, PodFacts>>,
}

impl View {
    #[must_use]
    pub fn new(cluster: ClusterName, reading: Reading, policy: Policy) -> Self {
        Self {
            demand: HourPeaks::default(),
            claims: Ledger::new(&reading.device_classes),
            ganged: Ganged::default(),
            cluster,
            reading,
            policy,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            counted: BTreeMap::new(),
            homeless: BTreeMap::new(),
            pools: BTreeMap::new(),
            sold: BTreeMap::new(),
            without_model: BTreeSet::new(),
            outcomes: Vec::new(),
            default_class: None,
            ended_before: Some(BTreeMap::new()),
        }
    }

    #[must_use]
    pub const fn reading(&self) -> &Reading {
        &self.reading
    }

    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    #[must_use]
    pub const fn pools(&self) -> &BTreeMap<GpuModel, PoolView> {
        &self.pools
    }

    /// To plan on, which leaves it as it was.
    pub fn pool_mut(&mut self, model: &GpuModel) -> Option<&mut PoolView> {
        self.pools.get_mut(model)
    }

    #[must_use]
    pub const fn pods(&self) -> &BTreeMap<Uid, PodFacts> {
        &self.pods
    }

    #[must_use]
    pub fn pod(&self, uid: &Uid) -> Option<&PodFacts> {
        self.pods.get(uid)
    }

    #[must_use]
    pub const fn nodes(&self) -> &BTreeMap<NodeId, NodeFacts> {
        &self.nodes
    }

    /// The pool of a GPU model, as Headroom names it.
    #[must_use]
    pub fn pool_id(&self, model: &GpuModel) -> PoolId {
        PoolId { cluster: self.cluster.clone(), gpu_model: model.clone() }
    }

    /// The pool that a pod belongs to: that of its node; while it waits, that which it selects, or the default, or the only one.
    #[must_use]
    pub fn model_of(&self, pod: &PodFacts) -> Option<GpuModel> {
        let here = pod.node.as_ref().and_then(|node| self.nodes.get(node)?.gpu_model.clone());
        here.or_else(|| self.model_or_only(pod.gpu_model.as_ref()))
    }

    /// The pool of what is selected, or the default, or the only one.
    fn model_or_only(&self, selected: Option<&GpuModel>) -> Option<GpuModel> {
        let named = selected.cloned().or_else(|| self.reading.default_gpu_model.clone());
        named.or_else(|| match self.pools.keys().collect::<Vec<_>>().as_slice() {
            [only] => Some((*only).clone()),
            _ => None,
        })
    }

    /// A node is there, or has changed.
    pub fn set_node(&mut self, facts: NodeFacts, now: UnixSeconds) {
        let node = facts.node.clone();
        if self.nodes.get(&node) == Some(&facts) {
            return;
        }
        self.note_emptied_on(&facts);
        let before = self.nodes.get(&node);
        let is_alike = before.is_some_and(|before| before.gpus == facts.gpus && before.gpu_model == facts.gpu_model);
        if is_alike && before.is_some_and(|before| before.topology == facts.topology) {
            if let Some(pool) = facts.gpu_model.as_ref().and_then(|model| self.pools.get_mut(model)) {
                pool.open(&facts);
            }
            self.nodes.insert(node, facts);
            return;
        }
        let here = self.lift(&node, now);
        if let Some(model) = facts.gpu_model.clone() {
            let is_new = !self.pools.contains_key(&model);
            let policy = self.policy;
            self.pools.entry(model.clone()).or_insert_with(|| PoolView::new(&policy)).add(&facts);
            self.nodes.insert(node, facts);
            if is_new {
                self.demand.know_pool(model);
                self.settle_open(now);
            }
        } else {
            self.nodes.insert(node, facts);
        }
        for uid in here {
            self.settle(uid, now);
        }
    }

    /// A node has gone. Its pods go with it when the API says so.
    pub fn remove_node(&mut self, node: &NodeId, now: UnixSeconds) {
        let here = self.lift(node, now);
        self.nodes.remove(node);
        for uid in here {
            self.settle(uid, now);
        }
    }

    /// Takes a node out of its pool; answers the pods that name it.
    fn lift(&mut self, node: &NodeId, now: UnixSeconds) -> BTreeSet<Uid> {
        let mut here = self.homeless.get(node).cloned().unwrap_or_default();
        here.extend(self.pools.values().flat_map(|pool| pool.on(node)));
        for uid in &here {
            self.unsettle(*uid, now);
        }
        for pool in self.pools.values_mut() {
            pool.remove(node);
        }
        here
    }

    /// A pod that asks for GPUs is there, or has changed. Answers whether it got its node with that.
    pub fn set_pod(&mut self, mut facts: PodFacts, now: UnixSeconds) -> bool {
        let uid = facts.uid;
        self.note_emptied(&mut facts);
        let before = self.pods.get(&uid);
        if before == Some(&facts) {
            return false;
        }
        let was = before.map(|before| before.life);
        if was == Some(Life::Runs) && facts.life == Life::Ended {
            self.ended(uid, Some(&facts), now);
        }
        self.unsettle(uid, now);
        if facts.life == Life::Ended {
            if was.is_none() {
                self.note_ended(&facts);
            }
            self.forget(uid);
            return false;
        }
        let is_bound = facts.life == Life::Runs && was != Some(Life::Runs);
        if is_bound {
            self.tell_old_promise(&facts, now);
        }
        self.pods.insert(uid, facts);
        self.settle(uid, now);
        is_bound
    }

    /// A pod is gone; `last` is its last state in the API, if known.
    pub fn remove_pod(&mut self, uid: Uid, last: Option<&PodFacts>, now: UnixSeconds) {
        if self.pods.get(&uid).is_some_and(|pod| pod.life == Life::Runs) {
            self.ended(uid, last, now);
        }
        self.unsettle(uid, now);
        self.forget(uid);
    }

    /// Lets time pass: promises end, hours end, evictions stop to count.
    pub fn pass_to(&mut self, now: UnixSeconds) {
        self.settle_gangs(now);
        self.demand.pass_to(now);
        self.ganged.runs.pass_to(now);
        let models: Vec<GpuModel> = self.pools.keys().cloned().collect();
        for model in models {
            let id = self.pool_id(&model);
            let Some(pool) = self.pools.get_mut(&model) else { continue };
            for one in pool.take_kept(now) {
                let seller = self.sold.remove(&Uid::of(one.task.as_str())).filter(|seller| *seller != model);
                let id = seller.map_or_else(|| id.clone(), |seller| PoolId { gpu_model: seller, ..id.clone() });
                let (node, gpus) = one.place.unzip();
                self.outcomes.push(outcomes::kept(&id, &one.task, one.guarantee, gpus, node));
            }
        }
        self.keep_adrift(now);
    }

    /// A pool is new: pods that wait, or name a node that says no model, may belong to it.
    fn settle_open(&mut self, now: UnixSeconds) {
        let model_of_node = |pod: &PodFacts| self.nodes.get(pod.node.as_ref()?)?.gpu_model.clone();
        let open: Vec<Uid> = self.pods.values().filter(|pod| model_of_node(pod).is_none()).map(|pod| pod.uid).collect();
        for uid in open {
            self.unsettle(uid, now);
            self.settle(uid, now);
        }
    }

    /// Counts a pod where it belongs.
    fn settle(&mut self, uid: Uid, now: UnixSeconds) {
        let Some(pod) = self.pods.get(&uid).cloned() else { return };
        let model = self.model_of(&pod).filter(|model| self.pools.contains_key(model));
        // One that says no model may say one later.
        let has_pool = |node: &NodeId| self.nodes.get(node).is_some_and(|facts| facts.gpu_model.is_some());
        if let Some(node) = pod.node.as_ref().filter(|node| !has_pool(node)) {
            self.homeless.entry(node.clone()).or_default().insert(uid);
        }
        let Some(model) = model else {
            self.without_model.insert(uid);
            return;
        };
        if let Some(pool) = self.pools.get_mut(&model) {
            match &pod.node {
                Some(node) if self.nodes.contains_key(node) => pool.place(&pod, now),
                Some(_) => {}
                None => {
                    pool.waiting.insert(uid);
                }
            }
        }
        if pod.class == TaskClass::Hp {
            let level = Level { model: model.clone(), organization: pod.organization.clone() };
            self.demand.change(level, pod.amount(), true, now);
        }
        self.note_sold(&pod, &model, now);
        self.counted.insert(uid, model);
    }

    /// The reverse.
    fn unsettle(&mut self, uid: Uid, now: UnixSeconds) {
        let Some(pod) = self.pods.get(&uid).cloned() else { return };
        self.without_model.remove(&uid);
        if let Some(node) = &pod.node {
            let is_empty = self.homeless.get_mut(node).is_some_and(|here| {
                here.remove(&uid);
                here.is_empty()
            });
            if is_empty {
                self.homeless.remove(node);
            }
        }
        // A promise that ended since the last round was kept: a pod that comes back has none.
        self.keep_ended(&pod, now);
        let Some(model) = self.counted.remove(&uid) else { return };
        if let Some(pool) = self.pools.get_mut(&model) {
            pool.waiting.remove(&uid);
            pool.lift(&pod);
            // A pod that started before there was room has room now.
            let crowded: Vec<Uid> = pod.node.as_ref().map(|node| pool.crowded_on(node)).unwrap_or_default();
            for other in crowded.iter().filter_map(|other| self.pods.get(other)) {
                pool.place(other, now);
            }
        }
        if pod.class == TaskClass::Hp {
            let level = Level { model, organization: pod.organization.clone() };
            self.demand.change(level, pod.amount(), false, now);
        }
    }

    /// State of the pool for Headroom (`PUT /v1/pools/{id}/state`). `waits` is the longest that a spot pod waits for quota.
    #[must_use]
    pub fn state(&self, model: &GpuModel, waits_s: u64, now: UnixSeconds) -> Option<PoolState> {
        Some(self.pools.get(model)?.state(self.pool_id(model), waits_s, now))
    }

    /// l: the longest that a spot pod waits now because quota refuses it, though it would fit.
    pub fn longest_quota_wait_s(&mut self, model: &GpuModel, limits: &[Limit], now: UnixSeconds) -> u64 {
        let Some(pool) = self.pools.get_mut(model) else { return 0 };
        let waiting = pool.waiting.clone();
        let mut pods: Vec<&PodFacts> = waiting.iter().filter_map(|uid| self.pods.get(uid)).collect();
        pods.retain(|pod| pod.class == TaskClass::Spot && !pod.is_going);
        pods.sort_by_key(|pod| (pod.created, pod.uid));
        let refused = pods.into_iter().find(|pod| {
            let over = pod.guarantee.and_then(|hours| pool.over_quota(pod.amount(), hours, limits));
            over.is_some() && pool.fits(pod)
        });
        refused.map_or(0, |pod| u64::try_from(now.since_s(pod.created)).unwrap_or(0))
    }

    /// HP demand now.
    #[must_use]
    pub fn demand(&self, model: &GpuModel) -> BTreeMap<Organization, MilliGpus> {
        self.demand.now(model)
    }

    /// Takes the rows of hours that are over.
    pub fn take_rows(&mut self) -> Vec<UsageRow> {
        self.demand.take(&self.cluster)
    }

    /// Takes the promises that have ended.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        let outcomes = std::mem::take(&mut self.outcomes);
        self.ganged.runs.merge(outcomes, &self.ganged.gangs)
    }

    /// Puts unsent reports back.
    pub fn put_back(&mut self, rows: Vec<UsageRow>, outcomes: Vec<Outcome>) {
        self.demand.put_back(rows);
        self.outcomes.extend(outcomes);
    }

    /// Organizations that Headroom knows: an hour in which they ask for nothing is a zero, not a gap.
    pub fn know(&mut self, model: &GpuModel, organizations: impl IntoIterator<Item = Organization>) {
        for organization in organizations {
            self.demand.know(Level { model: model.clone(), organization });
        }
    }

    /// From now on nothing is missed. The hour that runs counts only if it began with that.
    pub fn begin(&mut self, now: UnixSeconds) {
        self.tell_ended(now);
        self.demand.begin(now);
    }

    /// Something may have been missed: the hour that runs does not count.
    pub fn missed(&mut self) {
        self.demand.missed();
    }
}
