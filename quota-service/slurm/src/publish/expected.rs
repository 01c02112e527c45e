//! When spot GPUs are expected to be free, from the forecast of HP demand that quotas come with. Pure.
//!
//! At the start of a forecast hour the quota of n hours is η · (capacity − the highest demand of the n hours from then on), and
//! what is free of it is what jobs inside promises, and jobs that wait already, leave. Demand is the forecast of each hour, raised
//! by what the bound of today's quota, which is of the peak, has above it. Where a forecast ends before the promise would, there is no time.

use super::wanted::Inputs;
use crate::limits::{ALL_GPUS, tres_of};
use connectors::{DemandStep, Offer};
use placement::Stage;
use std::collections::BTreeMap;
use vocab::{GpuModel, HorizonHours, MilliGpus, UnixSeconds};

/// GPUs that are expected to be free for a new job under a limit, from a time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// QOS or account.
    pub name: String,
    /// Resource: GPUs of a type, or all.
    pub tres: String,
    /// Start of an hour that is to come.
    pub at: UnixSeconds,
    /// Whole GPUs.
    pub gpus: u64,
}

impl Inputs<'_> {
    /// Free GPUs of each limit and type by hour, each hour that has more than those before it. For GPUs of any type that is the
    /// sum over types, where all of them are known.
    #[must_use]
    pub fn expected(&self) -> Vec<Expected> {
        let promised = self.config.limited().promised();
        let mut all = Vec::new();
        for (at, (_, name)) in promised.iter().enumerate() {
            let mut sums: BTreeMap<UnixSeconds, (u64, usize)> = BTreeMap::new();
            for model in self.view.pools.keys() {
                let free = self.free_by_hour(model, &promised[..=at]);
                for (hour, gpus) in &free {
                    let sum = sums.entry(*hour).or_default();
                    *sum = (sum.0 + gpus, sum.1 + 1);
                }
                if let Some(gpu_type) = self.view.types.get(model).and_then(Option::as_deref) {
                    all.extend(rising(name, &tres_of(gpu_type), free));
                }
            }
            let known = sums.into_iter().filter(|(_, (_, pools))| *pools == self.view.pools.len());
            all.extend(rising(name, ALL_GPUS, known.map(|(hour, (gpus, _))| (hour, gpus)).collect()));
        }
        all
    }

    /// Free GPUs by hour for the last of these limits, the shortest hours first: quotas of shorter hours hold it, too.
    fn free_by_hour(&self, model: &GpuModel, limits: &[(HorizonHours, &str)]) -> Vec<(UnixSeconds, u64)> {
        let offer = self.offers.pools.get(model).filter(|offer| offer.stage != Stage::Conservative);
        let Some(offer) = offer else { return Vec::new() };
        let starts = offer.demand.iter().map(|step| step.begins).filter(|begins| *begins > self.now);
        let free = |start: UnixSeconds| {
            let of = |(hours, _): &(HorizonHours, &str)| {
                let quota = quota_from(offer, start, *hours)?.milli() / MilliGpus::PER_GPU;
                Some(quota.saturating_sub(self.taken(model, *hours, start)))
            };
            let all: Option<Vec<u64>> = limits.iter().map(of).collect();
            Some((start, all?.into_iter().min()?))
        };
        starts.filter_map(free).collect()
    }

    /// GPUs of jobs with a promise of at least so many hours: those inside of it then, and those that wait now.
    fn taken(&self, model: &GpuModel, hours: HorizonHours, then: UnixSeconds) -> u64 {
        let Some(pool) = self.view.pools.get(model) else { return 0 };
        let waits = self.config.spot_qos.0.iter().filter(|(_, of)| of.is_some_and(|of| of >= hours));
        let waiting: u64 = waits.map(|(name, _)| pool.counted_waiting_gpus(name)).sum();
        pool.promised_gpus(hours, then) + waiting
    }
}

