//! Jobs that were seen: those of each kind in a history of their own.

use crate::course::Margins;
use crate::facts::{PoolFacts, RunFacts, Size};
use crate::kind::Kind;
use forecaster::jobs::{Arrivals, HpJob, JobHistory};
use std::collections::BTreeMap;
use vocab::{SECONDS_PER_DAY, TaskClass, TaskId, UnixSeconds};

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
    pub(crate) work: BTreeMap<TaskId, Work>,
    pub(crate) margins: Margins,
}

impl JobMemory {
    /// Learns which tasks run and wait at the moment of the facts. Calls come in the order of time.
    pub fn observe(&mut self, facts: &PoolFacts) {
        self.margins.observe(facts);
        let mut jobs: BTreeMap<Kind, Vec<HpJob>> = self.histories.keys().map(|kind| (*kind, Vec::new())).collect();
        let mut work = BTreeMap::new();
        let kind = |number: u16| facts.kinds[usize::from(number)];
        let job = |task: &TaskId, organization: u16, size: Size, submitted, started| HpJob {
            task: task.clone(),
            organization: facts.organizations[usize::from(organization)].clone(),
            gpus_milli: size.milli(),
            submitted,
            started,
        };
        for run in &facts.running {
            let mut started = run.since;
            if kind(run.kind).class == TaskClass::Spot {
                let earlier_s = self.earlier_s(run);
                started = started.plus_s(-earlier_s);
                work.insert(run.task.clone(), Work { since: run.since, saved: run.saved, earlier_s });
            }
            let job = job(&run.task, run.organization, run.size, run.submitted, Some(started));
            jobs.entry(kind(run.kind)).or_default().push(job);
        }
        for one in &facts.waiting {
            if let Some(known) = self.work.get(&one.task) {
                work.insert(one.task.clone(), *known);
            }
            if kind(one.kind).class == TaskClass::Spot || one.is_demand {
                let job = job(&one.task, one.organization, one.size, one.submitted, None);
                jobs.entry(kind(one.kind)).or_default().push(job);
            }
        }
        self.work = work;
        for (kind, jobs) in &jobs {
            self.histories.entry(*kind).or_default().observe(facts.at, jobs);
        }
    }

    /// Seconds of work that the runs of a task before its present one saved.
    pub(crate) fn earlier_s(&self, run: &RunFacts) -> i64 {
        self.work.get(&run.task).map_or(0, |known| if known.since == run.since { known.earlier_s } else { known.all_s() })
    }

    /// Seconds of work that all runs of a waiting task saved.
    pub(crate) fn saved_s(&self, task: &TaskId) -> i64 {
        self.work.get(task).map_or(0, |known| known.all_s())
    }

    /// Jobs of a class whose end was seen.
    pub(crate) fn ended_jobs(&self, class: TaskClass) -> usize {
        let of_class = self.histories.iter().filter(|(kind, _)| kind.class == class);
        of_class.map(|(_, history)| history.ended_jobs()).sum()
    }

    /// Whether arrivals of some kind were watched for long enough to draw from.
    pub(crate) fn knows_arrivals(&self, now: UnixSeconds) -> bool {
        self.histories.values().any(|history| Arrivals::are_known(history, now))
    }

    /// Jobs of all kinds that came in a day, lately; at least those that ended.
    pub(crate) fn arrivals_a_day(&self) -> usize {
        let of_one = |history: &JobHistory| {
            let days = (history.watched_s() as f64 / SECONDS_PER_DAY as f64).max(1.0);
            (history.ended_jobs() as f64 / days) as usize
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
