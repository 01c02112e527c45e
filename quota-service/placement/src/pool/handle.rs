//! Commands become facts.

use super::queue::Shape;
use super::{Command, Ending, Fact, Fault, Pool, Report, Request, Stale};
use crate::decide::{Circumstances, Decision, Limit, asked, decide, over_quota};
use crate::fleet::{Gang, Guarantee, Plan};
use crate::policy::{Admission, Blocking, Timing};
use std::collections::BTreeSet;
use vocab::{HorizonHours, Organization, TaskClass, TaskId, UnixSeconds};

impl Pool {
    /// Lets time pass, does what the command asks, and starts every waiting task that then fits. Time does not go back: an
    /// earlier `now` counts as the latest one seen.
    ///
    /// # Errors
    /// The command does not fit the state. Time has passed anyway, and its consequences are in the report.
    pub fn handle(&mut self, now: UnixSeconds, command: &Command) -> (Report, Result<(), Fault>) {
        self.reserve();
        let before = self.now;
        let mut report = Report { facts: Vec::new(), consequences: self.pass_to(now) };
        if let Some(limits) = self.next_limits.take() {
            let set = self.record(Fact::LimitsSet { limits }, &mut report);
            debug_assert!(set.is_ok(), "nothing can refuse limits: {set:?}");
        }
        self.renew(&mut report);
        self.observe();
        let submitted = self.is_new_alone(command);
        if let Command::RemoveNode { node, .. } = command {
            self.leave_node(node, &mut report);
        }
        if let Command::OpenNode { node, is_open: false } = command {
            self.call_in_loans(node, &mut report);
        }
        let done = self.fact_of(command).and_then(|fact| fact.map_or(Ok(()), |fact| self.record(fact, &mut report)));
        // After the command: a task that finishes as a window begins is no victim of it.
        self.clear_windows(before, &mut report);
        self.observe();
        self.rank_now();
        // A walk over all tries the new one in its turn; a walk over spot does not try a new HP task, which comes first.
        if let Some(task) = submitted.filter(|_| done.is_ok() && self.stale < Stale::All) {
            self.try_new(&task, &mut report);
        }
        self.walk(&mut report);
        self.grow(&mut report);
        self.newcomer = None;
        if *command == Command::Pass {
            self.learn();
        }
        (report, done)
    }

    /// Has the next command set these limits before it does anything else. A promise that ends by then is renewed by them, and not by those
    /// of before, which may be of another leader and hours old.
    pub fn set_limits_next(&mut self, limits: Vec<Limit>) {
        self.next_limits = Some(limits);
    }

    fn fact_of(&self, command: &Command) -> Result<Option<Fact>, Fault> {
        Ok(Some(match command.clone() {
            Command::Submit(request) => Fact::Submitted { request },
            Command::Finish { task } => Fact::Ended { task, ending: Ending::Finished },
            Command::Delete { task } => Fact::Ended { task, ending: Ending::Deleted },
            Command::Save { task } => Fact::Saved { task },
            Command::Measure { task, pods, speed_thousandths } => Fact::Measured { task, pods, speed_thousandths },
            Command::AddNode { node, gpus, cpu_milli, memory_mib, topology } => {
                Fact::NodeAdded { node, gpus, cpu_milli, memory_mib, topology }
            }
            Command::OpenNode { node, is_open } => {
                self.number_of(&node)?;
                Fact::NodeOpened { node, is_open }
            }
            Command::RemoveNode { node, cause } => Fact::NodeRemoved { node, cause },
            Command::SetLimits(limits) if limits == self.limits && self.is_as_when_limited() => return Ok(None),
            Command::SetLimits(limits) => Fact::LimitsSet { limits },
            Command::Pass => return Ok(None),
        }))
    }

    fn is_as_when_limited(&self) -> bool {
        self.demand.total_milli() == self.limits_demand_milli
    }

    /// The submitted task, where it alone can have changed anything.
    fn is_new_alone(&self, command: &Command) -> Option<TaskId> {
        match command {
            // Where organizations take turns, spot is not tried out of its turn.
            Command::Submit(request) if self.shares.is_some() && request.gang.class == TaskClass::Spot => None,
            Command::Submit(request) if self.policy.blocking == Blocking::Nobody => Some(request.gang.task.clone()),
            _ => None,
        }
    }

