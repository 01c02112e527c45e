//! Pods and nodes as watches report them, with what claims and devices add.

use super::View;
use super::facts::{FactFault, Life, NodeFacts, PodFacts, Uid};
use crate::claims::{Key, Planner};
use crate::cluster::dra::{ClaimSpec, ClaimStatus, ClassSpec, SliceSpec, TaintRuleSpec};
use crate::cluster::slim::{Node, Pod};
use crate::gangs::named_gangs;
use std::collections::BTreeSet;
use vocab::{MilliGpus, NodeId, UnixSeconds};

/// Knowledge of a pod after it was seen.
#[derive(Debug, Clone)]
pub struct SeenPod {
    /// Its UID.
    pub uid: Uid,
    /// With its GPUs, where it is counted.
    pub facts: Option<PodFacts>,
    /// Its statements that make no sense.
    pub faults: Vec<FactFault>,
}

/// A change of an object of `resource.k8s.io`: it is there or has changed, or, without content, it has gone.
#[derive(Debug, Clone)]
pub enum ClaimChange {
    /// A ResourceSlice, by its name.
    Slice(String, Option<Box<SliceSpec>>),
    /// A DeviceClass, by its name.
    Class(String, Option<ClassSpec>),
    /// A DeviceTaintRule, by its name.
    Rule(String, Option<TaintRuleSpec>),
    /// A ResourceClaim.
    Claim(Key, Option<(ClaimSpec, ClaimStatus)>),
    /// A ResourceClaimTemplate.
    Template(Key, Option<ClaimSpec>),
}

impl View {
    /// A pod is there, or has changed. `None` where it asks for no GPUs.
    ///
    /// # Errors
    /// Its GPUs or names cannot be read: nothing changes.
    pub fn see_pod(&mut self, pod: &Pod, now: UnixSeconds) -> Result<Option<SeenPod>, FactFault> {
        let resource = self.reading.gpu_resource.clone();
        let has_claims = self.claims.concerns(pod, &resource);
        let has_gang = self.reading.gangs && !named_gangs(pod).is_empty();
        let read = PodFacts::read_claiming(pod, &self.reading, has_claims || has_gang)?;
        let Some((facts, faults)) = read else { return Ok(None) };
        let uid = facts.uid;
        let counted = if !has_claims || facts.life == Life::Ended {
            self.claims.remove_pod(uid);
            let counted = self.last_counted(facts);
            self.count(counted.clone(), now);
            Some(counted).filter(|facts| facts.amount() > MilliGpus::ZERO)
        } else {
            self.claims.set_pod(pod, facts, &resource);
            None
        };
        self.settle_claims(false, now);
        self.settle_gangs(now);
        Ok(Some(SeenPod { uid, facts: counted.or_else(|| self.pods.get(&uid).cloned()), faults }))
    }

    /// A pod that asks for no GPUs is one of its gang, and nothing else.
    fn count(&mut self, facts: PodFacts, now: UnixSeconds) {
        if facts.amount() > MilliGpus::ZERO || self.pods.contains_key(&facts.uid) {
            self.count_pod(facts, now);
        } else {
            self.ganged.gangs.set_pod(&facts);
        }
    }

    /// A pod that has ended had what it was counted with.
    fn last_counted(&self, facts: PodFacts) -> PodFacts {
        match self.pods.get(&facts.uid) {
            Some(known) if facts.life == Life::Ended => {
                PodFacts { gpus: known.gpus, share_milli: known.share_milli, ..facts }
            }
            _ => facts,
        }
    }

    /// A pod is gone; `last` is its last state in the API. Answers its facts, where it asked for GPUs.
    pub fn see_no_pod(&mut self, uid: Uid, last: &Pod, now: UnixSeconds) -> Option<PodFacts> {
        let has_claims = self.claims.knows(uid);
        let read = PodFacts::read_claiming(last, &self.reading, has_claims).ok().flatten();
        let facts = read.map(|(facts, _)| facts);
        self.claims.remove_pod(uid);
        self.remove_pod(uid, facts.as_ref(), now);
        self.leave_gang(uid);
        self.settle_claims(false, now);
        self.settle_gangs(now);
        facts
    }

    /// A list of all pods is complete: others have gone.
    pub fn see_all_pods(&mut self, seen: &BTreeSet<Uid>, now: UnixSeconds) {
        self.claims.keep_pods(seen);
        self.ganged.gangs.keep_pods(seen);
        self.keep_pods(seen, now);
        self.settle_claims(true, now);
        self.settle_gangs(now);
    }

    /// Pods that are not among these have gone during a gap of the watch.
    fn keep_pods(&mut self, seen: &BTreeSet<Uid>, now: UnixSeconds) {
        let gone: Vec<Uid> = self.pods.keys().filter(|uid| !seen.contains(uid)).copied().collect();
        for uid in gone {
            self.remove_pod(uid, None, now);
            self.leave_gang(uid);
        }
    }

