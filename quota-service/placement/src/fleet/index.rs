//! Nodes by the order of GFS Algorithm 1, kept while tasks come and go: the best node that fits is found without a look at
//! the others.

use super::node::NodeState;
use super::request::{GpuRequest, PodRequest};
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

/// Nodes with as many idle GPUs, by class; those with a shared GPU that has room once more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Bucket {
    all: [BTreeSet<Place>; 2],
    shared: [BTreeSet<Place>; 2],
}

/// What decides the place of a node, so that it can be found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    idle: Idle,
    places: [Place; 2],
    is_shared: bool,
    /// GPUs without HP work: what the node has for HP at most, whoever goes.
    without_hp: u8,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    buckets: BTreeMap<Idle, Bucket>,
    /// How many nodes have so many GPUs without HP.
    without_hp: BTreeMap<u8, u32>,
}

const fn number(class: TaskClass) -> usize {
    match class {
        TaskClass::Hp => 0,
        TaskClass::Spot => 1,
    }
}

impl Key {
    /// `weight` is what evictions count on this node, no more than the breaker's limit.
    pub fn of(node: &NodeState, number: u32, weight: u32) -> Self {
        let idle = Idle { gpus: node.idle, of: node.gpus.len() as u8 };
        let weight = i64::from(weight);
        let hp = Place { alike: Reverse(node.hp_milli), evictions: -weight, node: number };
        let spot = Place { alike: Reverse(node.spot_milli), evictions: weight, node: number };
        let without_hp = node.gpus.iter().filter(|gpu| gpu.hp == 0).count() as u8;
        Self { idle, places: [hp, spot], is_shared: node.largest_part() > 0, without_hp }
    }

    /// Which node comes first in Algorithm 1.
    pub fn order(&self, other: &Self, class: TaskClass) -> Ordering {
        let [here, there] = [self, other].map(|key| &key.places[number(class)]);
        self.idle.same_quotient(other.idle).then_with(|| among_equally_full(self.idle, here, other.idle, there))
    }
}

impl Index {
    pub fn insert(&mut self, key: Key) {
        *self.without_hp.entry(key.without_hp).or_default() += 1;
        let bucket = self.buckets.entry(key.idle).or_default();
        for (class, place) in key.places.into_iter().enumerate() {
            bucket.all[class].insert(place);
            if key.is_shared {
                bucket.shared[class].insert(place);
            }
        }
    }

    pub fn remove(&mut self, key: Key) {
        let Some(bucket) = self.buckets.get_mut(&key.idle) else { return };
        for (class, place) in key.places.into_iter().enumerate() {
            bucket.all[class].remove(&place);
            bucket.shared[class].remove(&place);
        }
        if bucket.all[0].is_empty() {
            self.buckets.remove(&key.idle);
        }
        if let Some(nodes) = self.without_hp.get_mut(&key.without_hp) {
            *nodes -= 1;
            if *nodes == 0 {
                self.without_hp.remove(&key.without_hp);
            }
        }
    }

    /// The most GPUs without HP on one node.
    pub fn most_without_hp(&self) -> u8 {
        self.without_hp.last_key_value().map_or(0, |(gpus, _)| *gpus)
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
            node.takes_pods() && !is_broken && gpus_fit && node.has_room_beside_gpus(pod)
        };
        let mut best: Option<(Idle, Place)> = None;
        for (idle, bucket) in &self.buckets {
            if best.is_some_and(|(found, _)| found.same_quotient(*idle).is_ne()) {
                break;
            }
            let of_class = match pod.gpus {
                GpuRequest::Whole(gpus) if u16::from(idle.gpus) < gpus => continue,
                GpuRequest::Share(_) if idle.gpus == 0 => &bucket.shared,
                _ => &bucket.all,
            };
            let Some(place) = of_class[number(class)].iter().find(fits) else { continue };
            if best.is_none_or(|(found, other)| among_equally_full(*idle, place, found, &other).is_lt()) {
                best = Some((*idle, *place));
            }
        }
        best.map(|(_, place)| place.node as usize)
    }
}

/// Among nodes that are equally full, of any size: more of the same class for their size, then as in a bucket.
fn among_equally_full(idle: Idle, place: &Place, found: Idle, other: &Place) -> Ordering {
    let alike = |place: &Place, of: u8| u64::from(place.alike.0) * u64::from(of.max(1));
    alike(other, idle.of)
        .cmp(&alike(place, found.of))
        .then(place.evictions.cmp(&other.evictions))
        .then(place.node.cmp(&other.node))
}
