//! GPUs that are lent to elastic tasks: idle to every decision, and yet in use until another task gets them.
//!
//! An elastic task owns as many pods as it needs at least; what it has above that is lent. So a task can be helped by GPUs
//! that cannot be promised to any task, and a placed task takes them back without an eviction.

use super::node::lowest;
use super::{Fleet, GpuPlace, GpuRequest, Plan, PlanFault, PodPlace, PodRequest, Running};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{TaskClass, TaskId};

/// GPUs of a node that can still be lent.
#[derive(Debug, Clone, Copy)]
pub struct Spare {
    /// GPUs that are lent, as bits.
    pub gpus: u64,
    cpu_milli: u64,
    memory_mib: u64,
    /// GPUs without HP: where there are many, HP comes last.
    pub without_hp: u32,
}

impl Spare {
    /// Takes what a pod needs; none where that is not there.
    pub fn take(&mut self, pod: &PodRequest) -> Option<GpuPlace> {
        let GpuRequest::Whole(count @ 1..) = pod.gpus else { return None };
        let mask = lowest(self.gpus, count)?;
        self.cpu_milli = less(self.cpu_milli, pod.cpu_milli)?;
        self.memory_mib = less(self.memory_mib, pod.memory_mib)?;
        debug_assert_eq!(mask & !self.gpus, 0, "a pod takes GPUs that are not spare");
        debug_assert_eq!(mask.count_ones(), u32::from(count), "a pod takes the GPUs that it asks for");
        self.gpus &= !mask;
        Some(GpuPlace::Whole { mask })
    }
}

/// Unknown parts stay unknown.
fn less(free: u64, asked: u64) -> Option<u64> {
    if free == u64::MAX { Some(free) } else { free.checked_sub(asked) }
}

/// The GPUs of a place, whole or not.
#[must_use]
pub const fn mask_of(place: GpuPlace) -> u64 {
    match place {
        GpuPlace::Whole { mask } => mask,
        GpuPlace::Share { gpu, .. } => 1 << gpu,
    }
}

/// GPUs that a plan takes, by node.
#[must_use]
pub fn taken(plan: &Plan) -> BTreeMap<usize, u64> {
    let mut taken: BTreeMap<usize, u64> = BTreeMap::new();
    for place in &plan.places {
        *taken.entry(place.node).or_default() |= mask_of(place.gpus);
    }
    taken
}

impl Fleet {
    /// Tasks with a lent pod on a node.
    #[must_use]
    pub fn borrowers(&self, node: usize) -> &BTreeSet<TaskId> {
        &self.lent[node]
    }

    /// Nodes with GPUs that nobody has and nobody was lent.
    #[must_use]
    pub fn spares(&self) -> BTreeMap<usize, Spare> {
        let spare = |(number, node): (usize, &super::NodeState)| {
            let gpus = node.idle_mask() & !node.lent;
            let spare = Spare {
                gpus,
                cpu_milli: node.free_cpu_milli.saturating_sub(if node.cpu_milli == u64::MAX {
                    0
                } else {
                    node.lent_cpu_milli
                }),
                memory_mib: node.free_memory_mib.saturating_sub(if node.memory_mib == u64::MAX {
                    0
                } else {
                    node.lent_memory_mib
                }),
                without_hp: node.gpus.iter().filter(|gpu| gpu.hp == 0).count() as u32,
            };
            (node.takes_pods() && gpus != 0).then_some((number, spare))
        };
        self.nodes.iter().enumerate().filter_map(spare).collect()
    }

    /// Gives a running spot task other pods: those of its own, and those that are lent.
    ///
    /// # Errors
    /// It does not run or is not spot, or a GPU belongs to another task; nothing has changed.
    pub fn resize(&mut self, task: &TaskId, places: Vec<PodPlace>, lent: Vec<PodPlace>) -> Result<(), PlanFault> {
        let gone = || PlanFault::VictimGone { task: task.clone() };
        let before = self.tasks.get(task).ok_or_else(gone)?.clone();
        if before.class != TaskClass::Spot {
            return Err(PlanFault::VictimNotSpot { task: task.clone() });
        }
        self.finish(task);
        let after = Running { places, lent, ..before.clone() };
        let fits = self.fits_beside(&after);
        let stays = if fits.is_ok() { after } else { before };
        debug_assert!(!self.tasks.contains_key(task), "{task} runs while it is resized");
        self.hold(task, &stays, true);
        self.tasks.insert(task.clone(), stays);
        fits
    }

