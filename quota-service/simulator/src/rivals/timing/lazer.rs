//! Lazer's scheduling procedure and orchestrator (its algorithms 1 and 2), with idle GPUs counted: as printed both count
//! those alone that a pause or a completion sets free.

use super::job::{JobNumber, Phase};
use super::observed::Observed;
use super::policy::{Futile, LazerRules};
use super::scheduler::{Action, Scheduler};
use placement::timing::predictor::{Context, DEFERRAL_MOST_MS, Predictor, Stage};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// The hour over which arrivals are averaged (Lazer §4.2).
const ARRIVALS_WINDOW_MS: i64 = vocab::SECONDS_PER_HOUR * 1_000;

/// A newcomer in the deferred waiting queue.
#[derive(Debug, Clone)]
struct Deferral {
    since_ms: i64,
    until_ms: i64,
}

/// The deferred queues, and what is learned.
#[derive(Debug, Clone)]
pub struct Lazer {
    predictor: Predictor,
    /// DWQ.
    deferred: BTreeMap<JobNumber, Deferral>,
    wakes: BTreeSet<(i64, JobNumber)>,
    /// DRQ: who runs and may be paused for which newcomer, and for no other.
    held: BTreeMap<JobNumber, JobNumber>,
    arrivals: VecDeque<i64>,
    observed: Observed,
}

impl Lazer {
    pub(super) fn new(seed: u64, learns_on: bool) -> Self {
        Self {
            predictor: Predictor::new(seed, learns_on),
            deferred: BTreeMap::new(),
            wakes: BTreeSet::new(),
            held: BTreeMap::new(),
            arrivals: VecDeque::new(),
            observed: Observed::default(),
        }
    }

    /// The activity of the predictor, and how many values it has learned.
    #[must_use]
    pub const fn learned(&self) -> (Stage, usize) {
        (self.predictor.stage(), self.predictor.updates())
    }

    /// How many newcomers are deferred.
    #[must_use]
    pub fn deferred(&self) -> usize {
        self.deferred.len()
    }

    pub(super) fn next_wake_ms(&self) -> Option<i64> {
        self.wakes.first().map(|(at_ms, _)| *at_ms)
    }

    /// Δ̄A: between two arrivals, on average over the last hour; the hour itself where fewer than two came.
    fn inter_arrival_ms(&mut self, now_ms: i64) -> i64 {
        while self.arrivals.front().is_some_and(|at_ms| *at_ms <= now_ms - ARRIVALS_WINDOW_MS) {
            self.arrivals.pop_front();
        }
        match (self.arrivals.front(), self.arrivals.back(), self.arrivals.len() as i64) {
            (Some(first), Some(last), count) if count > 1 => (last - first) / (count - 1),
            _ => ARRIVALS_WINDOW_MS,
        }
    }

    fn defer(&mut self, job: JobNumber, victims: &[JobNumber], deferral: Deferral) {
        self.wakes.insert((deferral.until_ms, job));
        self.held.extend(victims.iter().map(|victim| (*victim, job)));
        self.deferred.insert(job, deferral);
    }

    /// Takes a newcomer out of the DWQ, and whom it holds out of the DRQ.
    fn release(&mut self, job: JobNumber) -> Option<Deferral> {
        let deferral = self.deferred.remove(&job)?;
        self.wakes.remove(&(deferral.until_ms, job));
        self.held.retain(|_, holder| *holder != job);
        Some(deferral)
    }
}

impl Scheduler {
    /// Learns what came of deferrals whose end is known. Apart from [`Self::handle`], for it takes longer than a decision
    /// and nothing waits for it.
    pub fn learn(&mut self, now_ms: i64) {
        while let Some((context, deferral_ms, futile_ms)) = self.lazer.observed.known(now_ms) {
            self.lazer.predictor.learn(&context, deferral_ms, futile_ms);
        }
    }

    /// On new job arrival (Algorithm 1, lines 1 to 10).
    pub(super) fn newcomer(&mut self, now_ms: i64, job: JobNumber, rules: LazerRules) {
        self.lazer.arrivals.push_back(now_ms);
        let inter_arrival_ms = self.lazer.inter_arrival_ms(now_ms);
        let Some(victims) = self.orchestrate(now_ms, job) else {
            self.arrived(now_ms, job, None, rules);
            return self.wait(now_ms, job);
        };
        self.arrived(now_ms, job, Some(&victims), rules);
        if victims.is_empty() {
            return self.start(now_ms, job);
        }
        // A job that has only loaded has nothing to save.
        let trains = victims.iter().filter(|victim| self.job(**victim).phase(now_ms) == Some(Phase::Training));
        let saves = trains.map(|victim| self.job(*victim).ask.save_ms);
        let context = Context {
            inter_arrival_ms,
            remaining_ms: self.remaining_ms(now_ms, job),
            load_ms: self.job(job).ask.load_ms,
            save_ms: saves.max().unwrap_or(0),
        };
        let loading_ms = self.load_left_ms(now_ms, &victims);
        let predicted_ms = self.lazer.predictor.predict(&context);
        if self.lazer.predictor.learns() {
            let cut_off_ms = if rules.futile == Futile::WouldBePaused { loading_ms } else { 0 };
            self.lazer.observed.open(now_ms, job, &context, predicted_ms, cut_off_ms);
        }
        let least_ms = if rules.waits_for_loads { loading_ms.min(DEFERRAL_MOST_MS) } else { 0 };
        let deferral_ms = predicted_ms.max(least_ms);
        self.actions.push(Action::Defer { job, predicted_ms, deferral_ms });
        if deferral_ms == 0 {
            return self.preempt(now_ms, job, &victims);
        }
        self.lazer.defer(job, &victims, Deferral { since_ms: now_ms, until_ms: now_ms + deferral_ms });
    }

