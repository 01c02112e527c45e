//! A bound that follows demand as it is measured from moment to moment, beside the hourly forecast.
//!
//! A forecast is issued once an hour from peaks of hours that are over; a pool that places its own tasks knows its HP
//! demand at every moment. How far demand rises within the next H hours above what it is now is learned from the last
//! week: an order statistic at p of what it did rise, in units of how much demand moved lately; once of the whole day, and once
//! of the hours of the day that are near. Forecast and live bounds are mixed in the proportion that would have lost least
//! (pinball loss at p) over the same week.

mod rises;
mod saved;

use rises::Rises;
use std::collections::VecDeque;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, UnixSeconds};

/// Older observations are forgotten.
const WINDOW_S: i64 = 7 * 86_400;
/// Shares of a live bound that are tried.
const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Until it was judged for so long the live bound has no share: what one part of a day taught says little of the others.
const JUDGED_S: i64 = 86_400;
/// After a gap of so many seconds the course of demand is not known, nor how far it rose.
const UNSEEN_S: i64 = 3_600;
/// Losses fade with this half-life: a model that was refitted is not judged by the one before it.
const LOSS_HALF_LIFE_S: f64 = 2.0 * 86_400.0;

/// Moves fade with this half-life.
const MOVE_HALF_LIFE_S: f64 = 6.0 * 3_600.0;
/// Until so many moves were seen (faded as they are) it is not known how much demand moves: in units of nothing a rise of the first
/// minutes would count as hundreds of moves, and nothing would be sold for as long as such rises are among the highest.
const LEAST_MOVES: f64 = 6.0;
/// Demand that never moved may still begin to, by thousandths of a GPU at a time.
const LEAST_MOVE_MILLI: f64 = 2_000.0;

/// An observation of one time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    at: UnixSeconds,
    demand_milli: i64,
    /// How much demand moved lately.
    move_milli: f64,
    forecast_gpus: Option<f64>,
}

/// The bound of that time for one number of hours.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Issued {
    seen: Seen,
    /// Of the whole day, and of the hours of the day that are near.
    live_gpus: Option<[f64; 2]>,
    /// The largest demand since, in thousandths.
    peak_milli: i64,
}

/// One number of hours.
#[derive(Debug, Clone, PartialEq)]
struct Horizon {
    hours: HorizonHours,
    open: VecDeque<Issued>,
    closed: VecDeque<(UnixSeconds, i64)>,
    rises: Rises,
    /// Of each live bound in each share beside a forecast.
    losses: [[f64; SHARES.len()]; 2],
    /// Of each live bound, with a forecast and without.
    alone: [f64; 2],
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
    /// Live bound, in GPUs.
    pub bound_gpus: f64,
    /// Bound of the forecast, in GPUs.
    pub forecast_gpus: f64,
    /// None until enough rises were measured.
    pub live_gpus: Option<f64>,
    /// Of the live bound.
    pub share: f64,
    /// The mixed bound itself, in GPUs, where that over fewer hours is larger, which holds here too.
    pub raised_from_gpus: Option<f64>,
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
    /// A pool of which nothing is known.
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

    /// The guarantee rate.
    #[must_use]
    pub const fn rate(&self) -> GuaranteeRate {
        self.rate
    }

    /// The offered hours.
    #[must_use]
    pub fn offered(&self) -> Vec<HorizonHours> {
        self.horizons.iter().map(|horizon| horizon.hours).collect()
    }

    /// When it learned last.
    #[must_use]
    pub fn learned_at(&self) -> Option<UnixSeconds> {
        self.last.map(|(at, _)| at)
    }

    /// Learns the demand of this moment, in thousandths of a GPU, and mixes each forecast bound with the live one. Calls come in
    /// the order of time and at even intervals; `forecast_gpus` has one bound for each of the offered hours, none where
    /// there is no forecast. The result has one for each of the offered hours up to the last known one, and does not decrease
    /// with them; it is empty where nothing is known.
    pub fn mix(&mut self, now: UnixSeconds, demand_milli: u64, forecast_gpus: Option<&[f64]>) -> Vec<Mixed> {
        let demand_milli = i64::try_from(demand_milli).unwrap_or(i64::MAX / 4);
        let move_milli = self.watch(now, demand_milli);
        let (rate, is_unit_known) = (self.rate, self.weight >= LEAST_MOVES);
        // All hours learn, whichever are known: else each would begin only once those before it are known.
        let each = self.horizons.iter_mut().enumerate().map(|(place, horizon)| {
            let forecast = forecast_gpus.and_then(|bounds| bounds.get(place)).copied();
            let seen = Seen { at: now, demand_milli, move_milli, forecast_gpus: forecast };
            horizon.mix(seen, rate, is_unit_known)
        });
        up_to_the_last_known(each.collect())
    }

    /// How much demand moves between two calls, lately.
    fn watch(&mut self, now: UnixSeconds, demand_milli: i64) -> f64 {
        let last = self.last.replace((now, demand_milli));
        if last.is_some_and(|(before, _)| now.since_s(before) > UNSEEN_S) {
            self.horizons.iter_mut().for_each(|horizon| horizon.open.clear());
        } else if let Some((before, last_milli)) = last {
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
            losses: [[0.0; SHARES.len()]; 2],
            alone: [0.0; 2],
            judged_at: None,
            judged_since: None,
        }
    }

