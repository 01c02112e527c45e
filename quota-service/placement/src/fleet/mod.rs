//! The nodes of a pool and the tasks on them.

mod aligned;
mod evicting;
mod evictions;
mod gang;
mod guarantees;
mod index;
mod lent;
mod node;
mod occupants;
pub mod offered;
mod place;
mod preempt;
pub mod rank;
mod refused;
mod request;
mod rules;
mod running;
mod score;
#[cfg(test)]
mod tests;
mod trial;

pub use aligned::Wish;
pub use evictions::EvictionSettings;
pub use gang::{Gang, PodPlace};
pub use guarantees::Guarantee;
pub use lent::{Spare, mask_of, taken};
pub use node::{Gpu, GpuPlace, NodeState, WHOLE_MILLI, numbers};
pub use place::{Plan, PlanFault};
pub use preempt::{History, PreemptionSettings};
pub use refused::NodeError;
pub use request::{GpuRequest, Models, PodRequest, RequestError};
pub use rules::VictimRule;
pub use running::Running;
pub use score::{ScoreRule, Spec, Target, Terms, Workload, moving_alpha};

use crate::power::NodePower;
use evictions::Evictions;
use guarantees::Guarantees;
use index::{Index, Key};
use occupants::Occupant;
use running::WasteClass;
use score::Scores;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{HorizonHours, MilliGpus, NodeId, TaskClass, TaskId, UnixSeconds};

/// Spot tasks by class, those with the least to lose first.
type ByWaste = BTreeMap<WasteClass, BTreeSet<(Reverse<UnixSeconds>, TaskId)>>;

/// Nodes, tasks, and the order in which nodes are asked.
///
/// Time does not pass by itself: [`pass_to`](Self::pass_to) and [`ended_guarantees`](Self::ended_guarantees) come before a
/// decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    nodes: Vec<NodeState>,
    by_id: BTreeMap<NodeId, usize>,
    index: Index,
    /// Whether HP is kept apart ([`ScoreRule::Apart`]).
    is_apart: bool,
    /// Whether the topology of nodes counts.
    is_aware: bool,
    tasks: BTreeMap<TaskId, Running>,
    /// Spot tasks with a pod on each node.
    spot: Vec<BTreeSet<TaskId>>,
    /// Elastic tasks that are lent GPUs of each node.
    lent: Vec<BTreeSet<TaskId>>,
    /// The same as `spot`, with what they hold, of nodes whose topology counts.
    occupants: Vec<Vec<Occupant>>,
    by_waste: ByWaste,
    evictions: Evictions,
    guarantees: Guarantees,
    gpus: u64,
    /// Thousandths of them that are taken.
    used_milli: u64,
    /// By GPU model; none where it is not known what nodes draw.
    power: Vec<NodePower>,
    watts: u64,
    scores: Scores,
}

impl Fleet {
    /// A fleet without nodes.
    #[must_use]
    pub fn new(settings: EvictionSettings) -> Self {
        Self::ordered(settings, ScoreRule::Gfs)
    }

    /// A fleet whose nodes are kept in the order of `rule`, where that is one that is kept.
    #[must_use]
    pub fn ordered(settings: EvictionSettings, rule: ScoreRule) -> Self {
        Self {
            is_apart: rule.is_apart(),
            is_aware: false,
            nodes: Vec::new(),
            by_id: BTreeMap::new(),
            index: Index::default(),
            tasks: BTreeMap::new(),
            spot: Vec::new(),
            lent: Vec::new(),
            occupants: Vec::new(),
            by_waste: ByWaste::new(),
            evictions: Evictions::new(settings),
            guarantees: Guarantees::default(),
            gpus: 0,
            used_milli: 0,
            power: Vec::new(),
            watts: 0,
            scores: Scores::default(),
        }
    }

    /// Adds a node; where CPU or memory are not known they bind nobody.
    ///
    /// # Errors
    /// It is there already, or has more GPUs than fit.
    pub fn add(
        &mut self,
        id: NodeId,
        gpus: u32,
        cpu_milli: Option<u64>,
        memory_mib: Option<u64>,
    ) -> Result<usize, NodeError> {
        if gpus > u32::from(GpuRequest::MOST) {
            return Err(NodeError::Gpus { node: id, gpus });
        }
        if self.number_of(&id).is_some() {
            return Err(NodeError::Known { node: id });
        }
        let number = self.by_id.get(&id).copied().unwrap_or(self.nodes.len());
        let node = NodeState::new(id.clone(), gpus as usize, cpu_milli, memory_mib);
        if number < self.nodes.len() {
            // It was here before, and keeps its number and its evictions.
            let evictions = self.nodes[number].evictions;
            self.nodes[number] = NodeState { evictions, ..node };
        } else {
            self.by_id.insert(id, number);
            self.nodes.push(node);
            self.spot.push(BTreeSet::new());
            self.lent.push(BTreeSet::new());
            self.occupants.push(Vec::new());
        }
        debug_assert_eq!([self.spot.len(), self.lent.len(), self.occupants.len()], [self.nodes.len(); 3]);
        self.gpus += u64::from(gpus);
        self.index.insert(self.key(number));
        self.watts += self.watts_of(number);
        self.scores.changed(number);
        Ok(number)
    }