    /// Counts a task as one of that class; answers how it ran.
    pub(crate) fn set_class(&mut self, task: &TaskId, class: TaskClass) -> Option<Running> {
        let before = self.finish(task)?;
        let after = Running { class, ..before.clone() };
        self.hold(task, &after, true);
        self.tasks.insert(task.clone(), after);
        Some(before)
    }

    /// Whether all pods of a task have room on what nobody has and nobody was lent.
    fn fits_beside(&self, running: &Running) -> Result<(), PlanFault> {
        let mut after = BTreeMap::new();
        let own = running.places.iter().map(|place| (place, false));
        for (pod, (place, is_lent)) in own.chain(running.lent.iter().map(|place| (place, true))).enumerate() {
            let taken = PlanFault::Taken { node: place.node, pod };
            let Some(now) = self.nodes.get(place.node) else { return Err(taken) };
            let node = after.entry(place.node).or_insert_with(|| now.clone());
            if now.is_gone || !node.can_hold(place.gpus) || mask_of(place.gpus) & node.lent != 0 {
                return Err(taken);
            }
            if is_lent {
                node.lend(mask_of(place.gpus), &running.pod, true);
            } else if node.has_room_beside_gpus(&running.pod) {
                node.hold(place.gpus, &running.pod, running.class, true);
            } else {
                return Err(taken);
            }
            if !node.loans_fit() {
                return Err(taken);
            }
        }
        Ok(())
    }

    /// Moves a plan on each of its nodes to GPUs that are lent to nobody, as far as there are any, and of lent ones to those
    /// with the least claim: `claim` is that of a borrower that has given so many pods already, and the largest gives first.
    ///
    /// GPUs that lie as a task asks for stay as they are.
    pub fn prefer_unlent<C: Ord>(&self, plan: &mut Plan, claim: impl Fn(&TaskId, u32) -> C) {
        if self.is_aware {
            return;
        }
        let freed = self.lent_to(&plan.victims);
        let mut used = taken(plan);
        for place in &mut plan.places {
            let GpuPlace::Whole { mask } = place.gpus else { continue };
            let node = &self.nodes[place.node];
            let lent = node.lent & !freed.get(&place.node).copied().unwrap_or(0);
            let hit = mask & lent;
            if hit == 0 {
                continue;
            }
            let here = used.entry(place.node).or_default();
            let free = (node.idle_mask() & !*here) | hit;
            let count = hit.count_ones() as u16;
            let unlent = lowest(free & !lent, count.min((free & !lent).count_ones() as u16)).unwrap_or(0);
            let more = count - unlent.count_ones() as u16;
            let moved = (mask & !hit) | unlent | self.given(place.node, free & lent, more, &claim);
            debug_assert_eq!(unlent & lent, 0, "GPUs that are lent to no task");
            if moved.count_ones() == mask.count_ones() {
                *here = (*here & !mask) | moved;
                place.gpus = GpuPlace::Whole { mask: moved };
            }
        }
    }

    /// GPUs that these tasks were lent, by node.
    fn lent_to(&self, tasks: &[TaskId]) -> BTreeMap<usize, u64> {
        let mut lent: BTreeMap<usize, u64> = BTreeMap::new();
        for place in tasks.iter().filter_map(|task| self.tasks.get(task)).flat_map(|running| &running.lent) {
            *lent.entry(place.node).or_default() |= mask_of(place.gpus);
        }
        lent
    }

    /// So many of these lent GPUs, from the borrowers that give first.
    fn given<C: Ord>(&self, node: usize, from: u64, count: u16, claim: impl Fn(&TaskId, u32) -> C) -> u64 {
        let mut chosen = 0_u64;
        let mut gives: Vec<(&TaskId, u32)> = self.lent[node].iter().map(|task| (task, 0)).collect();
        while (chosen.count_ones() as u16) < count {
            let weakest = gives.iter().enumerate().max_by_key(|(_, (task, given))| (claim(task, *given), *task));
            let Some((at, (task, _))) = weakest else { break };
            let pods = self.tasks[*task].lent.iter().rev().filter(|place| place.node == node);
            let mut masks = pods.map(|place| mask_of(place.gpus) & from & !chosen);
            if let Some(mask) = masks.find(|mask| *mask != 0) {
                chosen |= mask;
                gives[at].1 += 1;
            } else {
                gives.swap_remove(at);
            }
        }
        debug_assert_eq!(chosen & !from, 0, "borrowers give what they were lent");
        lowest(chosen, count).unwrap_or(chosen)
    }
}
