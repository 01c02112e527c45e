//! What is sold is what is kept: conformal risk control of a pool's bound (PROMISE §3; Angelopoulos et al. 2022), online with
//! a step (Gibbs and Candès 2021; Feldman et al. 2023).
//!
//! A bound at p is exceeded by demand in a share 1 − p of all times, and sells far less than p allows: demand that comes out k
//! GPUs above the bound breaks the promises of k GPUs, not of all. So the bound is moved between what HP needs now and beyond
//! that bound, by one factor λ for each H: B(λ) = centre + λ · (bound − centre). λ rises with GPUs that were broken, and falls
//! with the share 1 − p of those that were exposed to it: over time the one is the other, whatever demand does. Promises teach
//! by what became of them. While nobody holds any, the inventory f = max(0, C − B) teaches by what would have: with measured
//! peak P over the hours of the promise, min(f, max(0, P − B)) of f GPUs would have been broken.

mod saved;

use std::collections::VecDeque;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, UnixSeconds};

/// One time in so many seconds is looked at again: neighbours say the same.
const SAMPLE_S: i64 = 900;
/// So long a bound stays where it is: nothing is known of the pool yet.
const WATCHED_S: i64 = 86_400;
/// λ after that, if nothing else was learned. Chosen, as the step, on the jobs of Philly at 1,280 GPUs.
const LAMBDA_START: f64 = 0.7;
/// The largest λ: nothing that was seen calls for more.
const LAMBDA_MOST: f64 = 3.0;
/// What demand did while it was not measured for so long is not known: usage is at most two hours late.
const UNSEEN_S: i64 = 7_200;
/// By how much λ moves for all GPUs of the pool, broken once.
const STEP: f64 = 1.0;

/// The largest p that so many seconds of measured demand can tell of promises of H hours: of 1 / (1 − p) of them that follow one
/// another, one may break. Zero where they hold no such promise.
#[must_use]
pub fn supported_rate(hours: HorizonHours, measured_s: i64) -> f64 {
    if measured_s <= hours.seconds() {
        return 0.0;
    }
    1.0 - hours.seconds() as f64 / measured_s as f64
}

/// Whether so many seconds of measured demand can tell p of promises of H hours.
#[must_use]
pub fn is_supported(rate: GuaranteeRate, hours: HorizonHours, measured_s: i64) -> bool {
    // In whole numbers: 40 h tell 0.9 of promises of 4 h.
    let broken_s = i128::from(measured_s) * i128::from(rate.target_eviction_ppm());
    broken_s >= i128::from(hours.seconds()) * i128::from(GuaranteeRate::MILLION)
}

/// What is known of a pool's demand at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    pub now: UnixSeconds,
    /// When `demand` was measured: now, or the end of the last hour whose usage is known.
    pub measured_at: UnixSeconds,
    /// HP GPUs, running and waiting.
    pub demand: MilliGpus,
    pub capacity: MilliGpus,
}

/// What a bound was made of at one time, in GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stated {
    /// At p, of the peak.
    pub bound_gpus: f64,
    /// Whether spot holds anything under a promise of these hours or more, of which the end will be told.
    pub is_sold: bool,
}

/// What became of a promise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Outcomes are numbered in the order in which they were told: each teaches once, however late it comes.
    pub number: i64,
    pub hours: HorizonHours,
    pub broken_gpus: f64,
    /// Its GPUs times the part of its hours that it was watched for.
    pub exposed_gpus: f64,
}

/// A bound as it was moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Controlled {
    pub bound_gpus: f64,
    /// Before.
    pub peak_gpus: f64,
    /// 1 where it stays; 0 where it is what is needed now.
    pub lambda: f64,
}

impl Controlled {
    /// As an amount, rounded up.
    #[must_use]
    pub fn bound(&self) -> MilliGpus {
        MilliGpus::rounded_up(self.bound_gpus.max(0.0)).unwrap_or(MilliGpus::from_gpus(u32::MAX))
    }
}

/// An inventory of which nothing was sold, and which is not judged yet.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unsold {
    at: UnixSeconds,
    bound_gpus: f64,
    capacity_gpus: f64,
    /// The largest demand since.
    peak_gpus: f64,
}

/// One number of hours.
#[derive(Debug, Clone, PartialEq)]
struct Horizon {
    hours: HorizonHours,
    lambda: f64,
    open: VecDeque<Unsold>,
}

/// The factors of one pool, by the hours of the promise.
#[derive(Debug, Clone, PartialEq)]
pub struct RiskControl {
    rate: GuaranteeRate,
    /// When it first saw demand.
    since: Option<UnixSeconds>,
    /// When demand was measured last.
    measured_at: Option<UnixSeconds>,
    /// The largest number of an outcome that was there; none before the first look.
    taught: Option<i64>,
    horizons: Vec<Horizon>,
}

impl RiskControl {
    #[must_use]
    pub fn new(rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let horizon = |hours: &HorizonHours| Horizon { hours: *hours, lambda: LAMBDA_START, open: VecDeque::new() };
        let horizons = offered.iter().map(horizon).collect();
        Self { rate, since: None, measured_at: None, taught: None, horizons }
    }

