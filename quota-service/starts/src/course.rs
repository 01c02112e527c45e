//! The quotas of a future: how they follow HP demand.

use crate::facts::PoolFacts;
use crate::steps::Steps;
use std::collections::BTreeMap;
use vocab::{HorizonHours, UnixSeconds};

/// The mean margin forgets half of what it knows in so many seconds.
const HALF_LIFE_S: f64 = 86_400.0;
/// The margin of now comes to the mean one by the factor e in so many seconds.
const RETURNS_S: f64 = 4.0 * 3_600.0;

/// How much less than the capacity without HP demand was offered: what the bound lies above demand, and what eta takes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Margin {
    pub mean_milli: f64,
    /// Seconds that it rests on, faded as they are.
    pub weight_s: f64,
}

/// The margins of a pool by guarantee hours, from one observation to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Margins {
    pub(crate) by_hours: BTreeMap<HorizonHours, Margin>,
    pub(crate) seen_at: Option<UnixSeconds>,
}

impl Margins {
    /// Learns the limits of now. Where a limit is zero the margin cannot be seen.
    pub(crate) fn observe(&mut self, facts: &PoolFacts) {
        let now = facts.at;
        let passed_s = self.seen_at.map_or(300, |before| now.since_s(before)).clamp(0, 3_600) as f64;
        self.seen_at = self.seen_at.max(Some(now));
        let fades = 0.5_f64.powf(passed_s / HALF_LIFE_S);
        let (capacity, demand) = (facts.capacity_milli as f64, facts.demand_milli as f64);
        for limit in facts.limits.iter().filter(|limit| !limit.quota.is_zero()) {
            let margin = self.by_hours.entry(limit.hours).or_default();
            let weight_s = margin.weight_s * fades;
            let sold = facts.sold_milli(limit.hours, 0) as f64;
            let now_milli = capacity - demand - sold - limit.quota.milli() as f64;
            margin.weight_s = weight_s + passed_s;
            if margin.weight_s > 0.0 {
                margin.mean_milli = (margin.mean_milli * weight_s + now_milli * passed_s) / margin.weight_s;
            }
        }
    }
}

/// How limits follow demand from now on.
#[derive(Debug, Clone)]
pub struct Course {
    capacity_milli: f64,
    /// By limit: the margin of now and the mean one, in thousandths of a GPU.
    margins: Vec<(f64, f64)>,
    /// By limit and step: what is sold ahead within a guarantee that begins then, without what is in use now. Empty where nothing is.
    sold_milli: Vec<Vec<u64>>,
    /// By step: what windows that are open keep from spot. Empty where there are none.
    kept_milli: Vec<u64>,
}

impl Course {
    /// Limits move as demand does, against it.
    pub(crate) fn of(facts: &PoolFacts, margins: &Margins) -> Self {
        let (capacity_milli, demand) = (facts.capacity_milli as f64, facts.demand_milli as f64);
        let one = |limit: &placement::Limit| {
            let mean = margins.by_hours.get(&limit.hours).map(|margin| margin.mean_milli);
            let sold = facts.sold_milli(limit.hours, 0) as f64;
            let seen = capacity_milli - demand - sold - limit.quota.milli() as f64;
            // Of a limit of zero it is known only that the margin is at least so large.
            let now = if limit.quota.is_zero() { mean.unwrap_or(seen) } else { seen };
            (now, mean.unwrap_or(now))
        };
        let margins = facts.limits.iter().map(one).collect();
        if facts.windows.all.is_empty() {
            return Self { capacity_milli, margins, sold_milli: Vec::new(), kept_milli: Vec::new() };
        }
        let steps = Steps::new();
        let ends_s = || (0..steps.count()).map(|step| steps.end_s(step));
        let sold = |limit: &placement::Limit| ends_s().map(|end_s| facts.sold_milli(limit.hours, end_s)).collect();
        let kept = |end_s: u32| facts.windows.unused(facts.at.plus_s(i64::from(end_s))).milli();
        let (sold_milli, kept_milli) = (facts.limits.iter().map(sold).collect(), ends_s().map(kept).collect());
        Self { capacity_milli, margins, sold_milli, kept_milli }
    }

    /// Thousandths of a GPU that windows keep from spot in a step.
    pub(crate) fn kept_milli(&self, step: usize) -> u64 {
        self.kept_milli.get(step).copied().unwrap_or(0)
    }

    /// The limit at a place among those that are offered.
    pub(crate) fn limit_milli(&self, place: usize, demand_milli: i64, (step, at_s): (usize, u32)) -> u64 {
        let (now, mean) = self.margins[place];
        let margin = mean + (now - mean) * (-f64::from(at_s) / RETURNS_S).exp();
        let sold = self.sold_milli.get(place).map_or(0, |by_step| by_step[step]);
        (self.capacity_milli - demand_milli as f64 - margin - sold as f64).max(0.0) as u64
    }
}
