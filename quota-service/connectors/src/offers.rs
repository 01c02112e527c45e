//! Quotas, as Headroom answers them, at their age.

use crate::client::{Headroom, HeadroomError};
use placement::staleness::{Answered, answered, stage};
use placement::{Bound, Eta, Limit, Stage};
use serving::standing::Standing;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use vocab::{GpuModel, HorizonHours, MilliGpus, UnixSeconds};
use wire::{PoolForecastStep, PoolList, PoolSummary};

/// Forecast HP demand of a pool in one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemandStep {
    /// Start of the hour.
    pub begins: UnixSeconds,
    /// 0.9 quantile of the demand.
    pub upper: MilliGpus,
}

/// Headroom's offer in one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Q_H, by rising hours; conservative ones held to what spot pods have.
    pub limits: Vec<Limit>,
    /// B_H, by rising hours.
    pub bounds: Vec<Bound>,
    /// Forecast HP demand, by rising hours; empty where none is answered.
    pub demand: Vec<DemandStep>,
    /// η.
    pub eta: Eta,
    /// Capacity of the pool.
    pub capacity: MilliGpus,
    /// Age of the numbers.
    pub stage: Stage,
    /// Time of the computation.
    pub computed_at: UnixSeconds,
}

/// The offers of this cluster's pools. A pool that is not there has no quota: nothing is admitted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Offers {
    /// Offers by GPU model.
    pub pools: BTreeMap<GpuModel, Offer>,
    /// When they were answered, by the clock of this machine.
    pub asked_at: Option<UnixSeconds>,
}

impl Offers {
    /// Offers of one cluster in a list of pools. A pool without a quota, or with an invalid one, offers nothing.
    #[must_use]
    pub fn of(list: &PoolList, cluster: &str, now: UnixSeconds) -> Self {
        let here = list.pools.iter().filter(|pool| pool.cluster == cluster);
        let pools = here.filter_map(|pool| Some((GpuModel::parse(&pool.gpu_model).ok()?, offer(pool)?))).collect();
        Self { pools, asked_at: Some(now) }
    }

    /// The same at a later time: quotas age whether Headroom answers or not. `held` is what spot pods of a pool have inside guarantees
    /// of at least so many hours.
    #[must_use]
    pub fn at(&self, now: UnixSeconds, held: impl Fn(&GpuModel, HorizonHours) -> MilliGpus) -> Self {
        let aged = |(model, offer): (&GpuModel, &Offer)| {
            let (stage, _) = stage(offer.computed_at, now);
            let limits = offer.limits.iter().map(|limit| {
                let last = Answered { quota: limit.quota, available: limit.quota };
                Limit { quota: answered(stage, last, held(model, limit.hours)).quota, ..*limit }
            });
            (model.clone(), Offer { limits: limits.collect(), stage, ..offer.clone() })
        };
        Self { pools: self.pools.iter().map(aged).collect(), asked_at: self.asked_at }
    }

    /// Why quotas of these GPU models are conservative; empty where none is. One of the future is, too: the clocks are apart. A
    /// model without an offer is held to what is promised.
    #[must_use]
    pub fn why_conservative<'m>(&self, models: impl Iterator<Item = &'m GpuModel>) -> String {
        let of = |(model, offer): (&GpuModel, &Offer)| {
            let is_ahead = self.asked_at.is_some_and(|asked| offer.computed_at > asked);
            let clock =
                if is_ahead { ", later than the clock of this machine: doctor compares the clocks" } else { "" };
            format!("the quota of {model} is of {}{clock}", offer.computed_at)
        };
        let old = self.pools.iter().filter(|(_, offer)| offer.stage == Stage::Conservative);
        let missing = models.filter(|model| !self.pools.contains_key(*model));
        let missing = missing.map(|model| format!("no quota of {model} is offered, or none that can be read"));
        let all: Vec<String> = old.map(of).chain(missing).collect();
        if all.is_empty() { String::new() } else { format!("Headroom does not renew: {}", all.join(", ")) }
    }
}

fn offer(pool: &PoolSummary) -> Option<Offer> {
    // As computed: the connector ages them by what its own spot tasks hold. A service of before answers the other ones alone.
    let computed = &pool.computed_quota_gpus_by_hours;
    let quotas = if computed.is_empty() { &pool.quota_gpus_by_hours } else { computed };
    let mut limits = Vec::new();
    for (hours, quota) in quotas {
        let (hours, quota) = (HorizonHours::parse(hours).ok()?, MilliGpus::nearest(*quota).ok()?);
        limits.push(Limit { hours, quota });
    }
    limits.sort_by_key(|limit| limit.hours);
    let mut bounds = Vec::new();
    for (hours, bound) in &pool.demand_bound_gpus_by_hours {
        let (hours, bound) = (HorizonHours::parse(hours).ok()?, MilliGpus::nearest(*bound).ok()?);
        bounds.push(Bound { hours, bound });
    }
    bounds.sort_by_key(|bound| bound.hours);
    let eta = Eta::nearest(pool.eta).ok()?;
    let computed_at = command_line::instant(pool.computed_at.as_deref()?).ok()?;
    let capacity = MilliGpus::nearest(pool.capacity_gpus?).ok()?;
    let demand = demand(&pool.forecast).unwrap_or_default();
    (!limits.is_empty()).then_some(Offer { limits, bounds, demand, eta, capacity, stage: Stage::Fresh, computed_at })
}

