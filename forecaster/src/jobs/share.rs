//! How much of a bound is that of the jobs: half of it at first, and then by what shares would have lost lately.

use std::collections::VecDeque;
use vocab::{GuaranteeRate, HorizonHours, UnixSeconds};

/// Shares of the bound of the jobs that are tried.
pub(super) const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Their weights before anything was judged: two bounds that err apart from each other lose less together than each alone.
const PRIOR: [f64; SHARES.len()] = [0.05, 0.15, 0.6, 0.15, 0.05];
/// The weight of a share falls by so much with each loss above the least one: losses of neighbouring times say little that is new.
const EVIDENCE: f64 = 0.5;
/// After a gap of so many seconds the peaks meanwhile are not known.
const UNSEEN_S: i64 = 3_600;
/// Losses fade with this half-life.
const LOSS_HALF_LIFE_S: f64 = 7.0 * 86_400.0;
/// Bounds are noted at most so often, in seconds, and at most so many times in their hours.
const LEAST_APART_S: i64 = 240;
const MOST_OPEN: i64 = 96;

/// Two bounds of one moment, and the largest demand since.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Issued {
    pub at: UnixSeconds,
    pub peak_gpus: f64,
    pub other_gpus: f64,
    pub jobs_gpus: f64,
}

/// One number of hours.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Horizon {
    pub hours: HorizonHours,
    pub open: VecDeque<Issued>,
    pub losses: [f64; SHARES.len()],
    /// Seconds that the losses rest on, faded as they are.
    pub weight_s: f64,
    pub judged_at: Option<UnixSeconds>,
}

/// A bound with what it was mixed from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedBound {
    /// The mixed bound, in GPUs.
    pub bound_gpus: f64,
    /// The bound of the jobs, in GPUs; none until enough of them were seen.
    pub jobs_gpus: Option<f64>,
    /// The share of the bound of the jobs, from 0 to 1.
    pub share: f64,
    /// The mixed bound itself, in GPUs, where that over fewer hours is larger, which holds here too.
    pub raised_from_gpus: Option<f64>,
}

impl SharedBound {
    const fn new(bound_gpus: f64, jobs_gpus: Option<f64>, share: f64) -> Self {
        Self { bound_gpus, jobs_gpus, share, raised_from_gpus: None }
    }
}

/// The share that the bounds of the jobs have beside those of another expert.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Share {
    pub rate: GuaranteeRate,
    pub horizons: Vec<Horizon>,
    pub seen_at: Option<UnixSeconds>,
}

impl Share {
    pub fn new(rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        Self { rate, horizons: offered.iter().map(|hours| Horizon::new(*hours)).collect(), seen_at: None }
    }

    /// Losses stay known only where the rate stays.
    pub fn made_for(mut self, rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let mut known = if rate == self.rate { std::mem::take(&mut self.horizons) } else { Vec::new() };
        let of_hours = |hours: &HorizonHours| {
            let place = known.iter().position(|one| one.hours == *hours);
            place.map_or_else(|| Horizon::new(*hours), |place| known.swap_remove(place))
        };
        Self { rate, horizons: offered.iter().map(of_hours).collect(), seen_at: self.seen_at }
    }

    pub const fn rate(&self) -> GuaranteeRate {
        self.rate
    }

    pub fn offered(&self) -> Vec<HorizonHours> {
        self.horizons.iter().map(|horizon| horizon.hours).collect()
    }

