//! Looks every quarter of an hour at how promises were kept, for the metrics: a month of outcomes is too much to read at each
//! scrape, and no renewal waits for it.

use super::kept::{KNOWN_DAYS, Lately, MOST_PERIODS};
use crate::refresh::{Service, settings};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use tokio::time::{Instant, MissedTickBehavior, interval};
use vocab::{PoolId, UnixSeconds};

const DAY_S: i64 = vocab::SECONDS_PER_DAY;
/// So long what was found stands.
const EVERY: Duration = Duration::from_mins(15);
/// How often it is asked whether a pool is due: a new one is looked at soon.
const BEAT: Duration = Duration::from_secs(10);

/// How promises were kept lately, by pool; of clusters that this service writes for.
pub type KeptByPool = BTreeMap<PoolId, Arc<Vec<Lately>>>;

/// Never returns.
pub async fn run(service: Arc<Service>) {
    let mut looked = BTreeMap::new();
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        look(&service, &mut looked).await;
    }
}

/// Looks at the pools that are due, one after the other. `looked` is when each was looked at last; one that could not be read waits
/// for its next turn.
pub async fn look(service: &Service, looked: &mut BTreeMap<PoolId, Instant>) {
    let pools: Vec<PoolId> = service.published.load().pools().map(|pool| pool.id.clone()).collect();
    let led: Vec<PoolId> = pools.into_iter().filter(|pool| service.leases.led(&pool.cluster).is_some()).collect();
    looked.retain(|pool, _| led.contains(pool));
    if service.kept.load().keys().any(|pool| !led.contains(pool)) {
        change(service, |kept| kept.retain(|pool, _| led.contains(pool)));
    }
    for pool in led {
        if looked.get(&pool).is_some_and(|at| at.elapsed() < EVERY) {
            continue;
        }
        looked.insert(pool.clone(), Instant::now());
        match lately(service, &pool, service.clock.now()).await {
            Ok(found) => change(service, |kept| drop(kept.insert(pool, Arc::new(found)))),
            Err(fault) => tracing::debug!(%pool, %fault, "how promises were kept is not known at this moment"),
        }
    }
}

/// Nobody else changes it.
fn change(service: &Service, by: impl FnOnce(&mut KeptByPool)) {
    let mut kept = KeptByPool::clone(&service.kept.load());
    by(&mut kept);
    service.kept.store(Arc::new(kept));
}

async fn lately(service: &Service, pool: &PoolId, now: UnixSeconds) -> Result<Vec<Lately>, StoreError> {
    let store = service.store.as_ref();
    let rate = settings(store, pool).await?.pool.guarantee_rate;
    let from = now.plus_s(-KNOWN_DAYS * DAY_S);
    let ended = store.ended_periods(pool, from, MOST_PERIODS).await?;
    let found = tokio::task::spawn_blocking(move || Lately::of(&ended, rate, from, now));
    found.await.map_err(|fault| StoreError::Unavailable { reason: fault.to_string() })
}
