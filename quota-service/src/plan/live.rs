//! Bounds that follow HP demand between two forecasts, where the service knows it: pools whose tasks are placed here.

use super::cluster::PoolInputs;
use forecaster::bound::PoolBound;
use forecaster::live::{LiveBound, Mixed};
use placement::{Bound, PoolSettings};
use vocab::{MilliGpus, UnixSeconds};

/// Renewals closer together than this teach nothing: how much demand moves is measured at even intervals.
const LEAST_INTERVAL_S: i64 = 150;

/// What demand does from moment to moment.
#[derive(Clone)]
pub struct Live {
    /// With what was learned now.
    pub bound: LiveBound,
    /// HP GPUs, running and waiting, now.
    pub hp_demand: MilliGpus,
    /// For each of the offered hours; empty where nothing is known.
    pub mixed: Vec<Mixed>,
}

impl Live {
    #[must_use]
    pub fn of(pool: &PoolInputs, forecast: &[PoolBound], now: UnixSeconds) -> Option<Self> {
        let (before, hp_demand) = (pool.live.as_ref()?, pool.hp_demand?);
        let mut after = before.clone();
        let gpus: Vec<f64> = forecast.iter().map(|bound| bound.bound.as_gpus()).collect();
        let mixed = after.mix(now, hp_demand.milli(), Some(&gpus));
        let is_early = before.learned_at().is_some_and(|last| now.since_s(last) < LEAST_INTERVAL_S);
        Some(Self { bound: if is_early { before.clone() } else { after }, hp_demand, mixed })
    }
}

/// The bounds that the quota is cut from: those of the forecast, or mixed ones, and never less than `needed`, the newest measured
/// HP demand.
pub fn demand_bounds(
    settings: &PoolSettings,
    forecast: &[PoolBound],
    live: Option<&Live>,
    needed: MilliGpus,
) -> Vec<Bound> {
    let one = |(place, (hours, bound)): (usize, (&vocab::HorizonHours, &PoolBound))| {
        let mixed = live.and_then(|live| Some((live, live.mixed.get(place)?)));
        let bound = mixed.map_or(bound.bound, |(live, mixed)| mixed.demand_bound(live.hp_demand));
        Bound { hours: *hours, bound: bound.max(needed) }
    };
    settings.offered_hours.iter().zip(forecast).enumerate().map(one).collect()
}
