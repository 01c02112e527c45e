//! The clock: jobs come, train and finish; `crate::rivals::timing` decides.

use super::figures::{Figures, Tally};
use super::work::Work;
use crate::cpu;
use crate::rivals::timing::{Action, Event, JobNumber, Scheduler, TimingPolicy};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// The next event: of events at the same time, ends come before begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Finished,
    Submitted,
    Woken,
}

struct Simulation<'a> {
    work: &'a Work,
    scheduler: Scheduler,
    /// When a job would finish, its number, and which of its runs that is.
    finishes: BinaryHeap<Reverse<(i64, u32, u32)>>,
    runs: Vec<u32>,
    trained_ms: Vec<i64>,
    tally: Tally,
}

/// Plays all jobs to their end.
#[must_use]
pub fn run(work: &Work, policy: TimingPolicy, seed: u64) -> Figures {
    let before = cpu::used();
    let count = work.jobs.len();
    let mut simulation = Simulation {
        work,
        scheduler: Scheduler::new(policy, work.gpus, seed),
        finishes: BinaryHeap::new(),
        runs: vec![0; count],
        trained_ms: vec![0; count],
        tally: Tally::new(work),
    };
    simulation.play();
    let cpu = cpu::used().saturating_sub(before);
    simulation.tally.finish(work, cpu)
}

impl Simulation<'_> {
    fn play(&mut self) {
        let (mut now_ms, mut coming) = (i64::MIN / 2, 0);
        loop {
            let wake_ms = self.scheduler.next_wake_ms(now_ms);
            let next = [
                self.next_finish_ms().map(|at_ms| (at_ms, Next::Finished)),
                self.work.jobs.get(coming).map(|job| (job.submitted_ms, Next::Submitted)),
                wake_ms.map(|at_ms| (at_ms, Next::Woken)),
            ];
            let Some((at_ms, next)) = next.into_iter().flatten().min() else { return };
            now_ms = at_ms;
            let event = match next {
                Next::Finished => self.finish(now_ms),
                Next::Submitted => {
                    coming += 1;
                    Event::Submitted(self.work.jobs[coming - 1].ask)
                }
                Next::Woken => Event::Woken,
            };
            self.decide(now_ms, event);
        }
    }

    /// Runs that were paused do not finish.
    fn next_finish_ms(&mut self) -> Option<i64> {
        while let Some(Reverse((at_ms, number, run))) = self.finishes.peek() {
            if self.runs[*number as usize] == *run {
                return Some(*at_ms);
            }
            self.finishes.pop();
        }
        None
    }

    fn finish(&mut self, now_ms: i64) -> Event {
        let Some(Reverse((_, number, _))) = self.finishes.pop() else { return Event::Woken };
        self.runs[number as usize] += 1;
        self.tally.finished(now_ms, number, &self.work.jobs[number as usize]);
        Event::Finished(JobNumber(number))
    }

    fn decide(&mut self, now_ms: i64, event: Event) {
        let start = Instant::now();
        self.scheduler.learn(now_ms);
        let learned = Instant::now();
        let actions = self.scheduler.handle(now_ms, event);
        self.tally.decided(learned.elapsed(), learned - start);
        for action in actions {
            self.follow(now_ms, &action);
        }
    }

    fn follow(&mut self, now_ms: i64, action: &Action) {
        match action {
            Action::Start { job: JobNumber(number), run } => {
                let at = *number as usize;
                self.runs[at] += 1;
                let left_ms = self.work.jobs[at].duration_ms - self.trained_ms[at];
                self.finishes.push(Reverse((run.trains_from_ms + left_ms, *number, self.runs[at])));
                self.tally.started(*number, *run);
            }
            Action::Pause { job: JobNumber(number), phase, trained_ms, saved_at_ms, .. } => {
                let at = *number as usize;
                self.runs[at] += 1;
                self.trained_ms[at] = *trained_ms;
                self.tally.paused(now_ms, *number, *phase, *saved_at_ms);
            }
            Action::Defer { job: JobNumber(number), predicted_ms, deferral_ms } => {
                self.tally.deferred(now_ms, *number, *predicted_ms, *deferral_ms);
            }
        }
    }
}
