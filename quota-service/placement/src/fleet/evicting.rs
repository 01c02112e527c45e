//! The search on one node: which GPUs lie together, and who has to go for them.

use super::aligned::Wish;
use super::node::{NodeState, numbers};
use super::occupants::Occupant;
use super::preempt::Costs;
use super::request::PodRequest;
use crate::topology::{Alignment, Ruler, Search, Touched, each_set};
use std::cmp::Ordering;

/// The cost of an eviction, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AlignedCost {
    /// How well the freed GPUs meet the wish of the pod.
    pub alignment: Alignment,
    /// Promises that would be broken.
    pub promised: u32,
    /// Number of victims.
    pub victims: u32,
    /// Work that the victims lose, in thousandths of GPU-seconds.
    pub waste_milli_gpu_s: u64,
}

/// Spot tasks of a node are a bit each.
pub(super) const MOST_OCCUPANTS: usize = 128;
/// Sets of further victims that are searched on a node where CPU or memory are short.
const MOST_COVERS: u32 = 200_000;

/// The loss of a spot task, and the gain of its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burden {
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
pub(super) struct Grown {
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
pub(super) struct Evicting<'a> {
    ruler: &'a Ruler<'a>,
    wish: Wish,
    burdens: Vec<Burden>,
    /// By GPU: who holds any part of it.
    held: [u128; 64],
    without_hp: u64,
    /// CPU and memory that the pod needs beyond what is free.
    lacking: [u64; 2],
    covers_left: u32,
    /// The cost of another node.
    ceiling: Option<AlignedCost>,
    found: Option<Found>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// Cost of the choice.
    pub cost: AlignedCost,
    /// Victims as bits, by their position on the node.
    pub victims: u128,
    left: [u32; 3],
    /// Freed GPUs as bits.
    pub gpus: u64,
}

impl<'a> Evicting<'a> {
    /// `ceiling` is what is known to be possible elsewhere: nothing that costs more is looked for.
    pub fn new(
        ruler: &'a Ruler<'a>,
        wish: Wish,
        (node, pod): (&NodeState, &PodRequest),
        occupants: &[Occupant],
        ceiling: Option<AlignedCost>,
        costs: &Costs<'_>,
    ) -> Self {
        debug_assert!(occupants.len() <= MOST_OCCUPANTS, "each has a bit");
        debug_assert!(occupants.is_sorted_by(|one, next| one.task < next.task), "bits are in the order of names");
        let mut held = [0; 64];
        for (place, one) in occupants.iter().enumerate() {
            numbers(one.gpus).for_each(|gpu| held[gpu] |= 1 << place);
        }
        Self {
            ruler,
            wish,
            burdens: occupants.iter().map(|one| Burden::of(one, costs)).collect(),
            held,
            without_hp: node.mask(|gpu| gpu.hp == 0),
            lacking: [
                pod.cpu_milli.saturating_sub(node.free_cpu_milli),
                pod.memory_mib.saturating_sub(node.free_memory_mib),
            ],
            covers_left: MOST_COVERS,
            ceiling,
            found: None,
        }
    }

    /// Whether a node could be as good as what is known, by a glance: as many victims as it takes at least, each of whom
    /// loses as little as any.
    pub fn may_reach(
        ceiling: &AlignedCost,
        wish: Wish,
        node: &NodeState,
        occupants: &[Occupant],
        costs: &Costs<'_>,
    ) -> bool {
        let missing = u32::from(wish.count).saturating_sub(u32::from(node.idle)).max(1);
        let largest = occupants.iter().map(|one| one.gpus.count_ones()).max().unwrap_or(0);
        let Some(victims) = missing.checked_div(largest).map(|_| missing.div_ceil(largest)) else { return false };
        let wastes = occupants.iter().map(|one| Burden::of(one, costs).waste_milli_gpu_s);
        let waste_milli_gpu_s = u64::from(victims) * wastes.min().unwrap_or(0);
        AlignedCost { alignment: Alignment::ALIGNED, promised: 0, victims, waste_milli_gpu_s } <= *ceiling
    }

    /// The set of GPUs, with its victims, that costs least.
    pub fn find(mut self) -> Option<Found> {
        let start = Grown { touched: Touched::default(), victims: 0, promised: 0, waste_milli_gpu_s: 0 };
        each_set(self.ruler, self.without_hp, start, &mut self);
        debug_assert!(self.found.is_none_or(|found| found.gpus & !self.without_hp == 0), "no GPU with HP is freed");
        self.found
    }

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

    /// CPU and memory that are still missing when these tasks are gone.
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
        debug_assert_eq!(self.missing(state.victims), [0, 0], "CPU and memory suffice");
        let cost = state.cost(state.touched.alignment(self.ruler));
        if !self.is_within(&cost) {
            return;
        }
        let (gpus, victims) = (state.touched.gpus, state.victims);
        debug_assert_eq!(gpus.count_ones(), u32::from(self.ruler.count()), "as many GPUs as are wanted");
        let freed = numbers(self.without_hp).filter(|gpu| self.held[*gpu] & !victims == 0);
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
        let holders =
            numbers(self.held[gpu] as u64).chain(numbers((self.held[gpu] >> 64) as u64).map(|place| place + 64));
        holders.map(|place| self.burdens[place].waste_milli_gpu_s.saturating_add(1)).sum()
    }
}
