//! When elastic tasks give pods, and when they get some.

use super::{Elastic, Fact, Pool, Report, ResizeReason};
use crate::fleet::{GpuPlace, Plan, PodPlace, Spare, mask_of, taken};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{NodeId, TaskId, UnixSeconds};

/// The pods of a task: those that it keeps, and those that it is lent.
type Pods = (Vec<PodPlace>, Vec<PodPlace>);

impl Pool {
    fn elastic(&self, task: &TaskId) -> Option<&Elastic> {
        self.requests.get(task)?.request.elastic.as_ref()
    }

    /// Frees what a plan takes of lent GPUs, and spares those of its victims that can go on with the pods that are left: who
    /// can shrink does not die. Answers whether any task has to give anything.
    pub(super) fn make_room(&mut self, plan: &mut Plan, from: UnixSeconds, report: &mut Report) -> bool {
        if self.borrowing.is_empty() {
            return false;
        }
        let claim = |task: &TaskId, given: u32| {
            let request = &self.requests.get(task)?.request;
            let pods = self.fleet.tasks().get(task)?.pods().saturating_sub(given + 1);
            Some(request.claim(request.elastic.as_ref()?, pods))
        };
        self.fleet.prefer_unlent(plan, claim);
        let why = ResizeReason::For { task: plan.gang.task.clone() };
        let mut gave = false;
        for (task, pods) in self.loans_hit(plan) {
            gave |= self.record_resize(&task, pods, &why, from, report);
        }
        gave |= self.free_beside(plan, &why, from, report);
        for victim in plan.victims.clone() {
            gave |= self.spare_victim(plan, &victim, &why, from, report);
        }
        debug_assert!(plan.victims.iter().all(|victim| self.fleet.tasks().contains_key(victim)), "a victim runs");
        gave
    }

    /// Borrowers of GPUs that a plan takes, with the pods that they keep.
    fn loans_hit(&self, plan: &Plan) -> Vec<(TaskId, Pods)> {
        let taken = taken(plan);
        let on_them: BTreeSet<&TaskId> = taken.keys().flat_map(|node| self.fleet.borrowers(*node)).collect();
        let mut hit = Vec::new();
        for task in on_them.into_iter().filter(|task| !plan.victims.contains(task)) {
            debug_assert!(self.borrowing.contains(task), "only elastic tasks borrow");
            let running = &self.fleet.tasks()[task];
            let stays = |place: &&PodPlace| !is_taken(place, &taken);
            let lent: Vec<PodPlace> = running.lent.iter().filter(stays).copied().collect();
            if lent.len() < running.lent.len() {
                hit.push((task.clone(), (running.places.clone(), lent)));
            }
        }
        hit
    }

    /// Lent pods also use CPU and memory: the weakest ones of a node go until the plan has what it needs beside its GPUs.
    fn free_beside(&mut self, plan: &Plan, why: &ResizeReason, from: UnixSeconds, report: &mut Report) -> bool {
        let mut gave = false;
        while let Err(crate::fleet::PlanFault::Lent { node, .. }) = self.fleet.check(plan) {
            let uses_any = |task: &&TaskId| {
                let pod = self.fleet.tasks()[*task].pod;
                !plan.victims.contains(task) && (pod.cpu_milli > 0 || pod.memory_mib > 0)
            };
            let borrowers = self.fleet.borrowers(node).iter().filter(uses_any);
            let weakest = borrowers.max_by_key(|task| {
                let request = &self.requests[*task].request;
                let pods = self.fleet.tasks()[*task].pods().saturating_sub(1);
                request.elastic.as_ref().map(|elastic| request.claim(elastic, pods))
            });
            let Some(task) = weakest.cloned() else { break };
            let running = &self.fleet.tasks()[&task];
            let mut lent = running.lent.clone();
            if let Some(at) = lent.iter().rposition(|place| place.node == node) {
                lent.remove(at);
            }
            let pods = (running.places.clone(), lent);
            if !self.record_resize(&task, pods, why, from, report) {
                break;
            }
            gave = true;
        }
        gave
    }

