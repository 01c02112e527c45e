//! Facts change the state; nothing else does but the time.

use super::{
    Admitted, Consequences, Cut, CutReason, Deferral, Elastic, Ending, Fact, Fault, NodeLoss, PeriodEnd, Pool, Request,
    Resize, ResizeReason, Stale, Waiting,
};
use crate::decide::asked;
use crate::fleet::{Gang, GpuPlace, GpuRequest, Guarantee, Plan, PodPlace, Running, Spec};
use vocab::{NodeId, OutcomeKind, TaskClass, TaskId, UnixSeconds};

impl Pool {
    /// Lets time pass to when a fact was decided, and applies it.
    ///
    /// # Errors
    /// The fact does not follow from the state: it belongs to another pool, or one is missing before it.
    pub fn apply(&mut self, at: UnixSeconds, fact: &Fact) -> Result<Consequences, Fault> {
        let mut then = self.pass_to(at);
        self.apply_now(fact, &mut then)?;
        Ok(then)
    }

    /// Ends what ends by itself: guarantees, rests, hours, and the memory of evictions.
    pub(super) fn pass_to(&mut self, now: UnixSeconds) -> Consequences {
        let mut then = Consequences::default();
        self.now = self.now.max(now);
        then.demand = self.demand.pass_to(self.now);
        if self.fleet.pass_to(self.now) {
            self.freed(Stale::Spot);
        }
        for (task, guarantee) in self.fleet.ended_guarantees(self.now) {
            // A task with a promise runs.
            if let Some(run) = self.fleet.tasks().get(&task) {
                then.ends.push(PeriodEnd::of(task, run, guarantee, OutcomeKind::Kept, guarantee.until));
            }
            self.freed(Stale::Spot);
        }
        while let Some((until, task)) = self.resting.pop_first() {
            if until > self.now {
                self.resting.insert((until, task));
                break;
            }
            if let Some(waiting) = self.queue.remove(&task) {
                self.queue.insert(Waiting { rests_until: None, ..waiting });
                self.freed(Stale::Spot);
            }
        }
        self.end_deferrals();
        let window_s = i64::try_from(self.policy.preemption.usage_window_s).unwrap_or(i64::MAX);
        let old = self.now.plus_s(-window_s);
        while let Some((_, was_evicted)) = self.runs.pop_front_if(|(at, _)| *at <= old) {
            let count = if was_evicted { &mut self.history.evicted } else { &mut self.history.finished };
            debug_assert!(*count > 0, "a run leaves the window that never came");
            *count -= 1;
        }
        debug_assert!(self.now >= now, "time goes back");
        debug_assert!(self.resting.first().is_none_or(|(until, _)| *until > self.now), "a rest is over and not ended");
        then
    }

    pub(super) fn apply_now(&mut self, fact: &Fact, then: &mut Consequences) -> Result<(), Fault> {
        self.reservations.change(fact);
        self.shares_change(fact);
        match fact {
            Fact::NodeAdded { node, gpus, cpu_milli, memory_mib, topology } => {
                self.fleet.add_laid_out(node.clone(), *gpus, (*cpu_milli, *memory_mib), topology.clone())?;
                self.recount_demand();
                self.freed(Stale::All);
            }
            Fact::NodeOpened { node, is_open } => {
                let number = self.number_of(node)?;
                self.fleet.open(number, *is_open);
                if *is_open {
                    self.freed(Stale::All);
                }
            }
            Fact::NodeRemoved { node, cause } => self.remove_node(node, *cause, then)?,
            Fact::LimitsSet { limits } => {
                self.limits.clone_from(limits);
                self.limits_demand_milli = self.demand.total_milli();
                self.freed(Stale::Spot);
            }
            Fact::Submitted { request } => self.submit(request)?,
            Fact::Started { task, places, guarantee, victims, starts } => {
                self.start(task, places, *guarantee, victims, *starts, then)?;
            }
            Fact::Deferred { task, until, holds } => {
                let waiting = self.queue.remove(task).ok_or_else(|| Fault::UnknownTask { task: task.clone() })?;
                let deferral = Some(Deferral { until: *until, holds: holds.clone() });
                self.deferred.insert((*until, task.clone()));
                self.queue.insert(Waiting { deferral, ..waiting });
            }
            Fact::Cleared { organization, victims, free } => self.clear(organization, victims, *free, then)?,
            Fact::Resized { task, places, lent, why, from } => self.resize(task, [places, lent], why, *from, then)?,
            Fact::Renewed { task, guarantee } => {
                if !self.fleet.promise(task, Some(*guarantee)) {
                    return Err(Fault::NotRunning { task: task.clone() });
                }
            }
            Fact::Saved { task } => {
                if !self.requests.contains_key(task) {
                    return Err(Fault::NotRunning { task: task.clone() });
                }
                self.fleet.saved(task, self.now);
            }
            Fact::Measured { task, pods, speed_thousandths } => {
                let not_running = || Fault::NotRunning { task: task.clone() };
                let admitted = self.requests.get_mut(task).ok_or_else(not_running)?;
                let Some(elastic) = &mut admitted.request.elastic else {
                    return Err(Fault::NotElastic { task: task.clone() });
                };
                elastic.measure(*pods, *speed_thousandths);
                self.grow_at = Some(self.now);
            }
            Fact::Ended { task, ending } => self.end(task, *ending, then)?,
        }
        Ok(())
    }

