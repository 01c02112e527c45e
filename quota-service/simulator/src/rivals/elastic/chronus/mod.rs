//! Chronus (Gao et al., "Chronus: a novel deadline-aware scheduler for deep learning training jobs", SoCC 2021) by number
//! alone: a job with a deadline is promised the leases that it needs to meet it, or nothing.
//!
//! Leases end on a common clock, each 20 minutes for those with a promise and each 5 for all others ([`LeaseSettings`], the
//! lengths that Chronus was published with), and nobody is stopped inside one. A job with a deadline is promised the last
//! leases before it that have room, from the next one on, so that near ones stay free for those in more of a hurry. When
//! leases are over, those come first to whom this one is promised, then others with a promise, the earliest deadline first,
//! and what is left goes to all others by the time they need. Who cannot be promised its deadline, or cannot meet it any
//! more, is one of the others.
//!
//! Left out: the mixed integer program that rearranges promises (here they stay as they are made), several deadlines of
//! falling worth, nodes, and the profiling that tells how long a job takes: it is known.

#[cfg(test)]
mod tests;

use super::allot::Change;
use super::gangs::{Keyed, admitted, changes};
use super::job::{ElasticJob, JobNumber};
use super::{Left, Scheduler};
use crate::rivals::leases::LeaseSettings;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
struct Promise {
    deadline_ms: i64,
    /// Leases of the common clock, counted from zero.
    leases: BTreeSet<i64>,
}

#[derive(Debug, Clone)]
struct Alive {
    request: u32,
    promise: Option<Promise>,
    /// Its remaining work when it last began to wait.
    left_ms: i64,
    /// The end of the lease that it holds.
    until_ms: Option<i64>,
}

#[derive(Debug, Clone)]
pub struct Chronus {
    gpus: u32,
    free: u32,
    /// Between two ends of leases of those with a promise, and of others.
    lease_ms: i64,
    short_ms: i64,
    jobs: BTreeMap<JobNumber, Alive>,
    /// GPUs that are promised, by lease.
    promised: BTreeMap<i64, u32>,
    /// Those with a promise who wait, by deadline.
    urgent: BTreeSet<Keyed>,
    /// All others who wait, by request and time left.
    waiting: BTreeMap<u32, BTreeSet<Keyed>>,
    ends: BTreeSet<Keyed>,
    /// The first lease that nobody holds yet.
    next_lease: i64,
}

impl Chronus {
    #[must_use]
    pub fn new(gpus: u32, settings: LeaseSettings) -> Self {
        let [lease_ms, short_ms] = [settings.hp_s, settings.spot_s].map(|length_s| length_s.max(1) * 1_000);
        let (jobs, promised, urgent) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let (waiting, ends, next_lease) = (BTreeMap::new(), BTreeSet::new(), 0);
        Self { gpus, free: gpus, lease_ms, short_ms, jobs, promised, urgent, waiting, ends, next_lease }
    }

    /// How much of a lease lies before a deadline.
    fn before(&self, deadline_ms: i64, lease: i64) -> i64 {
        (deadline_ms - lease * self.lease_ms).clamp(0, self.lease_ms)
    }

    /// The last leases with room that are enough to meet a deadline.
    fn room(&self, request: u32, work_ms: i64, deadline_ms: i64, now_ms: i64) -> Option<BTreeSet<i64>> {
        let spare = self.gpus.checked_sub(request)?;
        let first = (now_ms + self.lease_ms - 1).div_euclid(self.lease_ms).max(self.next_lease);
        let last = (deadline_ms - 1).div_euclid(self.lease_ms);
        let (mut leases, mut covered_ms) = (BTreeSet::new(), 0);
        for lease in (first..=last).rev() {
            if covered_ms >= work_ms {
                break;
            }
            if self.promised.get(&lease).is_none_or(|taken| *taken <= spare) {
                leases.insert(lease);
                covered_ms += self.before(deadline_ms, lease);
            }
        }
        (covered_ms >= work_ms).then_some(leases)
    }

    /// Of promised leases the last ones that are still needed, and those that are not.
    fn needed(&self, leases: BTreeSet<i64>, left_ms: i64, deadline_ms: i64) -> [BTreeSet<i64>; 2] {
        let mut covered_ms = 0;
        let (needed, spare) = leases.into_iter().rev().partition(|lease| {
            let is_needed = covered_ms < left_ms;
            covered_ms += self.before(deadline_ms, *lease);
            is_needed
        });
        [needed, spare]
    }

    fn give_up(&mut self, request: u32, leases: impl IntoIterator<Item = i64>) {
        for lease in leases {
            // Those of the past are gone already.
            if let Some(taken) = self.promised.get_mut(&lease) {
                *taken -= request;
            }
        }
    }