/// Forecast hours, rising; none where one of them cannot be read.
fn demand(forecast: &[PoolForecastStep]) -> Option<Vec<DemandStep>> {
    let step = |step: &PoolForecastStep| {
        let begins = command_line::instant(&step.target_time).ok()?;
        // The Gaussian of a small demand reaches below none.
        let upper = if step.q90_gpus < 0.0 { 0.0 } else { step.q90_gpus };
        Some(DemandStep { begins, upper: MilliGpus::rounded_up(upper).ok()? })
    };
    let mut all: Vec<DemandStep> = forecast.iter().map(step).collect::<Option<_>>()?;
    all.sort_by_key(|step| step.begins);
    Some(all)
}

/// Spot tasks of the cluster, as a connector knows them.
pub trait Holdings: Send + Sync {
    /// Now, by the clock of this machine.
    fn now(&self) -> UnixSeconds;
    /// GPUs of spot tasks of a pool inside guarantees of at least so many hours.
    fn promised(&self, model: &GpuModel, hours: HorizonHours) -> MilliGpus;
}

/// Asks for quotas again and again, and sends them at their age. Returns when the receiver is dropped. `program` begins the names
/// of metrics.
pub async fn poll(
    headroom: Headroom,
    holdings: Arc<impl Holdings>,
    (cluster, program): (String, &'static str),
    every: Duration,
    offers: watch::Sender<Arc<Offers>>,
) {
    let standing = Standing::new();
    let mut last = Offers::default();
    loop {
        let asked: Result<PoolList, HeadroomError> = headroom.get("/v1/pools").await;
        let now = holdings.now();
        let went = asked.map(|list| last = Offers::of(&list, &cluster, now));
        metrics::gauge!(format!("{program}_headroom_up")).set(f64::from(u8::from(went.is_ok())));
        standing.note(
            "",
            &went,
            |fault| tracing::warn!(%fault, "quotas are not renewed and age: a message follows when they are"),
            |over| tracing::info!(lasted_s = over.lasted_s, times = over.times, "quotas are renewed again"),
        );
        let aged = last.at(now, |model, hours| holdings.promised(model, hours));
        if offers.send(Arc::new(aged)).is_err() {
            return;
        }
        tokio::time::sleep(every).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(computed_at: &str) -> PoolList {
        let pool = |cluster: &str| {
            json!({
                "id": format!("{cluster}:A100"), "cluster": cluster, "gpu_model": "A100", "organizations": 1,
                "offered_hours": [1, 4], "capacity_gpus": 64.0, "latest_demand_gpus": 8.0,
                "quota_gpus_by_hours": {"4": 0.0, "1": 0.0}, "computed_quota_gpus_by_hours": {"4": 10.5, "1": 20.0},
                "eta": 1.0, "computed_at": computed_at, "stage": "fresh",
                "no_quota": null, "valid_until": null, "guarantee_rate": 0.9, "idle_gpus": 1.0, "spot_gpus_by_hours": {},
                "available_gpus_by_hours": {}, "demand_bound_gpus_by_hours": {}, "hp_demand_gpus": null, "forecast": [],
                "outcomes_24h": {}, "tasks": null, "overrides": 0
            })
        };
        serde_json::from_value(json!({ "pools": [pool("earth"), pool("mars")] })).unwrap()
    }

    #[test]
    fn forecast_hours_rise_and_none_is_known_where_one_cannot_be_read() {
        let step = |time: &str, q90_gpus: f64| PoolForecastStep {
            step: 1,
            target_time: time.to_owned(),
            mean_gpus: 1.0,
            stddev_gpus: 1.0,
            q90_gpus,
        };
        let two = [step("2026-11-22T12:00:00Z", -0.5), step("2026-11-22T11:00:00Z", 3.25)];
        let uppers: Vec<u64> = demand(&two).unwrap().iter().map(|step| step.upper.milli()).collect();
        assert_eq!(uppers, [3_250, 0]);
        assert_eq!(demand(&[step("soon", 1.0)]), None);
        assert_eq!(demand(&[step("2026-11-22T11:00:00Z", f64::NAN)]), None);
    }

    #[test]
    fn quotas_age_though_nobody_answers() {
        let start = command_line::instant("2026-11-22T10:00:00Z").unwrap();
        let offers = Offers::of(&list("2026-11-22T10:00:00Z"), "earth", start);
        assert_eq!(offers.pools.len(), 1);
        let quotas = |age_s: i64| -> Vec<u64> {
            let aged = offers.at(start.plus_s(age_s), |_, _| MilliGpus::from_gpus(3));
            aged.pools.values().flat_map(|offer| &offer.limits).map(|limit| limit.quota.milli()).collect()
        };
        assert_eq!(quotas(0), [20_000, 10_500]);
        assert_eq!(quotas(2_399), [20_000, 10_500], "stale: the last value stands");
        assert_eq!(quotas(2_400), [3_000, 3_000], "conservative: what is held");
        let why = |offers: &Offers, age_s: i64| {
            offers.at(start.plus_s(age_s), |_, _| MilliGpus::ZERO).why_conservative(std::iter::empty())
        };
        assert_eq!(why(&offers, 2_399), "");
        assert_eq!(why(&offers, 2_400), "Headroom does not renew: the quota of A100 is of 2026-11-22T10:00:00Z");
        let mut before = list("2026-11-22T10:00:00Z");
        let pool = &mut before.pools[0];
        pool.quota_gpus_by_hours = std::mem::take(&mut pool.computed_quota_gpus_by_hours);
        assert_eq!(Offers::of(&before, "earth", start), offers, "a service without the computed ones");
        let behind = Offers::of(&list("2026-11-22T10:00:00Z"), "earth", start.plus_s(-600));
        assert!(why(&behind, -600).contains("later than the clock of this machine"), "{}", why(&behind, -600));
    }
}
