//! Evictions that are put off for a moment: Lazer (DAC 2026) where HP is what comes and spot what would go.
//!
//! HP is never preempted here, so that a newcomer's load is never cut off, which is what the paper calls futile. Futile is
//! an eviction that idle GPUs make needless while the newcomer would still wait for its victims to save, or load: the victims
//! have then saved and queued for nothing. F is the time after which they fell idle, and 0 where they did not (Eq. 2).

use super::{Fact, Pool, Report, Waiting};
use crate::fleet::{Gang, Plan, Running};
use crate::policy::Timing;
use crate::timing::History;
use crate::timing::predictor::{Context, Predictor};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vocab::{Organization, TaskClass, TaskId, UnixSeconds};

/// The hour over which arrivals are averaged (Lazer §4.2).
const ARRIVALS_WINDOW_S: i64 = vocab::SECONDS_PER_HOUR;

/// A task that is put off: it takes what falls idle, and evicts nobody before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferral {
    /// End of the deferral.
    pub until: UnixSeconds,
    /// Those who would go for it: nobody else may evict them meanwhile.
    pub holds: Vec<TaskId>,
}

/// A deferral of which it is not yet known whether its eviction is futile.
#[derive(Debug, Clone)]
struct Open {
    gang: Gang,
    context: Context,
    predicted_ms: i64,
    since: UnixSeconds,
    /// Until when the newcomer would wait for its victims and load, had it evicted at once.
    until: UnixSeconds,
}

/// The learned state of deferrals. It is in memory only: a restart learns again.
#[derive(Debug, Clone)]
pub(super) struct Learned {
    predictor: Predictor,
    arrivals: VecDeque<UnixSeconds>,
    open: Vec<Open>,
    /// Deferrals that are decided: their context, X, and F.
    known: VecDeque<(Context, i64, i64)>,
    organizations: BTreeMap<Organization, u32>,
    history: History,
}

impl Learned {
    /// State of the rule, where it learns.
    pub fn of(timing: Timing) -> Option<Box<Self>> {
        let Timing::Lazer { seed } = timing else { return None };
        Some(Box::new(Self {
            predictor: Predictor::new(seed, true),
            arrivals: VecDeque::new(),
            open: Vec::new(),
            known: VecDeque::new(),
            organizations: BTreeMap::new(),
            history: History::default(),
        }))
    }

    fn number_of(&mut self, organization: &Organization) -> u32 {
        let next = self.organizations.len() as u32;
        *self.organizations.entry(organization.clone()).or_insert(next)
    }

    /// Δ̄A: between two arrivals of HP, on average over the last hour; the hour itself where fewer than two came.
    fn inter_arrival_ms(&mut self, now: UnixSeconds) -> i64 {
        let from = now.plus_s(-ARRIVALS_WINDOW_S);
        while self.arrivals.pop_front_if(|at| *at <= from).is_some() {}
        match (self.arrivals.front(), self.arrivals.back(), self.arrivals.len() as i64) {
            (Some(first), Some(last), count) if count > 1 => last.since_s(*first) * 1_000 / (count - 1),
            _ => ARRIVALS_WINDOW_S * 1_000,
        }
    }
}

impl Pool {
    /// How many HP tasks are put off.
    #[must_use]
    pub fn deferred(&self) -> usize {
        self.deferred.len()
    }

    /// Deferrals that are over: their tasks may evict like any other.
    pub(super) fn end_deferrals(&mut self) {
        while let Some((until, task)) = self.deferred.pop_first() {
            if until > self.now {
                self.deferred.insert((until, task));
                return;
            }
            if let Some(waiting) = self.queue.remove(&task) {
                self.queue.insert(Waiting { deferral: None, ..waiting });
                self.freed(super::Stale::All);
            }
        }
    }

    pub(super) fn forget_deferral(&mut self, waiting: &Waiting) {
        if let Some(deferral) = &waiting.deferral {
            self.deferred.remove(&(deferral.until, waiting.request.gang.task.clone()));
            // Whom it held others may evict now.
            self.freed(super::Stale::All);
        }
    }

    /// An HP task came.
    pub(super) fn hp_came(&mut self, task: &TaskId) {
        if let Some(learned) = &mut self.learned {
            let from = self.now.plus_s(-ARRIVALS_WINDOW_S);
            while learned.arrivals.pop_front_if(|at| *at <= from).is_some() {}
            learned.arrivals.push_back(self.now);
            debug_assert!(learned.arrivals.iter().is_sorted(), "arrivals come in the order of time");
            self.newcomer = Some(task.clone());
        }
    }

