//! Quotas become limits of the pools whose tasks are placed here.

use crate::engine::{EngineError, Limits, Order};
use crate::published::PublishedPool;
use crate::refresh::Renewals;
use serving::standing::Over;

/// Gives every placed pool the quotas that were published last, and lets it take in the nodes of the store. A writer takes the
/// limits at each of its turns, too; here they count from the demand of now on where they follow it.
pub async fn push(renewals: &Renewals) {
    let published = renewals.quotas.published.load_full();
    for pool in published.pools() {
        push_published(renewals, pool).await;
    }
}

async fn push_published(renewals: &Renewals, pool: &PublishedPool) {
    let mut done = Ok(());
    for order in [Some(Order::TakeInNodes), limits(renewals, pool)].into_iter().flatten() {
        let asked = renewals.engine.ask_if_running(&pool.id, order).await;
        done = done.and(asked.map(drop));
    }
    note(renewals, pool, &done);
}

fn limits(renewals: &Renewals, pool: &PublishedPool) -> Option<Order> {
    match renewals.quotas.limits(&pool.id, renewals.core.clock.now()) {
        Limits::Set(limits) if pool.problem.is_none() => Some(Order::SetLimits(limits)),
        Limits::Set(_) | Limits::Held | Limits::Kept => None,
    }
}

fn note(renewals: &Renewals, pool: &PublishedPool, done: &Result<(), EngineError>) {
    let begins = |fault: &EngineError| {
        tracing::warn!(pool = %pool.id, %fault, "the limits of the pool are not set: the log reports the recovery");
    };
    renewals.faults.note(&format!("limits of {}", pool.id), done, begins, |Over { lasted_s, times }| {
        tracing::info!(pool = %pool.id, lasted_s, times, "the limits of the pool are set again");
    });
}
