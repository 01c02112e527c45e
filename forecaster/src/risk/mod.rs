//! Promises sold are promises kept: conformal risk control of a pool's bound (PROMISE §3; Angelopoulos et al. 2022), online with
//! a step (Gibbs and Candès 2021; Feldman et al. 2023).
//!
//! A bound at p is exceeded by demand in a share 1 − p of all times, and sells far less than p allows: demand that comes out k
//! GPUs above the bound breaks the promises of k GPUs, not of all. So the bound is moved between what HP needs now and beyond
//! that bound, by one factor λ for each H: B(λ) = centre + λ · (bound − centre) up to 1, and from there on towards the whole
//! capacity, which it reaches at 3: promises may break although demand stays where it was (HP needs whole nodes, or cores), and
//! then no bound of demand is of help. λ rises with GPUs that were broken, and falls
//! with the share 1 − p of those that were exposed to it: over time the one is the other, under any demand. Promises teach
//! by what became of them. While nobody holds any, the inventory f = max(0, C − B) teaches by what would have: with measured
//! peak P over the hours of the promise, min(f, max(0, P − B)) of f GPUs would have been broken.

mod saved;

use std::collections::VecDeque;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, UnixSeconds};

/// Seconds between two readings that count: neighbours are alike.
const SAMPLE_S: i64 = 900;
/// So long a bound stays where it is: nothing is known of the pool yet.
const WATCHED_S: i64 = 86_400;
/// λ after that, if nothing else was learned. Chosen, as the step, on the jobs of Philly at 1,280 GPUs.
const LAMBDA_START: f64 = 0.7;
/// The largest λ: nothing is sold.
pub const LAMBDA_MOST: f64 = 3.0;
/// The longest gap of measurements over which the course of demand counts as known: usage is at most two hours late.
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
///
/// ```
/// use forecaster::risk::is_supported;
/// use vocab::{GuaranteeRate, HorizonHours};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Ten promises of 4 h fit into 40 h, and at p = 0.9 one of ten may break.
/// let hours = HorizonHours::new(4)?;
/// assert!(is_supported(GuaranteeRate::GFS, hours, 40 * 3_600));
/// assert!(!is_supported(GuaranteeRate::GFS, hours, 39 * 3_600));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn is_supported(rate: GuaranteeRate, hours: HorizonHours, measured_s: i64) -> bool {
    // In whole numbers: 40 h tell 0.9 of promises of 4 h.
    let broken_s = i128::from(measured_s) * i128::from(rate.target_eviction_ppm());
    broken_s >= i128::from(hours.seconds()) * i128::from(GuaranteeRate::MILLION)
}

/// Knowledge of a pool's demand at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Instant of the renewal.
    pub now: UnixSeconds,
    /// When `demand` was measured: now, or the end of the last hour whose usage is known.
    pub measured_at: UnixSeconds,
    /// HP GPUs, running and waiting.
    pub demand: MilliGpus,
    /// Capacity of the pool.
    pub capacity: MilliGpus,
}

/// The parts of a bound at one time, in GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stated {
    /// At p, of the peak.
    pub bound_gpus: f64,
    /// Whether spot holds anything under a promise of these hours or more, of which the end will be reported.
    pub is_sold: bool,
}

/// The outcome of a promise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Outcomes are numbered in the order of their reports: each teaches once, however late it comes.
    pub number: i64,
    /// Hours of the promise.
    pub hours: HorizonHours,
    /// GPUs that HP demand took back.
    pub broken_gpus: f64,
    /// Its GPUs times the part of its hours that it was watched for.
    pub exposed_gpus: f64,
}

/// A bound as it was moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Controlled {
    /// Bound at this λ, in GPUs.
    pub bound_gpus: f64,
    /// Before.
    pub peak_gpus: f64,
    /// 1 where it stays; 0 where it is what is needed now, 3 where it is the capacity.
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