    /// An HP task has finished after so long.
    pub(super) fn hp_finished(&mut self, organization: &Organization, ran_s: i64) {
        if let Some(learned) = &mut self.learned {
            let number = learned.number_of(organization);
            learned.history.add(number, ran_s.max(0) * 1_000);
        }
    }

    /// Puts a newcomer off that would evict. Answers whether it does.
    pub(super) fn defer(&mut self, plan: &Plan, report: &mut Report) -> bool {
        debug_assert_eq!(plan.gang.class, TaskClass::Hp, "only HP evicts, and only evictions are put off");
        let Some(waiting) = self.queue.get(&plan.gang.task) else { return false };
        let organization = waiting.request.organization.clone();
        let Some(learned) = &mut self.learned else { return false };
        let number = learned.number_of(&organization);
        let context = Context {
            inter_arrival_ms: learned.inter_arrival_ms(self.now),
            remaining_ms: learned.history.remaining_ms(number, 0),
            load_ms: self.rules.load_s * 1_000,
            save_ms: self.rules.grace_s * 1_000,
        };
        let predicted_ms = learned.predictor.predict(&context);
        let until = self.now.plus_s(self.rules.grace_s + self.rules.load_s);
        learned.open.push(Open { gang: plan.gang.clone(), context, predicted_ms, since: self.now, until });
        let deferral_s = predicted_ms.div_euclid(1_000) + i64::from(predicted_ms.rem_euclid(1_000) > 0);
        if deferral_s == 0 {
            return false;
        }
        let (task, until) = (plan.gang.task.clone(), self.now.plus_s(deferral_s));
        self.record(Fact::Deferred { task, until, holds: plan.victims.clone() }, report).is_ok()
    }

    /// Looks whether what has fallen idle would have spared evictions.
    pub(super) fn observe(&mut self) {
        if self.learned.as_ref().is_none_or(|learned| learned.open.is_empty()) {
            return;
        }
        let Some(mut learned) = self.learned.take() else { return };
        let now = self.now;
        for open in std::mem::take(&mut learned.open) {
            let in_time = now <= open.until;
            let fits = in_time && self.fleet.plan_by(&open.gang, self.policy.score, &self.workload).is_some();
            if in_time && !fits {
                learned.open.push(open);
                continue;
            }
            let futile_ms = if fits { now.since_s(open.since) * 1_000 } else { 0 };
            debug_assert!(futile_ms >= 0, "a deferral begins before it is observed");
            learned.known.push_back((open.context, open.predicted_ms, futile_ms));
        }
        self.learned = Some(learned);
    }

    /// A newcomer has evicted. What its victims leave idle would not have spared them: where that suffices for it at once,
    /// nothing was futile.
    pub(super) fn has_evicted(&mut self, task: &TaskId) {
        let Some(mut learned) = self.learned.take() else { return };
        if let Some(at) = learned.open.iter().position(|open| open.gang.task == *task)
            && self.fleet.plan_by(&learned.open[at].gang, self.policy.score, &self.workload).is_some()
        {
            let open = learned.open.remove(at);
            learned.known.push_back((open.context, open.predicted_ms, 0));
        }
        self.learned = Some(learned);
    }

    /// Learns from deferrals that are decided: where only time passes, since it takes longer than a decision.
    pub(super) fn learn(&mut self) {
        let Some(learned) = &mut self.learned else { return };
        while let Some((context, predicted_ms, futile_ms)) = learned.known.pop_front() {
            learned.predictor.learn(&context, predicted_ms, futile_ms);
        }
    }

    /// Tasks that are held for others than this one, made such as nobody evicts: until [`release`](Self::release).
    pub(super) fn shield(&mut self, gang: &Gang) -> Vec<(TaskId, Running)> {
        if gang.class == TaskClass::Spot || self.deferred.is_empty() {
            return Vec::new();
        }
        let others = self.deferred.iter().map(|(_, task)| task).filter(|task| **task != gang.task);
        let deferrals = others.filter_map(|task| self.queue.get(task)?.deferral.as_ref());
        let held: BTreeSet<TaskId> = deferrals.flat_map(|deferral| deferral.holds.iter().cloned()).collect();
        held.into_iter().filter_map(|task| self.fleet.set_class(&task, TaskClass::Hp).map(|run| (task, run))).collect()
    }

    /// Lets them be what they were.
    pub(super) fn release(&mut self, shielded: Vec<(TaskId, Running)>) {
        for (task, run) in shielded {
            debug_assert_eq!(run.class, TaskClass::Spot, "only spot was shielded");
            self.fleet.set_class(&task, run.class);
        }
    }
}
