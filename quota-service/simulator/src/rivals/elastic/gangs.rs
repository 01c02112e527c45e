//! Rivals that are not elastic: a job runs on all of its request or waits. They plan again at every event, and admit in
//! order every job that fits by the number of free GPUs, as the public simulator of Tiresias does.

use super::allot::Change;
use super::job::{ElasticJob, JobNumber};
use super::{Left, Scheduler};
use std::collections::{BTreeMap, BTreeSet};

/// A job and what it is ordered by, least first.
pub(super) type Keyed = (i64, JobNumber);

/// Those who run, by the rule: each request whole, in order; who does not fit is passed over.
pub(super) fn admitted<'a>(
    gpus: u32,
    mut by_request: Vec<(u32, Box<dyn Iterator<Item = Keyed> + 'a>)>,
) -> BTreeSet<JobNumber> {
    let mut heads: Vec<Option<Keyed>> = by_request.iter_mut().map(|(_, jobs)| jobs.next()).collect();
    let (mut free, mut chosen) = (gpus, BTreeSet::new());
    loop {
        let fits = by_request.iter().zip(&heads).enumerate().filter(|(_, ((request, _), _))| *request <= free);
        let first = fits.filter_map(|(index, (_, head))| head.map(|head| (head, index))).min();
        let Some(((_, job), index)) = first else { return chosen };
        free -= by_request[index].0;
        chosen.insert(job);
        heads[index] = by_request[index].1.next();
    }
}

/// The states of jobs when these run from now on.
pub(super) fn changes(
    running: &BTreeMap<JobNumber, u32>,
    chosen: &BTreeSet<JobNumber>,
    request: impl Fn(JobNumber) -> u32,
) -> Vec<Change> {
    let stop = running.iter().filter(|(job, _)| !chosen.contains(job));
    let stop = stop.map(|(job, gpus)| Change { job: *job, from_gpus: *gpus, to_gpus: 0 });
    let start = chosen.iter().filter(|job| !running.contains_key(job));
    stop.chain(start.map(|job| Change { job: *job, from_gpus: 0, to_gpus: request(*job) })).collect()
}

/// Shortest remaining time first: it knows how long every job takes.
#[derive(Debug, Clone)]
pub struct Srtf {
    gpus: u32,
    requests: BTreeMap<JobNumber, u32>,
    /// By request and time left, of those that wait.
    waiting: BTreeMap<u32, BTreeSet<Keyed>>,
    /// By request and time of their end, of those that run: their order does not change while they do.
    ending: BTreeMap<u32, BTreeSet<Keyed>>,
    running: BTreeMap<JobNumber, u32>,
    /// Under which key each job is filed.
    keys: BTreeMap<JobNumber, i64>,
}

impl Srtf {
    #[must_use]
    pub fn new(gpus: u32) -> Self {
        let (requests, waiting, ending) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { gpus, requests, waiting, ending, running: BTreeMap::new(), keys: BTreeMap::new() }
    }

    fn file(&mut self, job: JobNumber, runs: bool, key: i64) {
        let request = self.requests[&job];
        let (here, there) =
            if runs { (&mut self.ending, &mut self.waiting) } else { (&mut self.waiting, &mut self.ending) };
        if let Some(old) = self.keys.insert(job, key) {
            there.entry(request).or_default().remove(&(old, job));
        }
        here.entry(request).or_default().insert((key, job));
    }
}

impl Scheduler for Srtf {
    fn arrive(&mut self, job: ElasticJob, work_ms: i64, _: i64) {
        self.requests.insert(job.number(), job.request());
        self.file(job.number(), false, work_ms);
    }

    fn leave(&mut self, number: JobNumber, _: i64) {
        let (Some(request), Some(key)) = (self.requests.remove(&number), self.keys.remove(&number)) else { return };
        for filed in [&mut self.waiting, &mut self.ending] {
            filed.entry(request).or_default().remove(&(key, number));
        }
        self.running.remove(&number);
    }

    fn next_ms(&self) -> Option<i64> {
        None
    }

    fn replan(&mut self, now_ms: i64, left: &Left<'_>) -> Vec<Change> {
        let waiting = self.waiting.iter().map(|(request, jobs)| {
            let jobs: Box<dyn Iterator<Item = Keyed>> = Box::new(jobs.iter().copied());
            (*request, jobs)
        });
        let ending = self.ending.iter().map(|(request, jobs)| {
            let jobs = jobs.iter().map(move |(end_ms, job)| (end_ms - now_ms, *job));
            let jobs: Box<dyn Iterator<Item = Keyed>> = Box::new(jobs);
            (*request, jobs)
        });
        let chosen = admitted(self.gpus, waiting.chain(ending).collect());
        let changes = changes(&self.running, &chosen, |job| self.requests[&job]);
        for Change { job, to_gpus, .. } in changes.iter().copied() {
            let left_ms = left(job).ceil() as i64;
            if to_gpus == 0 {
                self.running.remove(&job);
                self.file(job, false, left_ms);
            } else {
                self.running.insert(job, to_gpus);
                self.file(job, true, now_ms + left_ms);
            }
        }
        changes
    }
}