    pub(super) fn record(&mut self, fact: Fact, report: &mut Report) -> Result<(), Fault> {
        self.apply_now(&fact, &mut report.consequences)?;
        if let Fact::Submitted { request } = &fact
            && request.gang.class == TaskClass::Hp
        {
            self.hp_came(&request.gang.task);
        }
        if matches!(fact, Fact::Submitted { .. }) && self.policy.blocking != Blocking::Nobody {
            self.freed(Stale::All);
        }
        if let Fact::Submitted { request } = &fact
            && request.gang.class == TaskClass::Spot
            && self.shares.is_some()
        {
            // It is tried in its turn. It makes no room: what was refused before is refused again.
            self.stale = self.stale.max(Stale::Spot);
        }
        report.facts.push(fact);
        Ok(())
    }

    /// Tasks whose guarantee is over get another one where the quota has room (DESIGN §4.7).
    fn renew(&mut self, report: &mut Report) {
        let ended: Vec<(TaskId, HorizonHours)> =
            report.consequences.ends.iter().map(|end| (end.task.clone(), end.hours)).collect();
        if !ended.is_empty() {
            self.rank_now();
        }
        for (task, hours) in ended {
            let Some(request) = self.requests.get(&task).map(|admitted| &admitted.request) else { continue };
            let (gang, organization) = (request.core(), request.organization.clone());
            let is_free = self.policy.admission == Admission::Idle;
            self.reserve();
            let limits = self.limits_beside_shares(&organization, self.limits_beside_reservations(&gang));
            let is_within = is_free || over_quota(&self.fleet, &gang, hours, &limits).is_none();
            if is_within && self.reaches(asked(&gang), hours).is_none() {
                let guarantee = Guarantee::from(self.now, hours);
                // It runs: nothing can refuse it.
                let renewed = self.record(Fact::Renewed { task, guarantee }, report);
                debug_assert!(renewed.is_ok(), "{renewed:?}");
            }
        }
    }

    /// The fate of a gang now. Changes nothing.
    pub fn decide(&mut self, gang: &Gang, hours: Option<HorizonHours>) -> Decision {
        self.decide_within(gang, hours, None, true)
    }

    /// The fate of a request now, waiting or not. Changes nothing.
    pub fn decide_on(&mut self, request: &Request) -> Decision {
        self.rank_now();
        let (gang, organization) = (request.core(), &request.organization);
        match self.decide_within(&gang, request.hours, Some(organization), true) {
            // A request that would wait anyway waits for that reason.
            Decision::Start { plan, guarantee } => match self.above_fair_share(organization, &gang, request.hours) {
                Some(refusal) => Decision::Wait(refusal),
                None => Decision::Start { plan, guarantee },
            },
            wait @ Decision::Wait(_) => wait,
        }
    }

    /// `organization` where the task does not wait.
    fn decide_within(
        &mut self,
        gang: &Gang,
        hours: Option<HorizonHours>,
        organization: Option<&Organization>,
        may_evict: bool,
    ) -> Decision {
        self.reserve();
        let waiting = self.queue.get(&gang.task).map(|waiting| &waiting.request.organization);
        if let Some(refusal) = self.kept_by_windows(gang, organization.or(waiting), hours) {
            return Decision::Wait(refusal);
        }
        let limits = &self.limits_beside_reservations(gang);
        let kept = self.keep_reserved(gang);
        let shielded = if may_evict { self.shield(gang) } else { Vec::new() };
        let Self { policy, history, workload, now, .. } = self;
        let on = Circumstances { now: *now, limits, history: *history, policy, workload, may_evict };
        let decision = decide(&mut self.fleet, gang, hours, &on);
        self.release(shielded);
        self.open_again(&kept);
        decision
    }

    fn try_new(&mut self, task: &TaskId, report: &mut Report) {
        let Some(shape) = self.queue.get(task).map(Shape::of) else { return };
        // Where others wait for the same, it does not fit either: nothing has changed since they were tried.
        let is_timed = self.policy.timing != Timing::AtOnce && shape.class == TaskClass::Hp;
        let is_timed = is_timed || !self.windows.is_empty();
        if is_timed || !self.queue.has_alike(&shape) {
            self.try_to_start(task, report);
        }
    }

