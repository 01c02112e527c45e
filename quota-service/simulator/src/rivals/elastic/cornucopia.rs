//! Cornucopia: feedback queues decide who is urgent, gains decide who grows and who shrinks.

use super::allot::{Allotments, Change, Level, Standing};
use super::job::{ElasticJob, JobNumber};
use super::queues::{Feedback, Learned, Queue, Thresholds};
use super::{Left, Scheduler};
use std::collections::{BTreeMap, BTreeSet};

/// GPUs above a request are what nobody asked for: they come last, and go first (§4.3: "idle resources").
const BEYOND: Level = 4;

/// Levels by queue: strictly one after the other. Interactive jobs all begin before one of them gets more than it needs to
/// begin, then each gets its request in turn: nobody else takes a GPU of theirs.
const fn standing(queue: Queue) -> Standing {
    match queue {
        Queue::First => Standing { min: 0, request: 1, beyond: None, in_turn: true },
        Queue::Second => Standing { min: 2, request: 2, beyond: Some(BEYOND), in_turn: false },
        Queue::Third => Standing { min: 3, request: 3, beyond: Some(BEYOND), in_turn: false },
    }
}

#[derive(Debug, Clone)]
pub struct Cornucopia {
    allotments: Allotments,
    jobs: BTreeMap<JobNumber, Feedback>,
    /// When each job changes its queue.
    due: BTreeSet<(i64, JobNumber)>,
    learned: Learned,
}

impl Cornucopia {
    #[must_use]
    pub fn new(gpus: u32) -> Self {
        let (jobs, due) = (BTreeMap::new(), BTreeSet::new());
        Self { allotments: Allotments::new(gpus), jobs, due, learned: Learned::default() }
    }

    #[must_use]
    pub const fn thresholds(&self) -> Thresholds {
        self.learned.thresholds()
    }

    /// Changes what is known of a job, and when it is due.
    fn update(&mut self, number: JobNumber, change: impl FnOnce(&mut Feedback, &Thresholds)) {
        let thresholds = self.learned.thresholds();
        let Some(job) = self.jobs.get_mut(&number) else { return };
        if let Some(due_ms) = job.due_ms(&thresholds) {
            self.due.remove(&(due_ms, number));
        }
        change(job, &thresholds);
        self.due.extend(job.due_ms(&thresholds).map(|due_ms| (due_ms, number)));
    }

    /// Moves those whose time has come.
    fn cross(&mut self, now_ms: i64) {
        while let Some((due_ms, number)) = self.due.first().copied().filter(|(due_ms, _)| *due_ms <= now_ms) {
            self.due.remove(&(due_ms, number));
            self.update(number, |job, thresholds| {
                job.cross(thresholds, now_ms);
            });
            let queue = self.jobs[&number].queue();
            self.allotments.stand(number, standing(queue));
        }
    }
}

impl Scheduler for Cornucopia {
    fn arrive(&mut self, job: ElasticJob, _: i64, now_ms: i64) {
        let (number, feedback) = (job.number(), Feedback::new(job.label(), now_ms));
        self.allotments.add(job, standing(feedback.queue()));
        self.jobs.insert(number, feedback);
    }

    fn leave(&mut self, number: JobNumber, now_ms: i64) {
        self.allotments.remove(number);
        self.update(number, |job, _| job.hold(false, now_ms));
        let Some(job) = self.jobs.remove(&number) else { return };
        if let Some(due_ms) = job.due_ms(&self.learned.thresholds()) {
            self.due.remove(&(due_ms, number));
        }
        if self.learned.finished(job.run(false)) {
            let thresholds = self.learned.thresholds();
            let due = self.jobs.iter().filter_map(|(number, job)| Some((job.due_ms(&thresholds)?, *number)));
            self.due = due.collect();
        }
    }

    fn next_ms(&self) -> Option<i64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    fn replan(&mut self, now_ms: i64, _: &Left<'_>) -> Vec<Change> {
        self.cross(now_ms);
        let changes = self.allotments.settle();
        for change in changes.iter().filter(|change| (change.from_gpus == 0) != (change.to_gpus == 0)) {
            self.update(change.job, |job, _| job.hold(change.to_gpus > 0, now_ms));
        }
        changes
    }
}
