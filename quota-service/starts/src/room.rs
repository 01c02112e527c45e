//! GPUs of one future: by node, who has them, and who goes for HP.

use crate::facts::{PoolFacts, Size};
use crate::ranked::Ranked;

/// No pod, no node.
const NONE: u32 = u32::MAX;
/// Nodes that are compared for HP to evict on.
const COMPARED: usize = 4;

/// A pod of spot on its node.
#[derive(Debug, Clone, Copy)]
pub struct Pod {
    pub node: u32,
    pub gpus: u8,
    pub run: u32,
    /// Of spot on the same node.
    next: u32,
}

/// Knowledge of a future of a run that may have to go.
pub trait Occupants {
    /// Whether it runs; and whether inside a guarantee.
    fn stands(&self, run: u32) -> (bool, bool);
}

/// GPUs by node, and who has them.
#[derive(Debug, Clone)]
pub struct Room {
    idle: Ranked,
    /// Idle, or with spot.
    for_hp: Ranked,
    pods: Vec<Pod>,
    /// The newest pod of spot on each node.
    newest: Vec<u32>,
    /// Free parts of shared GPUs, and the nodes of these.
    parts_milli: u64,
    shared: Vec<u32>,
    /// Nodes that are kept for an HP task.
    kept: Vec<u32>,
}

impl Room {
    /// `spot_of` answers the run of a place if spot has it.
    pub fn new(facts: &PoolFacts, is_spot: impl Fn(usize) -> bool) -> Self {
        let mut for_hp = facts.idle.clone();
        let (mut pods, mut newest) = (Vec::with_capacity(facts.places.len()), vec![NONE; facts.idle.len()]);
        for (number, run) in facts.running.iter().enumerate() {
            for place in run.places.clone() {
                let (node, gpus) = facts.places[place as usize];
                let mut pod = Pod { node, gpus, run: number as u32, next: NONE };
                if is_spot(number) {
                    for_hp[node as usize] += gpus;
                    pod.next = std::mem::replace(&mut newest[node as usize], pods.len() as u32);
                }
                pods.push(pod);
            }
        }
        let (idle, for_hp) = (Ranked::new(facts.idle.clone(), &facts.open), Ranked::new(for_hp, &facts.open));
        let shared = facts.shared.clone();
        Self { idle, for_hp, pods, newest, parts_milli: facts.parts_milli, shared, kept: Vec::new() }
    }

    /// Becomes another one, in the memory that it has.
    pub fn become_like(&mut self, other: &Self) {
        self.idle.become_like(&other.idle);
        self.for_hp.become_like(&other.for_hp);
        self.pods.clone_from(&other.pods);
        self.newest.clone_from(&other.newest);
        self.shared.clone_from(&other.shared);
        self.kept.clone_from(&other.kept);
        self.parts_milli = other.parts_milli;
    }

    /// Nodes for all pods of an HP task that cannot start: those that have most room without spot. They are kept from other HP.
    pub fn keep(&mut self, size: Size) {
        let fitting = self.for_hp.fitting(0);
        self.kept = fitting.iter().rev().take(size.pods as usize).copied().collect();
    }

    pub fn keep_nothing(&mut self) {
        self.kept.clear();
    }

    /// Idle GPUs of open nodes and free parts of shared ones, in thousandths of a GPU.
    pub fn idle_milli(&self) -> u64 {
        self.idle.sum() * 1_000 + self.parts_milli
    }

    /// Takes GPUs that are idle for all pods, or for none. Answers the pods, a part of all.
    pub fn take(&mut self, size: Size, (run, is_hp, may_kept): (u32, bool, bool)) -> Option<std::ops::Range<u32>> {
        if size.gpus == 0 {
            return self.take_shares(size).then_some(0..0);
        }
        let from = self.pods.len();
        for _ in 0..size.pods {
            let Some(node) = self.fitting(size.gpus, is_hp && !may_kept) else {
                self.undo(from, is_hp);
                return None;
            };
            self.hold(node, size.gpus, run, is_hp);
        }
        Some(from as u32..self.pods.len() as u32)
    }

    fn fitting(&self, gpus: u8, passes_kept: bool) -> Option<u32> {
        let mut nodes = self.idle.fitting(gpus).iter().copied();
        if passes_kept && !self.kept.is_empty() {
            return nodes.find(|node| !self.kept.contains(node));
        }
        nodes.next()
    }

    fn hold(&mut self, node: u32, gpus: u8, run: u32, is_hp: bool) {
        self.idle.lower(node, gpus);
        let mut pod = Pod { node, gpus, run, next: NONE };
        if is_hp {
            self.for_hp.lower(node, gpus);
        } else {
            pod.next = std::mem::replace(&mut self.newest[node as usize], self.pods.len() as u32);
        }
        self.pods.push(pod);
    }