    /// Something changed that may let waiting tasks start.
    pub(super) fn freed(&mut self, who: Stale) {
        self.stale = self.stale.max(who);
        self.reservations.forget();
        if let Some(shares) = &mut self.shares {
            shares.has_room_again();
        }
        self.grow_at = Some(self.now);
    }

    pub(super) fn number_of(&self, node: &NodeId) -> Result<usize, Fault> {
        self.fleet.number_of(node).ok_or_else(|| Fault::UnknownNode { node: node.clone() })
    }

    fn submit(&mut self, request: &Request) -> Result<(), Fault> {
        let task = &request.gang.task;
        if self.requests.contains_key(task) || self.queue.get(task).is_some() {
            return Err(Fault::Known { task: task.clone() });
        }
        check(request)?;
        if request.gang.class == TaskClass::Hp {
            self.add_demand(request);
        }
        debug_assert!(request.gang.pods > 0, "{task} has no pods");
        self.workload.add(Spec::of(&request.gang.pod), u64::from(request.gang.pods));
        let (request, queued) = (request.clone(), self.now);
        self.queue.insert(Waiting { request, queued, rests_until: None, evicted: Vec::new(), deferral: None });
        Ok(())
    }

    fn start(
        &mut self,
        task: &TaskId,
        places: &[(NodeId, GpuPlace)],
        guarantee: Option<Guarantee>,
        victims: &[TaskId],
        starts: UnixSeconds,
        then: &mut Consequences,
    ) -> Result<(), Fault> {
        let waiting = self.queue.get(task).ok_or_else(|| Fault::UnknownTask { task: task.clone() })?;
        check_promise(&waiting.request, guarantee)?;
        let gang = waiting.request.core();
        let plan = Plan { places: self.places_of(&gang, places)?, gang, victims: victims.to_vec() };
        for (victim, run) in self.fleet.apply(&plan, self.now, guarantee)? {
            self.count_run(true);
            let why = CutReason::EvictedBy { task: task.clone() };
            self.back_to_queue(&victim, &run, OutcomeKind::Broken, starts, then);
            then.cuts.push(Cut { task: victim, run, why });
        }
        if let Some(waiting) = self.queue.remove(task) {
            self.forget_deferral(&waiting);
            let Waiting { request, evicted, .. } = waiting;
            match (request.gang.class, &mut self.shares) {
                (TaskClass::Hp, _) => self.runs(&request, self.now),
                (TaskClass::Spot, Some(shares)) => {
                    shares.hold(&request.organization, asked(&plan.gang).milli(), self.now);
                }
                (TaskClass::Spot, None) => {}
            }
            if request.elastic.is_some() {
                self.borrowing.insert(task.clone());
                self.grow_at = Some(self.now);
            }
            let before = self.requests.insert(task.clone(), Admitted { request, starts, evicted, resized: None });
            debug_assert!(before.is_none(), "{task} is admitted twice");
        }
        Ok(())
    }

