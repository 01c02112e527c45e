//! GPUs of pods that are not there yet, by what their template asks for.

use super::{Key, Ledger, Request, Sum, asked, name_of};
use crate::claims::requests::Estimate;
use crate::cluster::slim::Pod;
use std::collections::{BTreeMap, BTreeSet};
use vocab::GpuModel;

/// Claims and extended resources that a template of pods asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimAsk {
    /// Templates of claims, by name: each pod gets a claim of its own.
    templates: Vec<String>,
    /// Claims, by name: the pods share them.
    claims: BTreeSet<String>,
    /// Extended resources of each pod but for the one that is counted anyway.
    asked: BTreeMap<String, u32>,
}

impl ClaimAsk {
    /// Of the pod that a template makes.
    #[must_use]
    pub fn of(pod: &Pod, counted_resource: &str) -> Self {
        let named = &pod.spec.resource_claims;
        let shared = |named: &crate::cluster::slim::PodClaim| named.resource_claim_name.clone();
        let own = |named: &crate::cluster::slim::PodClaim| match &named.resource_claim_name {
            Some(_) => None,
            None => named.resource_claim_template_name.clone(),
        };
        Self {
            templates: named.iter().filter_map(own).collect(),
            claims: named.iter().filter_map(shared).collect(),
            asked: asked(pod, counted_resource),
        }
    }
}

/// GPUs that the claims of pods ask for, in thousandths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedGpus {
    /// Of each pod.
    pub each_milli: u64,
    /// Of all pods together, by the claim that they share.
    pub shared_milli: BTreeMap<String, u64>,
    /// GPU model, where classes, devices or nodes tell one.
    pub model: Option<GpuModel>,
    /// Kind and name of what does not exist: its GPUs are not known.
    pub missing: Vec<String>,
}

/// Counts what pods that are not there yet ask for. An estimate is made once in its life, which is one round.
pub struct Planner<'a> {
    ledger: &'a Ledger,
    estimates: BTreeMap<Request, Estimate>,
}

impl<'a> Planner<'a> {
    /// On what a ledger knows now.
    #[must_use]
    pub const fn new(ledger: &'a Ledger) -> Self {
        Self { ledger, estimates: BTreeMap::new() }
    }

    /// GPUs by claims of pods of a namespace; none where claims are not counted.
    pub fn gpus_of(&mut self, namespace: &str, ask: &ClaimAsk) -> AskedGpus {
        let (ledger, mut gpus, mut each) = (self.ledger, AskedGpus::default(), Sum::default());
        if !ledger.is_on {
            return gpus;
        }
        let key = |name: &String| (namespace.to_owned(), name.clone());
        for request in ledger.by_class(&ask.asked) {
            self.ask(&mut each, &request);
        }
        for name in &ask.templates {
            match ledger.templates.get(&key(name)) {
                Some(requests) => requests.iter().for_each(|request| self.ask(&mut each, request)),
                None => gpus.missing.push(format!("ResourceClaimTemplate {name}")),
            }
        }
        gpus.model = each.model;
        gpus.each_milli = each.milli;
        for name in &ask.claims {
            match self.shared(&key(name)) {
                Some(sum) => {
                    gpus.shared_milli.insert(name.clone(), sum.milli);
                    gpus.model = gpus.model.or(sum.model);
                }
                None => gpus.missing.push(format!("ResourceClaim {name}")),
            }
        }
        gpus
    }

    /// A claim that exists: its devices, or else what it asks for.
    fn shared(&mut self, key: &Key) -> Option<Sum> {
        let ledger = self.ledger;
        let claim = ledger.claims.get(key).filter(|claim| !claim.is_gone)?;
        let mut sum = Sum::default();
        match &claim.devices {
            Some(devices) => {
                for has in devices {
                    let node = ledger.inventory.device(&name_of(has)).and_then(|device| device.node.as_ref());
                    let model = node.and_then(|node| ledger.model_on(node));
                    sum.add(ledger.held_milli(has, claim), model.as_ref());
                }
            }
            None => claim.requests.iter().for_each(|request| self.ask(&mut sum, request)),
        }
        Some(sum)
    }

    fn ask(&mut self, sum: &mut Sum, request: &Request) {
        let known = self.estimates.entry(request.clone()).or_insert_with(|| self.ledger.estimate_of(request));
        sum.add(known.gpus_milli, known.model.as_ref());
    }
}

impl Ledger {
    /// Requests of the classes whose extended resources are asked for.
    pub(super) fn by_class(&self, asked: &BTreeMap<String, u32>) -> Vec<Request> {
        if asked.is_empty() {
            return Vec::new();
        }
        let named = self.inventory.resources();
        named
            .filter_map(|(resource, class)| Some(Request::of_class(class, u64::from(*asked.get(&resource)?))))
            .collect()
    }
}
