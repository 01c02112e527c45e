//! Preemptive placement of HP work (GFS Algorithm 2): which spot tasks go, and on which node.

use super::index::Key;
use super::node::{NodeState, WHOLE_MILLI, lowest, numbers};
use super::rules::VictimRule;
use super::trial::Trial;
use super::{Fleet, Gang, GpuPlace, GpuRequest, Plan, PodPlace, PodRequest, Running};
use crate::draw::Draw;
use crate::invariants;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use vocab::{TaskClass, TaskId, UnixSeconds};

/// G and F of Eq. 18: spot runs of the last hours that ended well, and that were evicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct History {
    /// Runs that finished.
    pub finished: u64,
    /// Runs that were evicted.
    pub evicted: u64,
}

/// The cost of an eviction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PreemptionSettings {
    /// β of Eq. 18: 0.5, GFS table 4.
    pub usage_weight: f64,
    /// Over which GPU time is counted in Eq. 18: 24 h.
    pub usage_window_s: u64,
    /// Whether a task inside its guarantee is kept before one outside. Not in the paper.
    pub keeps_guarantees: bool,
}

impl Default for PreemptionSettings {
    fn default() -> Self {
        Self { usage_weight: 0.5, usage_window_s: vocab::SECONDS_PER_DAY as u64, keeps_guarantees: true }
    }
}

/// A node that would do, and what it takes.
pub(super) struct Candidate {
    /// Victims, in the order of their ids.
    pub victims: Vec<TaskId>,
    /// The cost of the evictions (GFS Eq. 19).
    pub cost: Cost,
    /// GPUs that the pod gets.
    pub gpus: GpuPlace,
}

/// Inputs that are the same for all nodes of one decision.
pub(super) struct Costs<'a> {
    now: UnixSeconds,
    history: History,
    settings: &'a PreemptionSettings,
    /// GPUs of the pool × window, in thousandths of a GPU-second.
    pool_milli_gpu_s: f64,
}

impl<'a> Costs<'a> {
    /// Of a decision in a pool of so many GPUs.
    pub fn new(now: UnixSeconds, history: History, settings: &'a PreemptionSettings, gpus: u64) -> Self {
        let pool_milli_gpu_s = gpus as f64 * settings.usage_window_s as f64 * 1_000.0;
        Self { now, history, settings, pool_milli_gpu_s }
    }

    /// Whether a task's promise counts.
    fn is_promised(&self, task: &Running) -> bool {
        self.settings.keeps_guarantees && task.guarantee.is_some()
    }

    /// Of a victim: what is kept first is largest.
    pub fn worth(&self, task: &Running) -> (bool, u64) {
        (self.is_promised(task), task.waste_milli_gpu_s(self.now))
    }

    /// The same of a task of so many thousandths of a GPU that was saved then.
    pub fn worth_of(&self, is_guaranteed: bool, gpus_milli: u64, saved: UnixSeconds) -> (bool, u64) {
        let lost_s = u64::try_from(self.now.since_s(saved)).unwrap_or(0);
        (self.settings.keeps_guarantees && is_guaranteed, gpus_milli * lost_s)
    }

    /// Eq. 19, whose victims are counted as tasks; broken promises come before it.
    pub fn of(&self, victims: usize, promised: usize, waste_milli_gpu_s: u64) -> Cost {
        let (failed, finished) = (self.history.evicted + victims as u64, self.history.finished);
        let rate = failed as f64 / ((finished + failed) as f64).max(1.0);
        let usage = self.settings.usage_weight * waste_milli_gpu_s as f64 / self.pool_milli_gpu_s.max(1.0);
        Cost { promised, price: rate + usage }
    }
}

/// Whether a task is promised, its loss, and its name: the order in which tasks are tried.
type Loss<'a> = (bool, u64, &'a TaskId);

/// The cost of a candidate, least first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// Promises that would be broken.
    promised: usize,
    price: f64,
}