    fn unjudged(self) -> Self {
        let withdrawn =
            |issued: Issued| Issued { seen: Seen { forecast_gpus: None, ..issued.seen }, live_gpus: None, ..issued };
        let open = self.open.into_iter().map(withdrawn).collect();
        let Self { hours, closed, rises, .. } = self;
        Self { open, closed, rises, ..Self::new(hours) }
    }

    /// From this moment on a rise is measured, if the unit of rises is known.
    fn mix(&mut self, seen: Seen, rate: GuaranteeRate, is_unit_known: bool) -> Option<Mixed> {
        self.learn(seen.at, seen.demand_milli, rate);
        let above = |rise: f64| (seen.demand_milli as f64 + rise.max(0.0) * seen.move_milli) / 1_000.0;
        let live = self.rises.order_statistics(rate, seen.at).map(|rises| rises.map(above));
        if is_unit_known {
            self.open.push_back(Issued { seen, live_gpus: live, peak_milli: seen.demand_milli });
        }
        match (seen.forecast_gpus, live) {
            (Some(forecast_gpus), Some(live)) => {
                let (kind, share) = self.share(seen.at);
                let bound_gpus = share * live[kind] + (1.0 - share) * forecast_gpus;
                Some(Mixed { bound_gpus, forecast_gpus, live_gpus: Some(live[kind]), share, raised_from_gpus: None })
            }
            (Some(forecast_gpus), None) => Some(Mixed {
                bound_gpus: forecast_gpus,
                forecast_gpus,
                live_gpus: None,
                share: 0.0,
                raised_from_gpus: None,
            }),
            (None, Some(live)) => {
                let live = live[usize::from(self.alone[1] < self.alone[0])];
                Some(Mixed {
                    bound_gpus: live,
                    forecast_gpus: live,
                    live_gpus: Some(live),
                    share: 1.0,
                    raised_from_gpus: None,
                })
            }
            (None, None) => None,
        }
    }

    /// Closes the bounds that were issued long enough ago.
    fn learn(&mut self, now: UnixSeconds, demand_milli: i64, rate: GuaranteeRate) {
        for issued in &mut self.open {
            issued.peak_milli = issued.peak_milli.max(demand_milli);
        }
        while let Some(issued) = self.open.pop_front_if(|issued| now.since_s(issued.seen.at) >= self.hours.seconds()) {
            let rise = (issued.peak_milli - issued.seen.demand_milli) as f64 / issued.seen.move_milli * 1_000.0;
            self.measured(now, rise.round() as i64);
            self.judge(&issued, now, rate);
        }
        while let Some((at, rise)) = self.closed.pop_front_if(|(at, _)| now.since_s(*at) > WINDOW_S) {
            self.rises.remove(at.plus_s(-self.hours.seconds()), rise);
        }
    }

    /// A rise over the hours that ended at `at`, in thousandths of a mean move.
    fn measured(&mut self, at: UnixSeconds, rise: i64) {
        self.rises.add(at.plus_s(-self.hours.seconds()), rise);
        self.closed.push_back((at, rise));
    }

    fn judge(&mut self, issued: &Issued, now: UnixSeconds, rate: GuaranteeRate) {
        let Some(live) = issued.live_gpus else { return };
        let passed_s = self.judged_at.map_or(0, |before| now.since_s(before)) as f64;
        let fades = 0.5_f64.powf(passed_s / LOSS_HALF_LIFE_S);
        self.judged_at = Some(now);
        let peak = issued.peak_milli as f64 / 1_000.0;
        let loss_of = |bound: f64| crate::scores::pinball(peak, bound, rate.as_f64());
        for (kind, live) in live.into_iter().enumerate() {
            self.alone[kind] = self.alone[kind] * fades + loss_of(live);
            for (loss, share) in self.losses[kind].iter_mut().zip(SHARES) {
                let new =
                    issued.seen.forecast_gpus.map_or(0.0, |forecast| loss_of(share * live + (1.0 - share) * forecast));
                *loss = *loss * fades + new;
            }
        }
        if issued.seen.forecast_gpus.is_some() {
            self.judged_since.get_or_insert(now);
        }
    }

    /// Which live bound in which share would have lost least; none until they were judged for a day.
    fn share(&self, now: UnixSeconds) -> (usize, f64) {
        let least_of = |kind: usize| {
            let least = self.losses[kind].iter().zip(SHARES).min_by(|one, other| one.0.total_cmp(other.0));
            least.map_or((f64::INFINITY, 0.0), |(loss, share)| (*loss, share))
        };
        let [(any_loss, any), (near_loss, near)] = [0, 1].map(least_of);
        if self.judged_since.is_none_or(|since| now.since_s(since) < JUDGED_S) {
            return (0, 0.0);
        }
        if near_loss < any_loss { (1, near) } else { (0, any) }
    }
}

/// Each hours are served as soon as they are known by themselves. Hours that are not known, before longer ones that are, take the
/// bound of those: demand rises no further within fewer hours.
fn up_to_the_last_known(each: Vec<Option<Mixed>>) -> Vec<Mixed> {
    let mut longer = None;
    let from_the_longest = each.into_iter().rev().map(|one| {
        longer = one.or(longer);
        longer
    });
    let mut all: Vec<Mixed> = from_the_longest.flatten().collect();
    all.reverse();
    let mut least = f64::NEG_INFINITY;
    for mixed in &mut all {
        if mixed.bound_gpus < least {
            mixed.raised_from_gpus = Some(mixed.bound_gpus);
            mixed.bound_gpus = least;
        }
        least = mixed.bound_gpus;
    }
    all
}

#[cfg(test)]
mod tests;
