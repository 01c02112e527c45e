//! Shortest remaining time first made elastic: what elasticity alone brings to a policy that knows how long jobs take.

use super::allot::Change;
use super::job::{ElasticJob, JobNumber};
use super::{Left, Scheduler};
use placement::elastic::Scaling;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The order is SRTF's, by the time left on the request. Each job gets its request, the last one what is left of the
/// cluster, and when all have theirs the rest goes one by one where it gains most, up to twice a request.
#[derive(Debug, Clone)]
pub struct ElasticSrtf {
    gpus: u32,
    jobs: BTreeMap<JobNumber, ElasticJob>,
    running: BTreeMap<JobNumber, u32>,
    waiting: BTreeSet<(i64, JobNumber)>,
    keys: BTreeMap<JobNumber, i64>,
}

impl ElasticSrtf {
    #[must_use]
    pub fn new(gpus: u32) -> Self {
        let (running, waiting) = (BTreeMap::new(), BTreeSet::new());
        Self { gpus, jobs: BTreeMap::new(), running, waiting, keys: BTreeMap::new() }
    }

    fn wait(&mut self, job: JobNumber, left_ms: i64) {
        self.keys.insert(job, left_ms);
        self.waiting.insert((left_ms, job));
    }

    /// Requests in order, the last of them in part.
    fn requests(&self, ordered: impl Iterator<Item = JobNumber>) -> (BTreeMap<JobNumber, u32>, u32) {
        let (mut free, mut plan) = (self.gpus, BTreeMap::new());
        for number in ordered {
            if free == 0 {
                break;
            }
            let job = &self.jobs[&number];
            let gpus = job.request().min(free);
            if gpus >= job.min() {
                free -= gpus;
                plan.insert(number, gpus);
            }
        }
        (plan, free)
    }

    /// GPUs without a claim.
    fn grow(&self, plan: &mut BTreeMap<JobNumber, u32>, mut free: u32, left: &Left<'_>) {
        let wish = |number: JobNumber, gpus: u32| {
            let job = &self.jobs[&number];
            let gain = job.gain(gpus, gpus);
            let wants = job.step_up(gpus) == 1 && gain > Scaling::NONE;
            wants.then(|| (gain, Reverse(left(number).ceil() as i64), Reverse(number)))
        };
        let mut wishes: BinaryHeap<_> = plan.iter().filter_map(|(number, gpus)| wish(*number, *gpus)).collect();
        while free > 0 {
            let Some((_, _, Reverse(number))) = wishes.pop() else { return };
            let gpus = plan.entry(number).or_default();
            *gpus += 1;
            free -= 1;
            wishes.extend(wish(number, *gpus));
        }
    }
}

impl Scheduler for ElasticSrtf {
    fn arrive(&mut self, job: ElasticJob, work_ms: i64, _: i64) {
        let number = job.number();
        self.jobs.insert(number, job);
        self.wait(number, work_ms);
    }

    fn leave(&mut self, number: JobNumber, _: i64) {
        self.jobs.remove(&number);
        self.running.remove(&number);
        if let Some(key) = self.keys.remove(&number) {
            self.waiting.remove(&(key, number));
        }
    }

    fn next_ms(&self) -> Option<i64> {
        None
    }

    fn replan(&mut self, _: i64, left: &Left<'_>) -> Vec<Change> {
        let mut running: Vec<(i64, JobNumber)> =
            self.running.keys().map(|number| (left(*number).ceil() as i64, *number)).collect();
        running.sort_unstable();
        let (mut first, mut second) = (running.into_iter().peekable(), self.waiting.iter().copied().peekable());
        let ordered = std::iter::from_fn(|| match (first.peek(), second.peek()) {
            (Some(one), Some(other)) if one < other => first.next(),
            (_, Some(_)) => second.next(),
            _ => first.next(),
        });
        let (mut plan, free) = self.requests(ordered.map(|(_, number)| number));
        if free > 0 {
            self.grow(&mut plan, free, left);
        }
        let all: BTreeSet<JobNumber> = self.running.keys().chain(plan.keys()).copied().collect();
        let gpus = |of: &BTreeMap<JobNumber, u32>, job: JobNumber| of.get(&job).copied().unwrap_or(0);
        let change = |job| Change { job, from_gpus: gpus(&self.running, job), to_gpus: gpus(&plan, job) };
        let changes: Vec<Change> =
            all.into_iter().map(change).filter(|change| change.from_gpus != change.to_gpus).collect();
        for Change { job, from_gpus, to_gpus } in changes.iter().copied() {
            if to_gpus == 0 {
                self.wait(job, left(job).ceil() as i64);
            } else if let (0, Some(key)) = (from_gpus, self.keys.remove(&job)) {
                self.waiting.remove(&(key, job));
            }
        }
        self.running = plan;
        changes
    }
}
