//! Jobs, GPUs and queues under a policy of timing: events go in, pauses, starts and deferrals come out.

use super::gpus::Gpus;
use super::job::{Ask, Job, JobNumber, Phase, Run};
use super::lazer::Lazer;
use super::policy::TimingPolicy;
use super::tiresias;
use placement::timing::History;
use std::collections::BTreeSet;

/// An event of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Submitted(Ask),
    /// A job has trained as long as it needed.
    Finished(JobNumber),
    /// It is as late as [`Scheduler::next_wake_ms`] asked.
    Woken,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The job waits again. Where its phase was [`Phase::Loading`], the preemption was futile.
    Pause { job: JobNumber, phase: Phase, loads_from_ms: i64, trained_ms: i64, saved_at_ms: i64 },
    /// The job gets its GPUs.
    Start { job: JobNumber, run: Run },
    /// The job preempts nobody before its deferral is over: X as predicted, or the rest of a load that is waited for.
    Defer { job: JobNumber, predicted_ms: i64, deferral_ms: i64 },
}

/// Before the rest of the order; jobs with lower ranks come first.
pub(super) type Rank = (u8, i64);

/// A cluster of so many GPUs, and the jobs on it.
#[derive(Debug, Clone)]
pub struct Scheduler {
    pub(super) policy: TimingPolicy,
    pub(super) total: u32,
    pub(super) gpus: Gpus,
    pub(super) jobs: Vec<Job>,
    /// Jobs with GPUs, by number.
    pub(super) active: Vec<JobNumber>,
    /// Jobs without, in their order; deferred ones are in [`Lazer`] instead.
    pub(super) waiting: BTreeSet<(Rank, JobNumber)>,
    pub(super) starving: BTreeSet<(i64, JobNumber)>,
    pub(super) history: History,
    pub(super) lazer: Lazer,
    pub(super) actions: Vec<Action>,
}

impl Scheduler {
    #[must_use]
    pub fn new(policy: TimingPolicy, total: u32, seed: u64) -> Self {
        let learns_on = matches!(policy, TimingPolicy::Lazer(rules) if rules.learns_on);
        Self {
            policy,
            total,
            gpus: Gpus::new(total),
            jobs: Vec::new(),
            active: Vec::new(),
            waiting: BTreeSet::new(),
            starving: BTreeSet::new(),
            history: History::default(),
            lazer: Lazer::new(seed, learns_on),
            actions: Vec::new(),
        }
    }

    /// The number that the next submitted job gets.
    #[must_use]
    pub const fn next_number(&self) -> JobNumber {
        JobNumber(self.jobs.len() as u32)
    }

    /// Deferrals and their learning.
    #[must_use]
    pub const fn lazer(&self) -> &Lazer {
        &self.lazer
    }

    /// Decides on what has happened. Jobs that ask for more GPUs than there are wait for ever: leave them out.
    pub fn handle(&mut self, now_ms: i64, event: Event) -> Vec<Action> {
        match event {
            Event::Submitted(ask) => self.submitted(now_ms, ask),
            Event::Finished(job) => self.finished(now_ms, job),
            Event::Woken => self.woken(now_ms),
        }
        super::checks::gpus_are_given_once(self);
        std::mem::take(&mut self.actions)
    }

    /// When it wants to be woken, if nothing else happens before.
    #[must_use]
    pub fn next_wake_ms(&self, now_ms: i64) -> Option<i64> {
        match self.policy {
            TimingPolicy::Sjf | TimingPolicy::Srtf { interval_ms: None } => None,
            TimingPolicy::Srtf { interval_ms: Some(interval_ms) } => {
                (!self.waiting.is_empty()).then(|| (now_ms.div_euclid(interval_ms) + 1) * interval_ms)
            }
            TimingPolicy::Tiresias => tiresias::next_crossing_ms(self, now_ms),
            TimingPolicy::Lazer(_) => self.lazer.next_wake_ms(),
        }
    }

    fn submitted(&mut self, now_ms: i64, ask: Ask) {
        let job = self.next_number();
        self.jobs.push(Job::new(ask, now_ms));
        if let TimingPolicy::Lazer(rules) = self.policy {
            return self.newcomer(now_ms, job, rules);
        }
        self.wait(now_ms, job);
        self.plan(now_ms);
    }

    fn finished(&mut self, now_ms: i64, job: JobNumber) {
        let done = self.job(job);
        let (gpus, organization, trained_ms) =
            (done.ask.gpus, done.ask.organization, done.trained_ms + done.run_ms(now_ms));
        self.gpus.give(gpus, now_ms);
        self.active.retain(|other| *other != job);
        self.job_mut(job).run = None;
        self.history.add(organization, trained_ms);
        match self.policy {
            TimingPolicy::Lazer(rules) => self.fill(now_ms, rules),
            _ => self.plan(now_ms),
        }
    }

    fn woken(&mut self, now_ms: i64) {
        match self.policy {
            TimingPolicy::Lazer(rules) => self.deferrals_over(now_ms, rules),
            TimingPolicy::Srtf { interval_ms: Some(_) } => self.replan(now_ms),
            _ => self.plan(now_ms),
        }
    }