    /// The places of pods of a gang, by the numbers of nodes.
    pub(super) fn places_of(&self, gang: &Gang, places: &[(NodeId, GpuPlace)]) -> Result<Vec<PodPlace>, Fault> {
        let as_asked = |gpus: GpuPlace| match (gpus, gang.pod.gpus) {
            (GpuPlace::Share { milli, .. }, GpuRequest::Share(asked)) => milli == asked,
            (GpuPlace::Whole { mask }, GpuRequest::Whole(asked)) => mask.count_ones() == u32::from(asked),
            _ => false,
        };
        if !places.iter().all(|(_, gpus)| as_asked(*gpus)) {
            return Err(Fault::OtherGpus { task: gang.task.clone() });
        }
        places.iter().map(|(node, gpus)| Ok(PodPlace { node: self.number_of(node)?, gpus: *gpus })).collect()
    }

    fn resize(
        &mut self,
        task: &TaskId,
        [places, lent]: [&[(NodeId, GpuPlace)]; 2],
        why: &ResizeReason,
        from: UnixSeconds,
        then: &mut Consequences,
    ) -> Result<(), Fault> {
        let not_running = || Fault::NotRunning { task: task.clone() };
        let request = &self.requests.get(task).ok_or_else(not_running)?.request;
        let gang = request.core();
        if request.elastic.is_none() || places.len() != gang.pods as usize {
            return Err(Fault::NotElastic { task: task.clone() });
        }
        let (places, lent) = (self.places_of(&gang, places)?, self.places_of(&gang, lent)?);
        let running = self.fleet.tasks().get(task).ok_or_else(not_running)?;
        let pod = running.pod;
        let before: Vec<PodPlace> = running.places.iter().chain(&running.lent).copied().collect();
        let after: Vec<PodPlace> = places.iter().chain(&lent).copied().collect();
        let core_moves = running.places != places;
        self.fleet.resize(task, places, lent)?;
        if core_moves {
            self.freed(Stale::All);
        }
        let of = |some: &[PodPlace], others: &[PodPlace]| {
            some.iter().filter(|place| !others.contains(place)).copied().collect::<Vec<_>>()
        };
        let (came, went) = (of(&after, &before), of(&before, &after));
        debug_assert_eq!(before.len() + came.len(), after.len() + went.len(), "{task} loses or gains a pod unseen");
        let (task, why, pods) = (task.clone(), why.clone(), after.len() as u32);
        if let Some(admitted) = self.requests.get_mut(&task) {
            admitted.resized = Some(self.now);
        }
        if !went.is_empty() {
            self.grow_at = Some(self.now);
        }
        then.resizes.push(Resize { task, pod, pods, came, went, why, from });
        Ok(())
    }

    /// A task whose run was cut waits again, and rests where that happened too often. `free` is when it has left its GPUs.
    pub(super) fn back_to_queue(
        &mut self,
        task: &TaskId,
        run: &Running,
        kind: OutcomeKind,
        free: UnixSeconds,
        then: &mut Consequences,
    ) {
        if let Some(guarantee) = run.guarantee {
            then.ends.push(PeriodEnd::of(task.clone(), run, guarantee, kind, self.now));
        }
        self.borrowing.remove(task);
        let Some(Admitted { request, mut evicted, .. }) = self.requests.remove(task) else { return };
        if request.gang.class == TaskClass::Hp {
            self.runs_no_more(&request);
        }
        self.releases(&request, run);
        let mut rests_until = (free > self.now).then_some(free);
        if kind == OutcomeKind::Broken {
            evicted.push(self.now);
            let since = self.now.plus_s(-self.rules.rest_window_s);
            evicted.retain(|at| *at > since);
            if evicted.len() >= self.rules.evictions_before_rest as usize {
                evicted.clear();
                self.rests += 1;
                rests_until = Some(self.now.plus_s(self.rules.rest_s).max(free));
            }
        }
        if let Some(until) = rests_until {
            debug_assert!(until > self.now, "a rest of {task} is over before it begins");
            self.resting.insert((until, task.clone()));
        }
        self.queue.insert(Waiting { request, queued: self.now, rests_until, evicted, deferral: None });
        self.freed(Stale::All);
    }