    fn undo(&mut self, from: usize, is_hp: bool) {
        while self.pods.len() > from {
            let Some(pod) = self.pods.pop() else { return };
            self.idle.raise(pod.node, pod.gpus);
            if is_hp {
                self.for_hp.raise(pod.node, pod.gpus);
            } else {
                self.newest[pod.node as usize] = pod.next;
            }
        }
    }

    /// Shares go to what others leave of shared GPUs, and then to idle ones.
    fn take_shares(&mut self, size: Size) -> bool {
        let asked = size.milli();
        let missing = asked.saturating_sub(self.parts_milli).div_ceil(1_000);
        let idle = self.idle.fitting(1);
        if (missing as usize) > idle.len() {
            return false;
        }
        for _ in 0..missing {
            let Some(node) = self.idle.fitting(1).first().copied() else { break };
            self.idle.lower(node, 1);
            self.for_hp.lower(node, 1);
            self.shared.push(node);
            self.parts_milli += 1_000;
        }
        self.parts_milli = self.parts_milli.saturating_sub(asked);
        true
    }

    /// GPUs just taken for spot are as they were before.
    pub fn give_back(&mut self, size: Size, pods: std::ops::Range<u32>) {
        if size.gpus == 0 {
            self.give(size, pods, false);
        } else {
            self.undo(pods.start as usize, false);
        }
    }

    /// A task gives its GPUs back.
    pub fn give(&mut self, size: Size, pods: std::ops::Range<u32>, is_hp: bool) {
        for pod in pods {
            let Pod { node, gpus, .. } = self.pods[pod as usize];
            self.idle.raise(node, gpus);
            if is_hp {
                self.for_hp.raise(node, gpus);
            }
        }
        if size.gpus == 0 {
            self.parts_milli += size.milli();
            while self.parts_milli >= 2_000 {
                let Some(node) = self.shared.pop() else { return };
                self.parts_milli -= 1_000;
                self.idle.raise(node, 1);
                self.for_hp.raise(node, 1);
            }
        }
    }

    /// Whether HP would fit without spot.
    pub fn fits_without_spot(&self, size: Size, may_kept: bool) -> bool {
        if size.gpus == 0 {
            return !self.for_hp.fitting(1).is_empty();
        }
        let mut missing = size.pods;
        for node in self.for_hp.fitting(size.gpus) {
            if may_kept || !self.kept.contains(node) {
                missing = missing.saturating_sub(u32::from(self.for_hp.of(*node) / size.gpus));
            }
            if missing == 0 {
                return true;
            }
        }
        false
    }

    /// The runs that go from one node so that an HP pod fits: of some nodes with little room the one that breaks the fewest
    /// promises. None where no node suffices. A victim goes from all its nodes.
    pub fn victims(&mut self, gpus: u8, may_kept: bool, of: &impl Occupants, runs: &mut Vec<u32>) -> bool {
        let gpus = gpus.max(1);
        let mut nodes = [NONE; COMPARED];
        let fitting = self.for_hp.fitting(gpus).iter().filter(|node| may_kept || !self.kept.contains(node));
        let found = nodes.iter_mut().zip(fitting).map(|(place, node)| *place = *node).count();
        let mut best: Option<((u32, u32), u32)> = None;
        for node in &nodes[..found] {
            self.prune(*node, of);
            let cost = self.victims_of(*node, gpus, of, |_| {});
            if let Some(cost) = cost.filter(|cost| best.is_none_or(|best| *cost < best.0)) {
                best = Some((cost, *node));
            }
        }
        runs.clear();
        let Some((_, node)) = best else { return false };
        self.victims_of(node, gpus, of, |run| {
            if !runs.contains(&run) {
                runs.push(run);
            }
        });
        true
    }

    /// Forgets pods of runs that are over.
    fn prune(&mut self, node: u32, of: &impl Occupants) {
        let (mut next, mut before) = (self.newest[node as usize], NONE);
        while next != NONE {
            let pod = self.pods[next as usize];
            if of.stands(pod.run).0 {
                before = next;
            } else if before == NONE {
                self.newest[node as usize] = pod.next;
            } else {
                self.pods[before as usize].next = pod.next;
            }
            next = pod.next;
        }
    }

    /// At-will spot first, the newest of each: promised GPUs and GPUs of the runs that go. None where all do not suffice.
    fn victims_of(&self, node: u32, gpus: u8, of: &impl Occupants, mut goes: impl FnMut(u32)) -> Option<(u32, u32)> {
        let (gpus, mut free) = (u32::from(gpus), u32::from(self.idle.of(node)));
        let (mut promised, mut all) = (0, 0);
        for is_promised in [false, true] {
            let mut next = self.newest[node as usize];
            while next != NONE && free < gpus {
                let pod = self.pods[next as usize];
                next = pod.next;
                if of.stands(pod.run) == (true, is_promised) {
                    goes(pod.run);
                    free += u32::from(pod.gpus);
                    all += u32::from(pod.gpus);
                    promised += if is_promised { u32::from(pod.gpus) } else { 0 };
                }
            }
        }
        (free >= gpus).then_some((promised, all))
    }
}
