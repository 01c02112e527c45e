//! Devices of drivers as GPUs: which are GPUs, where they are, and which part of a GPU each is.
//!
//! A device that draws from shared counters is a part of the GPU that each set of counters stands for: as much of it as its largest
//! share of one counter. A device without counters is a GPU.

mod taints;

use super::milli;
use super::selectors::{Described, Selector};
use crate::claims::capacity::Capacities;
use crate::cluster::dra::{ClassSpec, Device as SlimDevice, SliceSpec, Taint};
use std::collections::{BTreeMap, BTreeSet};
use taints::{Rule, is_keeping_off};
use vocab::{GpuModel, NodeId};

/// Thousandths of one GPU.
pub const WHOLE_MILLI: u64 = 1_000;

/// Driver and pool.
pub type PoolName = (String, String);

/// Driver, pool and device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceName {
    /// Driver and pool.
    pub pool: PoolName,
    /// Device.
    pub device: String,
}

/// A GPU, by the device that is it, or by the set of counters that its parts draw from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gpu {
    name: String,
    has_counters: bool,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its node; none of one that a network attaches.
    pub node: Option<NodeId>,
    /// Parts of GPUs, in thousandths.
    pub draws: Vec<(Gpu, u64)>,
    /// Capacities.
    pub capacities: Capacities,
    described: Described,
    /// Taints that keep claims off.
    taints: Vec<Taint>,
}

impl Device {
    /// Thousandths of a GPU.
    #[must_use]
    pub fn gpus_milli(&self) -> u64 {
        self.draws.iter().map(|(_, milli)| milli).sum()
    }
}

/// A class of devices that the settings name.
#[derive(Debug, Clone)]
struct Class {
    /// GPU model of its devices, where the settings state it.
    model: Option<GpuModel>,
    /// None until the cluster has the class; of a class that is not understood, the reason.
    selectors: Option<Result<Vec<Selector>, String>>,
    /// As the class states them.
    expressions: Vec<String>,
    /// Extended resource.
    resource: Option<String>,
}

/// A slice as it is now.
#[derive(Debug, Clone)]
struct Slice {
    pool: PoolName,
    generation: i64,
    of: i64,
    spec: SliceSpec,
}

/// Known devices.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    classes: BTreeMap<String, Class>,
    slices: BTreeMap<String, Slice>,
    of_pool: BTreeMap<PoolName, BTreeSet<String>>,
    /// Devices of each pool as of its last complete generation.
    pools: BTreeMap<PoolName, BTreeMap<String, Device>>,
    /// Classes of each device that has one.
    members: BTreeMap<DeviceName, BTreeSet<String>>,
    by_node: BTreeMap<NodeId, BTreeSet<DeviceName>>,
    rules: BTreeMap<String, Rule>,
    /// Rises whenever something changes that estimates rest on.
    version: u64,
    /// Rises whenever taints change, on which estimates for all devices of a node rest.
    taints_version: u64,
}

impl Inventory {
    /// Empty, with the classes of the settings and the GPU models of their devices.
    #[must_use]
    pub fn new(classes: &BTreeMap<String, Option<GpuModel>>) -> Self {
        let class = |model: &Option<GpuModel>| Class {
            model: model.clone(),
            selectors: None,
            expressions: Vec::new(),
            resource: None,
        };
        let classes = classes.iter().map(|(name, model)| (name.clone(), class(model))).collect();
        Self { classes, ..Self::default() }
    }

    /// Whether the settings name a class.
    #[must_use]
    pub fn has_class(&self, class: &str) -> bool {
        self.classes.contains_key(class)
    }

    /// GPU model of a class, where the settings state it.
    #[must_use]
    pub fn model_of_class(&self, class: &str) -> Option<&GpuModel> {
        self.classes.get(class)?.model.as_ref()
    }

    /// Extended resources by which pods may ask for devices of classes, each with its class.
    pub fn resources(&self) -> impl Iterator<Item = (String, &str)> {
        self.classes.iter().flat_map(|(name, class)| {
            let implied = format!("deviceclass.resource.kubernetes.io/{name}");
            class.resource.clone().into_iter().chain([implied]).map(move |resource| (resource, name.as_str()))
        })
    }

