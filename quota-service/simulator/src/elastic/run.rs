//! Elastic jobs on a virtual clock: a scheduler of `placement` says who holds how many GPUs, this says what comes of it.

use crate::rivals::elastic::{Change, ElasticJob, JobNumber, Scheduler};
use std::collections::BTreeSet;

/// A job of a trace; its number is its place in the list.
#[derive(Debug, Clone)]
pub struct Job {
    pub job: ElasticJob,
    pub submitted_ms: i64,
    /// On the GPUs that it asked for.
    pub duration_ms: i64,
    /// A batch job that its user calls interactive.
    pub mislabelled: bool,
}

/// The costs of changes. Cornucopia's simulation leaves both out (§7).
#[derive(Debug, Clone, Copy, Default)]
pub struct Costs {
    /// Time for which a job stands still when its GPUs change after its start.
    pub resize_ms: i64,
    /// Time on each number of GPUs that a job has not held before, on its way up (Alg. 1).
    pub ramp_step_ms: i64,
}

/// The course of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Course {
    /// When it first held a GPU.
    pub started_ms: Option<i64>,
    /// When it first held all that it asked for.
    pub full_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    /// For how long it held none.
    pub stripped_ms: i64,
    pub gpu_ms: i64,
    /// How often it lost some of its GPUs, and how often all.
    pub shrunk: u64,
    pub stopped: u64,
}

#[derive(Debug, Clone, Copy)]
struct Progress {
    course: Course,
    gpus: u32,
    measured: u32,
    /// Milliseconds on its request that are left.
    left_ms: f64,
    speed: f64,
    /// Counted so far.
    since_ms: i64,
    /// It stands still until then.
    works_from_ms: i64,
}

impl Progress {
    fn left_at(&self, now_ms: i64) -> f64 {
        let worked_ms = (now_ms - self.works_from_ms.max(self.since_ms)).max(0);
        self.left_ms - worked_ms as f64 * self.speed
    }

    fn count(&mut self, now_ms: i64) {
        let passed_ms = now_ms - self.since_ms;
        self.left_ms = self.left_at(now_ms);
        self.course.gpu_ms += passed_ms * i64::from(self.gpus);
        if self.gpus == 0 {
            self.course.stripped_ms += passed_ms;
        }
        self.since_ms = now_ms;
    }

    /// When it will be done if nothing changes.
    fn end_ms(&self) -> Option<i64> {
        let from_ms = self.works_from_ms.max(self.since_ms);
        (self.gpus > 0).then(|| from_ms + (self.left_ms.max(0.0) / self.speed).ceil() as i64)
    }

    fn resize(&mut self, job: &ElasticJob, to_gpus: u32, costs: &Costs, now_ms: i64) {
        self.count(now_ms);
        if to_gpus < self.gpus {
            let lost = if to_gpus == 0 { &mut self.course.stopped } else { &mut self.course.shrunk };
            *lost += 1;
        }
        if to_gpus > 0 && self.course.started_ms.is_some() {
            self.works_from_ms = now_ms + costs.resize_ms;
        }
        if costs.ramp_step_ms > 0 && to_gpus > self.measured {
            let behind = |gpus| job.speed(to_gpus) - job.speed(gpus);
            let behind: f64 = (self.measured.max(1)..to_gpus).map(behind).sum();
            self.left_ms += behind.max(0.0) * costs.ramp_step_ms as f64;
        }
        self.gpus = to_gpus;
        self.measured = self.measured.max(to_gpus);
        self.speed = job.speed(to_gpus);
        if to_gpus > 0 {
            self.course.started_ms.get_or_insert(now_ms);
        }
        if to_gpus >= job.request() {
            self.course.full_ms.get_or_insert(now_ms);
        }
    }
}

struct Simulation<'a> {
    jobs: &'a [Job],
    gpus: u32,
    costs: Costs,
    scheduler: Box<dyn Scheduler>,
    progress: Vec<Progress>,
    ends: BTreeSet<(i64, u32)>,
    arrived: usize,
    used_gpus: u32,
}

/// Runs jobs, ordered by submission, until nothing happens any more.
#[must_use]
pub fn run(jobs: &[Job], gpus: u32, costs: Costs, scheduler: Box<dyn Scheduler>) -> Vec<Course> {
    let fresh = |job: &Job| Progress {
        course: Course::default(),
        gpus: 0,
        measured: 0,
        left_ms: job.duration_ms as f64,
        speed: 0.0,
        since_ms: job.submitted_ms,
        works_from_ms: job.submitted_ms,
    };
    let progress = jobs.iter().map(fresh).collect();
    let (ends, arrived, used_gpus) = (BTreeSet::new(), 0, 0);
    let mut simulation = Simulation { jobs, gpus, costs, scheduler, progress, ends, arrived, used_gpus };
    let mut now_ms = i64::MIN;
    while let Some(next_ms) = simulation.next_ms() {
        // A rule that is due again at once waits for the clock: time goes on.
        now_ms = next_ms.max(now_ms.saturating_add(1));
        simulation.step(now_ms);
    }
    simulation.progress.into_iter().map(|one| one.course).collect()
}

impl Simulation<'_> {
    fn next_ms(&self) -> Option<i64> {
        let arrival = self.jobs.get(self.arrived).map(|job| job.submitted_ms);
        let end = self.ends.first().map(|(end_ms, _)| *end_ms);
        [arrival, end, self.scheduler.next_ms()].into_iter().flatten().min()
    }

    fn step(&mut self, now_ms: i64) {
        // 1. Who is done goes.
        while let Some((_, number)) = self.ends.first().copied().filter(|(end_ms, _)| *end_ms <= now_ms) {
            self.finish(number, now_ms);
        }
        // 2. New jobs are announced.
        while let Some(job) = self.jobs.get(self.arrived).filter(|job| job.submitted_ms <= now_ms) {
            self.scheduler.arrive(job.job.clone(), job.duration_ms, now_ms);
            self.arrived += 1;
        }
        // 3. The scheduler decides, and what it says happens: who gives first.
        let progress = &self.progress;
        let left = |number: JobNumber| progress[number.0 as usize].left_at(now_ms).max(0.0);
        let mut changes = self.scheduler.replan(now_ms, &left);
        changes.sort_by_key(|change| change.to_gpus > change.from_gpus);
        for change in changes {
            self.apply(change, now_ms);
        }
    }

    fn finish(&mut self, number: u32, now_ms: i64) {
        self.ends.pop_first();
        let one = &mut self.progress[number as usize];
        one.count(now_ms);
        one.course.ended_ms = Some(now_ms);
        self.used_gpus -= one.gpus;
        self.scheduler.leave(JobNumber(number), now_ms);
    }

    fn apply(&mut self, change: Change, now_ms: i64) {
        let Change { job: JobNumber(number), from_gpus, to_gpus } = change;
        let one = &mut self.progress[number as usize];
        let job = &self.jobs[number as usize].job;
        assert_eq!(one.gpus, from_gpus, "the scheduler knows what job {number} holds");
        assert!(to_gpus == 0 || (job.min()..=job.max()).contains(&to_gpus), "job {number} cannot hold {to_gpus} GPUs");
        if let Some(end_ms) = one.end_ms() {
            self.ends.remove(&(end_ms, number));
        }
        one.resize(job, to_gpus, &self.costs, now_ms);
        self.ends.extend(one.end_ms().map(|end_ms| (end_ms, number)));
        self.used_gpus = self.used_gpus + to_gpus - from_gpus;
        assert!(self.used_gpus <= self.gpus, "{} GPUs are held, there are {}", self.used_gpus, self.gpus);
    }
}
