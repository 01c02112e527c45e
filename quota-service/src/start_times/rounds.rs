//! Every minute: observes each pool, forecasts its waiting tasks, announces what moved, and stores what was learned.

use super::{StartTimes, computed, read, seed, write};
use crate::engine::{EngineError, Facts, Order, ReadFacts};
use crate::metrics;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use vocab::PoolId;

const ROUND: Duration = Duration::from_mins(1);
/// Knowledge is stored once in so many seconds: lost minutes are observed again.
const SAVED_EVERY_S: i64 = 300;

/// Never returns.
pub async fn run(starts: Arc<StartTimes>) {
    let mut rounds = tokio::time::interval(ROUND);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        starts.look().await;
    }
}

impl StartTimes {
    /// One round over all pools that are placed here.
    pub async fn look(&self) {
        for pool in self.placed() {
            match self.round(&pool).await {
                Ok(()) => {
                    if let Some(over) = self.faults.is_over(&pool.to_string()) {
                        tracing::info!(%pool, lasted_s = over.lasted_s, "starts are forecast again");
                    }
                }
                Err(fault) => {
                    if self.faults.begins(&pool.to_string()) {
                        tracing::warn!(%pool, %fault, "starts are not forecast until the pool answers");
                    }
                }
            }
        }
    }

    /// The pools that are placed here. Others are forgotten: another service learns of them meanwhile.
    fn placed(&self) -> Vec<PoolId> {
        let placed = self.engine.running_pools();
        let mut pools = self.pools();
        for pool in pools.keys().filter(|pool| !placed.contains(pool)) {
            metrics::describe_starts(pool, |_| None);
        }
        pools.retain(|pool, _| placed.contains(pool));
        drop(pools);
        placed
    }

    /// # Errors
    /// The pool or the database does not answer.
    async fn round(&self, pool: &PoolId) -> Result<(), EngineError> {
        let Some(present) = self.engine.ask_if_running(pool, ReadFacts::default()).await? else { return Ok(()) };
        let (known, of) = (self.known(pool).await?, pool.clone());
        let (Facts { facts, is_shadow, .. }, moved_s) = (*present, self.core.config.eta_moved_s);
        let now = facts.at();
        let (moved, learned) = computed(move || {
            let mut known = write(&known);
            let moved = known.forecast(&facts, seed(&of), if is_shadow { 0 } else { moved_s });
            metrics::describe_starts(&of, |class| known.expert.coverage(class));
            let is_due = known.saved_at.is_none_or(|saved| now.since_s(saved) >= SAVED_EVERY_S);
            let learned = is_due.then(|| known.expert.to_bytes());
            if is_due {
                known.saved_at = Some(now);
            }
            Ok((moved, learned))
        })
        .await?;
        if !moved.is_empty() {
            self.engine.ask_if_running(pool, Order::Announce(moved)).await?;
        }
        if let Some(learned) = learned {
            self.save(pool, now, &learned).await?;
        }
        Ok(())
    }

    /// Stores what was learned of all pools, at the end of the service.
    pub async fn save_all(&self) {
        let now = self.core.clock.now();
        let pools: Vec<_> = self.pools().iter().map(|(pool, known)| (pool.clone(), known.clone())).collect();
        for (pool, known) in pools {
            let learned = read(&known).expert.to_bytes();
            if let Err(fault) = self.save(&pool, now, &learned).await {
                tracing::warn!(%pool, %fault, "what was learned of starts is not stored");
            }
        }
    }

    /// Where another service writes for the pool, nothing is stored.
    async fn save(&self, pool: &PoolId, now: vocab::UnixSeconds, learned: &[u8]) -> Result<(), StoreError> {
        match self.core.leases.led(&pool.cluster) {
            Some(led) => led.store.put_starts(pool, now, learned).await,
            None => Ok(()),
        }
    }
}
