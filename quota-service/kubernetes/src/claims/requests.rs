//! GPUs that a claim asks for.

use super::devices::{Gpu, Inventory, PoolName, WHOLE_MILLI, one};
use super::milli;
use super::selectors::Selector;
use crate::cluster::dra::{ClaimSpec, ExactRequest, Toleration};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{GpuModel, NodeId};

/// A number of devices of a class, each with a capacity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Name, as allocations state it.
    pub name: String,
    /// Class.
    pub class: String,
    selectors: Vec<String>,
    /// `None` for all devices of a node.
    count: Option<u64>,
    looks_only: bool,
    capacity: BTreeMap<String, u128>,
    tolerations: Vec<Toleration>,
}

impl Request {
    /// Of a class, with a number of devices alone.
    #[must_use]
    pub fn of_class(class: &str, count: u64) -> Self {
        let (name, selectors, capacity, tolerations) = (String::new(), Vec::new(), BTreeMap::new(), Vec::new());
        Self { name, class: class.to_owned(), selectors, count: Some(count), looks_only: false, capacity, tolerations }
    }

    /// Whether it asks for all devices of a node.
    #[must_use]
    pub const fn is_for_all(&self) -> bool {
        self.count.is_none()
    }

    /// Requests of a claim; of alternatives the first one, which the scheduler tries first.
    #[must_use]
    pub fn of_claim(spec: &ClaimSpec) -> Vec<Self> {
        let read = spec.devices.requests.iter().map(|request| {
            let exact = request.exactly.as_ref().or_else(|| request.first_available.first());
            Self::read(&request.name, exact.unwrap_or(&request.inline))
        });
        read.collect()
    }

    fn read(name: &str, exact: &ExactRequest) -> Self {
        let is_all = exact.allocation_mode.as_deref() == Some("All");
        Self {
            name: name.to_owned(),
            class: exact.device_class_name.clone(),
            selectors: exact.selectors.iter().map(|selector| selector.cel.expression.clone()).collect(),
            count: (!is_all).then(|| exact.count.unwrap_or(1)),
            looks_only: exact.admin_access,
            capacity: exact
                .capacity
                .requests
                .iter()
                .filter_map(|(key, text)| Some((key.clone(), milli(text)?)))
                .collect(),
            tolerations: exact.tolerations.clone(),
        }
    }
}

/// GPUs that a request will get, as far as devices tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Thousandths of a GPU.
    pub gpus_milli: u64,
    /// GPU model: that of the class, or that of all nodes with devices that match.
    pub model: Option<GpuModel>,
}

/// Devices of one node that match.
#[derive(Default)]
struct OnNode<'a> {
    gpus_milli: u64,
    gpus: BTreeSet<(&'a PoolName, &'a Gpu)>,
    /// Whether a taint that is not tolerated is on one of them.
    keeps_off: bool,
}

/// GPUs that a request gets. Where devices of several sizes match it, the largest: demand that is too low breaks promises.
pub fn estimate(inventory: &Inventory, request: &Request, model_of: impl Fn(&NodeId) -> Option<GpuModel>) -> Estimate {
    if request.looks_only || !inventory.has_class(&request.class) {
        return Estimate::default();
    }
    // A selector that is not understood leaves all devices of the class.
    let selectors: Vec<Selector> = request.selectors.iter().filter_map(|text| Selector::parse(text).ok()).collect();
    let (mut largest, mut models) = (None, BTreeSet::new());
    let mut by_node: BTreeMap<&NodeId, OnNode<'_>> = BTreeMap::new();
    for (name, device) in inventory.matching(&request.class, &selectors) {
        let Some(share) = device.capacities.asked_milli(&request.capacity) else { continue };
        let gpus = (device.gpus_milli() * share).div_ceil(WHOLE_MILLI);
        largest = largest.max(Some(gpus));
        if let Some(node) = &device.node {
            models.insert(model_of(node));
            let here = by_node.entry(node).or_default();
            here.gpus_milli += gpus;
            here.keeps_off |= request.is_for_all() && inventory.keeps_off(name, &request.tolerations);
            here.gpus.extend(device.draws.iter().map(|(gpu, _)| (&name.pool, gpu)));
        }
    }
    let gpus_milli = if let Some(count) = request.count {
        count.saturating_mul(largest.unwrap_or(WHOLE_MILLI))
    } else {
        // Parts of one GPU exclude each other: no more than the GPUs of the node.
        let most = |here: &OnNode<'_>| here.gpus_milli.min(WHOLE_MILLI * here.gpus.len() as u64);
        // A claim for all is not allocated on a node that has a tainted device. Where every node has one it waits for the fullest.
        let open = by_node.values().filter(|here| !here.keeps_off).map(most).max();
        open.or_else(|| by_node.values().map(most).max()).unwrap_or(WHOLE_MILLI)
    };
    let stated = inventory.model_of_class(&request.class).cloned();
    Estimate { gpus_milli, model: stated.or_else(|| one(models.iter()).flatten()) }
}