    /// Takes a node away with everything on it; answers the tasks that were, whole, by their names. Its number stays its
    /// own if it comes back.
    pub fn remove(&mut self, node: usize) -> Vec<(TaskId, Running)> {
        debug_assert!(!self.nodes[node].is_gone, "a node goes once");
        let here = |running: &Running| running.places.iter().any(|place| place.node == node);
        let tasks: Vec<TaskId> =
            self.tasks.iter().filter(|(_, running)| here(running)).map(|(task, _)| task.clone()).collect();
        let gone = tasks.into_iter().filter_map(|task| self.finish(&task).map(|running| (task, running))).collect();
        for task in self.lent[node].clone() {
            let Some(mut running) = self.finish(&task) else { continue };
            running.lent.retain(|place| place.node != node);
            self.hold(&task, &running, true);
            self.tasks.insert(task, running);
        }
        self.index.remove(self.key(node));
        self.gpus -= self.nodes[node].gpus.len() as u64;
        self.watts -= self.watts_of(node);
        debug_assert_eq!(self.nodes[node].used_milli(), 0, "all tasks of the node are gone");
        self.nodes[node].is_gone = true;
        self.scores.changed(node);
        gone
    }

    /// Evictions that still count, oldest first: when, and on which node.
    pub fn evictions(&self) -> impl Iterator<Item = (UnixSeconds, &NodeId)> {
        self.evictions.counted().map(|(at, node)| (at, &self.nodes[node].id))
    }

    /// Counts an eviction that was seen before.
    pub fn recall_eviction(&mut self, node: usize, at: UnixSeconds) {
        let counts = self.evictions.count(node, at);
        self.change(node, |state| state.evictions = counts);
    }

    /// Lets new pods come to a node, or no longer.
    pub fn open(&mut self, node: usize, is_open: bool) {
        self.nodes[node].is_open = is_open;
        self.scores.changed(node);
    }

    /// Sets which of the fleet's GPU models the GPUs of a node are: the first one by default.
    pub fn set_model(&mut self, node: usize, model: u8) {
        self.watts -= self.watts_of(node);
        self.nodes[node].model = model;
        self.watts += self.watts_of(node);
        self.scores.changed(node);
    }

    /// Says what nodes draw, by the number of their GPU model.
    pub fn set_power(&mut self, power: Vec<NodePower>) {
        self.power = power;
        self.watts =
            (0..self.nodes.len()).filter(|node| !self.nodes[*node].is_gone).map(|node| self.watts_of(node)).sum();
        self.scores.clear();
    }

    /// The power draw of all nodes (EOPC); none where it is not known.
    #[must_use]
    pub fn watts(&self) -> Option<u64> {
        (!self.power.is_empty()).then_some(self.watts)
    }

    fn watts_of(&self, node: usize) -> u64 {
        let node = &self.nodes[node];
        self.power.get(usize::from(node.model)).map_or(0, |power| power.watts(node))
    }

    /// All nodes, by their numbers.
    #[must_use]
    pub fn nodes(&self) -> &[NodeState] {
        &self.nodes
    }

    /// The number of a node; `None` for an unknown one.
    #[must_use]
    pub fn number_of(&self, node: &NodeId) -> Option<usize> {
        self.by_id.get(node).copied().filter(|number| !self.nodes[*number].is_gone)
    }

    /// Running tasks by their ids.
    #[must_use]
    pub const fn tasks(&self) -> &BTreeMap<TaskId, Running> {
        &self.tasks
    }

    /// All GPUs of the pool.
    #[must_use]
    pub const fn gpus(&self) -> u64 {
        self.gpus
    }

    /// Thousandths of GPUs that tasks have.
    #[must_use]
    pub const fn used_milli(&self) -> u64 {
        self.used_milli
    }

    /// Lets old evictions leave their windows. Answers whether any did: spot may then come to nodes that it stayed away from.
    pub fn pass_to(&mut self, now: UnixSeconds) -> bool {
        let changed = self.evictions.pass_to(now);
        for (node, counts) in &changed {
            self.change(*node, |state| state.evictions = *counts);
        }
        !changed.is_empty()
    }

    /// A task's work is saved.
    pub fn saved(&mut self, task: &TaskId, at: UnixSeconds) {
        self.change_task(task, |running| running.saved = running.saved.max(at));
    }

    /// Takes a task off its nodes: it has finished, failed, or was deleted.
    pub fn finish(&mut self, task: &TaskId) -> Option<Running> {
        let running = self.tasks.remove(task)?;
        self.hold(task, &running, false);
        Some(running)
    }