/// The most that may be learned of promises at once, as shares of the pool: no more GPUs than the pool has can have been promised
/// for H hours, and reports beyond that are not believed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Credible {
    exposed: f64,
    broken: f64,
    at: UnixSeconds,
}

/// One number of hours.
#[derive(Debug, Clone, PartialEq)]
struct Horizon {
    hours: HorizonHours,
    lambda: f64,
    /// When it was offered first.
    since: Option<UnixSeconds>,
    credible: Option<Credible>,
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
    /// Those that are offered.
    horizons: Vec<Horizon>,
    /// Those that were offered once: who offers them again goes on where they were.
    former: Vec<Horizon>,
}

impl RiskControl {
    /// A pool of which nothing is known: λ = 1.
    #[must_use]
    pub fn new(rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let horizons = offered.iter().map(|hours| Horizon::new(*hours)).collect();
        Self { rate, since: None, measured_at: None, taught: None, horizons, former: Vec::new() }
    }

    /// For another rate and other hours: what was learned of hours stays, also of those that are not offered for a while.
    #[must_use]
    pub fn made_for(self, rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let Self { horizons, former, .. } = self;
        let mut known: Vec<Horizon> = horizons.into_iter().chain(former).collect();
        let of_hours = |hours: &HorizonHours| match known.iter().position(|one| one.hours == *hours) {
            Some(place) => known.swap_remove(place),
            None => Horizon::new(*hours),
        };
        let horizons = offered.iter().map(of_hours).collect();
        for one in &mut known {
            one.open.clear();
        }
        Self { rate, horizons, former: known, ..self }
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
    /// order of time. The result does not decrease with the hours, and is no less than the demand. Below the bound of the peak it
    /// goes once the hours were offered for a day, and for so long that what was seen can tell p; above it after a day.
    pub fn control(&mut self, moment: &Moment, stated: &[Stated]) -> Vec<Controlled> {
        self.since.get_or_insert(moment.now);
        let before = self.measured_at.replace(moment.measured_at);
        if before.is_some_and(|before| moment.measured_at.since_s(before) > UNSEEN_S) {
            self.horizons.iter_mut().for_each(|horizon| horizon.open.clear());
        }
        let is_known = self.is_known(moment.now);
        let (rate, target) = (self.rate, 1.0 - self.rate.as_f64());
        let mut all: Vec<Controlled> = Vec::with_capacity(stated.len());
        for (horizon, stated) in self.horizons.iter_mut().zip(stated) {
            horizon.judge(moment, target);
            let lambda = if is_known { horizon.factor(moment.now, rate) } else { 1.0 };
            let bound = horizon.bound(moment, stated, lambda);
            let bound_gpus = all.last().map_or(bound, |shorter| bound.max(shorter.bound_gpus));
            all.push(Controlled { bound_gpus, peak_gpus: stated.bound_gpus, lambda });
        }
        all
    }

    /// Learns what became of promises; those that were there at the first look, or that were learned before, teach nothing.
    pub fn learn(&mut self, outcomes: impl Iterator<Item = Outcome>, now: UnixSeconds, capacity: MilliGpus) {
        let before = self.taught;
        let mut newest = before.unwrap_or(0);
        let mut sums = vec![(0.0, 0.0); self.horizons.len()];
        for one in outcomes {
            newest = newest.max(one.number);
            let teaches = before.is_some_and(|before| one.number > before);
            let place = self.horizons.iter().position(|of| teaches && of.hours == one.hours);
            if let Some(sum) = place.and_then(|place| sums.get_mut(place)) {
                *sum = (sum.0 + one.broken_gpus, sum.1 + one.exposed_gpus);
            }
        }
        self.taught = Some(newest);
        let (target, capacity_gpus) = (1.0 - self.rate.as_f64(), capacity.as_gpus().max(1.0));
        for (horizon, (broken_gpus, exposed_gpus)) in self.horizons.iter_mut().zip(sums) {
            let (broken, exposed) = horizon.believed(broken_gpus / capacity_gpus, exposed_gpus / capacity_gpus, now);
            horizon.step(broken - target * exposed);
        }
    }
}

impl Horizon {
    const fn new(hours: HorizonHours) -> Self {
        Self { hours, lambda: LAMBDA_START, since: None, credible: None, open: VecDeque::new() }
    }

