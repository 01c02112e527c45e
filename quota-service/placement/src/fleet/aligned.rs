//! Placement and eviction for pods whose GPUs are to lie together.
//!
//! Idle GPUs come first, as for every pod. Where somebody has to go, the aims are in this order: how well the GPUs lie, then
//! the fewest broken promises, the fewest victims, the least waste; then the order of nodes, the victims' names, and the
//! lowest GPUs. What the pod would get counts, idle GPUs and freed ones together.

use super::index::Key;
use super::node::NodeState;
use super::occupants::Occupant;
use super::preempt::{Candidate, Costs};
use super::{Fleet, Gang, GpuPlace, GpuRequest, PodPlace, PodRequest};
use crate::topology::{Affinity, Alignment, Ruler, Search, Strictness, Topology, Touched, each_set};
use std::cmp::Ordering;
use std::sync::Arc;
use vocab::TaskId;

/// A pod of several GPUs that are to lie together. One GPU, or a share of one, lies well anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    pub affinity: Affinity,
    /// Whole GPUs.
    pub count: u16,
}

impl Wish {
    #[must_use]
    pub const fn of(pod: &PodRequest) -> Option<Self> {
        match (pod.affinity, pod.gpus) {
            (Some(affinity), GpuRequest::Whole(count @ 2..)) => Some(Self { affinity, count }),
            _ => None,
        }
    }

    /// One that waits rather than lie badly.
    #[must_use]
    pub fn is_guaranteed(self) -> bool {
        self.affinity.strictness == Strictness::Guaranteed
    }

    /// How a pod lies on a node. Unknown where the node does not say its topology.
    #[must_use]
    pub fn alignment(self, topology: Option<&Topology>, gpus: GpuPlace) -> Alignment {
        match (topology, gpus) {
            (Some(topology), GpuPlace::Whole { mask }) => {
                Ruler::new(topology, self.affinity.domain, self.count).align(mask)
            }
            _ => Alignment::UNKNOWN,
        }
    }

    fn takes(self, alignment: Alignment) -> bool {
        !self.is_guaranteed() || alignment.is_aligned()
    }
}

/// Rulers of one decision: most nodes share a topology.
struct Rulers<'a> {
    wish: Wish,
    known: Vec<(&'a Arc<Topology>, Ruler<'a>)>,
}

impl<'a> Rulers<'a> {
    const fn new(wish: Wish) -> Self {
        Self { wish, known: Vec::new() }
    }

    fn of(&mut self, topology: &'a Arc<Topology>) -> &Ruler<'a> {
        let at = self.known.iter().position(|(known, _)| Arc::ptr_eq(known, topology));
        let at = at.unwrap_or_else(|| {
            self.known.push((topology, Ruler::new(topology, self.wish.affinity.domain, self.wish.count)));
            self.known.len() - 1
        });
        &self.known[at].1
    }

    /// How the best of some GPUs of a node would lie, if that will do.
    fn best(&mut self, node: &'a NodeState, available: u64) -> Option<Alignment> {
        let wish = self.wish;
        let best = match &node.topology {
            Some(topology) => self.of(topology).best(available),
            None => (available.count_ones() >= u32::from(wish.count)).then_some(Alignment::UNKNOWN),
        };
        best.filter(|alignment| wish.takes(*alignment))
    }
}

/// What an eviction costs, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AlignedCost {
    alignment: Alignment,
    /// Promises that would be broken.
    promised: u32,
    victims: u32,
    waste_milli_gpu_s: u64,
}

/// The best node so far.
struct Best {
    cost: AlignedCost,
    key: Key,
    node: usize,
    victims: Vec<TaskId>,
    gpus: GpuPlace,
}

impl Fleet {
    /// What a gang's pods are to be measured by: none under a policy that does not look at topology.
    pub(super) fn wish(&self, gang: &Gang) -> Option<Wish> {
        Wish::of(&gang.pod).filter(|_| self.is_aware)
    }

