//! Nodes by the order of GFS Algorithm 1, kept while tasks come and go: the best node that fits is found without a look at
//! the others.

use super::node::NodeState;
use super::request::{GpuRequest, PodRequest};
use crate::topology::Alignment;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use vocab::TaskClass;

/// Idle GPUs of a node over all of them, ordered by the quotient: the fullest node first (Score 1, Eq. 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Idle {
    gpus: u8,
    of: u8,
}

impl Idle {
    fn same_quotient(self, other: Self) -> Ordering {
        // A node without GPUs is as full as can be.
        (u16::from(self.gpus) * u16::from(other.of.max(1))).cmp(&(u16::from(other.gpus) * u16::from(self.of.max(1))))
    }
}

impl Ord for Idle {
    fn cmp(&self, other: &Self) -> Ordering {
        self.same_quotient(*other).then(self.of.cmp(&other.of))
    }
}

impl PartialOrd for Idle {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Place of a node among those with as many idle GPUs: Score 2 (Eq. 14), Score 3 (Eq. 16), then its number.
///
/// HP goes where HP is, then where evictions were; spot goes where spot is, then where they were not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    alike: Reverse<u32>,
    evictions: i64,
    node: u32,
}

/// The first key: the GPUs that could be had by any eviction, or else the idle ones; then the idle ones.
type Lead = (Idle, Idle);

/// Nodes that are equally full; those with a shared GPU that has room once more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Bucket {
    all: BTreeSet<Place>,
    shared: BTreeSet<Place>,
}

/// The key of a node's place, so that it can be found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// By class.
    leads: [Lead; 2],
    places: [Place; 2],
    is_shared: bool,
    /// GPUs without HP work: the most that the node has for HP by any eviction.
    without_hp: u8,
}

/// Nodes by their state, in the order of Algorithm 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// By class.
    buckets: [BTreeMap<Lead, Bucket>; 2],
    /// Nodes by their GPUs without HP.
    without_hp: Rows,
    /// Nodes by their idle GPUs.
    idle: Rows,
}

/// Nodes by a number of GPUs; no row is empty.
type Rows = BTreeMap<u8, BTreeSet<u32>>;

fn enter(rows: &mut Rows, gpus: u8, node: u32) {
    rows.entry(gpus).or_default().insert(node);
}

fn leave(rows: &mut Rows, gpus: u8, node: u32) {
    if let Some(row) = rows.get_mut(&gpus) {
        let was_there = row.remove(&node);
        debug_assert!(was_there, "node {node} is not in the row of {gpus} GPUs");
        if row.is_empty() {
            rows.remove(&gpus);
        }
    }
}

/// Whether so many pods of so many whole GPUs could fit, CPU and memory aside.
fn suffices(rows: &Rows, gpus: u16, pods: u32) -> bool {
    let pods_of = |have: u8| u64::from(u16::from(have).checked_div(gpus).unwrap_or(u16::MAX));
    rows.iter().map(|(have, row)| pods_of(*have).saturating_mul(row.len() as u64)).fold(0, u64::saturating_add)
        >= u64::from(pods)
}

const fn number(class: TaskClass) -> usize {
    match class {
        TaskClass::Hp => 0,
        TaskClass::Spot => 1,
    }
}

impl Key {
    /// `weight` is what evictions count on this node, no more than the breaker's limit; `is_apart` says that HP looks first for
    /// nodes with few GPUs without HP.
    pub fn of(node: &NodeState, number: u32, weight: u32, is_apart: bool) -> Self {
        let of = node.gpus.len() as u8;
        let idle = Idle { gpus: node.idle, of };
        let weight = i64::from(weight);
        let hp = Place { alike: Reverse(node.hp_milli), evictions: -weight, node: number };
        let spot = Place { alike: Reverse(node.spot_milli), evictions: weight, node: number };
        let without_hp = node.gpus.iter().filter(|gpu| gpu.hp == 0).count() as u8;
        let lead = if is_apart { Idle { gpus: without_hp, of } } else { idle };
        let is_shared = node.largest_part() > 0;
        debug_assert!(node.idle <= without_hp, "an idle GPU of {} has HP work", node.id);
        debug_assert!(without_hp <= of, "{} has more GPUs without HP than GPUs", node.id);
        Self { leads: [(lead, idle), (idle, idle)], places: [hp, spot], is_shared, without_hp }
    }

    /// Which node comes first.
    pub fn order(&self, other: &Self, class: TaskClass) -> Ordering {
        let class = number(class);
        in_order((self.leads[class], &self.places[class]), (other.leads[class], &other.places[class]))
    }
}

impl Index {
    /// Adds a node.
    pub fn insert(&mut self, key: Key) {
        debug_assert_eq!(key.places[0].node, key.places[1].node, "a key is of one node");
        enter(&mut self.without_hp, key.without_hp, key.places[0].node);
        enter(&mut self.idle, key.leads[1].1.gpus, key.places[0].node);
        for (buckets, (lead, place)) in self.buckets.iter_mut().zip(key.leads.into_iter().zip(key.places)) {
            let bucket = buckets.entry(lead).or_default();
            let is_new = bucket.all.insert(place);
            debug_assert!(is_new, "node {} is in the index twice", place.node);
            if key.is_shared {
                bucket.shared.insert(place);
            }
        }
    }