    /// Tries waiting tasks in their order until none fits.
    fn walk(&mut self, report: &mut Report) {
        // A task that is evicted below waits again, and may fit elsewhere. It ends: only HP evicts, each time for one that waits
        // and then waits no more.
        loop {
            self.reserve();
            self.rank_now();
            match std::mem::take(&mut self.stale) {
                Stale::Nobody => return,
                // A task at the head of the queue may block others, of any class.
                Stale::Spot if self.policy.blocking == Blocking::Nobody => self.walk_once([true, false], report),
                Stale::Spot | Stale::All => self.walk_once([false; 2], report),
            }
            self.try_window_owners(report);
        }
    }

    /// `blocked` classes are not tried. Of tasks that ask for the same, none fits where one does not.
    fn walk_once(&mut self, mut blocked: [bool; 2], report: &mut Report) {
        let (mut last, mut class) = (None, None);
        while let Some(key) = self.queue.key_after(last) {
            last = Some(key);
            let place = usize::from(key.class == TaskClass::Spot);
            if class.replace(key.class) != Some(key.class) && !blocked[place] {
                self.try_reserved(key.class, report);
            }
            if key.class == TaskClass::Spot && self.shares.is_some() {
                return self.walk_by_share(report);
            }
            let is_blocked = &mut blocked[place];
            let mut heads = if *is_blocked { BTreeSet::new() } else { self.queue.heads(key) };
            while let Some(((_, task), shape)) = heads.pop_first() {
                if self.try_to_start(&task, report) {
                    heads.extend(self.queue.head(key, &shape).map(|head| (head, shape)));
                    continue;
                }
                match self.policy.blocking {
                    Blocking::Nobody => {}
                    Blocking::Class => {
                        *is_blocked = true;
                        break;
                    }
                    Blocking::Everybody => return,
                }
            }
        }
    }

    pub(super) fn try_to_start(&mut self, task: &TaskId, report: &mut Report) -> bool {
        let Some(waiting) = self.queue.get(task) else { return false };
        let (gang, hours) = (waiting.request.core(), waiting.request.hours);
        let may_evict = waiting.deferral.is_none();
        let is_new = self.newcomer.as_ref() == Some(task);
        let decision = self.decide_within(&gang, hours, None, may_evict);
        let Decision::Start { mut plan, guarantee } = decision else { return false };
        if is_new && self.has_to_evict(&plan) && self.defer(&plan, report) {
            return false;
        }
        debug_assert!(gang.class == TaskClass::Hp || plan.victims.is_empty(), "only HP evicts");
        let from = self.now.plus_s(self.rules.grace_s);
        let gave = self.make_room(&mut plan, from, report);
        let evicts = !plan.victims.is_empty();
        let fact = self.started(plan, guarantee, gave);
        let starts = self.record(fact, report).is_ok();
        debug_assert!(!starts || self.queue.get(task).is_none(), "a task that runs waits no more");
        if starts && evicts {
            self.has_evicted(task);
        }
        starts
    }

    /// `gave` tells whether any task gives up pods for it.
    fn started(&self, plan: Plan, guarantee: Option<Guarantee>, gave: bool) -> Fact {
        let Plan { gang, places, victims } = plan;
        debug_assert_eq!(places.len(), gang.pods as usize, "all pods or none");
        let grace_s = if victims.is_empty() && !gave { 0 } else { self.rules.grace_s };
        let id = |node: usize| self.fleet.nodes()[node].id.clone();
        let places = places.iter().map(|place| (id(place.node), place.gpus)).collect();
        let starts = self.now.plus_s(grace_s).max(self.cleared_by());
        Fact::Started { task: gang.task, places, guarantee, victims, starts }
    }

    /// Tries every waiting task once more, after any change: under another policy others may start.
    pub fn retry(&mut self, now: UnixSeconds) -> Report {
        self.freed(Stale::All);
        self.pass(now)
    }

    /// Time alone, for callers that have nothing else to say.
    pub fn pass(&mut self, now: UnixSeconds) -> Report {
        self.handle(now, &Command::Pass).0
    }
}