impl Cost {
    /// Order of candidates: the cheapest first, then by node, so that no two are equal.
    pub fn order(&self, other: &Self) -> Ordering {
        self.promised.cmp(&other.promised).then(self.price.total_cmp(&other.price))
    }
}

impl Fleet {
    /// Places an HP gang where evictions cost least, pod after pod; after each pod its victims count as gone, on all their
    /// nodes. None if not all pods fit even so. Victims that turn out not to be needed are spared, also where the pods have to be
    /// placed elsewhere for it. Leaves everything as it was.
    pub fn plan_preempting(
        &mut self,
        gang: &Gang,
        now: UnixSeconds,
        history: History,
        settings: &PreemptionSettings,
    ) -> Option<Plan> {
        self.plan_evicting(gang, VictimRule::LeastWaste, true, (now, history, settings))
    }

    /// [`plan_preempting`](Self::plan_preempting) by another choice of victims.
    pub fn plan_evicting(
        &mut self,
        gang: &Gang,
        rule: VictimRule,
        idle_first: bool,
        (now, history, settings): (UnixSeconds, History, &PreemptionSettings),
    ) -> Option<Plan> {
        if gang.class != TaskClass::Hp
            || self.is_blind_to(gang)
            || !self.index.could_hold(gang.pod.gpus, gang.pods, true)
        {
            return None;
        }
        let costs = Costs::new(now, history, settings, self.gpus);
        let mut draw = Draw::of_task(rule.seed(), &gang.task, now.get());
        let mut trial = Trial::of(self, gang);
        for _ in 0..gang.pods {
            let chosen = match (rule, trial.wish(gang)) {
                (_, Some(wish)) => trial.cheapest_aligned(gang, wish, &costs),
                (VictimRule::LeastWaste, None) => trial.cheapest(gang, &costs),
                (VictimRule::Tightest, None) => trial.tightest(gang, &costs, idle_first),
                (VictimRule::Random { .. }, None) => trial.drawn(gang, &costs, &mut draw),
            };
            let (node, candidate) = chosen?;
            candidate.victims.iter().for_each(|victim| trial.evict(victim));
            trial.place(PodPlace { node, gpus: candidate.gpus });
        }
        debug_assert!(trial.is_whole(), "{} is placed in part", gang.task);
        if rule == VictimRule::LeastWaste && trial.wish(gang).is_none() {
            trial.move_off(&costs);
        }
        trial.spare(&costs);
        let (places, victims) = trial.end();
        let plan = Plan { gang: gang.clone(), places, victims };
        invariants::only_spot_is_evicted(self, &plan);
        Some(plan)
    }

    /// Whether all pods of a task have room on what is idle.
    pub(super) fn can_hold_all(&self, running: &Running) -> bool {
        let mut after: BTreeMap<usize, NodeState> = BTreeMap::new();
        running.places.iter().all(|place| {
            let node = after.entry(place.node).or_insert_with(|| self.nodes[place.node].clone());
            let fits = node.can_hold(place.gpus) && node.has_room_beside_gpus(&running.pod);
            if fits {
                node.hold(place.gpus, &running.pod, running.class, true);
            }
            fits
        })
    }

