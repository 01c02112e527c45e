//! The same numbers, counted from a drawn world by plain loops: no objects, no expressions, and no code of what is tested.

use super::world::{Device, Kind, Pod, Request, World};
use std::collections::{BTreeMap, BTreeSet};

/// Thousandths of a GPU that a device is.
fn part(kind: Kind) -> u64 {
    match kind {
        Kind::Whole | Kind::All | Kind::Shared(_) => 1_000,
        Kind::Part(memory, multiprocessors) => (memory * 1_000).div_ceil(8).max((multiprocessors * 1_000).div_ceil(14)),
        Kind::Nic => 0,
    }
}

fn is_of(class: &str, device: &Device, world: &World) -> bool {
    match (class, device.kind) {
        ("nic", kind) => kind == Kind::Nic,
        (_, Kind::Nic) => false,
        ("mig", kind) => matches!(kind, Kind::Part(..)),
        ("gpu", kind) => !matches!(kind, Kind::Part(..)),
        _ => world.nodes[device.node].product == "H100",
    }
}

/// Thousandths of one matching device that a request takes; none where it does not match.
fn taken(request: &Request, device: &Device) -> Option<u64> {
    if let Some(wanted) = request.multiprocessors {
        let Kind::Part(_, has) = device.kind else { return None };
        if has != wanted {
            return None;
        }
    }
    let whole = part(device.kind);
    let Some(gib) = request.memory else {
        let default = match device.kind {
            Kind::Shared(1) => 20,
            Kind::Shared(2 | 3) => 10,
            _ => return Some(whole),
        };
        return Some(default * 1_000 / 80);
    };
    match device.kind {
        // Parts state no memory as a capacity.
        Kind::Part(..) | Kind::All | Kind::Nic => None,
        Kind::Whole => (gib <= 80).then_some(1_000),
        Kind::Shared(rule) => {
            let gib = match rule {
                0 | 1 => gib,
                2 => {
                    let mut step = 10;
                    while step < gib {
                        step += 5;
                    }
                    step
                }
                _ => *[10, 20, 80].iter().find(|value| **value >= gib)?,
            };
            let most = if rule == 2 { 40 } else { 80 };
            (gib <= most).then(|| (gib * 1_000).div_ceil(80))
        }
    }
}

pub fn is_held(device: usize, world: &World) -> bool {
    world.claims.iter().flat_map(|claim| claim.devices.iter().flatten()).any(|(held, _)| *held == device)
}

/// Whether a taint keeps claims off.
fn is_off(device: &Device, world: &World) -> bool {
    let rule = world.rules.iter().any(|(of, effect)| *of == device.node && *effect == "NoSchedule");
    rule || matches!(device.taint, Some("NoSchedule" | "NoExecute"))
}

/// GPUs of each node that has some, with its GPU model.
pub fn nodes(world: &World) -> BTreeMap<usize, (u64, Option<&'static str>)> {
    let mut found = BTreeMap::new();
    for (at, node) in world.nodes.iter().enumerate() {
        let mut gpus = BTreeSet::new();
        for (number, device) in world.devices.iter().enumerate() {
            if device.node == at && device.kind != Kind::Nic && (!is_off(device, world) || is_held(number, world)) {
                gpus.insert(device.gpu);
            }
        }
        let count = node.plugin_gpus.max(gpus.len() as u64);
        if count > 0 {
            found.insert(at, (count, model(at, world)));
        }
    }
    found
}

/// The model of its label, or, where a device of the class with a model is there, that.
fn model(node: usize, world: &World) -> Option<&'static str> {
    let known = &world.nodes[node];
    let has_h100 = world.devices.iter().any(|device| device.node == node && is_of("h100", device, world));
    if known.has_label { Some(known.product) } else { has_h100.then_some("H100") }
}