    /// Whether a gang asks for what only a policy that looks at topology can keep.
    #[must_use]
    pub fn is_blind_to(&self, gang: &Gang) -> bool {
        !self.is_aware && Wish::of(&gang.pod).is_some_and(Wish::is_guaranteed)
    }

    /// Whether all pods would lie as they ask if the pool were empty.
    #[must_use]
    pub fn could_ever_align(&self, gang: &Gang) -> bool {
        let Some(wish) = Wish::of(&gang.pod).filter(|wish| wish.is_guaranteed()) else { return true };
        let (mut rulers, mut missing) = (Rulers::new(wish), u64::from(gang.pods));
        self.nodes.iter().filter(|node| !node.is_gone).any(|node| {
            let Some(topology) = &node.topology else { return false };
            let ruler = rulers.of(topology);
            let (mut available, mut sets) = (node.mask(|_| true), 0);
            while ruler.best(available).is_some_and(Alignment::is_aligned) {
                available &= !ruler.choose(available).unwrap_or(u64::MAX);
                sets += 1;
            }
            missing = missing.saturating_sub(node.pods_when_empty(&gang.pod).min(sets));
            missing == 0
        })
    }

    /// The idle GPUs that lie best, on the first node of Algorithm 1 that has such.
    pub(super) fn first_aligned<'a>(&'a self, gang: &Gang, wish: Wish) -> Option<PodPlace> {
        let mut rulers = Rulers::new(wish);
        let best = |node: &'a NodeState| rulers.best(node, node.idle_mask());
        let node = self.index.first_by(&self.nodes, &gang.pod, gang.class, self.evictions.breaker(), best)?;
        let here = &self.nodes[node];
        let gpus = match &here.topology {
            Some(topology) => GpuPlace::Whole { mask: Rulers::new(wish).of(topology).choose(here.idle_mask())? },
            None => here.place(gang.pod.gpus)?,
        };
        Some(PodPlace { node, gpus })
    }

    /// The node and the tasks that have to go there, by the aims above. Every set of
    /// GPUs without HP is grown GPU by GPU, and given up as soon as it is worse than what is known.
    ///
    /// Exact on nodes of up to 16 GPUs (beyond, see [`each_set`]) where, if CPU or memory are short, 200,000 sets of further
    /// victims suffice; a node with more than 128 spot tasks is left out.
    pub(super) fn cheapest_aligned(&self, gang: &Gang, wish: Wish, costs: &Costs<'_>) -> Option<(usize, Candidate)> {
        if let Some(place) = self.first_aligned(gang, wish) {
            return Some((place.node, Candidate { victims: Vec::new(), cost: costs.of(0, 0, 0), gpus: place.gpus }));
        }
        let mut rulers = Rulers::new(wish);
        let mut best: Option<Best> = None;
        for (number, node) in self.nodes.iter().enumerate() {
            if !node.takes(&gang.pod) || (node.topology.is_some() && self.occupants[number].len() > MOST_OCCUPANTS) {
                continue;
            }
            let Some(possible) = rulers.best(node, node.mask(|gpu| gpu.hp == 0)) else { continue };
            if best.as_ref().is_some_and(|best| best.cost.alignment < possible) {
                continue;
            }
            let found = match &node.topology {
                Some(topology) => self.on_node(number, gang, rulers.of(topology), wish, best.as_ref(), costs),
                None => self.on_unknown(number, gang, costs),
            };
            let Some(one) = found else { continue };
            let is_better = best
                .as_ref()
                .is_none_or(|best| one.cost.cmp(&best.cost).then_with(|| one.key.order(&best.key, gang.class)).is_lt());
            if is_better {
                best = Some(one);
            }
        }
        let Best { node, victims, gpus, .. } = best?;
        Some((node, Candidate { victims, cost: costs.of(0, 0, 0), gpus }))
    }

    /// What a node would cost that does not say its topology: as for a pod that does not care.
    fn on_unknown(&self, number: usize, gang: &Gang, costs: &Costs<'_>) -> Option<Best> {
        let Candidate { victims, gpus, .. } = self.candidate(number, &self.nodes[number], gang, costs)?;
        let worths = victims.iter().map(|task| costs.worth(&self.tasks[task]));
        let (promised, waste_milli_gpu_s) =
            worths.fold((0, 0), |(promised, waste), (one, of)| (promised + u32::from(one), waste + of));
        let cost =
            AlignedCost { alignment: Alignment::UNKNOWN, promised, victims: victims.len() as u32, waste_milli_gpu_s };
        Some(Best { cost, key: self.key(number), node: number, victims, gpus })
    }

    fn on_node(
        &self,
        number: usize,
        gang: &Gang,
        ruler: &Ruler<'_>,
        wish: Wish,
        best: Option<&Best>,
        costs: &Costs<'_>,
    ) -> Option<Best> {
        let (node, occupants) = (&self.nodes[number], &self.occupants[number]);
        let lacking = [
            gang.pod.cpu_milli.saturating_sub(node.free_cpu_milli),
            gang.pod.memory_mib.saturating_sub(node.free_memory_mib),
        ];
        let mut search = Evicting {
            ruler,
            wish,
            burdens: occupants.iter().map(|one| Burden::of(one, costs)).collect(),
            held: [0; 64],
            without_hp: node.mask(|gpu| gpu.hp == 0),
            lacking,
            covers_left: MOST_COVERS,
            ceiling: best.map(|best| best.cost),
            found: None,
        };
        for (place, one) in occupants.iter().enumerate() {
            super::numbers(one.gpus).for_each(|gpu| search.held[gpu] |= 1 << place);
        }
        let start = Grown { touched: Touched::default(), victims: 0, promised: 0, waste_milli_gpu_s: 0 };
        each_set(ruler, search.without_hp, start, &mut search);
        let Found { cost, victims, gpus, .. } = search.found?;
        let names = occupants.iter().enumerate().filter(|(place, _)| victims >> place & 1 == 1);
        let victims = names.map(|(_, one)| one.task.clone()).collect();
        Some(Best { cost, key: self.key(number), node: number, victims, gpus: GpuPlace::Whole { mask: gpus } })
    }
}

