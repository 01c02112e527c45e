//! Choice of victims. Pure: time is passed in.

use crate::view::facts::{Life, PodFacts, Uid};
use crate::view::{View, fits_a_fleet, gang_of, task_of};
use placement::fleet::{Fleet, Gang, History, Plan, Workload};
use placement::{Circumstances, Decision, QueueOrder, decide};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{GpuModel, TaskClass, TaskId, UnixSeconds};

/// GPUs that an HP pod is to get, and the victims that free them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// GPU model of the pool.
    pub model: GpuModel,
    plan: Plan,
    /// Victims that are still there.
    pub victims: BTreeSet<Uid>,
    /// When they were chosen.
    pub since: UnixSeconds,
    /// When they are evicted, unless all of them have saved their work before.
    pub at: UnixSeconds,
    /// Those that were.
    pub evicted: BTreeSet<Uid>,
    /// Since when all of them are gone.
    pub free_since: Option<UnixSeconds>,
}

impl Claim {
    /// Whether HP pods hold GPUs that were freed: they came since, and those that are left do not suffice.
    #[must_use]
    pub fn was_taken_by_hp(&self, view: &View, pod: &PodFacts) -> bool {
        let Some(fleet) = view.pools().get(&self.model).map(|pool| &pool.fleet) else { return false };
        let places = self.plan.places.iter().filter_map(|place| fleet.nodes().get(place.node));
        let mut full = places.filter(|node| node.idle_mask().count_ones() < pod.gpus);
        full.any(|node| {
            let mut here = view.pods().values().filter(|other| other.node.as_ref() == Some(&node.id));
            here.any(|other| other.class == TaskClass::Hp && other.life == Life::Runs && other.since() >= self.since)
        })
    }
}

/// Gives what is still being freed for HP pods that have their place to those whose freed GPUs they took: where two wait, the scheduler
/// decides which of them gets the first place. Answers claims whose GPUs went to an HP pod that had none.
pub fn hand_over(claims: &mut BTreeMap<Uid, Claim>, view: &View, waits: impl Fn(&Uid) -> bool) -> Vec<Uid> {
    let is_robbed = |(uid, claim): &(&Uid, &Claim)| {
        let taken = |pod: &PodFacts| claim.was_taken_by_hp(view, pod);
        claim.free_since.is_some() && waits(uid) && view.pod(uid).is_some_and(taken)
    };
    let mut robbed: Vec<Uid> = claims.iter().filter(is_robbed).map(|(uid, _)| *uid).collect();
    let served: Vec<Uid> = claims.keys().filter(|uid| !waits(uid)).copied().collect();
    for served in served {
        let Some(claim) = claims.remove(&served).filter(|claim| !claim.victims.is_empty()) else { continue };
        let Some(before) = view.pod(&served) else { continue };
        let is_alike = |uid: &Uid| {
            let same_pool = claims.get(uid).is_some_and(|lost| lost.model == claim.model);
            let asks_no_more = |pod: &PodFacts| pod.amount() <= before.amount() && pod.priority >= before.priority;
            same_pool && view.pod(uid).is_some_and(asks_no_more)
        };
        if let Some(found) = robbed.iter().position(is_alike) {
            let heir = robbed.remove(found);
            let Plan { gang, places, victims } = claim.plan;
            let plan = Plan { gang: Gang { task: task_of(heir), ..gang }, places, victims };
            claims.insert(heir, Claim { plan, ..claim });
        }
    }
    robbed
}

/// Held GPUs, and pods that are not to be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    /// Claims by HP pod.
    pub claims: &'a BTreeMap<Uid, Claim>,
    /// Pods whose eviction was refused lately.
    pub spared: &'a BTreeSet<Uid>,
}

/// Chooses victims for HP pods that are unschedulable, the first in the queue first. One that fits idle GPUs is left to the
/// scheduler, and so is one that would evict pods that are not below it in priority.
#[must_use]
pub fn choose(
    view: &View,
    waiting: &BTreeSet<Uid>,
    held: Held<'_>,
    at: UnixSeconds,
    now: UnixSeconds,
) -> Vec<(Uid, Claim)> {
    let mut chosen = Vec::new();
    for model in view.pools().keys() {
        let mut asking: Vec<&PodFacts> = waiting.iter().filter_map(|uid| view.pod(uid)).collect();
        let is_open = |pod: &PodFacts| fits_a_fleet(pod) && !held.claims.contains_key(&pod.uid);
        asking.retain(|pod| is_open(pod) && view.model_of(pod).as_ref() == Some(model));
        if asking.is_empty() {
            continue;
        }
        asking.sort_by_key(|pod| QueueOrder::of(&gang_of(pod), pod.created));
        let Some(mut fleet) = as_it_will_be(view, model, held) else { continue };
        for pod in asking {
            let Some(plan) = planned(&mut fleet, view, pod, now) else { continue };
            let victims: BTreeSet<Uid> = plan.victims.iter().map(|task| Uid::of(task.as_str())).collect();
            let is_below = |uid: &Uid| view.pod(uid).is_some_and(|victim| victim.priority < pod.priority);
            if !victims.iter().all(is_below) || fleet.apply(&plan, now, None).is_err() || victims.is_empty() {
                continue;
            }
            let plan = Plan { victims: Vec::new(), ..plan };
            let evicted = BTreeSet::new();
            chosen.push((
                pod.uid,
                Claim { model: model.clone(), plan, victims, since: now, at, evicted, free_since: None },
            ));
        }
    }
    chosen
}

fn planned(fleet: &mut Fleet, view: &View, pod: &PodFacts, now: UnixSeconds) -> Option<Plan> {
    let (policy, workload) = (view.policy(), &Workload::default());
    let on = Circumstances { now, limits: &[], history: History::default(), policy, workload, may_evict: true };
    match decide(fleet, &gang_of(pod), None, &on) {
        Decision::Start { plan, .. } => Some(plan),
        Decision::Wait(_) => None,
    }
}

/// The pool once those that are going have gone and those have come for whom GPUs are held. A spared pod cannot be chosen.
fn as_it_will_be(view: &View, model: &GpuModel, held: Held<'_>) -> Option<Fleet> {
    let mut fleet = view.pools().get(model)?.fleet.clone();
    for pod in view.pods().values().filter(|pod| pod.is_going && pod.life == Life::Runs) {
        fleet.finish(&task_of(pod.uid));
    }
    for claim in held.claims.values().filter(|claim| claim.model == *model) {
        for victim in &claim.victims {
            fleet.finish(&task_of(*victim));
        }
        // Where others have come in between, there is nothing left to hold.
        let _ = fleet.apply(&claim.plan, claim.at, None);
    }
    for uid in held.spared {
        pin(&mut fleet, &task_of(*uid));
    }
    Some(fleet)
}

/// Makes a task one that is never evicted.
fn pin(fleet: &mut Fleet, task: &TaskId) {
    let Some(running) = fleet.finish(task) else { return };
    let gang = Gang { task: task.clone(), class: TaskClass::Hp, pod: running.pod, pods: running.pods() };
    let plan = Plan { gang, places: running.places, victims: Vec::new() };
    // On a node that takes no pods it fails, and no victim is chosen there.
    let _ = fleet.apply(&plan, running.since, None);
}