    /// Changes with all that estimates rest on.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// A class is there, or has gone. Answers the nodes whose GPUs may have changed.
    ///
    /// # Errors
    /// Its selectors are not understood: it has no devices then.
    pub fn set_class(&mut self, name: &str, spec: Option<&ClassSpec>) -> Result<BTreeSet<NodeId>, String> {
        let Some(class) = self.classes.get_mut(name) else { return Ok(BTreeSet::new()) };
        let resource = spec.and_then(|spec| spec.extended_resource_name.clone());
        let stated = spec.map(|spec| spec.selectors.iter().map(|one| one.cel.expression.clone()).collect::<Vec<_>>());
        let expressions = stated.clone().unwrap_or_default();
        self.version += u64::from(class.resource != resource);
        class.resource = resource;
        if class.selectors.is_some() != stated.is_some() || class.expressions != expressions {
            class.selectors = spec.map(|spec| Selector::parse_all(&spec.selectors));
            class.expressions = expressions;
            self.version += 1;
            let names: Vec<DeviceName> = self.names().collect();
            for device in names {
                self.classify(device, &[name.to_owned()]);
            }
        }
        let fault = self.classes.get(name).and_then(|class| class.selectors.as_ref()?.as_ref().err().cloned());
        fault.map_or_else(|| Ok(self.nodes()), Err)
    }

    /// Nodes with devices.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        self.by_node.keys().cloned().collect()
    }

    fn names(&self) -> impl Iterator<Item = DeviceName> {
        self.pools.iter().flat_map(|(pool, devices)| {
            devices.keys().map(|device| DeviceName { pool: pool.clone(), device: device.clone() })
        })
    }

    /// Finds out which of these classes a device has.
    fn classify(&mut self, name: DeviceName, classes: &[String]) {
        let Some(device) = self.device(&name) else { return };
        let is_in = |class: &&String| match self.classes.get(*class).and_then(|class| class.selectors.as_ref()) {
            Some(Ok(selectors)) => selectors.iter().all(|selector| selector.matches(&device.described)),
            _ => false,
        };
        let found: BTreeSet<String> = classes.iter().filter(is_in).cloned().collect();
        let mut all = self.members.remove(&name).unwrap_or_default();
        all.retain(|class| !classes.contains(class));
        all.extend(found);
        if !all.is_empty() {
            self.members.insert(name, all);
        }
    }

    /// A device, by its name.
    #[must_use]
    pub fn device(&self, name: &DeviceName) -> Option<&Device> {
        self.pools.get(&name.pool)?.get(&name.device)
    }

    /// A device that is a GPU or a part of one: it has a class of the settings.
    #[must_use]
    pub fn gpu_device(&self, name: &DeviceName) -> Option<&Device> {
        self.members.contains_key(name).then(|| self.device(name)).flatten()
    }

    /// A slice is there, or has gone. Answers the nodes whose GPUs may have changed.
    pub fn set_slice(&mut self, name: &str, spec: Option<SliceSpec>) -> BTreeSet<NodeId> {
        let mut pools = BTreeSet::new();
        if let Some(before) = self.slices.remove(name) {
            if let Some(of_pool) = self.of_pool.get_mut(&before.pool) {
                of_pool.remove(name);
            }
            pools.insert(before.pool);
        }
        if let Some(spec) = spec {
            let pool = (spec.driver.clone(), spec.pool.name.clone());
            let (generation, of) = (spec.pool.generation, spec.pool.resource_slice_count);
            self.of_pool.entry(pool.clone()).or_default().insert(name.to_owned());
            self.slices.insert(name.to_owned(), Slice { pool: pool.clone(), generation, of, spec });
            pools.insert(pool);
        }
        pools.iter().flat_map(|pool| self.complete(pool)).collect()
    }

    /// Takes over the devices of a pool if all slices of its newest generation are there. Until then those before stay.
    fn complete(&mut self, pool: &PoolName) -> BTreeSet<NodeId> {
        let here: Vec<&Slice> =
            self.of_pool.get(pool).into_iter().flatten().filter_map(|name| self.slices.get(name)).collect();
        let newest = here.iter().map(|slice| slice.generation).max();
        let current: Vec<&Slice> = here.into_iter().filter(|slice| Some(slice.generation) == newest).collect();
        let is_whole = current.first().is_none_or(|first| first.of <= current.len() as i64);
        if !is_whole {
            return BTreeSet::new();
        }
        let counters = counters(&current);
        let mut devices = BTreeMap::new();
        for slice in &current {
            for device in &slice.spec.devices {
                devices.insert(device.name.clone(), read(device, &slice.spec, &counters));
            }
        }
        self.replace(pool, devices)
    }

    fn replace(&mut self, pool: &PoolName, devices: BTreeMap<String, Device>) -> BTreeSet<NodeId> {
        let before = self.pools.remove(pool).unwrap_or_default();
        if before == devices {
            self.pools.insert(pool.clone(), before);
            return BTreeSet::new();
        }
        let mut nodes = BTreeSet::new();
        for (device, facts) in &before {
            let name = DeviceName { pool: pool.clone(), device: device.clone() };
            self.members.remove(&name);
            if let Some(node) = &facts.node {
                nodes.insert(node.clone());
                if let Some(here) = self.by_node.get_mut(node) {
                    here.remove(&name);
                }
            }
        }
        let names: Vec<DeviceName> =
            devices.keys().map(|device| DeviceName { pool: pool.clone(), device: device.clone() }).collect();
        // Taints change often, and few estimates rest on them.
        let untainted = |devices: &BTreeMap<String, Device>| -> Vec<(String, Device)> {
            let without = |device: &Device| Device { taints: Vec::new(), ..device.clone() };
            devices.iter().map(|(name, device)| (name.clone(), without(device))).collect()
        };
        let is_same_but_for_taints = untainted(&before) == untainted(&devices);
        self.version += u64::from(!is_same_but_for_taints);
        self.taints_version += u64::from(is_same_but_for_taints);
        if !devices.is_empty() {
            self.pools.insert(pool.clone(), devices);
        }
        let classes: Vec<String> = self.classes.keys().cloned().collect();
        for name in names {
            if let Some(node) = self.device(&name).and_then(|device| device.node.clone()) {
                nodes.insert(node.clone());
                self.by_node.entry(node).or_default().insert(name.clone());
            }
            self.classify(name, &classes);
        }
        nodes
    }

    /// GPUs of a node: those of which at least one part may be had by a claim, or is held by one.
    pub fn gpus_of(&self, node: &NodeId, is_held: impl Fn(&DeviceName) -> bool) -> u32 {
        let mut gpus = BTreeSet::new();
        for name in self.by_node.get(node).into_iter().flatten() {
            let Some(device) = self.gpu_device(name) else { continue };
            if !self.is_tainted(name) || is_held(name) {
                gpus.extend(device.draws.iter().map(|(gpu, _)| (&name.pool, gpu)));
            }
        }
        u32::try_from(gpus.len()).unwrap_or(u32::MAX)
    }

    /// The GPU model that the classes of a node's devices state, if they state one.
    #[must_use]
    pub fn model_of(&self, node: &NodeId) -> Option<GpuModel> {
        let here = self.by_node.get(node)?.iter().filter_map(|name| self.members.get(name)).flatten();
        one(here.filter_map(|class| self.model_of_class(class)))
    }

    /// Devices of a class that selectors leave, with their names.
    pub fn matching<'a>(
        &'a self,
        class: &'a str,
        selectors: &'a [Selector],
    ) -> impl Iterator<Item = (&'a DeviceName, &'a Device)> {
        let of_class = self.members.iter().filter(move |(_, classes)| classes.contains(class));
        let devices = of_class.filter_map(|(name, _)| Some((name, self.device(name)?)));
        devices.filter(move |(_, device)| selectors.iter().all(|selector| selector.matches(&device.described)))
    }

    /// Devices of GPU classes that belong to no node: they are in no pool.
    #[must_use]
    pub fn without_node(&self) -> usize {
        self.members.keys().filter(|name| self.device(name).is_some_and(|device| device.node.is_none())).count()
    }
}