/// Spot tasks of a node are a bit each.
const MOST_OCCUPANTS: usize = 128;
/// Sets of further victims that are looked at on a node where CPU or memory are short.
const MOST_COVERS: u32 = 200_000;

/// What a spot task would lose, and what its end would give back.
#[derive(Debug, Clone, Copy)]
struct Burden {
    promised: u32,
    waste_milli_gpu_s: u64,
    gives: [u64; 2],
}

impl Burden {
    fn of(one: &Occupant, costs: &Costs<'_>) -> Self {
        let (promised, waste_milli_gpu_s) = costs.worth_of(one.is_guaranteed, one.gpus_milli, one.saved);
        Self { promised: u32::from(promised), waste_milli_gpu_s, gives: [one.cpu_milli, one.memory_mib] }
    }
}

/// A set of GPUs while it grows, and who has to go for it.
#[derive(Debug, Clone, Copy)]
struct Grown {
    touched: Touched,
    /// One bit for each spot task of the node, by their names.
    victims: u128,
    promised: u32,
    waste_milli_gpu_s: u64,
}

impl Grown {
    fn cost(&self, alignment: Alignment) -> AlignedCost {
        let (promised, waste_milli_gpu_s) = (self.promised, self.waste_milli_gpu_s);
        AlignedCost { alignment, promised, victims: self.victims.count_ones(), waste_milli_gpu_s }
    }
}

/// The search on one node.
struct Evicting<'a> {
    ruler: &'a Ruler<'a>,
    wish: Wish,
    burdens: Vec<Burden>,
    /// By GPU: who holds any part of it.
    held: [u128; 64],
    without_hp: u64,
    /// CPU and memory that the pod needs beyond what is free.
    lacking: [u64; 2],
    covers_left: u32,
    /// What another node costs.
    ceiling: Option<AlignedCost>,
    found: Option<Found>,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    cost: AlignedCost,
    victims: u128,
    left: [u32; 3],
    gpus: u64,
}