    /// As [`keep_pods`](Self::keep_pods).
    fn keep_nodes(&mut self, seen: &BTreeSet<NodeId>, now: UnixSeconds) {
        let gone: Vec<NodeId> = self.nodes.keys().filter(|node| !seen.contains(*node)).cloned().collect();
        for node in gone {
            self.remove_node(&node, now);
        }
    }

    /// A node is there, or has changed. Answers whether it has GPUs.
    ///
    /// # Errors
    /// Its GPUs or names cannot be read: nothing changes.
    pub fn see_node(&mut self, node: &Node, now: UnixSeconds) -> Result<Option<NodeId>, FactFault> {
        let read = NodeFacts::read_any(node, &self.reading)?;
        let Some((facts, has_model)) = read else {
            // Its GPUs have gone, as a driver that is restarted takes them: pods that hold some are still there.
            if let Some(id) = node.metadata.name.as_deref().and_then(|name| NodeId::parse(name).ok()) {
                self.remove_node(&id, now);
            }
            return Ok(None);
        };
        let id = facts.node.clone();
        if self.claims.is_on() {
            self.claims.set_node(&id, Some((facts, has_model)));
            self.settle_claims(false, now);
        } else {
            self.set_node(facts, now);
        }
        Ok(Some(id))
    }

    /// A node has gone.
    pub fn see_no_node(&mut self, node: &NodeId, now: UnixSeconds) {
        self.claims.set_node(node, None);
        self.remove_node(node, now);
        self.settle_claims(false, now);
    }

    /// A list of all nodes is complete: others have gone.
    pub fn see_all_nodes(&mut self, seen: &BTreeSet<NodeId>, now: UnixSeconds) {
        self.claims.keep_nodes(seen);
        self.keep_nodes(seen, now);
        self.settle_claims(true, now);
    }

    /// An object of `resource.k8s.io` is there, has changed, or has gone. It counts with the next [`settle_claims`](Self::settle_claims).
    ///
    /// # Errors
    /// The selectors of a class are not understood: none of its devices count.
    pub fn see_claims(&mut self, change: ClaimChange) -> Result<(), String> {
        let ledger = &mut self.claims;
        match change {
            ClaimChange::Slice(name, spec) => {
                let nodes = ledger.inventory.set_slice(&name, spec.map(|spec| *spec));
                ledger.touch(nodes);
            }
            ClaimChange::Class(name, spec) => {
                let nodes = ledger.inventory.set_class(&name, spec.as_ref());
                let (nodes, fault) = match nodes {
                    Ok(nodes) => (nodes, None),
                    Err(fault) => (ledger.inventory.nodes(), Some(fault)),
                };
                ledger.touch(nodes);
                return fault.map_or(Ok(()), Err);
            }
            ClaimChange::Rule(name, spec) => {
                let nodes = ledger.inventory.set_rule(&name, spec.as_ref());
                ledger.touch(nodes);
            }
            ClaimChange::Claim(key, now_is) => {
                ledger.set_claim(&key, now_is.as_ref().map(|(spec, status)| (spec, status)));
            }
            ClaimChange::Template(key, spec) => ledger.set_template(&key, spec.as_ref()),
        }
        Ok(())
    }

    /// Counts what claims and devices have changed; `at_once` also what rests on devices that changed in the last seconds.
    pub fn settle_claims(&mut self, at_once: bool, now: UnixSeconds) {
        if !self.claims.is_on() {
            return;
        }
        for node in self.claims.take_nodes() {
            match self.claims.node(&node) {
                Some(facts) => self.set_node(facts, now),
                None => self.remove_node(&node, now),
            }
        }
        for (uid, facts) in self.claims.take_pods(at_once, now) {
            if let Some(facts) = facts {
                self.count_pod(facts, now);
            } else {
                // It shares the claim of another pod, or its claim is not known yet: it has not ended.
                self.unsettle(uid, now);
                self.pods.remove(&uid);
            }
        }
    }

    /// Claims and templates that a pod names and that do not exist.
    #[must_use]
    pub fn missing_claims(&self, uid: Uid) -> Vec<String> {
        self.claims.missing_of(uid)
    }

    /// The priority class that the cluster gives pods that name none, as far as it is known.
    #[must_use]
    pub fn default_class(&self) -> Option<&str> {
        self.default_class.as_deref()
    }

    /// The default class of the cluster is this one now.
    pub fn set_default_class(&mut self, class: Option<String>) {
        self.default_class = class;
    }

    /// Counts the claims of pods that are not there yet.
    #[must_use]
    pub const fn planner(&self) -> Planner<'_> {
        Planner::new(&self.claims)
    }

    /// Devices of GPU classes that belong to no node, and so to no pool.
    #[must_use]
    pub fn devices_without_node(&self) -> usize {
        self.claims.inventory.without_node()
    }
}
