//! Non-preemptive placement (GFS Algorithm 1), and how a plan becomes real.

mod slots;

use super::lent::mask_of;
use super::score::{ScoreRule, Workload};
use super::trial::Trial;
use super::{Fleet, Gang, GpuPlace, GpuRequest, Guarantee, PodPlace, Running};
use crate::invariants;
use crate::topology::scarcest;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{TaskClass, TaskId, UnixSeconds};

/// Where the pods of a task go, and which tasks have to go for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The gang to be placed.
    pub gang: Gang,
    /// Place of each pod.
    pub places: Vec<PodPlace>,
    /// Spot tasks, the first chosen first; none where idle GPUs suffice.
    pub victims: Vec<TaskId>,
}

/// Why a plan no longer holds. Nothing of it was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// The task runs already.
    #[error("task {task} runs already")]
    Runs {
        /// The task that runs already.
        task: TaskId,
    },
    /// A victim runs no more.
    #[error("task {task}, which was to be evicted, no longer runs")]
    VictimGone {
        /// The victim that does not run.
        task: TaskId,
    },
    /// A victim is not a spot task.
    #[error("task {task} is not spot: it cannot be evicted")]
    VictimNotSpot {
        /// The victim that is HP.
        task: TaskId,
    },
    /// A GPU of the place is taken.
    #[error("node number {node} no longer has what pod {pod} was to get")]
    Taken {
        /// Number of the node.
        node: usize,
        /// Number of the pod in the plan.
        pod: usize,
    },
    /// A GPU of the place is lent.
    #[error("on node number {node} an elastic task still has what is to be pod {pod}'s")]
    Lent {
        /// Number of the node.
        node: usize,
        /// Number of the pod in the plan.
        pod: usize,
    },
    /// The plan has places for other pods than the gang has.
    #[error("the plan has {have} places for {pods} pods")]
    NotWhole {
        /// Places in the plan.
        have: usize,
        /// Pods of the gang.
        pods: u32,
    },
}

impl Fleet {
    /// Places a gang on what is idle, pod after pod, each on the first node of Algorithm 1 that fits; none if not all fit.
    /// Leaves everything as it was.
    pub fn plan(&mut self, gang: &Gang) -> Option<Plan> {
        self.plan_by(gang, ScoreRule::Gfs, &Workload::default())
    }

    /// [`plan`](Self::plan) by another order of nodes.
    pub fn plan_by(&mut self, gang: &Gang, rule: ScoreRule, workload: &Workload) -> Option<Plan> {
        if self.is_blind_to(gang) || !self.index.could_hold(gang.pod.gpus, gang.pods, false) {
            return None;
        }
        let mut trial = Trial::of(self, gang);
        for number in 0..gang.pods {
            let place = trial.place_by(gang, rule, workload, number)?;
            trial.place(place);
        }
        let (places, victims) = trial.end();
        debug_assert!(victims.is_empty(), "{} evicts without preemption", gang.task);
        Some(Plan { gang: gang.clone(), places, victims })
    }

    /// Idle GPUs of open nodes from which spot stays away, since it was evicted there too often within the hour.
    #[must_use]
    pub fn resting_gpus(&self) -> u32 {
        let open = self.evictions.resting().map(|node| &self.nodes[node]).filter(|node| node.is_open);
        open.map(|node| u32::from(node.idle)).sum()
    }

    /// The place of one pod, by Algorithm 1.
    pub(super) fn first_place(&self, gang: &Gang) -> Option<PodPlace> {
        if let Some(wish) = self.wish(gang) {
            return self.first_aligned(gang, wish);
        }
        let node = self.index.first(&self.nodes, &gang.pod, gang.class, self.evictions.breaker())?;
        let here = &self.nodes[node];
        let gpus = match (&here.topology, gang.pod.gpus) {
            (Some(topology), GpuRequest::Whole(count)) if self.is_aware => {
                let unlent = scarcest(topology, here.idle_mask() & !here.lent, count);
                let mask = unlent.or_else(|| scarcest(topology, here.idle_mask(), count));
                mask.map(|mask| GpuPlace::Whole { mask })
            }
            (_, request) => here.place(request),
        };
        Some(PodPlace { node, gpus: gpus? })
    }

    /// Does what a plan says, all of it or nothing: it is held against what is there now. Answers the tasks that were
    /// evicted for it, in the plan's order.
    ///
    /// # Errors
    /// The plan no longer holds.
    pub fn apply(
        &mut self,
        plan: &Plan,
        now: UnixSeconds,
        guarantee: Option<Guarantee>,
    ) -> Result<Vec<(TaskId, Running)>, PlanFault> {
        self.check(plan)?;
        invariants::only_spot_is_evicted(self, plan);
        let mut evicted = Vec::with_capacity(plan.victims.len());
        for victim in &plan.victims {
            let Some(running) = self.finish(victim) else { continue };
            // An eviction counts once on each of its nodes.
            let nodes: BTreeSet<usize> = running.places.iter().map(|place| place.node).collect();
            for node in nodes {
                let counts = self.evictions.count(node, now);
                self.change(node, |state| state.evictions = counts);
            }
            evicted.push((victim.clone(), running));
        }
        let Plan { gang: Gang { task, class, pod, .. }, places, .. } = plan;
        let (class, pod, places) = (*class, *pod, places.clone());
        let running = Running { class, pod, places, lent: Vec::new(), since: now, saved: now, guarantee };
        debug_assert_eq!(evicted.len(), plan.victims.len(), "a checked plan evicts all its victims");
        self.hold(task, &running, true);
        let before = self.tasks.insert(task.clone(), running);
        debug_assert!(before.is_none(), "{task} runs twice");
        Ok(evicted)
    }

    /// Whether a plan holds now.
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self, plan: &Plan) -> Result<(), PlanFault> {
        let gang = &plan.gang;
        if self.tasks.contains_key(&gang.task) {
            return Err(PlanFault::Runs { task: gang.task.clone() });
        }
        if plan.places.len() != gang.pods as usize {
            return Err(PlanFault::NotWhole { have: plan.places.len(), pods: gang.pods });
        }
        // The nodes as they will be: without the victims, then with one pod after the other.
        let mut after = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for victim in &plan.victims {
            let task = victim.clone();
            // A task that is named twice is gone by the second time.
            let running = self.tasks.get(victim).filter(|_| seen.insert(victim));
            let Some(running) = running else { return Err(PlanFault::VictimGone { task }) };
            if running.class != TaskClass::Spot {
                return Err(PlanFault::VictimNotSpot { task });
            }
            for place in &running.places {
                let node = after.entry(place.node).or_insert_with(|| self.nodes[place.node].clone());
                node.hold(place.gpus, &running.pod, running.class, false);
            }
            for place in &running.lent {
                let node = after.entry(place.node).or_insert_with(|| self.nodes[place.node].clone());
                node.lend(mask_of(place.gpus), &running.pod, false);
            }
        }
        for (pod, place) in plan.places.iter().enumerate() {
            let taken = PlanFault::Taken { node: place.node, pod };
            let Some(now) = self.nodes.get(place.node) else { return Err(taken) };
            let node = after.entry(place.node).or_insert_with(|| now.clone());
            if !node.takes(&gang.pod) || !node.can_hold(place.gpus) || !node.has_room_beside_gpus(&gang.pod) {
                return Err(taken);
            }
            node.hold(place.gpus, &gang.pod, gang.class, true);
            if !node.loans_fit() {
                return Err(PlanFault::Lent { node: place.node, pod });
            }
        }
        Ok(())
    }
}
