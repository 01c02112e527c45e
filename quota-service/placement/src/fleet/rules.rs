//! Other choices of victims than that of GFS, for rivals and ablations: each looks at every node.

use super::node::{NodeState, WHOLE_MILLI};
use super::preempt::{Candidate, Costs, Room};
use super::{Fleet, Gang, GpuPlace, GpuRequest};
use crate::draw::Draw;
use vocab::TaskId;

/// The victims of an HP pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VictimRule {
    /// Algorithm 2 of GFS: where evictions cost least.
    LeastWaste,
    /// The holders of the first GPUs without HP on the node that has fewest of them.
    Tightest,
    /// Any victim on any node, drawn.
    Random {
        /// The seed of the draws.
        seed: u64,
    },
}

impl VictimRule {
    pub(super) const fn seed(self) -> u64 {
        match self {
            Self::Random { seed } => seed,
            Self::LeastWaste | Self::Tightest => 0,
        }
    }
}

/// A share in millionths, so that nodes of any size compare.
pub(super) fn millionths(part: u32, of: usize) -> u64 {
    debug_assert!(u64::from(part) <= of as u64 * u64::from(WHOLE_MILLI), "a share is at most the whole");
    u64::from(part) * 1_000 / of.max(1) as u64
}

impl Fleet {
    /// The first GPUs without HP on the node that has fewest of them, with any holder; idle ones come first where
    /// `idle_first` says so.
    pub(super) fn tightest(&self, gang: &Gang, costs: &Costs<'_>, idle_first: bool) -> Option<(usize, Candidate)> {
        let candidate = |(number, node): (usize, &NodeState)| {
            let without_hp = node.gpus.iter().filter(|gpu| gpu.hp == 0).count();
            let candidate = self.holders(number, node, gang, costs, idle_first)?;
            Some((millionths(without_hp as u32 * u32::from(WHOLE_MILLI), node.gpus.len()), number, candidate))
        };
        let open = self.nodes.iter().enumerate().filter(|(_, node)| node.takes(&gang.pod));
        let best = open.filter_map(candidate).min_by_key(|(score, number, _)| (*score, *number));
        best.map(|(_, node, candidate)| (node, candidate))
    }

    /// The spot tasks on the first GPUs that suffice.
    fn holders(
        &self,
        number: usize,
        node: &NodeState,
        gang: &Gang,
        costs: &Costs<'_>,
        idle_first: bool,
    ) -> Option<Candidate> {
        let wanted = match gang.pod.gpus {
            GpuRequest::Whole(gpus) => usize::from(gpus),
            GpuRequest::Share(_) => 1,
        };
        if let GpuRequest::Share(_) = gang.pod.gpus
            && let Some(gpus) = node.place(gang.pod.gpus).filter(|_| node.has_room_beside_gpus(&gang.pod))
        {
            return Some(Candidate { victims: Vec::new(), cost: costs.of(0, 0, 0), gpus });
        }
        let mut takes: Vec<usize> = (0..node.gpus.len()).filter(|gpu| node.gpus[*gpu].hp == 0).collect();
        if idle_first {
            takes.sort_by_key(|gpu| !node.gpus[*gpu].is_idle());
        }
        takes.truncate(wanted);
        if takes.len() < wanted {
            return None;
        }
        let mask = takes.iter().fold(0_u64, |mask, gpu| mask | 1 << gpu);
        debug_assert_eq!(mask.count_ones() as usize, wanted, "each GPU is taken once");
        let (mut room, mut victims) = (Room::of(node), Vec::new());
        // Those on the GPUs first; others of the node where CPU or memory are still short.
        let (on_them, others): (Vec<_>, Vec<_>) =
            self.spot[number].iter().partition(|task| self.holds_any(task, number, mask));
        for task in &on_them {
            room.hold(&self.tasks[*task], number, false);
            victims.push((*task).clone());
        }
        for task in others {
            if room.has_room_beside_gpus(&gang.pod) {
                break;
            }
            room.hold(&self.tasks[task], number, false);
            victims.push(task.clone());
        }
        let gpus = match gang.pod.gpus {
            GpuRequest::Whole(_) => GpuPlace::Whole { mask },
            GpuRequest::Share(milli) => GpuPlace::Share { gpu: *takes.first()? as u8, milli },
        };
        room.has_room_beside_gpus(&gang.pod).then(|| Candidate { victims, cost: costs.of(0, 0, 0), gpus })
    }

    fn holds_any(&self, task: &TaskId, node: usize, mask: u64) -> bool {
        let here = self.tasks[task].places.iter().filter(|place| place.node == node);
        here.into_iter().any(|place| match place.gpus {
            GpuPlace::Whole { mask: held } => held & mask != 0,
            GpuPlace::Share { gpu, .. } => mask >> gpu & 1 == 1,
        })
    }

    /// A node that would do, drawn, and tasks of it, drawn, until the pod fits.
    pub(super) fn drawn(&self, gang: &Gang, costs: &Costs<'_>, draw: &mut Draw) -> Option<(usize, Candidate)> {
        let would_do = |(number, node): &(usize, &NodeState)| {
            let mut room = Room::of(node);
            self.spot[*number].iter().for_each(|task| room.hold(&self.tasks[task], *number, false));
            node.takes(&gang.pod) && room.satisfies(&gang.pod)
        };
        let nodes: Vec<_> = self.nodes.iter().enumerate().filter(would_do).collect();
        let (number, node) = *nodes.get(draw.below(nodes.len())?)?;
        let mut tasks: Vec<&TaskId> = self.spot[number].iter().collect();
        let (mut room, mut victims) = (Room::of(node), Vec::new());
        while !room.satisfies(&gang.pod) {
            let task = tasks.swap_remove(draw.below(tasks.len())?);
            room.hold(&self.tasks[task], number, false);
            victims.push(task.clone());
        }
        let gpus = room.chosen(node, gang.pod.gpus)?;
        debug_assert!(
            victims.iter().all(|task| self.tasks[task].class == vocab::TaskClass::Spot),
            "HP is never evicted"
        );
        Some((number, Candidate { victims, cost: costs.of(0, 0, 0), gpus }))
    }
}