    /// The node with the least cost; a node that needs no victim costs nothing. Ties go by the order of Algorithm 1.
    ///
    /// Nodes are tried in the order of the loss of their cheapest task. A node that was not tried yet evicts a
    /// task that loses more, so the search ends where one such task alone costs more than the best candidate.
    fn cheapest(&self, gang: &Gang, costs: &Costs<'_>) -> Option<(usize, Candidate)> {
        if let Some(place) = self.first_place(gang) {
            return Some((place.node, Candidate { victims: Vec::new(), cost: costs.of(0, 0, 0), gpus: place.gpus }));
        }
        let mut looked_at = BTreeSet::new();
        let mut best: Option<(Key, usize, Candidate)> = None;
        for (promised, waste, task) in self.by_rising_waste(costs) {
            let least = costs.of(1, usize::from(promised), waste);
            if best.as_ref().is_some_and(|(.., candidate)| candidate.cost.order(&least).is_lt()) {
                break;
            }
            for place in &self.tasks[task].places {
                let node = &self.nodes[place.node];
                if !looked_at.insert(place.node) || !node.takes(&gang.pod) {
                    continue;
                }
                let Some(candidate) = self.candidate(place.node, node, gang, costs) else { continue };
                let key = self.key(place.node);
                let is_better = best.as_ref().is_none_or(|(other, _, found)| {
                    candidate.cost.order(&found.cost).then(key.order(other, gang.class)).is_lt()
                });
                if is_better {
                    best = Some((key, place.node, candidate));
                }
            }
        }
        best.map(|(_, node, candidate)| (node, candidate))
    }

    /// Spot tasks with whether they are promised and their waste, in thousandths of a GPU-second: those without a promise
    /// first, then by waste.
    fn by_rising_waste<'a>(&'a self, costs: &'a Costs<'_>) -> impl Iterator<Item = Loss<'a>> {
        let of = |task: &'a TaskId| {
            let (promised, waste) = costs.worth(&self.tasks[task]);
            (promised, waste, task)
        };
        let mut classes: Vec<_> = self.by_waste.values().map(|tasks| tasks.iter()).collect();
        let mut heads: BinaryHeap<Reverse<(Loss<'_>, usize)>> = BinaryHeap::new();
        for (number, tasks) in classes.iter_mut().enumerate() {
            heads.extend(tasks.next().map(|(_, task)| Reverse((of(task), number))));
        }
        std::iter::from_fn(move || {
            let Reverse((head, number)) = heads.pop()?;
            heads.extend(classes[number].next().map(|(_, task)| Reverse((of(task), number))));
            Some(head)
        })
    }

    /// The victims that a pod needs on a node: from all of its spot tasks, those worth most are kept while the rest suffices.
    pub(super) fn candidate(
        &self,
        number: usize,
        node: &NodeState,
        gang: &Gang,
        costs: &Costs<'_>,
    ) -> Option<Candidate> {
        let mut room = Room::of(node);
        let mut spot: Vec<(&TaskId, &Running)> =
            self.spot[number].iter().map(|task| (task, &self.tasks[task])).collect();
        for (_, running) in &spot {
            room.hold(running, number, false);
        }
        if !room.satisfies(&gang.pod) {
            return None;
        }
        spot.sort_by_key(|(task, running)| (Reverse(costs.worth(running)), *task));
        let mut victims = Vec::new();
        let (mut waste_milli_gpu_s, mut promised) = (0, 0);
        for (task, running) in spot {
            room.hold(running, number, true);
            if !room.satisfies(&gang.pod) {
                room.hold(running, number, false);
                waste_milli_gpu_s += running.waste_milli_gpu_s(costs.now);
                promised += usize::from(costs.is_promised(running));
                victims.push(task.clone());
            }
        }
        let gpus = room.chosen(node, gang.pod.gpus)?;
        let cost = costs.of(victims.len(), promised, waste_milli_gpu_s);
        Some(Candidate { victims, cost, gpus })
    }
}

/// Free parts of a node while its victims are chosen.
pub(super) struct Room {
    free: [u16; GpuRequest::MOST as usize],
    cpu_milli: u64,
    memory_mib: u64,
}

impl Room {
    /// Room of a node as it is.
    pub fn of(node: &NodeState) -> Self {
        let mut free = [0; GpuRequest::MOST as usize];
        free.iter_mut().zip(&node.gpus).for_each(|(free, gpu)| *free = gpu.free());
        Self { free, cpu_milli: node.free_cpu_milli, memory_mib: node.free_memory_mib }
    }

