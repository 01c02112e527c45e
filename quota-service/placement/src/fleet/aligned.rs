//! Placement and eviction for pods whose GPUs are to lie together.
//!
//! Idle GPUs come first, as for every pod. Where a task has to be evicted, the aims are in this order: how well the GPUs lie, then
//! the fewest broken promises, the fewest victims, the least waste; then the order of nodes, the victims' names, and the
//! lowest GPUs. What the pod would get counts, idle GPUs and freed ones together.

use super::evicting::{AlignedCost, Evicting, Found, MOST_OCCUPANTS};
use super::index::Key;
use super::node::NodeState;
use super::preempt::{Candidate, Costs};
use super::{Fleet, Gang, GpuPlace, GpuRequest, PodPlace, PodRequest};
use crate::topology::{Affinity, Alignment, Ruler, Strictness, Topology};
use std::sync::Arc;
use vocab::TaskId;

/// A pod of several GPUs that are to lie together. One GPU, or a share of one, lies well anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Domain in which the GPUs of a pod have to lie, and how strictly.
    pub affinity: Affinity,
    /// Whole GPUs.
    pub count: u16,
}

impl Wish {
    /// Wish of a pod; `None` without one.
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

    pub(super) fn takes(self, alignment: Alignment) -> bool {
        !self.is_guaranteed() || alignment.is_aligned()
    }
}

/// Rulers of one decision: most nodes share a topology.
pub(super) struct Rulers<'a> {
    wish: Wish,
    known: Vec<(&'a Arc<Topology>, Ruler<'a>)>,
}

impl<'a> Rulers<'a> {
    /// Alignment of a wish that no GPU meets yet.
    pub const fn new(wish: Wish) -> Self {
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

    /// How GPUs lie of which nothing is known, if that will do.
    pub fn unknown(&self) -> Option<Alignment> {
        Some(Alignment::UNKNOWN).filter(|alignment| self.wish.takes(*alignment))
    }

    /// How the best of some GPUs of a node would lie, if that will do.
    pub fn best(&mut self, node: &'a NodeState, available: u64) -> Option<Alignment> {
        let wish = self.wish;
        let best = match &node.topology {
            Some(topology) => self.of(topology).best(available),
            None => (available.count_ones() >= u32::from(wish.count)).then_some(Alignment::UNKNOWN),
        };
        best.filter(|alignment| wish.takes(*alignment))
    }
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
    /// The measure of a gang's pods: none under a policy without topology.
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
            // Where a set that lies well is known already, only such are grown.
            if best.as_ref().is_none_or(|best| !best.cost.alignment.is_aligned()) {
                let Some(possible) = rulers.best(node, node.mask(|gpu| gpu.hp == 0)) else { continue };
                if best.as_ref().is_some_and(|best| best.cost.alignment < possible) {
                    continue;
                }
            }
            let found = match &node.topology {
                Some(topology) => self.on_node(number, gang, rulers.of(topology), wish, best.as_ref(), costs),
                None if best.as_ref().is_some_and(|best| best.cost.alignment < Alignment::UNKNOWN) => None,
                None if wish.is_guaranteed() => None,
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
        debug_assert!(!victims.is_empty(), "idle GPUs would have been taken first");
        Some((node, Candidate { victims, cost: costs.of(0, 0, 0), gpus }))
    }

    /// The cost of a node without a known topology: as for a pod that does not care.
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
        let ceiling = best.map(|best| best.cost);
        if ceiling.is_some_and(|ceiling| !Evicting::may_reach(&ceiling, wish, node, occupants, costs)) {
            return None;
        }
        let search = Evicting::new(ruler, wish, (node, &gang.pod), occupants, ceiling, costs);
        let Found { cost, victims, gpus, .. } = search.find()?;
        debug_assert!(wish.takes(cost.alignment), "a guaranteed wish is met");
        let names = occupants.iter().enumerate().filter(|(place, _)| victims >> place & 1 == 1);
        let victims = names.map(|(_, one)| one.task.clone()).collect();
        Some(Best { cost, key: self.key(number), node: number, victims, gpus: GpuPlace::Whole { mask: gpus } })
    }
}
