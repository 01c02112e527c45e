//! The quota to publish: what spot may hold in all, from the last offer of Headroom and the pool as it is now.

use super::plan::{Amounts, AtWill, Basis, Part, Wanted};
use crate::cluster::watch::Shared;
use crate::config::Config;
use crate::headroom::{Offer, Offers};
use crate::view::facts::Life;
use crate::view::{PoolView, View};
use placement::Stage;
use placement::cluster_quota::{Counted, quota_in_all, quotas_apart};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use vocab::{GpuModel, HorizonHours, MilliGpus, TaskClass};

const MILLI: u64 = MilliGpus::PER_GPU;

/// Turns each answer of Headroom into the quota to publish.
pub async fn want(
    config: Arc<Config>,
    shared: Arc<Shared>,
    mut offers: watch::Receiver<Arc<Offers>>,
    sender: watch::Sender<Arc<Wanted>>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stops| *stops) => return,
            changed = offers.changed() => if changed.is_err() { return },
        }
        let offers = offers.borrow_and_update().clone();
        let wanted = wanted(&offers, &shared.read(), config.quota_hours.0);
        // By a stale view nothing is written and no heartbeat renewed: the watchdog lowers what stands.
        let is_known = wanted.is_known && !shared.is_stale();
        sender.send_replace(Arc::new(Wanted { is_known, ..wanted }));
    }
}

/// GPUs that spot may hold in each pool, in whole GPUs; 0 in a pool without an offer.
#[must_use]
pub fn wanted(offers: &Offers, view: &View, hours: HorizonHours) -> Wanted {
    let at_will = at_will_gpus(view);
    let of = |(model, pool): (&GpuModel, &PoolView)| {
        let at_will = at_will.as_ref().map(|all| all.get(model).copied().unwrap_or(0));
        (model.clone(), amounts(offers.pools.get(model), pool, at_will, hours))
    };
    let by_model: BTreeMap<GpuModel, Amounts> = view.pools().iter().map(of).collect();
    Wanted {
        held_by_namespace: held_by_namespace(view, &by_model),
        is_known: offers.asked_at.is_some(),
        by_model,
        lowered_because: offers.why_conservative(std::iter::empty()),
    }
}

/// GPUs of spot pods in pools that promise nothing new, by namespace. A share of what the whole pool holds would be room for new pods.
fn held_by_namespace(view: &View, by_model: &BTreeMap<GpuModel, Amounts>) -> BTreeMap<(String, Part), u64> {
    let mut milli: BTreeMap<(String, Part), u64> = BTreeMap::new();
    if !by_model.values().any(|amounts| amounts.is_held) {
        return milli;
    }
    let is_apart = !view.reading().at_will_classes.is_empty();
    for pod in view.pods().values().filter(|pod| pod.class == TaskClass::Spot && pod.life == Life::Runs) {
        let model = view.model_of(pod);
        if model.and_then(|model| by_model.get(&model)).is_some_and(|amounts| amounts.is_held) {
            let part = if is_apart && pod.is_at_will { Part::AtWill } else { Part::Main };
            *milli.entry((pod.namespace.clone(), part)).or_default() += pod.amount().milli();
        }
    }
    milli.into_iter().map(|(of, milli)| (of, milli.div_ceil(MILLI))).collect()
}

/// GPUs of pods of classes at will, by model; none where these are not apart.
fn at_will_gpus(view: &View) -> Option<BTreeMap<GpuModel, u64>> {
    if view.reading().at_will_classes.is_empty() {
        return None;
    }
    let mut gpus = BTreeMap::new();
    for pod in view.pods().values().filter(|pod| pod.is_at_will && pod.life == Life::Runs) {
        if let Some(model) = view.model_of(pod) {
            *gpus.entry(model).or_default() += pod.amount().milli();
        }
    }
    Some(gpus.into_iter().map(|(model, milli): (GpuModel, u64)| (model, milli.div_ceil(MILLI))).collect())
}

fn amounts(offer: Option<&Offer>, pool: &PoolView, at_will: Option<u64>, hours: HorizonHours) -> Amounts {
    let (in_all_gpus, allocatable_gpus) = (pool.spot_gpus(), pool.allocatable_gpus());
    let gpus = |gpus: u64| MilliGpus::from_gpus(u32::try_from(gpus).unwrap_or(u32::MAX));
    let counted = offer.and_then(|offer| {
        Some(Counted {
            // A node that went since leaves less than the offer counts with.
            capacity: offer.capacity.min(gpus(allocatable_gpus)),
            demand_bound: offer.bounds.iter().find(|bound| bound.hours == hours)?.bound,
            eta: offer.eta,
            idle: gpus(pool.idle_gpus()),
            held: gpus(in_all_gpus),
            stage: offer.stage,
        })
    });
    let basis = match counted.map(|counted| counted.stage) {
        None => Basis::Missing,
        Some(Stage::Stale) => Basis::Old,
        Some(Stage::Fresh | Stage::Conservative) => Basis::Known,
    };
    let is_held = counted.is_some_and(|counted| counted.stage == Stage::Conservative);
    let Some(at_will_gpus) = at_will.map(|at_will| at_will.min(in_all_gpus)) else {
        let quota_gpus = counted.map_or(0, |counted| quota_in_all(&counted).milli() / MILLI);
        return Amounts { quota_gpus, held_gpus: in_all_gpus, allocatable_gpus, basis, is_held, ..Amounts::default() };
    };
    let held_gpus = in_all_gpus - at_will_gpus;
    let apart = counted.map(|counted| quotas_apart(&counted, gpus(held_gpus), gpus(at_will_gpus)));
    let (promised, at_will) = apart.unwrap_or_default();
    Amounts {
        quota_gpus: promised.milli() / MILLI,
        held_gpus,
        at_will: AtWill { quota_gpus: at_will.milli() / MILLI, held_gpus: at_will_gpus },
        allocatable_gpus,
        basis,
        is_held,
    }
}

#[cfg(test)]
mod tests;