    /// At arrivals and completions; those who plan at intervals do nothing then.
    fn plan(&mut self, now_ms: i64) {
        match self.policy {
            TimingPolicy::Sjf => self.start_what_fits(now_ms),
            TimingPolicy::Srtf { interval_ms: None } => self.replan(now_ms),
            TimingPolicy::Tiresias => {
                tiresias::move_between_queues(self, now_ms);
                self.replan(now_ms);
            }
            TimingPolicy::Srtf { interval_ms: Some(_) } | TimingPolicy::Lazer(_) => {}
        }
    }

    pub(super) fn job(&self, job: JobNumber) -> &Job {
        &self.jobs[job.0 as usize]
    }

    pub(super) fn job_mut(&mut self, job: JobNumber) -> &mut Job {
        &mut self.jobs[job.0 as usize]
    }

    pub(super) fn remaining_ms(&self, now_ms: i64, job: JobNumber) -> i64 {
        self.job(job).remaining_ms(now_ms, &self.history)
    }

    pub(super) fn rank(&self, now_ms: i64, job: JobNumber) -> Rank {
        match self.policy {
            TimingPolicy::Tiresias => tiresias::rank(self.job(job), now_ms),
            _ => (0, self.remaining_ms(now_ms, job)),
        }
    }

    /// Puts a job among those that wait. What is estimated of it is estimated now.
    pub(super) fn wait(&mut self, now_ms: i64, job: JobNumber) {
        let rank = self.rank(now_ms, job);
        self.waiting.insert((rank, job));
    }

    /// Starts those who wait and fit on what is available, in their order.
    pub(super) fn start_what_fits(&mut self, now_ms: i64) {
        let mut available = self.gpus.available();
        let mut chosen = Vec::new();
        for (rank, job) in &self.waiting {
            if available == 0 {
                break;
            }
            let gpus = self.job(*job).ask.gpus;
            if gpus <= available {
                available -= gpus;
                chosen.push((*rank, *job));
            }
        }
        for entry in chosen {
            self.waiting.remove(&entry);
            self.start(now_ms, entry.1);
        }
    }

    /// The jobs that would run if all began again: in their order, each on what those before it leave (the simulator of Tiresias).
    /// Of equals who runs stays.
    fn replan(&mut self, now_ms: i64) {
        let mut active: Vec<(Rank, JobNumber)> =
            self.active.iter().map(|job| (self.rank(now_ms, *job), *job)).collect();
        active.sort_unstable();
        let (mut free, mut starts, mut pauses) = (self.total, Vec::new(), Vec::new());
        let (mut running, mut queue) = (active.iter().peekable(), self.waiting.iter().peekable());
        while free > 0 {
            let from_queue = match (running.peek(), queue.peek()) {
                (Some((holds, _)), Some((wants, _))) => wants < holds,
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (None, None) => break,
            };
            let Some(entry) = (if from_queue { queue.next() } else { running.next() }) else { break };
            let gpus = self.job(entry.1).ask.gpus;
            match (gpus <= free, from_queue) {
                (true, _) => {
                    free -= gpus;
                    starts.extend(from_queue.then_some(*entry));
                }
                (false, true) => {}
                (false, false) => pauses.push(entry.1),
            }
        }
        pauses.extend(running.map(|(_, job)| *job));
        super::checks::nobody_is_paused_in_vain(&pauses, &starts);
        for job in pauses {
            self.pause(now_ms, job);
            self.wait(now_ms, job);
        }
        for entry in starts {
            self.waiting.remove(&entry);
            self.start(now_ms, entry.1);
        }
    }

    /// Takes a job off its GPUs. What has trained saves its state first; what was loading has nothing to save.
    pub(super) fn pause(&mut self, now_ms: i64, number: JobNumber) {
        let job = self.job(number);
        let (Some(run), Some(phase)) = (job.run, job.phase(now_ms)) else { return };
        let ran_ms = job.run_ms(now_ms);
        let saved_at_ms = match phase {
            Phase::Promised => run.loads_from_ms,
            Phase::Loading => now_ms,
            Phase::Training => now_ms + job.ask.save_ms,
        };
        let gpus = job.ask.gpus;
        let job = self.job_mut(number);
        job.run = None;
        job.trained_ms += ran_ms;
        job.level.counted_ms += ran_ms;
        if phase == Phase::Training {
            job.saved_at_ms = saved_at_ms;
        }
        let trained_ms = job.trained_ms;
        self.gpus.give(gpus, saved_at_ms);
        self.active.retain(|other| *other != number);
        let loads_from_ms = run.loads_from_ms;
        self.actions.push(Action::Pause { job: number, phase, loads_from_ms, trained_ms, saved_at_ms });
        if self.policy == TimingPolicy::Tiresias {
            tiresias::may_starve(self, now_ms, number);
        }
    }

    /// Gives a job the GPUs that are free first; the caller knows that they suffice.
    pub(super) fn start(&mut self, now_ms: i64, number: JobNumber) {
        let Ask { gpus, load_ms, .. } = self.job(number).ask;
        let Some(from_ms) = self.gpus.take(gpus, now_ms) else { return self.wait(now_ms, number) };
        let loads_from_ms = from_ms.max(self.job(number).saved_at_ms);
        let run = Run { loads_from_ms, trains_from_ms: loads_from_ms + load_ms };
        self.job_mut(number).run = Some(run);
        let at = self.active.partition_point(|other| *other < number);
        self.active.insert(at, number);
        self.starving.retain(|(_, other)| *other != number);
        self.actions.push(Action::Start { job: number, run });
    }
}