    /// Learns the demand of this moment and mixes the two bounds of each of the hours. Where one is missing the other one stands;
    /// the result ends before the first hours of which neither is known.
    pub fn mix(
        &mut self,
        now: UnixSeconds,
        demand_milli: u64,
        others_gpus: &[f64],
        jobs_gpus: Option<&[f64]>,
    ) -> Vec<SharedBound> {
        let demand_gpus = demand_milli as f64 / 1_000.0;
        let is_gap = self.seen_at.is_some_and(|before| now.since_s(before) > UNSEEN_S);
        self.seen_at = self.seen_at.max(Some(now));
        let mut all: Vec<SharedBound> = Vec::with_capacity(self.horizons.len());
        self.horizons.iter_mut().for_each(|horizon| horizon.learn(now, demand_gpus, is_gap, self.rate));
        for (place, horizon) in self.horizons.iter_mut().enumerate() {
            let jobs = jobs_gpus.and_then(|bounds| bounds.get(place)).copied();
            let mut one = match (others_gpus.get(place).copied(), jobs) {
                (Some(other), Some(jobs)) => horizon.mixed(now, demand_gpus, (other, jobs)),
                (Some(other), None) => SharedBound::new(other, None, 0.0),
                (None, Some(jobs)) => SharedBound::new(jobs, Some(jobs), 1.0),
                (None, None) => return all,
            };
            let shorter = all.last().map_or(0.0, |shorter| shorter.bound_gpus);
            if one.bound_gpus < shorter {
                one.raised_from_gpus = Some(one.bound_gpus);
                one.bound_gpus = shorter;
            }
            all.push(one);
        }
        all
    }
}

impl Horizon {
    pub const fn new(hours: HorizonHours) -> Self {
        let (losses, weight_s) = ([0.0; SHARES.len()], 0.0);
        Self { hours, open: VecDeque::new(), losses, weight_s, judged_at: None }
    }

    fn learn(&mut self, now: UnixSeconds, demand_gpus: f64, is_gap: bool, rate: GuaranteeRate) {
        if is_gap {
            self.open.clear();
        }
        self.open.iter_mut().for_each(|issued| issued.peak_gpus = issued.peak_gpus.max(demand_gpus));
        while let Some(issued) = self.open.pop_front_if(|issued| now.since_s(issued.at) >= self.hours.seconds()) {
            let passed_s = self.judged_at.map_or(0, |before| now.since_s(before)) as f64;
            let fades = 0.5_f64.powf(passed_s / LOSS_HALF_LIFE_S);
            for (loss, share) in self.losses.iter_mut().zip(SHARES) {
                let bound = between((issued.other_gpus, issued.jobs_gpus), share);
                *loss = *loss * fades + crate::scores::pinball(issued.peak_gpus, bound, rate.as_f64());
            }
            self.weight_s = self.weight_s * fades + passed_s.min(UNSEEN_S as f64);
            self.judged_at = Some(now);
        }
    }

    /// The bounds of this moment count from now on.
    fn mixed(&mut self, now: UnixSeconds, demand_gpus: f64, both: (f64, f64)) -> SharedBound {
        let apart_s = LEAST_APART_S.max(self.hours.seconds() / MOST_OPEN);
        if self.open.back().is_none_or(|last| now.since_s(last.at) >= apart_s) {
            let (other_gpus, jobs_gpus) = both;
            self.open.push_back(Issued { at: now, peak_gpus: demand_gpus, other_gpus, jobs_gpus });
        }
        let share = self.share();
        SharedBound::new(between(both, share), Some(both.1), share)
    }

    /// The mean share, each weighed by its prior and by the exponential of what it lost above the least loss, in least losses, times
    /// the number of hours-long looks that do not overlap.
    fn share(&self) -> f64 {
        let least = self.losses.iter().copied().fold(f64::INFINITY, f64::min).max(f64::MIN_POSITIVE);
        let independent = self.weight_s / self.hours.seconds() as f64;
        let above = self.losses.map(|loss| (-EVIDENCE * independent * (loss / least - 1.0)).exp());
        let weights: [f64; SHARES.len()] = std::array::from_fn(|place| PRIOR[place] * above[place]);
        let sum: f64 = weights.iter().sum();
        weights.iter().zip(SHARES).map(|(weight, share)| weight * share).sum::<f64>() / sum
    }
}

fn between((other, jobs): (f64, f64), share: f64) -> f64 {
    share * jobs + (1.0 - share) * other
}
