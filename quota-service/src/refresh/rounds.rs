//! The loops: renewals of quotas, beats of leases, answers of other services.

use super::renewer::Of;
use super::{Follower, Renewals, Renewer, failures};
use crate::access::Access;
use crate::metrics;
use crate::trace::span;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use tracing::Instrument;

/// Renews the quotas every `refresh_s`, when a run is promoted, and when asked, reports at most once in `report_refresh_s`, until
/// [`Renewals::end`].
pub async fn run(renewals: Arc<Renewals>) {
    let mut renewer = Renewer::default();
    let config = &renewals.core.config;
    let mut regular = tokio::time::interval(Duration::from_secs(config.refresh_s));
    let mut promotions = tokio::time::interval(Duration::from_secs(config.promotion_check_s));
    regular.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    promotions.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let mut of = Of::All;
        tokio::select! {
            biased;
            () = renewals.ended() => return renewer.leave(&renewals).await,
            _ = regular.tick() => {}
            () = renewals.requested() => {}
            () = renewals.pace.due() => of = Of::Due,
            _ = promotions.tick() => {
                for (cluster, haste) in renewer.news(&renewals.core).await {
                    renewals.request_renewal(&cluster, haste);
                }
                continue;
            }
        }
        let renewing = renewer.renew_of(&renewals, of).instrument(span!("renewal"));
        if tokio::time::timeout(RENEWS_WITHIN, renewing).await.is_err() {
            let reason = format!("a renewal has not ended within {} s", RENEWS_WITHIN.as_secs());
            failures::of_all(&renewals, &Err(StoreError::Unavailable { reason }));
        }
    }
}

/// A renewal that takes longer waits for a silent database.
const RENEWS_WITHIN: Duration = Duration::from_mins(10);

/// Renews the leases at every beat, and publishes the quotas of other services. Never returns.
pub async fn watch(renewals: Arc<Renewals>, access: Arc<Access>) {
    let mut follower = Follower::default();
    let mut beats = tokio::time::interval(renewals.core.leases.beat_every());
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        // A silent database delays one beat, not all of them.
        let patience = renewals.core.config.patience();
        match tokio::time::timeout(patience, renewals.update_leases()).await {
            Ok(Ok(())) => metrics::database_is(true),
            Ok(Err(fault)) => {
                metrics::database_is(false);
                tracing::debug!(%fault, "the leases were not read: the last known leaders count");
            }
            Err(_) => {
                metrics::database_is(false);
                tracing::debug!("the database does not answer in time");
            }
        }
        let _ = tokio::time::timeout(patience, follower.follow(&renewals.quotas)).await;
        if let Ok(Err(fault)) = tokio::time::timeout(patience, access.read_tokens()).await {
            tracing::debug!(%fault, "the tokens were not read again");
        }
    }
}