    fn factor(&self, now: UnixSeconds, rate: GuaranteeRate) -> f64 {
        let watched_s = self.since.map_or(0, |since| now.since_s(since));
        let is_reported = watched_s >= WATCHED_S && is_supported(rate, self.hours, watched_s);
        if is_reported { self.lambda } else { self.lambda.max(1.0) }
    }

    /// As much of what was reported, in shares of the pool, as can have been promised meanwhile.
    fn believed(&mut self, broken: f64, exposed: f64, now: UnixSeconds) -> (f64, f64) {
        let known = self.credible.unwrap_or(Credible { exposed: 1.0, broken: 1.0, at: now });
        let grows = now.since_s(known.at).max(0) as f64 / self.hours.seconds() as f64;
        let all =
            Credible { exposed: (known.exposed + grows).min(1.0), broken: (known.broken + grows).min(1.0), at: now };
        let (broken, exposed) = (broken.min(all.broken), exposed.min(all.exposed));
        self.credible = Some(Credible { exposed: all.exposed - exposed, broken: all.broken - broken, at: now });
        (broken, exposed)
    }

    /// Looks at inventories of which nothing was sold, and whose hours are over.
    fn judge(&mut self, moment: &Moment, target: f64) {
        self.since.get_or_insert(moment.now);
        for unsold in self.open.iter_mut().filter(|one| moment.measured_at > one.at) {
            unsold.peak_gpus = unsold.peak_gpus.max(moment.demand.as_gpus());
        }
        let seconds = self.hours.seconds();
        while let Some(one) = self.open.pop_front_if(|one| moment.measured_at.since_s(one.at) >= seconds) {
            let inventory_gpus = (one.capacity_gpus - one.bound_gpus).max(0.0);
            let broken_gpus = inventory_gpus.min((one.peak_gpus - one.bound_gpus).max(0.0));
            // A promise of H hours would have been read so often while it lasted.
            let looks = seconds as f64 / SAMPLE_S as f64;
            self.step((broken_gpus - target * inventory_gpus) / looks / one.capacity_gpus.max(1.0));
        }
    }

    fn bound(&mut self, moment: &Moment, stated: &Stated, lambda: f64) -> f64 {
        let (demand_gpus, capacity_gpus) = (moment.demand.as_gpus(), moment.capacity.as_gpus());
        let peak_gpus = stated.bound_gpus.max(demand_gpus);
        let bound_gpus = if lambda <= 1.0 {
            demand_gpus + lambda * (peak_gpus - demand_gpus)
        } else {
            peak_gpus + (lambda - 1.0) / (LAMBDA_MOST - 1.0) * (capacity_gpus - peak_gpus).max(0.0)
        };
        let is_due = self.open.back().is_none_or(|last| moment.now.since_s(last.at) >= SAMPLE_S);
        if is_due && !stated.is_sold {
            // Beyond the bound of the peak hardly anything is left to be judged by, and nothing would ever be sold again: what
            // would have become of the inventory under that bound says whether to try.
            let bound_gpus = bound_gpus.min(peak_gpus);
            self.open.push_back(Unsold { at: moment.now, bound_gpus, capacity_gpus, peak_gpus: demand_gpus });
        }
        bound_gpus
    }

    /// `excess` are GPUs that were broken, less those that may be, as a share of the pool.
    fn step(&mut self, excess: f64) {
        self.lambda = (self.lambda + STEP * excess).clamp(0.0, LAMBDA_MOST);
    }
}

#[cfg(test)]
mod tests;