    /// Lets a victim go on with the pods that the plan does not take, where they are enough and it fits beside.
    fn spare_victim(
        &mut self,
        plan: &mut Plan,
        victim: &TaskId,
        why: &ResizeReason,
        from: UnixSeconds,
        report: &mut Report,
    ) -> bool {
        debug_assert!(plan.victims.contains(victim), "a victim of this plan");
        let taken = taken(plan);
        let Some(pods) = self.kept(victim, |place| !is_taken(place, &taken)) else { return false };
        let running = &self.fleet.tasks()[victim];
        let before = (running.places.clone(), running.lent.clone());
        if self.fleet.resize(victim, pods.0.clone(), pods.1.clone()).is_err() {
            return false;
        }
        let victims = plan.victims.iter().filter(|task| *task != victim).cloned().collect();
        let without = Plan { victims, ..plan.clone() };
        let fits = self.fleet.check(&without).is_ok();
        // Its former pods it can have again; the fact then names the ones that it keeps.
        let undone = self.fleet.resize(victim, before.0, before.1);
        debug_assert_eq!(undone, Ok(()), "its former pods are still free");
        if fits {
            *plan = without;
        }
        fits && self.record_resize(victim, pods, why, from, report)
    }

    /// The pods of an elastic task that stay by `stays`, if they are enough to go on.
    fn kept(&self, task: &TaskId, stays: impl Fn(&PodPlace) -> bool) -> Option<Pods> {
        let least = self.elastic(task)?.min_pods() as usize;
        let running = self.fleet.tasks().get(task)?;
        let all = running.places.iter().chain(&running.lent);
        let mut kept: Vec<PodPlace> = all.filter(|place| stays(place)).copied().collect();
        (kept.len() >= least).then(|| {
            // Pods that it owns from now on are not to hold up a node that drains.
            kept.sort_by_key(|place| !self.fleet.nodes()[place.node].is_open);
            let lent = kept.split_off(least);
            debug_assert!(lent.iter().all(|place| !kept.contains(place)), "no pod is owned and lent");
            (kept, lent)
        })
    }

    /// Before a node goes: elastic tasks with pods elsewhere go on with those.
    pub(super) fn leave_node(&mut self, node: &NodeId, report: &mut Report) {
        let Some(number) = self.fleet.number_of(node) else { return };
        let here = |task: &&TaskId| {
            let running = &self.fleet.tasks()[*task];
            running.places.iter().chain(&running.lent).any(|place| place.node == number)
        };
        let tasks: Vec<TaskId> = self.borrowing.iter().filter(here).cloned().collect();
        for task in tasks {
            let Some(pods) = self.kept(&task, |place| place.node != number) else { continue };
            self.record_resize(&task, pods, &ResizeReason::Lost { node: node.clone() }, self.now, report);
        }
    }

    /// Whether a task has to be evicted for a plan because it cannot go on with the pods that the plan leaves.
    pub(super) fn has_to_evict(&self, plan: &Plan) -> bool {
        let taken = taken(plan);
        plan.victims.iter().any(|victim| self.kept(victim, |place| !is_taken(place, &taken)).is_none())
    }

    /// Before a node closes: what it lends goes back, with the grace period as notice. Nobody will be placed there for whom it would.
    pub(super) fn call_in_loans(&mut self, node: &NodeId, report: &mut Report) {
        let Some(number) = self.fleet.number_of(node) else { return };
        let (why, from) = (ResizeReason::Lost { node: node.clone() }, self.now.plus_s(self.rules.grace_s));
        for task in self.fleet.borrowers(number).clone() {
            let running = &self.fleet.tasks()[&task];
            let elsewhere = running.lent.iter().filter(|place| place.node != number).copied().collect();
            let pods = (running.places.clone(), elsewhere);
            self.record_resize(&task, pods, &why, from, report);
        }
    }

    fn record_resize(
        &mut self,
        task: &TaskId,
        (places, lent): Pods,
        why: &ResizeReason,
        from: UnixSeconds,
        report: &mut Report,
    ) -> bool {
        debug_assert!(from >= self.now, "pods do not change in the past");
        let id = |place: &PodPlace| (self.fleet.nodes()[place.node].id.clone(), place.gpus);
        let (places, lent) = (places.iter().map(id).collect(), lent.iter().map(id).collect());
        let fact = Fact::Resized { task: task.clone(), places, lent, why: why.clone(), from };
        self.record(fact, report).is_ok()
    }