    /// It waits, with a promise or without.
    fn queue(&mut self, number: JobNumber, left_ms: i64) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        (job.left_ms, job.until_ms) = (left_ms, None);
        match &job.promise {
            Some(promise) => self.urgent.insert((promise.deadline_ms, number)),
            None => self.waiting.entry(job.request).or_default().insert((left_ms, number)),
        };
    }

    fn unqueue(&mut self, number: JobNumber, job: &Alive) {
        match &job.promise {
            Some(promise) => self.urgent.remove(&(promise.deadline_ms, number)),
            None => self.waiting.entry(job.request).or_default().remove(&(job.left_ms, number)),
        };
    }

    /// Those whose leases are over, and what they held.
    fn end_leases(&mut self, now_ms: i64, left: &Left<'_>) -> BTreeMap<JobNumber, u32> {
        let mut over = BTreeMap::new();
        while let Some((_, number)) = self.ends.first().copied().filter(|(until_ms, _)| *until_ms <= now_ms) {
            self.ends.pop_first();
            let request = self.jobs[&number].request;
            self.free += request;
            over.insert(number, request);
            self.queue(number, left(number).ceil() as i64);
        }
        over
    }

    /// As a lease begins, when everybody waits: promises keep what is still needed of them, and who cannot meet its deadline
    /// any more has none.
    fn review(&mut self, lease: i64, now_ms: i64, left: &Left<'_>) {
        self.promised = self.promised.split_off(&lease);
        for (deadline_ms, number) in std::mem::take(&mut self.urgent) {
            let left_ms = left(number).ceil() as i64;
            let Some(mut job) = self.jobs.remove(&number) else { continue };
            let leases = job.promise.take().map(|mut promise| promise.leases.split_off(&lease)).unwrap_or_default();
            let can_be_met = now_ms + left_ms <= deadline_ms;
            let [kept, spare] = self.needed(leases, if can_be_met { left_ms } else { 0 }, deadline_ms);
            self.give_up(job.request, spare);
            job.promise = can_be_met.then_some(Promise { deadline_ms, leases: kept });
            self.jobs.insert(number, job);
            self.queue(number, left_ms);
        }
    }

    fn grant(&mut self, number: JobNumber, now_ms: i64) {
        let end_ms = |length_ms: i64| (now_ms.div_euclid(length_ms) + 1) * length_ms;
        let Some(mut job) = self.jobs.remove(&number) else { return };
        self.unqueue(number, &job);
        let lease_ms = end_ms(self.lease_ms);
        let until_ms = if job.promise.is_some() { lease_ms } else { lease_ms.min(end_ms(self.short_ms)) };
        self.ends.insert((until_ms, number));
        self.free -= job.request;
        job.until_ms = Some(until_ms);
        self.jobs.insert(number, job);
    }

    /// Those with a promise, of this lease or of any, who fit, the earliest deadline first.
    fn promised_ones(&self, of: Option<i64>) -> Vec<JobNumber> {
        let (mut free, mut chosen) = (self.free, Vec::new());
        for (_, number) in &self.urgent {
            if free == 0 {
                break;
            }
            let job = &self.jobs[number];
            let is_of = |lease| job.promise.as_ref().is_some_and(|promise| promise.leases.contains(&lease));
            if job.request <= free && of.is_none_or(is_of) {
                free -= job.request;
                chosen.push(*number);
            }
        }
        chosen
    }

    /// All others who fit, the shortest first.
    fn other_ones(&self) -> BTreeSet<JobNumber> {
        let by_request = self.waiting.iter().map(|(request, jobs)| {
            let jobs: Box<dyn Iterator<Item = Keyed>> = Box::new(jobs.iter().copied());
            (*request, jobs)
        });
        admitted(self.free, by_request.collect())
    }
}

impl Scheduler for Chronus {
    fn arrive(&mut self, job: ElasticJob, work_ms: i64, now_ms: i64) {
        let (number, request) = (job.number(), job.request());
        let promise = job.deadline_ms().and_then(|deadline_ms| {
            let leases = self.room(request, work_ms, deadline_ms, now_ms)?;
            Some(Promise { deadline_ms, leases })
        });
        for lease in promise.iter().flat_map(|promise| &promise.leases) {
            *self.promised.entry(*lease).or_default() += request;
        }
        self.jobs.insert(number, Alive { request, promise, left_ms: work_ms, until_ms: None });
        self.queue(number, work_ms);
    }

    fn leave(&mut self, number: JobNumber, _: i64) {
        let Some(job) = self.jobs.remove(&number) else { return };
        if let Some(until_ms) = job.until_ms {
            self.ends.remove(&(until_ms, number));
            self.free += job.request;
        } else {
            self.unqueue(number, &job);
        }
        self.give_up(job.request, job.promise.into_iter().flat_map(|promise| promise.leases));
    }

    fn next_ms(&self) -> Option<i64> {
        self.ends.first().map(|(until_ms, _)| *until_ms)
    }

    fn replan(&mut self, now_ms: i64, left: &Left<'_>) -> Vec<Change> {
        // 1. What is over is over.
        let over = self.end_leases(now_ms, left);
        let lease = now_ms.div_euclid(self.lease_ms);
        if lease >= self.next_lease {
            self.review(lease, now_ms, left);
            self.next_lease = lease + 1;
        }
        // 2. Those to whom this lease is promised, others with a promise, and all others.
        let mut chosen: BTreeSet<JobNumber> = BTreeSet::new();
        for of in [Some(lease), None] {
            for number in self.promised_ones(of) {
                self.grant(number, now_ms);
                chosen.insert(number);
            }
        }
        for number in self.other_ones() {
            self.grant(number, now_ms);
            chosen.insert(number);
        }
        // 3. Who goes on notices nothing.
        changes(&over, &chosen, |job| self.jobs[&job].request)
    }
}