    /// For another rate and other hours: what was learned of hours that stay stays.
    #[must_use]
    pub fn made_for(self, rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let of_hours =
            |fresh: Horizon| self.horizons.iter().find(|one| one.hours == fresh.hours).cloned().unwrap_or(fresh);
        let Self { horizons, .. } = Self::new(rate, offered);
        let horizons = horizons.into_iter().map(of_hours).collect();
        Self { rate, horizons, ..self }
    }

    /// Whether the pool was watched for long enough that bounds move at all.
    #[must_use]
    pub fn is_known(&self, now: UnixSeconds) -> bool {
        self.watched_s(now) >= WATCHED_S
    }

    /// Seconds for which the pool was watched.
    #[must_use]
    pub fn watched_s(&self, now: UnixSeconds) -> i64 {
        self.since.map_or(0, |since| now.since_s(since))
    }

    /// Learns the demand of this moment and moves each bound. `stated` has one for each of the offered hours; calls come in the
    /// order of time. The result does not decrease with the hours, and is no less than the demand.
    pub fn control(&mut self, moment: &Moment, stated: &[Stated]) -> Vec<Controlled> {
        self.since.get_or_insert(moment.now);
        let before = self.measured_at.replace(moment.measured_at);
        if before.is_some_and(|before| moment.measured_at.since_s(before) > UNSEEN_S) {
            self.horizons.iter_mut().for_each(|horizon| horizon.open.clear());
        }
        let watched_s = self.watched_s(moment.now);
        let target = 1.0 - self.rate.as_f64();
        let mut all: Vec<Controlled> = Vec::with_capacity(stated.len());
        for (horizon, stated) in self.horizons.iter_mut().zip(stated) {
            horizon.judge(moment, target);
            let is_known = watched_s >= WATCHED_S && is_supported(self.rate, horizon.hours, watched_s);
            let lambda = if is_known { horizon.lambda } else { 1.0 };
            let bound = horizon.bound(moment, stated, lambda);
            let bound_gpus = all.last().map_or(bound, |shorter| bound.max(shorter.bound_gpus));
            all.push(Controlled { bound_gpus, peak_gpus: stated.bound_gpus, lambda });
        }
        all
    }

    /// Learns what became of promises; those that were there at the first look, or that were learned before, teach nothing.
    pub fn learn(&mut self, outcomes: impl Iterator<Item = Outcome>, capacity: MilliGpus) {
        let before = self.taught;
        let target = 1.0 - self.rate.as_f64();
        let mut newest = before.unwrap_or(0);
        for one in outcomes {
            newest = newest.max(one.number);
            let teaches = before.is_some_and(|before| one.number > before);
            for horizon in self.horizons.iter_mut().filter(|of| teaches && of.hours == one.hours) {
                horizon.step(one.broken_gpus - target * one.exposed_gpus, capacity.as_gpus());
            }
        }
        self.taught = Some(newest);
    }
}

impl Horizon {
    /// Looks at inventories of which nothing was sold, and whose hours are over.
    fn judge(&mut self, moment: &Moment, target: f64) {
        for unsold in self.open.iter_mut().filter(|one| moment.measured_at > one.at) {
            unsold.peak_gpus = unsold.peak_gpus.max(moment.demand.as_gpus());
        }
        let seconds = self.hours.seconds();
        while let Some(one) = self.open.pop_front_if(|one| moment.measured_at.since_s(one.at) >= seconds) {
            let inventory_gpus = (one.capacity_gpus - one.bound_gpus).max(0.0);
            let broken_gpus = inventory_gpus.min((one.peak_gpus - one.bound_gpus).max(0.0));
            // A promise of H hours would have been looked at so often while it lasted.
            let looks = seconds as f64 / SAMPLE_S as f64;
            self.step((broken_gpus - target * inventory_gpus) / looks, one.capacity_gpus);
        }
    }

    fn bound(&mut self, moment: &Moment, stated: &Stated, lambda: f64) -> f64 {
        let (demand_gpus, capacity_gpus) = (moment.demand.as_gpus(), moment.capacity.as_gpus());
        let bound_gpus = (demand_gpus + lambda * (stated.bound_gpus - demand_gpus)).max(demand_gpus);
        let is_due = self.open.back().is_none_or(|last| moment.now.since_s(last.at) >= SAMPLE_S);
        if is_due && !stated.is_sold {
            self.open.push_back(Unsold { at: moment.now, bound_gpus, capacity_gpus, peak_gpus: demand_gpus });
        }
        bound_gpus
    }

    /// `excess_gpus` are GPUs that were broken, less those that may be.
    fn step(&mut self, excess_gpus: f64, capacity_gpus: f64) {
        self.lambda = (self.lambda + STEP * excess_gpus / capacity_gpus.max(1.0)).clamp(0.0, LAMBDA_MOST);
    }
}

#[cfg(test)]
mod tests;
