//! Served bounds, judged later: whether HP demand stayed below the bound that quotas were cut from, and how much of the
//! inventory HP would have taken back, had all of it been sold.
//!
//! [`drift`](crate::drift) scores forecasts of the hours after their issue time. A pool's promise rests on another bound,
//! mixed with what demand does and moved to what keeps the promise, over the hours from now on. It is noted here each quarter of an
//! hour, and judged by the demand that is measured afterwards. Hourly sums of four weeks are kept.

use crate::risk::Moment;
use std::collections::VecDeque;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, UnixSeconds};

mod saved;
mod score;

pub use score::{Extreme, Fared, Served};

const HOUR_S: i64 = 3_600;
/// Seconds between two readings that count: neighbours are alike.
const SAMPLE_S: i64 = 900;
/// Older bounds are forgotten.
const KEPT_HOURS: i64 = 28 * 24;
/// Demand that is known from moment to moment is measured at least this often, in seconds, or its peak is not known.
const MOMENTS_S: i64 = 900;
/// Where usage is measured by the hour, so many seconds lie between two measurements.
const HOURS_S: i64 = HOUR_S;

/// How closely demand is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// As it is now, at each call.
    ByMoment,
    /// The peak of the newest hour of usage.
    ByHour,
}

impl Measured {
    /// Between two measurements further apart a peak may have gone unseen.
    const fn most_apart_s(self) -> i64 {
        match self {
            Self::ByMoment => MOMENTS_S,
            Self::ByHour => HOURS_S,
        }
    }
}

/// A bound that was served, and is not judged yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    at: UnixSeconds,
    bound_milli: u64,
    capacity_milli: u64,
    /// The largest demand since.
    peak_milli: u64,
}

/// The outcomes of the bounds that were served in one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hour {
    /// Hours since 1970.
    number: i64,
    looks: u32,
    covered: u32,
    inventory_milli: u64,
    broken_milli: u64,
}

/// One number of hours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Horizon {
    hours: HorizonHours,
    open: VecDeque<Open>,
    /// Rising; hours in which nothing was judged are left out.
    past: VecDeque<Hour>,
}

/// The served bounds of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    rate: GuaranteeRate,
    measured_at: Option<UnixSeconds>,
    horizons: Vec<Horizon>,
}

impl Watched {
    /// A pool of which nothing is known.
    #[must_use]
    pub fn new(rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let horizon = |hours: &HorizonHours| Horizon { hours: *hours, open: VecDeque::new(), past: VecDeque::new() };
        Self { rate, measured_at: None, horizons: offered.iter().map(horizon).collect() }
    }

    /// For other hours: what is known of those that stay stays. Bounds at another rate are held against another promise, so that
    /// it begins again.
    #[must_use]
    pub fn made_for(self, rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let fresh = Self::new(rate, offered);
        if rate != self.rate {
            return fresh;
        }
        let of_hours =
            |fresh: Horizon| self.horizons.iter().find(|one| one.hours == fresh.hours).cloned().unwrap_or(fresh);
        Self { rate, measured_at: self.measured_at, horizons: fresh.horizons.into_iter().map(of_hours).collect() }
    }

    /// Learns the demand of this moment, and that `bounds` are served from now on: one for each of the offered hours, or for the
    /// first of them. Calls come in the order of time.
    pub fn note(&mut self, moment: &Moment, bounds: &[MilliGpus], measured: Measured) {
        let before = self.measured_at.replace(moment.measured_at);
        let is_gap = before.is_some_and(|before| moment.measured_at.since_s(before) > measured.most_apart_s());
        for (place, horizon) in self.horizons.iter_mut().enumerate() {
            if is_gap {
                // Nobody knows how far demand rose meanwhile.
                horizon.open.clear();
            }
            horizon.judge(moment);
            if let Some(bound) = bounds.get(place) {
                horizon.open(moment, *bound);
            }
        }
    }

    /// How the bounds fared, by hours.
    #[must_use]
    pub fn served(&self, now: UnixSeconds) -> Vec<Served> {
        self.horizons.iter().map(|horizon| Served::of(horizon, now)).collect()
    }
}

impl Horizon {
    /// An hour whose peak is all that is measured of it may hold demand of before the bound was served: it counts whole.
    fn judge(&mut self, moment: &Moment) {
        for open in self.open.iter_mut().filter(|one| moment.measured_at > one.at) {
            open.peak_milli = open.peak_milli.max(moment.demand.milli());
        }
        while let Some(one) = self.open.pop_front_if(|one| moment.measured_at.since_s(one.at) >= self.hours.seconds()) {
            self.add(&one);
        }
        let oldest = moment.now.get().div_euclid(HOUR_S) - KEPT_HOURS;
        while self.past.pop_front_if(|hour| hour.number < oldest).is_some() {}
    }

    fn add(&mut self, one: &Open) {
        let number = one.at.get().div_euclid(HOUR_S);
        if self.past.back().is_none_or(|last| last.number != number) {
            self.past.push_back(Hour { number, looks: 0, covered: 0, inventory_milli: 0, broken_milli: 0 });
        }
        let Some(hour) = self.past.back_mut() else { return };
        let inventory_milli = one.capacity_milli.saturating_sub(one.bound_milli);
        hour.looks += 1;
        hour.covered += u32::from(one.peak_milli <= one.bound_milli);
        hour.inventory_milli += inventory_milli;
        hour.broken_milli += inventory_milli.min(one.peak_milli.saturating_sub(one.bound_milli));
    }

    fn open(&mut self, moment: &Moment, bound: MilliGpus) {
        if self.open.back().is_none_or(|last| moment.now.since_s(last.at) >= SAMPLE_S) {
            let (bound_milli, capacity_milli) = (bound.milli(), moment.capacity.milli());
            self.open.push_back(Open {
                at: moment.now,
                bound_milli,
                capacity_milli,
                peak_milli: moment.demand.milli(),
            });
        }
    }
}

#[cfg(test)]
mod tests;
