//! A bound that follows demand as it is measured from moment to moment, beside the hourly forecast.
//!
//! A forecast is issued once an hour from peaks of hours that are over; a pool that places its own tasks knows its HP
//! demand at every moment. How far demand rises within the next H hours above what it is now is learned from the last
//! week: an order statistic at p of what it did rise, in units of how much demand moved lately. Forecast and live bound are mixed in the proportion that would have
//! lost least (pinball loss at p) over the same week.

use std::collections::{BTreeMap, VecDeque};
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, UnixSeconds};

/// What is older is forgotten.
const WINDOW_S: i64 = 7 * 86_400;
/// Below so many measured rises there is no live bound.
const LEAST_RISES: usize = 12;
/// Shares of the live bound that are tried.
const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Until it was judged for so long the live bound has no share: what one part of a day taught says little of the others.
const JUDGED_S: i64 = 86_400;
/// Losses fade with this half-life: a model that was refitted is not judged by the one before it.
const LOSS_HALF_LIFE_S: f64 = 2.0 * 86_400.0;

/// Moves fade with this half-life.
const MOVE_HALF_LIFE_S: f64 = 6.0 * 3_600.0;
/// Demand that never moved may still begin to, by thousandths of a GPU at a time.
const LEAST_MOVE_MILLI: f64 = 2_000.0;

/// Rises in thousandths of a mean move, by how often they were measured.
#[derive(Debug, Clone, Default, PartialEq)]
struct Rises {
    counts: BTreeMap<i64, u32>,
    all: usize,
}

impl Rises {
    fn add(&mut self, rise: i64) {
        *self.counts.entry(rise).or_default() += 1;
        self.all += 1;
    }

    fn remove(&mut self, rise: i64) {
        if let Some(count) = self.counts.get_mut(&rise) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&rise);
            }
            self.all -= 1;
        }
    }

    /// ⌈(n+1)p⌉-th smallest, or the largest.
    fn order_statistic(&self, rate: GuaranteeRate) -> Option<f64> {
        if self.all < LEAST_RISES {
            return None;
        }
        let rank = (((self.all + 1) as f64 * rate.as_f64()).ceil() as usize).min(self.all);
        let mut seen = 0;
        self.counts.iter().find_map(|(rise, count)| {
            seen += *count as usize;
            (seen >= rank).then_some(*rise as f64 / 1_000.0)
        })
    }
}

/// What was said at one time about one number of hours.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Said {
    at: UnixSeconds,
    demand_milli: i64,
    /// How much demand moved lately.
    move_milli: f64,
    forecast_gpus: Option<f64>,
    live_gpus: Option<f64>,
    /// The largest demand since, in thousandths.
    peak_milli: i64,
}

/// One number of hours.
#[derive(Debug, Clone, PartialEq)]
struct Horizon {
    hours: HorizonHours,
    open: VecDeque<Said>,
    closed: VecDeque<(UnixSeconds, i64)>,
    rises: Rises,
    losses: [f64; SHARES.len()],
    judged_at: Option<UnixSeconds>,
    judged_since: Option<UnixSeconds>,
}

/// The live bound of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveBound {
    rate: GuaranteeRate,
    horizons: Vec<Horizon>,
    /// The demand before, and when it was measured.
    last: Option<(UnixSeconds, i64)>,
    /// The mean move between two calls, and the weight that it rests on.
    moves_milli: f64,
    weight: f64,
}

/// A bound with what it was mixed from, in GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixed {
    pub bound_gpus: f64,
    pub forecast_gpus: f64,
    /// None until enough rises were measured.
    pub live_gpus: Option<f64>,
    /// Of the live bound.
    pub share: f64,
}

impl Mixed {
    /// The bound as an amount, rounded up: no less than what is needed already.
    #[must_use]
    pub fn demand_bound(&self, demand: MilliGpus) -> MilliGpus {
        let bound = MilliGpus::rounded_up(self.bound_gpus.max(0.0)).unwrap_or(MilliGpus::from_gpus(u32::MAX));
        bound.max(demand)
    }
}

impl LiveBound {
    #[must_use]
    pub fn new(rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let horizons = offered.iter().map(|hours| Horizon::new(*hours)).collect();
        Self { rate, horizons, last: None, moves_milli: 0.0, weight: 0.0 }
    }

    /// For another rate and other hours: how demand rose stays known, how well that was weighed against forecasts only where
    /// the rate stays.
    #[must_use]
    pub fn made_for(mut self, rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let mut known = std::mem::take(&mut self.horizons);
        let of_hours = |hours: &HorizonHours| {
            let place = known.iter().position(|one| one.hours == *hours);
            let horizon = place.map_or_else(|| Horizon::new(*hours), |place| known.swap_remove(place));
            if rate == self.rate { horizon } else { horizon.unjudged() }
        };
        let horizons = offered.iter().map(of_hours).collect();
        Self { rate, horizons, ..self }
    }