    /// On job completion (Algorithm 1, lines 11 to 17): who fits starts, the shortest first.
    pub(super) fn fill(&mut self, now_ms: i64, rules: LazerRules) {
        if !rules.deferred_take_idle {
            return self.start_what_fits(now_ms);
        }
        let deferred: Vec<JobNumber> = self.lazer.deferred.keys().copied().collect();
        for job in &deferred {
            self.wait(now_ms, *job);
        }
        self.start_what_fits(now_ms);
        for job in deferred {
            let entry = (self.rank(now_ms, job), job);
            if !self.waiting.remove(&entry) {
                self.lazer.release(job);
            }
        }
    }

    /// Deferrals that are over: jobs that can still preempt do, others wait (Algorithm 1, lines 7 to 10).
    pub(super) fn deferrals_over(&mut self, now_ms: i64, rules: LazerRules) {
        while let Some((_, job)) = self.lazer.wakes.first().copied().filter(|(at_ms, _)| *at_ms <= now_ms) {
            let Some(deferral) = self.lazer.release(job) else { continue };
            let Some(victims) = self.orchestrate(now_ms, job) else {
                self.wait(now_ms, job);
                continue;
            };
            let until_ms = now_ms + self.load_left_ms(now_ms, &victims);
            let is_worth_it = rules.waits_for_loads && until_ms > now_ms;
            if is_worth_it && until_ms <= deferral.since_ms + DEFERRAL_MOST_MS {
                self.lazer.defer(job, &victims, Deferral { until_ms, ..deferral });
            } else {
                self.preempt(now_ms, job, &victims);
            }
        }
        if rules.deferred_take_idle {
            self.fill(now_ms, rules);
        }
    }

    /// Whom a newcomer would pause (Algorithm 2): those with the longest remaining time until their GPUs and the idle ones
    /// suffice, and nobody whose GPUs turn out not to be needed. Nobody where the idle ones suffice; `None` where even
    /// all together do not.
    fn orchestrate(&self, now_ms: i64, job: JobNumber) -> Option<Vec<JobNumber>> {
        let lacking = self.job(job).ask.gpus.saturating_sub(self.gpus.available());
        if lacking == 0 {
            return Some(Vec::new());
        }
        let remaining_ms = self.remaining_ms(now_ms, job);
        let may = self.active.iter().filter(|active| !self.lazer.held.contains_key(active));
        let longer = may.map(|active| (self.remaining_ms(now_ms, *active), *active));
        let mut longest: BinaryHeap<_> = longer.filter(|(active_ms, _)| *active_ms > remaining_ms).collect();
        let (mut victims, mut freed) = (Vec::new(), 0);
        while freed < lacking {
            let (_, victim) = longest.pop()?;
            freed += self.job(victim).ask.gpus;
            victims.push(victim);
        }
        for at in (0..victims.len()).rev() {
            let gpus = self.job(victims[at]).ask.gpus;
            if freed - gpus >= lacking {
                freed -= gpus;
                victims.remove(at);
            }
        }
        Some(victims)
    }

    fn load_left_ms(&self, now_ms: i64, victims: &[JobNumber]) -> i64 {
        victims.iter().map(|victim| self.job(*victim).load_left_ms(now_ms)).max().unwrap_or(0)
    }

    fn preempt(&mut self, now_ms: i64, job: JobNumber, victims: &[JobNumber]) {
        super::checks::every_victim_is_needed(self, job, victims);
        for victim in victims {
            self.pause(now_ms, *victim);
        }
        self.start(now_ms, job);
        for victim in victims {
            self.wait(now_ms, *victim);
        }
    }

    /// Tells the open observations who has come, and whom it would pause.
    fn arrived(&mut self, now_ms: i64, newcomer: JobNumber, victims: Option<&[JobNumber]>, rules: LazerRules) {
        if self.lazer.observed.is_empty() {
            return;
        }
        let remaining_ms = self.remaining_ms(now_ms, newcomer);
        let shortest_ms = victims.map(|all| all.iter().map(|victim| self.remaining_ms(now_ms, *victim)).min());
        let mut observed = std::mem::take(&mut self.lazer.observed);
        observed.arrived(now_ms, |job| {
            let own_ms = self.remaining_ms(now_ms, job);
            let is_chosen = match (rules.futile, shortest_ms) {
                (Futile::NextShorter, _) | (_, None) => true,
                // Idle GPUs suffice.
                (_, Some(None)) => false,
                (_, Some(Some(shortest_ms))) => own_ms > shortest_ms,
            };
            remaining_ms < own_ms && is_chosen
        });
        self.lazer.observed = observed;
    }
}