    fn remove_node(&mut self, node: &NodeId, cause: NodeLoss, then: &mut Consequences) -> Result<(), Fault> {
        let number = self.number_of(node)?;
        let kind = match cause {
            NodeLoss::Failed => OutcomeKind::NodeFailure,
            NodeLoss::Drained => OutcomeKind::Drain,
        };
        for (task, run) in self.fleet.remove(number) {
            self.back_to_queue(&task, &run, kind, self.now, then);
            then.cuts.push(Cut { task, run, why: CutReason::Lost { node: node.clone(), cause } });
        }
        debug_assert!(self.fleet.nodes()[number].is_gone, "{node} was removed");
        self.recount_demand();
        self.freed(Stale::All);
        Ok(())
    }

    fn end(&mut self, task: &TaskId, ending: Ending, then: &mut Consequences) -> Result<(), Fault> {
        let request = if let Some(run) = self.fleet.finish(task) {
            let kind = match ending {
                Ending::Finished => OutcomeKind::Kept,
                Ending::Deleted => OutcomeKind::UserDeleted,
            };
            if let Some(guarantee) = run.guarantee {
                then.ends.push(PeriodEnd::of(task.clone(), &run, guarantee, kind, self.now));
            }
            if run.class == TaskClass::Spot && ending == Ending::Finished {
                self.count_run(false);
            }
            let ran_s = self.now.since_s(run.since);
            let is_done = run.class == TaskClass::Hp && ending == Ending::Finished;
            if let Some(of) = self.requests.get(task).filter(|_| is_done).map(|one| one.request.organization.clone()) {
                self.hp_finished(&of, ran_s);
            }
            self.freed(Stale::All);
            self.borrowing.remove(task);
            let request = self.requests.remove(task).map(|admitted| admitted.request);
            if let Some(request) = &request {
                self.releases(request, &run);
            }
            then.ended = Some((task.clone(), run));
            request
        } else if ending == Ending::Deleted {
            let waiting = self.queue.remove(task);
            if let Some(waiting) = &waiting {
                self.forget_deferral(waiting);
            }
            if let Some(until) = waiting.as_ref().and_then(|waiting| waiting.rests_until) {
                self.resting.remove(&(until, task.clone()));
            }
            // Those behind it may have waited for it alone.
            if waiting.is_some() {
                self.freed(Stale::All);
            }
            waiting.map(|waiting| waiting.request)
        } else {
            return Err(Fault::NotRunning { task: task.clone() });
        };
        debug_assert!(
            !self.requests.contains_key(task) && self.queue.get(task).is_none(),
            "{task} ended and is still there"
        );
        let request = request.ok_or_else(|| Fault::UnknownTask { task: task.clone() })?;
        if request.gang.class == TaskClass::Hp {
            self.remove_demand(&request, ending);
        }
        Ok(())
    }

    /// Counts a spot run that ended (F and G of Eq. 18).
    pub(super) fn count_run(&mut self, was_evicted: bool) {
        self.runs.push_back((self.now, was_evicted));
        let count = if was_evicted { &mut self.history.evicted } else { &mut self.history.finished };
        *count += 1;
    }
}

/// Twins and clients are checked where they come in; what comes from elsewhere is not.
pub(super) fn check(request: &Request) -> Result<(), Fault> {
    let task = || request.gang.task.clone();
    if request.gang.pods == 0 {
        return Err(Fault::NoPods { task: task() });
    }
    match &request.elastic {
        Some(elastic) if elastic.min_pods() > request.gang.pods || Elastic::check(&request.gang).is_err() => {
            Err(Fault::NotElastic { task: task() })
        }
        _ => Ok(()),
    }
}

/// Nobody is promised what needs no promise.
pub(super) fn check_promise(request: &Request, guarantee: Option<Guarantee>) -> Result<(), Fault> {
    if request.gang.class == TaskClass::Hp && guarantee.is_some() {
        return Err(Fault::Promised { task: request.gang.task.clone() });
    }
    Ok(())
}

pub(super) fn gpus_milli(request: &Request) -> u64 {
    u64::from(request.gang.pod.gpus.milli()) * u64::from(request.gang.pods)
}