impl Evicting<'_> {
    fn evicting(&self, state: Grown, more: u128) -> Grown {
        let (mut grown, mut new) = (state, more & !state.victims);
        grown.victims |= more;
        while new != 0 {
            let burden = &self.burdens[new.trailing_zeros() as usize];
            grown.promised += burden.promised;
            grown.waste_milli_gpu_s += burden.waste_milli_gpu_s;
            new &= new - 1;
        }
        grown
    }

    fn is_within(&self, cost: &AlignedCost) -> bool {
        self.ceiling.is_none_or(|ceiling| *cost <= ceiling) && self.found.is_none_or(|found| *cost <= found.cost)
    }

    /// What CPU and memory are still missing when these tasks are gone.
    fn missing(&self, victims: u128) -> [u64; 2] {
        let gone = self.burdens.iter().enumerate().filter(|(place, _)| victims >> place & 1 == 1);
        gone.fold(self.lacking, |[cpu, memory], (_, one)| {
            [cpu.saturating_sub(one.gives[0]), memory.saturating_sub(one.gives[1])]
        })
    }

    /// Adds the victims that it takes until CPU and memory suffice: the cheapest set there is.
    fn cover(&mut self, state: Grown, from: usize) {
        if self.missing(state.victims) == [0, 0] {
            return self.take(state);
        }
        for place in from..self.burdens.len() {
            if state.victims >> place & 1 == 1 || self.covers_left == 0 {
                continue;
            }
            self.covers_left -= 1;
            let next = self.evicting(state, 1 << place);
            if self.is_within(&next.cost(next.touched.alignment(self.ruler))) {
                self.cover(next, place + 1);
            }
        }
    }

    /// Notes a whole answer if it is the best one so far.
    fn take(&mut self, state: Grown) {
        let cost = state.cost(state.touched.alignment(self.ruler));
        if !self.is_within(&cost) {
            return;
        }
        let (gpus, victims) = (state.touched.gpus, state.victims);
        let freed = super::numbers(self.without_hp).filter(|gpu| self.held[*gpu] & !victims == 0);
        let freed = freed.fold(0, |mask, gpu| mask | 1 << gpu);
        let one = Found { cost, victims, left: self.ruler.left_beside(freed, gpus), gpus };
        let is_better = self.found.is_none_or(|found| {
            let order = one.cost.cmp(&found.cost).then_with(|| by_names(victims, found.victims));
            order.then((one.left, gpus).cmp(&(found.left, found.gpus))).is_lt()
        });
        if is_better {
            self.found = Some(one);
        }
    }
}

/// The order of as many names: who has the first one that the other lacks comes first.
fn by_names(one: u128, other: u128) -> Ordering {
    let differs = one ^ other;
    match (differs, one & differs & differs.wrapping_neg()) {
        (0, _) => Ordering::Equal,
        (_, 0) => Ordering::Greater,
        _ => Ordering::Less,
    }
}

impl Search for Evicting<'_> {
    type State = Grown;

    fn with(&self, state: Grown, gpu: usize) -> Grown {
        Grown { touched: state.touched.with(self.ruler, gpu), ..self.evicting(state, self.held[gpu]) }
    }

    fn may_win(&self, state: &Grown) -> bool {
        let alignment = state.touched.alignment(self.ruler);
        self.wish.takes(alignment) && self.is_within(&state.cost(alignment))
    }

    fn offer(&mut self, state: Grown) {
        self.cover(state, 0);
    }

    fn burden(&self, gpu: usize) -> u64 {
        let holders = super::numbers(self.held[gpu] as u64)
            .chain(super::numbers((self.held[gpu] >> 64) as u64).map(|place| place + 64));
        holders.map(|place| self.burdens[place].waste_milli_gpu_s.saturating_add(1)).sum()
    }
}
