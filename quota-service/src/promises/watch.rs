//! Reads kept and broken promises every quarter of an hour, for the metrics: a month of outcomes is too much to read at each
//! scrape, and no renewal waits for it.

use super::kept::{KNOWN_DAYS, KeptByPool, Lately, MOST_PERIODS};
use crate::core::Core;
use crate::quotas::Quotas;
use crate::settings;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use tokio::time::{Instant, MissedTickBehavior, interval};
use vocab::{PoolId, UnixSeconds};

const DAY_S: i64 = vocab::SECONDS_PER_DAY;
/// So long what was found stands.
const EVERY: Duration = Duration::from_mins(15);
/// Interval of the checks for due pools: a new pool is read soon.
const BEAT: Duration = Duration::from_secs(10);

/// Never returns.
pub async fn run(quotas: Arc<Quotas>) {
    let mut read_at = BTreeMap::new();
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        look(&quotas, &mut read_at).await;
    }
}

/// Reads the pools that are due, one after the other. `read_at` is the last time of each; a pool that cannot be read waits for
/// its next turn.
pub async fn look(quotas: &Quotas, read_at: &mut BTreeMap<PoolId, Instant>) {
    let pools: Vec<PoolId> = quotas.published.load().pools().map(|pool| pool.id.clone()).collect();
    let led: Vec<PoolId> = pools.into_iter().filter(|pool| quotas.core.leases.led(&pool.cluster).is_some()).collect();
    read_at.retain(|pool, _| led.contains(pool));
    if quotas.kept.load().keys().any(|pool| !led.contains(pool)) {
        change(quotas, |kept| kept.retain(|pool, _| led.contains(pool)));
    }
    for pool in led {
        if read_at.get(&pool).is_some_and(|at| at.elapsed() < EVERY) {
            continue;
        }
        read_at.insert(pool.clone(), Instant::now());
        match lately(&quotas.core, &pool, quotas.core.clock.now()).await {
            Ok(found) => change(quotas, |kept| drop(kept.insert(pool, Arc::new(found)))),
            Err(fault) => tracing::debug!(%pool, %fault, "cannot read the promises of the pool"),
        }
    }
}

/// This loop is the only writer.
fn change(quotas: &Quotas, by: impl FnOnce(&mut KeptByPool)) {
    let mut kept = KeptByPool::clone(&quotas.kept.load());
    by(&mut kept);
    quotas.kept.store(Arc::new(kept));
}

async fn lately(core: &Core, pool: &PoolId, now: UnixSeconds) -> Result<Vec<Lately>, StoreError> {
    let store = core.store.as_ref();
    let rate = settings::load(store, pool).await?.pool.guarantee_rate;
    let from = now.plus_s(-KNOWN_DAYS * DAY_S);
    let ended = store.ended_periods(pool, from, MOST_PERIODS).await?;
    let found = tokio::task::spawn_blocking(move || Lately::of(&ended, rate, from, now));
    found.await.map_err(|fault| StoreError::Unavailable { reason: fault.to_string() })
}
