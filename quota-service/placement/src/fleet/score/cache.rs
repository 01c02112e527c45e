//! Scores that were computed, kept per shape of a pod: a decision computes those of nodes that have changed since the last
//! one for the same shape, and looks through numbers for the rest.

use super::seat::{Ground, Seat};
use super::{ScoreRule, Target};
use crate::fleet::{NodeState, PodRequest};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use vocab::TaskClass;

/// Seats over all shapes at most: 64 MB. A shape that was not asked for longest gives way.
const SEATS_MOST: usize = 4_000_000;
const SHAPES_LEAST: usize = 4;
/// Changes that are remembered for each node; a shape that missed more is computed again.
const CHANGES_PER_NODE: usize = 4;

/// The inputs of the seats of a pod.
type Key = (TaskClass, PodRequest);

/// The seats on all nodes for pods of one shape.
struct Shape {
    /// The next change that it has not seen.
    next: u64,
    used: u64,
    seats: Vec<Seat>,
}

/// Seats by shape, and which nodes changed since. No part of a fleet's state: it follows from it, so that any two caches are
/// as good as equal, and a copy begins with nothing.
#[derive(Default)]
pub struct Scores {
    rule: Option<ScoreRule>,
    target: Arc<Target>,
    shapes: BTreeMap<Key, Shape>,
    /// Nodes in the order of their changes; the first one is change number `begun`.
    changes: VecDeque<u32>,
    begun: u64,
    /// The number of each node's last change.
    last: Vec<u64>,
    uses: u64,
}

impl Clone for Scores {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Scores {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Scores {}

impl fmt::Debug for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scores")
    }
}

impl Scores {
    /// A node is no longer as it was.
    pub fn changed(&mut self, node: usize) {
        if self.shapes.is_empty() {
            return;
        }
        if self.last.len() <= node {
            self.last.resize(node + 1, 0);
        }
        self.last[node] = self.end();
        self.changes.push_back(node as u32);
        if self.changes.len() > CHANGES_PER_NODE * self.last.len().max(1_024) {
            let half = self.changes.len() / 2;
            self.changes.drain(..half);
            self.begun += half as u64;
        }
        debug_assert_eq!(self.last[node] + 1, self.end(), "the newest change is that of this node");
    }

    /// Forgets everything: what all scores rest on has changed.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn end(&self) -> u64 {
        self.begun + self.changes.len() as u64
    }

    /// The seats of a pod on all nodes, as they are now.
    pub fn seats(&mut self, ground: &Ground<'_>, pod: &PodRequest, nodes: &[NodeState]) -> &[Seat] {
        let is_same_target = Arc::ptr_eq(&self.target, ground.target) || self.target == *ground.target;
        if self.rule != Some(ground.rule) || !is_same_target {
            self.clear();
            self.rule = Some(ground.rule);
            self.target = ground.target.clone();
        }
        self.uses += 1;
        let (end, key) = (self.end(), (ground.class, *pod));
        if !self.shapes.contains_key(&key) {
            self.make_room(nodes.len());
        }
        let Self { shapes, changes, begun, last, uses, .. } = self;
        let shape = shapes.entry(key).or_insert_with(|| Shape { next: 0, used: 0, seats: Vec::new() });
        if shape.seats.is_empty() || shape.next < *begun {
            shape.seats.clear();
            shape.seats.extend(nodes.iter().map(|node| ground.seat(node, pod)));
        } else {
            shape.seats.resize(nodes.len(), Seat::NONE);
            for number in shape.next..end {
                let node = changes[(number - *begun) as usize] as usize;
                // A node that changed again later is computed then.
                if last[node] == number {
                    shape.seats[node] = ground.seat(&nodes[node], pod);
                }
            }
        }
        debug_assert_eq!(shape.seats.len(), nodes.len(), "a seat for each node");
        (shape.next, shape.used) = (end, *uses);
        &shape.seats
    }

    fn make_room(&mut self, nodes: usize) {
        let most = (SEATS_MOST / nodes.max(1)).max(SHAPES_LEAST);
        if self.shapes.len() >= most
            && let Some(oldest) = self.shapes.iter().min_by_key(|(_, shape)| shape.used).map(|(key, _)| *key)
        {
            self.shapes.remove(&oldest);
        }
    }
}