    /// Lends what nobody has to elastic tasks, pod by pod to the strongest claim. A task whose pods have just changed is left
    /// alone for a while: each change costs it time.
    pub(super) fn grow(&mut self, report: &mut Report) {
        if self.grow_at.is_none_or(|at| at > self.now) {
            return;
        }
        self.grow_at = None;
        if self.borrowing.is_empty() {
            return;
        }
        let mut spares = self.fleet.spares();
        if spares.is_empty() {
            return;
        }
        // A task that gave up GPUs lately may still be saving on them: nothing starts there before the last one that waits for such.
        let leaves = self.requests.values().map(|admitted| admitted.starts).max();
        let from = leaves.map_or(self.now, |starts| starts.max(self.now));
        for (task, more) in self.loans(&mut spares) {
            let running = &self.fleet.tasks()[&task];
            let pods = (running.places.clone(), running.lent.iter().copied().chain(more).collect());
            self.record_resize(&task, pods, &ResizeReason::Grows, from, report);
        }
    }

    /// The share of each task in the spare pods.
    fn loans(&mut self, spares: &mut BTreeMap<usize, Spare>) -> BTreeMap<TaskId, Vec<PodPlace>> {
        let mut takers = BTreeSet::new();
        for task in &self.borrowing {
            let (Some(admitted), Some(elastic)) = (self.requests.get(task), self.elastic(task)) else { continue };
            let pods = self.fleet.tasks()[task].pods();
            if pods >= elastic.max_pods() {
                continue;
            }
            let rests_until = admitted.resized.map(|at| at.plus_s(self.rules.resize_rest_s));
            if let Some(until) = rests_until.filter(|until| *until > self.now) {
                self.grow_at = Some(self.grow_at.map_or(until, |at| at.min(until)));
                continue;
            }
            takers.insert(admitted.request.claim(elastic, pods));
        }
        let mut given: BTreeMap<TaskId, Vec<PodPlace>> = BTreeMap::new();
        while let Some(claim) = takers.pop_first() {
            let (.., gain, pods, _, task) = &claim;
            let (Some(elastic), Some(admitted)) = (self.elastic(task), self.requests.get(task)) else { continue };
            if gain.0.millionths() == 0 {
                continue;
            }
            let more = given.entry(task.clone()).or_default();
            let Some(place) = self.loan(task, more, spares) else { continue };
            more.push(place);
            debug_assert!(pods < &elastic.max_pods(), "a task at its largest takes nothing");
            if pods + 1 < elastic.max_pods() {
                takers.insert(admitted.request.claim(elastic, pods + 1));
            }
        }
        given.retain(|_, more| !more.is_empty());
        given
    }

    /// Room for one pod more: beside its own, then where HP comes last.
    fn loan(&self, task: &TaskId, more: &[PodPlace], spares: &mut BTreeMap<usize, Spare>) -> Option<PodPlace> {
        let running = &self.fleet.tasks()[task];
        let own: BTreeSet<usize> =
            running.places.iter().chain(&running.lent).chain(more).map(|place| place.node).collect();
        let fits = spares.iter().filter(|(_, spare)| Spare::clone(spare).take(&running.pod).is_some());
        let best = fits.max_by_key(|(node, spare)| (own.contains(node), spare.without_hp, std::cmp::Reverse(**node)));
        let node = *best?.0;
        let spare = spares.get_mut(&node)?;
        let gpus: GpuPlace = spare.take(&running.pod)?;
        debug_assert_eq!(spare.gpus & mask_of(gpus), 0, "a lent GPU is spare no more");
        if spare.gpus == 0 {
            spares.remove(&node);
        }
        Some(PodPlace { node, gpus })
    }
}

fn is_taken(place: &PodPlace, taken: &BTreeMap<usize, u64>) -> bool {
    taken.get(&place.node).is_some_and(|mask| mask & mask_of(place.gpus) != 0)
}