    /// Takes what the pods of a task hold on this node, or gives it back.
    pub fn hold(&mut self, running: &Running, number: usize, takes: bool) {
        let moved = |free: u16, milli: u16| if takes { free - milli } else { free + milli };
        for place in running.places.iter().filter(|place| place.node == number) {
            match place.gpus {
                GpuPlace::Share { gpu, milli } => {
                    let free = &mut self.free[usize::from(gpu)];
                    *free = moved(*free, milli);
                }
                GpuPlace::Whole { mask } => {
                    numbers(mask).for_each(|gpu| self.free[gpu] = moved(self.free[gpu], WHOLE_MILLI));
                }
            }
            for (free, asked) in
                [(&mut self.cpu_milli, running.pod.cpu_milli), (&mut self.memory_mib, running.pod.memory_mib)]
            {
                // An unknown amount is never less.
                if *free != u64::MAX {
                    *free = if takes { *free - asked } else { *free + asked };
                }
            }
        }
    }

    /// Whether a pod fits.
    pub fn satisfies(&self, pod: &PodRequest) -> bool {
        let gpus_fit = match pod.gpus {
            GpuRequest::Whole(count) => self.idle().count_ones() >= u32::from(count),
            GpuRequest::Share(milli) => self.free.iter().any(|free| *free >= milli),
        };
        gpus_fit && self.has_room_beside_gpus(pod)
    }

    /// Whether CPU and memory suffice for a pod.
    pub const fn has_room_beside_gpus(&self, pod: &PodRequest) -> bool {
        self.cpu_milli >= pod.cpu_milli && self.memory_mib >= pod.memory_mib
    }

    fn idle(&self) -> u64 {
        let bits = self.free.iter().enumerate().filter(|(_, free)| **free == WHOLE_MILLI);
        bits.fold(0, |mask, (gpu, _)| mask | 1 << gpu)
    }

    /// GPUs for the pod: those that were idle before come first, or the fullest one with room for a share.
    pub fn chosen(&self, before: &NodeState, request: GpuRequest) -> Option<GpuPlace> {
        match request {
            GpuRequest::Share(milli) => {
                let fits = self.free.iter().enumerate().filter(|(_, free)| **free >= milli);
                let (gpu, _) = fits.min_by_key(|(gpu, free)| (**free, *gpu))?;
                Some(GpuPlace::Share { gpu: gpu as u8, milli })
            }
            GpuRequest::Whole(count) => {
                let idle = before.idle_mask();
                let first = lowest(idle, count.min(idle.count_ones() as u16))?;
                let rest = lowest(self.idle() & !idle, count - first.count_ones() as u16)?;
                Some(GpuPlace::Whole { mask: first | rest })
            }
        }
    }
}

#[cfg(test)]
impl Fleet {
    /// [`cheapest`](Self::cheapest) by a look at every node.
    pub(super) fn agrees_with_a_look_at_every_node(&self, gang: &Gang, now: UnixSeconds, history: History) -> bool {
        let settings = &PreemptionSettings::default();
        let costs = Costs::new(now, history, settings, self.gpus);
        let searched = self.cheapest(gang, &costs);
        if searched.as_ref().is_some_and(|(_, candidate)| candidate.victims.is_empty()) {
            return self.first_place(gang).is_some();
        }
        let each = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(number, node)| node.takes(&gang.pod) && !self.spot[*number].is_empty());
        let all = each.filter_map(|(number, node)| Some((number, self.candidate(number, node, gang, &costs)?)));
        let order = |(a, one): &(usize, Candidate), (b, other): &(usize, Candidate)| {
            one.cost.order(&other.cost).then(self.key(*a).order(&self.key(*b), gang.class))
        };
        let least = all.min_by(order);
        searched.map(|(node, candidate)| (node, candidate.victims, candidate.gpus))
            == least.map(|(node, candidate)| (node, candidate.victims, candidate.gpus))
    }
}
