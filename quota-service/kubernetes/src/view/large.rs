//! Nodes with more GPUs, or replicas of GPUs, than a fleet has bits for. They count; nothing is placed on them or evicted from them
//! by Headroom.

use super::facts::{NodeFacts, PodFacts, Uid};
use super::pool::{amount, task_of};
use placement::fleet::{GpuRequest, Guarantee};
use std::collections::BTreeMap;
use vocab::{HorizonHours, MilliGpus, NodeId, TaskClass, TaskId, UnixSeconds};

/// A pod on such a node.
#[derive(Debug, Clone)]
struct Held {
    gpus_milli: u64,
    class: TaskClass,
    guarantee: Option<Guarantee>,
}

#[derive(Debug, Clone)]
struct LargeNode {
    gpus_milli: u64,
    is_open: bool,
    is_ready: bool,
    pods: BTreeMap<Uid, Held>,
}

impl LargeNode {
    fn used(&self) -> u64 {
        self.pods.values().map(|held| held.gpus_milli).sum()
    }

    fn idle(&self) -> u64 {
        self.gpus_milli.saturating_sub(self.used())
    }
}

/// A promise that has ended: kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPromise {
    pub task: TaskId,
    pub guarantee: Guarantee,
    /// Node and GPUs of the pod.
    pub place: Option<(NodeId, MilliGpus)>,
}

/// The large nodes of one pool.
#[derive(Debug, Clone, Default)]
pub struct LargeNodes(BTreeMap<NodeId, LargeNode>);

impl LargeNodes {
    /// Whether a node of so many GPUs is one.
    pub fn is_large(gpus: u32) -> bool {
        gpus > u32::from(GpuRequest::MOST)
    }

    pub fn set(&mut self, facts: &NodeFacts) {
        let (gpus_milli, is_open, is_ready) =
            (u64::from(facts.gpus) * MilliGpus::PER_GPU, facts.is_open, facts.is_ready);
        let pods = self.0.remove(&facts.node).map(|node| node.pods).unwrap_or_default();
        self.0.insert(facts.node.clone(), LargeNode { gpus_milli, is_open, is_ready, pods });
    }

    pub fn has(&self, node: &NodeId) -> bool {
        self.0.contains_key(node)
    }

    pub fn remove(&mut self, node: &NodeId) {
        self.0.remove(node);
    }

    /// Counts a pod on its node. Answers whether there was room: a start may be reported before an end.
    pub fn place(&mut self, pod: &PodFacts, node: &NodeId, guarantee: Option<Guarantee>) -> bool {
        let Some(here) = self.0.get_mut(node) else { return false };
        let gpus_milli = pod.amount().milli();
        if here.idle() < gpus_milli {
            return false;
        }
        here.pods.insert(pod.uid, Held { gpus_milli, class: pod.class, guarantee });
        true
    }

    pub fn lift(&mut self, uid: Uid, node: &NodeId) {
        if let Some(here) = self.0.get_mut(node) {
            here.pods.remove(&uid);
        }
    }

    fn pods(&self) -> impl Iterator<Item = &Held> {
        self.0.values().flat_map(|node| node.pods.values())
    }

    /// Thousandths of a GPU of spot pods, at will or promised.
    pub fn spot_milli(&self) -> u64 {
        self.pods().filter(|held| held.class == TaskClass::Spot).map(|held| held.gpus_milli).sum()
    }

    /// GPUs that could be used: all of open nodes, and what runs on others that are ready.
    pub fn allocatable_gpus(&self) -> u64 {
        let of = |node: &LargeNode| match (node.is_open, node.is_ready) {
            (true, _) => node.gpus_milli,
            (false, true) => node.used(),
            (false, false) => 0,
        };
        self.0.values().map(of).sum::<u64>() / MilliGpus::PER_GPU
    }

    pub fn idle_gpus(&self) -> u64 {
        self.0.values().filter(|node| node.is_open).map(|node| node.idle() / MilliGpus::PER_GPU).sum()
    }

    /// Whether one of them has room for a pod.
    pub fn has_room(&self, pod: &PodFacts) -> bool {
        self.0.values().any(|node| node.is_open && node.idle() >= pod.amount().milli())
    }

    /// Thousandths of a GPU inside a guarantee, by its hours.
    pub fn promises(&self) -> BTreeMap<HorizonHours, u64> {
        let mut by_hours = BTreeMap::new();
        for held in self.pods() {
            if let Some(guarantee) = held.guarantee {
                *by_hours.entry(guarantee.hours).or_default() += held.gpus_milli;
            }
        }
        by_hours
    }

    /// Takes the promises that have ended by now.
    pub fn ended(&mut self, now: UnixSeconds) -> Vec<KeptPromise> {
        let mut ended = Vec::new();
        for (node, here) in &mut self.0 {
            for (uid, held) in &mut here.pods {
                if let Some(guarantee) = held.guarantee.take_if(|guarantee| guarantee.until <= now) {
                    let place = Some((node.clone(), amount(held.gpus_milli)));
                    ended.push(KeptPromise { task: task_of(*uid), guarantee, place });
                }
            }
        }
        ended.sort_by(|a, b| (a.guarantee.until, &a.task).cmp(&(b.guarantee.until, &b.task)));
        ended
    }
}