    /// When it learned last.
    #[must_use]
    pub fn learned_at(&self) -> Option<UnixSeconds> {
        self.last.map(|(at, _)| at)
    }

    /// Learns the demand of this moment, in thousandths of a GPU, and mixes each forecast bound with the live one. Calls come in
    /// the order of time and at even intervals; `forecast_gpus` has one bound for each of the offered hours, none where
    /// there is no forecast. The result does not decrease with the hours; it is empty where nothing is known.
    pub fn mix(&mut self, now: UnixSeconds, demand_milli: u64, forecast_gpus: Option<&[f64]>) -> Vec<Mixed> {
        let demand_milli = i64::try_from(demand_milli).unwrap_or(i64::MAX / 4);
        let move_milli = self.watch(now, demand_milli);
        let mut all: Vec<Mixed> = Vec::with_capacity(self.horizons.len());
        let rate = self.rate;
        for (place, horizon) in self.horizons.iter_mut().enumerate() {
            let forecast = forecast_gpus.and_then(|bounds| bounds.get(place)).copied();
            let seen = Said {
                at: now,
                demand_milli,
                move_milli,
                forecast_gpus: forecast,
                live_gpus: None,
                peak_milli: demand_milli,
            };
            let Some(mut mixed) = horizon.mix(seen, rate) else { return Vec::new() };
            if let Some(shorter) = all.last() {
                mixed.bound_gpus = mixed.bound_gpus.max(shorter.bound_gpus);
            }
            all.push(mixed);
        }
        all
    }

    /// How much demand moves between two calls, lately.
    fn watch(&mut self, now: UnixSeconds, demand_milli: i64) -> f64 {
        if let Some((before, last_milli)) = self.last.replace((now, demand_milli)) {
            let fades = 0.5_f64.powf(now.since_s(before) as f64 / MOVE_HALF_LIFE_S);
            self.moves_milli = self.moves_milli * fades + (demand_milli - last_milli).abs() as f64;
            self.weight = self.weight * fades + 1.0;
        }
        self.moves_milli / self.weight.max(1.0) + LEAST_MOVE_MILLI
    }
}

impl Horizon {
    fn new(hours: HorizonHours) -> Self {
        Self {
            hours,
            open: VecDeque::new(),
            closed: VecDeque::new(),
            rises: Rises::default(),
            losses: [0.0; SHARES.len()],
            judged_at: None,
            judged_since: None,
        }
    }

    fn unjudged(self) -> Self {
        let open = self.open.into_iter().map(|said| Said { forecast_gpus: None, live_gpus: None, ..said }).collect();
        Self { open, losses: [0.0; SHARES.len()], judged_at: None, judged_since: None, ..self }
    }

    fn mix(&mut self, seen: Said, rate: GuaranteeRate) -> Option<Mixed> {
        self.learn(seen.at, seen.demand_milli, rate);
        let rise = self.rises.order_statistic(rate);
        let live = rise.map(|rise| (seen.demand_milli as f64 + rise.max(0.0) * seen.move_milli) / 1_000.0);
        let forecast = seen.forecast_gpus;
        self.open.push_back(Said { live_gpus: live, ..seen });
        let share = self.share(seen.at);
        match (forecast, live) {
            (Some(forecast_gpus), Some(live)) => {
                let bound_gpus = share * live + (1.0 - share) * forecast_gpus;
                Some(Mixed { bound_gpus, forecast_gpus, live_gpus: Some(live), share })
            }
            (Some(forecast_gpus), None) => {
                Some(Mixed { bound_gpus: forecast_gpus, forecast_gpus, live_gpus: None, share: 0.0 })
            }
            (None, Some(live)) => {
                Some(Mixed { bound_gpus: live, forecast_gpus: live, live_gpus: Some(live), share: 1.0 })
            }
            (None, None) => None,
        }
    }

    /// Closes what was said long enough ago.
    fn learn(&mut self, now: UnixSeconds, demand_milli: i64, rate: GuaranteeRate) {
        for said in &mut self.open {
            said.peak_milli = said.peak_milli.max(demand_milli);
        }
        while let Some(said) = self.open.pop_front_if(|said| now.since_s(said.at) >= self.hours.seconds()) {
            let rise = ((said.peak_milli - said.demand_milli) as f64 / said.move_milli * 1_000.0).round() as i64;
            self.rises.add(rise);
            self.closed.push_back((now, rise));
            self.judge(&said, now, rate);
        }
        while let Some((_, rise)) = self.closed.pop_front_if(|(at, _)| now.since_s(*at) > WINDOW_S) {
            self.rises.remove(rise);
        }
    }