/// Tiresias with two-dimensional attained service (2D-LAS): who has had fewer GPU seconds comes first, by queue; within a
/// queue who entered it first.
#[derive(Debug, Clone)]
pub struct Tiresias {
    gpus: u32,
    rules: TiresiasRules,
    jobs: BTreeMap<JobNumber, Attained>,
    /// By request, queue and place in it.
    alive: BTreeMap<u32, BTreeSet<Keyed>>,
    running: BTreeMap<JobNumber, u32>,
    due: BTreeSet<Keyed>,
    entered: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TiresiasRules {
    /// GPU seconds at which a job leaves the first queue and the second one (the public simulator's).
    pub queue_gpu_s: [i64; 2],
    /// A job that has waited so many times as long as it has run returns to the first queue. The public simulator has the
    /// rule switched off; zero does so here.
    pub starved_multiple: i64,
}

impl Default for TiresiasRules {
    fn default() -> Self {
        Self { queue_gpu_s: [3_250, 7_200], starved_multiple: 8 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Attained {
    request: u32,
    queue: i64,
    /// How many entered a queue before it did.
    place: i64,
    runs: bool,
    since_ms: i64,
    /// Since it came, or returned to the first queue.
    executed_ms: i64,
    /// Since it last ran.
    waited_ms: i64,
}

impl Attained {
    /// Queues are one after the other, each with room for more places than there are jobs.
    const fn key(&self) -> i64 {
        self.queue << 48 | self.place
    }

    fn count(&mut self, now_ms: i64) {
        let passed_ms = now_ms - self.since_ms;
        self.since_ms = now_ms;
        if self.runs {
            self.executed_ms += passed_ms;
        } else {
            self.waited_ms += passed_ms;
        }
    }

    fn due_ms(&self, rules: &TiresiasRules) -> Option<i64> {
        if self.runs {
            let limit_gpu_s = rules.queue_gpu_s.get(self.queue as usize)?;
            let run_ms = (limit_gpu_s * 1_000 + i64::from(self.request) - 1) / i64::from(self.request);
            return Some(self.since_ms + (run_ms - self.executed_ms).max(0));
        }
        let may_return = self.queue > 0 && rules.starved_multiple > 0;
        may_return.then(|| self.since_ms + (self.executed_ms * rules.starved_multiple - self.waited_ms).max(0))
    }

    /// At a time when it is due: to the end of its next queue.
    fn cross(&mut self, place: i64, now_ms: i64) {
        self.count(now_ms);
        self.place = place;
        if self.runs {
            self.queue += 1;
        } else {
            (self.queue, self.executed_ms, self.waited_ms) = (0, 0, 0);
        }
    }
}

impl Tiresias {
    #[must_use]
    pub fn new(gpus: u32, rules: TiresiasRules) -> Self {
        let (jobs, alive, running) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { gpus, rules, jobs, alive, running, due: BTreeSet::new(), entered: 0 }
    }

    fn update(&mut self, number: JobNumber, change: impl FnOnce(&mut Attained)) {
        let Some(mut job) = self.drop(number) else { return };
        change(&mut job);
        self.put(number, job);
    }

    fn put(&mut self, number: JobNumber, job: Attained) {
        self.due.extend(job.due_ms(&self.rules).map(|due_ms| (due_ms, number)));
        self.alive.entry(job.request).or_default().insert((job.key(), number));
        self.jobs.insert(number, job);
    }

    fn drop(&mut self, number: JobNumber) -> Option<Attained> {
        let job = self.jobs.remove(&number)?;
        if let Some(due_ms) = job.due_ms(&self.rules) {
            self.due.remove(&(due_ms, number));
        }
        self.alive.entry(job.request).or_default().remove(&(job.key(), number));
        Some(job)
    }
}

impl Scheduler for Tiresias {
    fn arrive(&mut self, job: ElasticJob, _: i64, now_ms: i64) {
        self.entered += 1;
        let (place, queue, executed_ms, waited_ms) = (self.entered, 0, 0, 0);
        let (request, runs) = (job.request(), false);
        self.put(job.number(), Attained { request, queue, place, runs, since_ms: now_ms, executed_ms, waited_ms });
    }

    fn leave(&mut self, number: JobNumber, _: i64) {
        self.drop(number);
        self.running.remove(&number);
    }

    fn next_ms(&self) -> Option<i64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    fn replan(&mut self, now_ms: i64, _: &Left<'_>) -> Vec<Change> {
        while let Some((_, number)) = self.due.first().copied().filter(|(due_ms, _)| *due_ms <= now_ms) {
            self.entered += 1;
            let place = self.entered;
            self.update(number, |job| job.cross(place, now_ms));
        }
        let by_request = self.alive.iter().map(|(request, jobs)| {
            let jobs: Box<dyn Iterator<Item = Keyed>> = Box::new(jobs.iter().copied());
            (*request, jobs)
        });
        let chosen = admitted(self.gpus, by_request.collect());
        let changes = changes(&self.running, &chosen, |job| self.jobs[&job].request);
        for change in &changes {
            let runs = change.to_gpus > 0;
            self.update(change.job, |job| {
                job.count(now_ms);
                (job.runs, job.waited_ms) = (runs, 0);
            });
            if runs {
                self.running.insert(change.job, change.to_gpus);
            } else {
                self.running.remove(&change.job);
            }
        }
        changes
    }
}
