//! Jobs that were seen: those of each kind in a history of their own.

use crate::course::Margins;
use crate::facts::{PoolFacts, RunFacts, Size, WaitFacts};
use crate::kind::Kind;
use forecaster::jobs::{Arrivals, JobHistory};
use std::collections::BTreeMap;
use vocab::{HpJob, SECONDS_PER_DAY, TaskClass, TaskId, UnixSeconds};

/// Work of a spot task that ran: its present run, and what earlier runs saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    pub since: UnixSeconds,
    pub saved: UnixSeconds,
    /// Seconds of work that runs before the present one saved.
    pub earlier_s: i64,
}

/// The jobs of a pool by kind, and the saved work of its spot tasks, from one observation to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobMemory {
    pub(crate) histories: BTreeMap<Kind, JobHistory>,
    /// Of running spot tasks.
    pub(crate) work: BTreeMap<TaskId, Work>,
    /// Seconds that waiting tasks saved while they ran.
    pub(crate) saved_s: BTreeMap<TaskId, i64>,
    pub(crate) margins: Margins,
}

impl JobMemory {
    /// Learns which tasks run and wait at the moment of the facts. Calls come in the order of time.
    pub fn observe(&mut self, facts: &PoolFacts) {
        let mut jobs: BTreeMap<Kind, Vec<HpJob>> = self.histories.keys().map(|kind| (*kind, Vec::new())).collect();
        let (mut work, mut saved_s) = (BTreeMap::new(), BTreeMap::new());
        let earlier_s = self.earlier_s(facts);
        let kind = |number: u16| facts.kinds[usize::from(number)];
        let job = |task: &TaskId, organization: u16, size: Size, submitted, started| HpJob {
            task: task.clone(),
            organization: facts.organizations[usize::from(organization)].clone(),
            gpus_milli: size.milli(),
            submitted,
            started,
        };
        for (run, earlier_s) in facts.running.iter().zip(earlier_s) {
            let mut started = run.since;
            if kind(run.kind).class == TaskClass::Spot {
                started = started.plus_s(-earlier_s);
                work.insert(run.task.clone(), Work { since: run.since, saved: run.saved, earlier_s });
            }
            let job = job(&run.task, run.organization, run.size, run.submitted, Some(started));
            jobs.entry(kind(run.kind)).or_default().push(job);
        }
        for one in &facts.waiting {
            let saved = self.saved_s(one);
            if saved > 0 {
                saved_s.insert(one.task.clone(), saved);
            }
            if kind(one.kind).class == TaskClass::Spot || one.is_demand {
                let job = job(&one.task, one.organization, one.size, one.submitted, None);
                jobs.entry(kind(one.kind)).or_default().push(job);
            }
        }
        (self.work, self.saved_s) = (work, saved_s);
        self.margins.observe(facts);
        for (kind, jobs) in &jobs {
            self.histories.entry(*kind).or_default().observe(facts.at, jobs);
        }
    }

    /// Runs that began since the last observation after a wait, and for how long it lasted since the submission, in seconds; in the
    /// order of their begin. A later run of a task counts only where no earlier one saved anything.
    pub(crate) fn waited<'a>(&self, facts: &'a PoolFacts) -> Vec<(&'a RunFacts, i64)> {
        // A run that begins at the moment of an observation belongs to the next one: this one may have come before it.
        let Some(seen) = self.margins.seen_at else { return Vec::new() };
        let has_saved =
            |run: &RunFacts| self.work.get(&run.task).is_some_and(|work| work.since != run.since || work.earlier_s > 0);
        let is_new =
            |run: &&RunFacts| seen <= run.since && run.since < facts.at && run.submitted < run.since && !has_saved(run);
        let new = facts.running.iter().filter(is_new).filter(|run| !self.saved_s.contains_key(&run.task));
        let mut new: Vec<_> = new.map(|run| (run, run.since.since_s(run.submitted))).collect();
        new.sort_by_key(|(run, _)| run.since);
        new
    }

    /// Seconds of work that the runs of each running task before its present one saved, in the order of the facts.
    pub(crate) fn earlier_s(&self, facts: &PoolFacts) -> Vec<i64> {
        debug_assert!(
            facts.running.is_sorted_by(|one, next| one.task < next.task),
            "running tasks come by their names"
        );
        let mut known = self.work.iter().peekable();
        let one = |run: &RunFacts| {
            while known.next_if(|(task, _)| **task < run.task).is_some() {}
            match known.peek().filter(|(task, _)| **task == run.task) {
                Some((_, work)) if work.since == run.since => work.earlier_s,
                Some((_, work)) => work.all_s(),
                None => self.saved_s.get(&run.task).copied().unwrap_or(0),
            }
        };
        facts.running.iter().map(one).collect()
    }

    /// Seconds of work that all runs of a waiting task saved.
    pub(crate) fn saved_s(&self, one: &WaitFacts) -> i64 {
        // A task that waited when the pool was seen last did not run then.
        let ran = self.margins.seen_at.is_none_or(|seen| one.queued >= seen);
        let ran = || self.work.get(&one.task).filter(|_| ran).map(|known| known.all_s());
        self.saved_s.get(&one.task).copied().or_else(ran).unwrap_or(0)
    }

    /// Jobs of a class whose end was seen.
    pub(crate) fn ended_jobs(&self, class: TaskClass) -> usize {
        let of_class = self.histories.iter().filter(|(kind, _)| kind.class == class);
        of_class.map(|(_, history)| history.seen().ended).sum()
    }

    /// Whether arrivals of some kind were watched for long enough to draw from.
    pub(crate) fn knows_arrivals(&self, now: UnixSeconds) -> bool {
        self.histories.values().any(|history| Arrivals::are_known(history, now))
    }

    /// Jobs of all kinds that came in a day, lately; at least those that ended.
    pub(crate) fn arrivals_a_day(&self) -> usize {
        let of_one = |history: &JobHistory| {
            let days = (history.watched_s() as f64 / SECONDS_PER_DAY as f64).max(1.0);
            (history.seen().ended as f64 / days) as usize
        };
        self.histories.values().map(of_one).sum()
    }
}

impl Work {
    const fn all_s(self) -> i64 {
        let run_s = self.saved.since_s(self.since);
        self.earlier_s + if run_s > 0 { run_s } else { 0 }
    }
}