    fn judge(&mut self, said: &Said, now: UnixSeconds, rate: GuaranteeRate) {
        let (Some(forecast), Some(live)) = (said.forecast_gpus, said.live_gpus) else { return };
        let passed_s = self.judged_at.map_or(0, |before| now.since_s(before)) as f64;
        let fades = 0.5_f64.powf(passed_s / LOSS_HALF_LIFE_S);
        self.judged_at = Some(now);
        self.judged_since.get_or_insert(now);
        let peak = said.peak_milli as f64 / 1_000.0;
        for (loss, share) in self.losses.iter_mut().zip(SHARES) {
            let bound = share * live + (1.0 - share) * forecast;
            *loss = *loss * fades + crate::scores::pinball(peak, bound, rate.as_f64());
        }
    }

    /// The share that would have lost least; none until it was judged for a day.
    fn share(&self, now: UnixSeconds) -> f64 {
        let least = self.losses.iter().zip(SHARES).min_by(|one, other| one.0.total_cmp(other.0));
        let is_judged = self.judged_since.is_some_and(|since| now.since_s(since) >= JUDGED_S);
        least.filter(|_| is_judged).map_or(0.0, |(_, share)| share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_S: i64 = 300;

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    /// Numbers that look drawn and are always the same.
    fn draws() -> impl Iterator<Item = u64> {
        std::iter::successors(Some(9_u64), |last| Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)))
            .map(|number| number >> 33)
    }

    /// A demand that wanders, in thousandths of a GPU.
    fn wandering(steps: usize) -> Vec<u64> {
        let mut level = 500_000_i64;
        let next = draws().take(steps).map(move |draw| {
            level = (level + (draw % 21) as i64 * 1_000 - 10_000).clamp(100_000, 900_000);
            level as u64
        });
        next.collect()
    }

    #[test]
    fn it_holds_as_often_as_promised_and_longer_hours_need_no_less() {
        let demand = wandering(6_000);
        let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1), hours(4)]);
        let (mut kept, mut said) = (0, 0);
        for (step, &now) in demand.iter().enumerate() {
            let mixed = live.mix(UnixSeconds::new(step as i64 * STEP_S), now, None);
            let Some(after) = demand.get(step..step + 13).filter(|_| step > 1_000) else { continue };
            assert!(mixed[0].bound_gpus <= mixed[1].bound_gpus && mixed[0].bound_gpus >= now as f64 / 1_000.0);
            said += 1;
            kept += usize::from(*after.iter().max().unwrap() as f64 <= mixed[0].bound_gpus * 1_000.0);
        }
        let share = f64::from(kept as u32) / f64::from(said);
        assert!((0.87..0.93).contains(&share), "{share}");
    }

    #[test]
    fn without_measured_rises_the_forecast_stands_and_without_both_nothing_does() {
        let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
        assert_eq!(live.mix(UnixSeconds::new(0), 5_000, None), []);
        let mixed = live.mix(UnixSeconds::new(STEP_S), 5_000, Some(&[9.0]));
        assert_eq!((mixed[0].bound_gpus, mixed[0].live_gpus, mixed[0].share), (9.0, None, 0.0));
    }

    #[test]
    fn the_one_that_loses_less_has_the_larger_share() {
        let demand = wandering(3_000);
        for (offset_gpus, expected) in [(4_000.0, 1.0), (0.0, 0.0)] {
            let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
            let mut last = None;
            for (step, &now) in demand[..2_900].iter().enumerate() {
                // A forecast that knows the peak, or one that is far off.
                let peak = demand[step..step + 13].iter().max().unwrap();
                let forecast = *peak as f64 / 1_000.0 + offset_gpus;
                last = live.mix(UnixSeconds::new(step as i64 * STEP_S), now, Some(&[forecast])).pop();
            }
            assert_eq!(last.map(|mixed| mixed.share), Some(expected));
        }
    }

    #[test]
    fn demand_that_stands_still_is_its_own_bound() {
        let mut live = LiveBound::new(GuaranteeRate::GFS, &[hours(1)]);
        let all = (0..100).map(|step| live.mix(UnixSeconds::new(step * STEP_S), 7_000, None));
        assert_eq!(all.last().and_then(|mut mixed| mixed.pop()).map(|mixed| mixed.bound_gpus), Some(7.0));
    }
}