    /// Whether all pods would fit if the pool were empty.
    #[must_use]
    pub fn could_ever_hold(&self, gang: &Gang) -> bool {
        let mut missing = u64::from(gang.pods);
        self.nodes.iter().filter(|node| !node.is_gone && gang.pod.models.has(node.model)).any(|node| {
            missing = missing.saturating_sub(node.pods_when_empty(&gang.pod));
            missing == 0
        })
    }

    /// S_a(H): what spot tasks inside a guarantee of at least so many hours hold.
    #[must_use]
    pub fn promised(&self, hours: HorizonHours) -> MilliGpus {
        self.guarantees.promised(hours)
    }

    /// GPUs of spot tasks inside a guarantee, by the hours that they were promised.
    pub fn promises(&self) -> impl Iterator<Item = (HorizonHours, MilliGpus)> {
        self.guarantees.by_hours()
    }

    /// Tasks whose promise runs.
    #[must_use]
    pub fn promised_tasks(&self) -> u64 {
        self.guarantees.count_of_tasks()
    }

    /// The promises by their ends, the first one first: when, and thousandths of a GPU.
    pub fn promise_ends(&self) -> impl Iterator<Item = (UnixSeconds, u64)> {
        self.guarantees.ends().map(|(until, task)| (until, self.tasks.get(task).map_or(0, Running::gpus_milli)))
    }

    /// Guarantees that have ended by now, in the order of their ends: kept. Their tasks run on at will, until they are
    /// promised more.
    pub fn ended_guarantees(&mut self, now: UnixSeconds) -> Vec<(TaskId, Guarantee)> {
        let ended = self.guarantees.ended(now);
        for (task, _) in &ended {
            self.promise(task, None);
        }
        ended
    }

    /// Promises a spot task that runs something else than before. Answers whether there is one.
    pub fn promise(&mut self, task: &TaskId, guarantee: Option<Guarantee>) -> bool {
        if self.tasks.get(task).is_none_or(|running| running.class != TaskClass::Spot) {
            return false;
        }
        self.change_task(task, |running| running.guarantee = guarantee);
        true
    }

    /// Changes what a running task is promised or has saved, and its places in what follows from that.
    fn change_task(&mut self, task: &TaskId, change: impl FnOnce(&mut Running)) {
        let Some(mut running) = self.tasks.remove(task) else { return };
        self.count(task, &running, false);
        let held_milli = running.gpus_milli();
        change(&mut running);
        debug_assert_eq!(running.gpus_milli(), held_milli, "its pods stay");
        self.count(task, &running, true);
        self.tasks.insert(task.clone(), running);
    }

    /// Adds a task to the guarantees and the order by waste, or takes it away.
    fn count(&mut self, task: &TaskId, running: &Running, adds: bool) {
        self.occupy(task, running, adds);
        if let Some(guarantee) = running.guarantee {
            self.guarantees.count(task, guarantee, running.gpus_milli(), adds);
        }
        if running.class != TaskClass::Spot {
            return;
        }
        let (class, place) = (running.waste_class(), (Reverse(running.saved), task.clone()));
        if adds {
            let is_new = self.by_waste.entry(class).or_default().insert(place);
            debug_assert!(is_new, "a task has one place in the order");
        } else if let Some(tasks) = self.by_waste.get_mut(&class) {
            tasks.remove(&place);
            if tasks.is_empty() {
                self.by_waste.remove(&class);
            }
        }
    }

    fn key(&self, node: usize) -> Key {
        Key::of(&self.nodes[node], node as u32, self.evictions.weight(self.nodes[node].evictions), self.is_apart)
    }

    fn change(&mut self, node: usize, change: impl FnOnce(&mut NodeState)) {
        if self.nodes[node].is_gone {
            change(&mut self.nodes[node]);
            return;
        }
        self.index.remove(self.key(node));
        self.watts -= self.watts_of(node);
        self.used_milli -= self.nodes[node].used_milli();
        change(&mut self.nodes[node]);
        self.used_milli += self.nodes[node].used_milli();
        debug_assert!(self.used_milli <= self.gpus * 1_000, "a GPU has one owner");
        self.watts += self.watts_of(node);
        self.index.insert(self.key(node));
        self.scores.changed(node);
    }

    fn hold_pod(&mut self, place: PodPlace, pod: &PodRequest, class: TaskClass, takes: bool) {
        self.change(place.node, |node| node.hold(place.gpus, pod, class, takes));
    }

    fn hold(&mut self, task: &TaskId, running: &Running, takes: bool) {
        for place in &running.places {
            self.hold_pod(*place, &running.pod, running.class, takes);
            if running.class == TaskClass::Spot {
                if takes {
                    self.spot[place.node].insert(task.clone());
                } else {
                    self.spot[place.node].remove(task);
                }
            }
        }
        for place in &running.lent {
            self.change(place.node, |node| node.lend(mask_of(place.gpus), &running.pod, takes));
            if takes {
                self.lent[place.node].insert(task.clone());
            } else {
                self.lent[place.node].remove(task);
            }
        }
        self.count(task, running, takes);
    }
}