    /// Removes a node.
    pub fn remove(&mut self, key: Key) {
        for (buckets, (lead, place)) in self.buckets.iter_mut().zip(key.leads.into_iter().zip(key.places)) {
            let Some(bucket) = buckets.get_mut(&lead) else { continue };
            let was_there = bucket.all.remove(&place);
            debug_assert!(was_there, "node {} leaves the index under another key than it came", place.node);
            bucket.shared.remove(&place);
            if bucket.all.is_empty() {
                buckets.remove(&lead);
            }
        }
        leave(&mut self.without_hp, key.without_hp, key.places[0].node);
        leave(&mut self.idle, key.leads[1].1.gpus, key.places[0].node);
    }

    /// Whether whole GPUs of the pool could hold all pods of a gang: idle ones, or all that HP does not have. Where not, no
    /// search is needed.
    pub fn could_hold(&self, gpus: GpuRequest, pods: u32, by_eviction: bool) -> bool {
        match gpus {
            GpuRequest::Whole(gpus) => suffices(if by_eviction { &self.without_hp } else { &self.idle }, gpus, pods),
            GpuRequest::Share(_) => true,
        }
    }

    /// Nodes by the GPUs that a class could have there in the end: those without HP, or the idle ones. Most first, then by
    /// their numbers.
    pub fn rows(&self, class: TaskClass) -> impl Iterator<Item = (u8, &BTreeSet<u32>)> {
        let rows = match class {
            TaskClass::Hp => &self.without_hp,
            TaskClass::Spot => &self.idle,
        };
        rows.iter().rev().map(|(gpus, row)| (*gpus, row))
    }

    /// The best node by `best` on which whole GPUs of a pod are idle, and of equal ones the first of Algorithm 1. Nodes for
    /// which it has no entry for are left out; once one is as good as can be, only those that are as full are read.
    pub fn first_by<'n>(
        &self,
        nodes: &'n [NodeState],
        pod: &PodRequest,
        class: TaskClass,
        breaker: u32,
        mut best: impl FnMut(&'n NodeState) -> Option<Alignment>,
    ) -> Option<usize> {
        let GpuRequest::Whole(gpus) = pod.gpus else { return None };
        let mut found: Option<(Alignment, Lead, Place)> = None;
        for (lead, bucket) in &self.buckets[number(class)] {
            let is_done = |(alignment, first, _): &(Alignment, Lead, Place)| {
                alignment.is_aligned() && first.0.same_quotient(lead.0).is_ne()
            };
            if found.as_ref().is_some_and(is_done) {
                break;
            }
            if u16::from(lead.1.gpus) < gpus {
                continue;
            }
            for place in &bucket.all {
                let node = &nodes[place.node as usize];
                let is_broken = class == TaskClass::Spot && place.evictions >= i64::from(breaker);
                if is_broken || !node.takes(pod) || !node.has_room_beside_gpus(pod) {
                    continue;
                }
                let Some(alignment) = best(node) else { continue };
                let is_better = found.is_none_or(|(other, first, of)| {
                    alignment.cmp(&other).then_with(|| in_order((*lead, place), (first, &of))).is_lt()
                });
                if is_better {
                    found = Some((alignment, *lead, *place));
                }
                if alignment.is_aligned() {
                    // Those after it in the bucket come later.
                    break;
                }
            }
        }
        found.map(|(.., place)| place.node as usize)
    }

    /// The first node of Algorithm 1 on which a pod fits. Spot leaves out nodes whose evictions weigh `breaker` or more
    /// (Eq. 16: Score 3 is zero there).
    pub fn first(&self, nodes: &[NodeState], pod: &PodRequest, class: TaskClass, breaker: u32) -> Option<usize> {
        let fits = |place: &&Place| {
            let node = &nodes[place.node as usize];
            let is_broken = class == TaskClass::Spot && place.evictions >= i64::from(breaker);
            let gpus_fit = match pod.gpus {
                GpuRequest::Whole(_) => true,
                GpuRequest::Share(milli) => node.idle > 0 || node.largest_part() >= milli,
            };
            node.takes(pod) && !is_broken && gpus_fit && node.has_room_beside_gpus(pod)
        };
        let mut best: Option<(Lead, Place)> = None;
        for (lead, bucket) in &self.buckets[number(class)] {
            if best.is_some_and(|(found, _)| found.0.same_quotient(lead.0).is_ne()) {
                break;
            }
            let of_kind = match pod.gpus {
                GpuRequest::Whole(gpus) if u16::from(lead.1.gpus) < gpus => continue,
                GpuRequest::Share(_) if lead.1.gpus == 0 => &bucket.shared,
                _ => &bucket.all,
            };
            let Some(place) = of_kind.iter().find(fits) else { continue };
            if best.is_none_or(|(found, other)| in_order((*lead, place), (found, &other)).is_lt()) {
                best = Some((*lead, *place));
            }
        }
        best.map(|(_, place)| place.node as usize)
    }
}

/// The lead, then the idle share; among nodes that are equally full, of any size: more of the same class for their size,
/// then as in a bucket.
fn in_order((here, place): (Lead, &Place), (there, other): (Lead, &Place)) -> Ordering {
    let alike = |place: &Place, of: u8| u64::from(place.alike.0) * u64::from(of.max(1));
    here.0
        .same_quotient(there.0)
        .then(here.1.same_quotient(there.1))
        .then(alike(other, here.1.of).cmp(&alike(place, there.1.of)))
        .then(place.evictions.cmp(&other.evictions))
        .then(place.node.cmp(&other.node))
}
