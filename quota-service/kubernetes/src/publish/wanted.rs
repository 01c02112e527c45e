//! The quota to publish: what spot may hold in all, from the last offer of Headroom and the pool as it is now.

use super::plan::{Amounts, Wanted};
use crate::cluster::watch::Shared;
use crate::config::Config;
use crate::headroom::{Offer, Offers};
use crate::view::{PoolView, View};
use placement::Stage;
use placement::cluster_quota::{Counted, quota_in_all};
use std::sync::Arc;
use tokio::sync::watch;
use vocab::{GpuModel, HorizonHours, MilliGpus};

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
    let of = |(model, pool): (&GpuModel, &PoolView)| (model.clone(), amounts(offers.pools.get(model), pool, hours));
    let by_model = view.pools().iter().map(of).collect();
    let old = offers.pools.iter().filter(|(_, offer)| offer.stage == Stage::Conservative);
    let old: Vec<String> =
        old.map(|(model, offer)| format!("the quota of {model} is of {}", offer.computed_at)).collect();
    let lowered_because =
        if old.is_empty() { String::new() } else { format!("Headroom does not renew: {}", old.join(", ")) };
    Wanted { is_known: offers.asked_at.is_some(), by_model, lowered_because }
}

fn amounts(offer: Option<&Offer>, pool: &PoolView, hours: HorizonHours) -> Amounts {
    let (held_gpus, allocatable_gpus) = (pool.spot_gpus(), pool.allocatable_gpus());
    let gpus = |gpus: u64| MilliGpus::from_gpus(u32::try_from(gpus).unwrap_or(u32::MAX));
    let counted = offer.and_then(|offer| {
        Some(Counted {
            // A node that went since leaves less than the offer counts with.
            capacity: offer.capacity.min(gpus(allocatable_gpus)),
            demand_bound: offer.bounds.iter().find(|bound| bound.hours == hours)?.bound,
            eta: offer.eta,
            idle: gpus(pool.idle_gpus()),
            held: gpus(held_gpus),
            stage: offer.stage,
        })
    });
    let quota_gpus = counted.map_or(0, |counted| quota_in_all(&counted).milli() / MILLI);
    Amounts { quota_gpus, held_gpus, allocatable_gpus }
}

#[cfg(test)]
mod tests;