/// The one value that is there, if there is one.
pub fn one<'a, T: Ord + Clone + 'a>(mut values: impl Iterator<Item = &'a T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then(|| first.clone())
}

/// Amounts by set of counters and counter, in thousandths.
type Counters = BTreeMap<String, BTreeMap<String, u128>>;

fn counters(slices: &[&Slice]) -> Counters {
    let sets = slices.iter().flat_map(|slice| &slice.spec.shared_counters);
    let amounts = |counters: &BTreeMap<String, crate::cluster::dra::Amount>| {
        counters.iter().filter_map(|(name, amount)| Some((name.clone(), milli(&amount.value)?))).collect()
    };
    sets.map(|set| (set.name.clone(), amounts(&set.counters))).collect()
}

fn read(device: &SlimDevice, slice: &SliceSpec, counters: &Counters) -> Device {
    let body = device.body();
    let node = slice.node_name.as_ref().or(body.node_name.as_ref());
    let drawn = body.consumes_counters.iter().map(|draw| {
        let set = counters.get(&draw.counter_set);
        let share = |(name, amount): (&String, &crate::cluster::dra::Amount)| {
            let (drawn, all) = (milli(&amount.value)?, set?.get(name).copied().filter(|all| *all > 0)?);
            u64::try_from((drawn.saturating_mul(u128::from(WHOLE_MILLI))).div_ceil(all)).ok()
        };
        // Counters that are not there leave it a whole one.
        let share = draw.counters.iter().filter_map(share).max().unwrap_or(WHOLE_MILLI).min(WHOLE_MILLI);
        (Gpu { name: draw.counter_set.clone(), has_counters: true }, share)
    });
    let mut draws: Vec<(Gpu, u64)> = drawn.collect();
    if draws.is_empty() {
        draws.push((Gpu { name: device.name.clone(), has_counters: false }, WHOLE_MILLI));
    }
    Device {
        node: node.and_then(|node| NodeId::parse(node).ok()),
        draws,
        capacities: Capacities::read(body),
        described: Described::of(&slice.driver, device),
        taints: body.taints.iter().filter(|taint| is_keeping_off(&taint.effect)).cloned().collect(),
    }
}