/// The quota of a promise that begins then; none where the forecast ends before the promise.
fn quota_from(offer: &Offer, start: UnixSeconds, hours: HorizonHours) -> Option<MilliGpus> {
    let first = offer.demand.first()?.begins;
    // The bound of the peak, above the forecasts of the hours that it is of.
    let bound = offer.bounds.iter().find(|bound| bound.hours >= hours);
    let above = bound.map_or(MilliGpus::ZERO, |bound| {
        peak(&offer.demand, first, bound.hours).map_or(MilliGpus::ZERO, |peak| bound.bound.left_after(peak))
    });
    let demand = peak(&offer.demand, start, hours)?.saturating_add(above);
    Some(offer.eta.of(offer.capacity.left_after(demand)).min(offer.capacity))
}

/// The highest forecast of so many hours from a start on; none where one of them is missing.
fn peak(demand: &[DemandStep], start: UnixSeconds, hours: HorizonHours) -> Option<MilliGpus> {
    let end = start.plus_s(hours.seconds());
    let inside = demand.iter().filter(|step| start <= step.begins && step.begins < end);
    let (count, peak) = inside.fold((0_u64, None), |(count, peak), step| (count + 1, peak.max(Some(step.upper))));
    peak.filter(|_| count == u64::from(hours.get()))
}

/// Each hour that has more than those before it.
fn rising(name: &str, tres: &str, free: Vec<(UnixSeconds, u64)>) -> Vec<Expected> {
    let (mut most, mut all) = (0, Vec::new());
    for (at, gpus) in free.into_iter().filter(|(_, gpus)| *gpus > 0) {
        if gpus > most {
            most = gpus;
            all.push(Expected { name: name.to_owned(), tres: tres.to_owned(), at, gpus });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 1_795_597_200;

    fn gpus(count: u32) -> MilliGpus {
        MilliGpus::from_gpus(count)
    }

    fn hours(count: u64) -> HorizonHours {
        HorizonHours::new(count).unwrap()
    }

    fn offer(demand: &[u32]) -> Offer {
        let step = |(at, upper): (usize, &u32)| DemandStep {
            begins: UnixSeconds::new(HOUR + 3_600 * at as i64),
            upper: gpus(*upper),
        };
        Offer {
            limits: Vec::new(),
            bounds: vec![placement::Bound { hours: hours(1), bound: gpus(12) }],
            demand: demand.iter().enumerate().map(step).collect(),
            eta: placement::Eta::from_micro(500_000),
            capacity: gpus(32),
            stage: Stage::Fresh,
            computed_at: UnixSeconds::new(HOUR),
        }
    }

    #[test]
    fn the_quota_of_an_hour_to_come_is_what_the_highest_demand_of_its_promise_leaves() {
        let offer = offer(&[10, 20, 8, 6, 4]);
        let at = |hour: i64, length| {
            quota_from(&offer, UnixSeconds::new(HOUR + 3_600 * hour), hours(length)).map(MilliGpus::milli)
        };
        // The bound of an hour lies 2 GPUs above the forecast of it; η is one half.
        assert_eq!([0, 1, 2, 3, 4].map(|hour| at(hour, 1)), [10_000, 5_000, 11_000, 12_000, 13_000].map(Some));
        // No bound of two hours is known: the forecast stands as it is.
        assert_eq!(
            [0, 1, 2, 3, 4].map(|hour| at(hour, 2)),
            [Some(6_000), Some(6_000), Some(12_000), Some(13_000), None]
        );
    }

    #[test]
    fn a_forecast_with_a_missing_hour_says_nothing_of_promises_across_it() {
        let mut offer = offer(&[10, 20, 8, 6, 4]);
        offer.demand.remove(2);
        let at = |hour: i64| quota_from(&offer, UnixSeconds::new(HOUR + 3_600 * hour), hours(2)).is_some();
        assert_eq!([0, 1, 3, 4].map(at), [true, false, true, false]);
    }

    #[test]
    fn hours_with_no_more_than_an_earlier_one_are_left_out() {
        let free = [0, 3, 2, 3, 5].iter().enumerate().map(|(at, gpus)| (UnixSeconds::new(at as i64), *gpus)).collect();
        let found: Vec<(i64, u64)> =
            rising("spot1h", "gres/gpu", free).iter().map(|one| (one.at.get(), one.gpus)).collect();
        assert_eq!(found, [(1, 3), (4, 5)]);
    }
}