/// GPUs of a request that has no devices yet, and their model.
fn asked(request: &Request, world: &World) -> (u64, Option<&'static str>) {
    if request.looks_only || request.class == "nic" {
        return (0, None);
    }
    let (mut most, mut models, mut sums) = (None, BTreeSet::new(), BTreeMap::<usize, (u64, BTreeSet<usize>)>::new());
    let mut tainted = BTreeSet::new();
    for device in world.devices.iter().filter(|device| is_of(request.class, device, world)) {
        let Some(taken) = taken(request, device) else { continue };
        most = most.max(Some(taken));
        models.insert(model(device.node, world));
        let sum = sums.entry(device.node).or_default();
        sum.0 += taken;
        sum.1.insert(device.gpu);
        if is_off(device, world) && !request.tolerates {
            tainted.insert(device.node);
        }
    }
    // A node with a device that it may not have does not take it, but where all have one.
    if sums.keys().any(|node| !tainted.contains(node)) {
        sums.retain(|node, _| !tainted.contains(node));
    }
    let gpus = match request.count {
        Some(count) => count * most.unwrap_or(1_000),
        None => sums.values().map(|(sum, gpus)| (*sum).min(1_000 * gpus.len() as u64)).max().unwrap_or(1_000),
    };
    let only = if models.len() == 1 { models.first().copied().flatten() } else { None };
    (gpus, if request.class == "h100" { Some("H100") } else { only })
}

fn held(claim: usize, world: &World) -> u64 {
    let of_r0 = &world.claims[claim].requests[0];
    let devices = world.claims[claim].devices.iter().flatten();
    devices
        .map(|(device, gib)| match world.devices.get(*device) {
            None => {
                if of_r0.class == "nic" {
                    0
                } else {
                    1_000
                }
            }
            Some(known) => match known.kind {
                Kind::Shared(_) => (gib * 1_000).div_ceil(80).min(1_000),
                kind => part(kind),
            },
        })
        .sum()
}

fn uses(pod: &Pod, claim: usize) -> bool {
    pod.claims.contains(&claim) || pod.templates.iter().any(|(_, made)| *made == Some(claim))
}

/// The pod that a claim counts with: of those that use it the one that has its node, then the first, then the lowest number.
fn counts_with(claim: usize, world: &World) -> Option<usize> {
    let users = world.pods.iter().enumerate().filter(|(_, pod)| uses(pod, claim) && !pod.has_ended);
    users.min_by_key(|(at, pod)| (pod.node.is_none(), pod.since, *at)).map(|(at, _)| at)
}

/// Thousandths of a GPU by model and whether they are of HP. `pools` are those that have ever had a GPU.
pub fn demand(world: &World, pools: &BTreeSet<&str>) -> BTreeMap<(String, bool), u64> {
    let nodes = nodes(world);
    let mut found = BTreeMap::new();
    for (at, pod) in world.pods.iter().enumerate().filter(|(_, pod)| !pod.has_ended) {
        let (mut gpus, mut wanted) = (pod.plugin_gpus * 1_000, pod.selects);
        let mut add = |(more, model): (u64, Option<&'static str>)| {
            gpus += more;
            if more > 0 && wanted.is_none() {
                wanted = model;
            }
        };
        if pod.parts > 0 {
            let (class, count) = ("mig", Some(pod.parts));
            add(asked(
                &Request { class, count, multiprocessors: None, memory: None, looks_only: false, tolerates: false },
                world,
            ));
        }
        for (template, made) in &pod.templates {
            if made.is_none() {
                world.templates[*template].iter().for_each(|request| add(asked(request, world)));
            }
        }
        let mut claims: Vec<usize> =
            pod.claims.iter().copied().chain(pod.templates.iter().filter_map(|(_, made)| *made)).collect();
        claims.sort_by_key(|claim| format!("c{claim}"));
        claims.dedup();
        for claim in claims.into_iter().filter(|claim| counts_with(*claim, world) == Some(at)) {
            if world.claims[claim].devices.is_some() {
                add((held(claim, world), None));
            } else {
                world.claims[claim].requests.iter().for_each(|request| add(asked(request, world)));
            }
        }
        let here = pod.node.and_then(|node| nodes.get(&node)).and_then(|(_, model)| *model);
        let only = if pools.len() == 1 { pools.first().copied() } else { None };
        let model = here.or(wanted).or(only).filter(|model| pools.contains(model));
        if let Some(model) = model.filter(|_| gpus > 0) {
            *found.entry((model.to_owned(), pod.is_hp)).or_insert(0) += gpus;
        }
    }
    found
}
