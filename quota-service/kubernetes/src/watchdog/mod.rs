//! Lowers published quotas to the GPUs that spot holds when they are not renewed. Kueue keeps the last quota for ever, and a
//! `ResourceQuota` stands until it is written, so a publisher that died would go on admitting by a quota of long ago.
//!
//! From the last beat it takes at most `watchdog_after_s` and `watchdog_check_s`, and the requests. It writes with the field manager
//! of the publisher and on its behalf: with one of its own the publisher's next apply would conflict, and nothing here is ever
//! forced. A publisher that was only stopped for a while is held back by the version of the object, reads it again, and raises
//! the quota by its own rules: after `raise_after_s`.

#[cfg(test)]
mod tests;

use crate::calls::{Calls, Fault};
use crate::config::{Config, KueueMode};
use crate::events::{Events, Note};
use crate::lead::{epoch_of, stopped};
use crate::publish::{Content, Gpus, NoTarget, Part, Target, heartbeat_of, held_of, kueue_target, not_renewed, write};
use kube::Client;
use metrics::{counter, gauge};
use serde_json::Value;
use serving::standing::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tracing::{info, warn};

const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// How long the heartbeat has stood still. Pure: instants are passed in, of the own monotonic clock.
#[derive(Debug, Clone, Default)]
struct Still {
    since: Option<Instant>,
    version: Option<String>,
}

impl Still {
    /// Notes the version that is there, `None` where no heartbeat is. Answers whether it beat since the last look.
    fn note(&mut self, now: Instant, version: Option<String>) -> bool {
        let is_first = self.since.is_none();
        if is_first || self.version != version {
            (self.since, self.version) = (Some(now), version);
            return !is_first;
        }
        false
    }

    fn age(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

/// Reads the heartbeat until `stop` is set; with `once`, until it beats or is old enough and quotas are lowered. Answers how
/// often an object was lowered.
///
/// # Errors
/// With `once`: the heartbeat could not be read, or an object not be lowered.
pub async fn run(client: Client, config: &Config, once: bool, mut stop: watch::Receiver<bool>) -> Result<u64, Fault> {
    let mut watchdog = Watchdog {
        events: Events::start(client.clone(), config, stop.clone()),
        calls: Calls::new(client, ANSWERS_WITHIN),
        config,
        still: Still::default(),
        excepted: BTreeMap::new(),
        faults: Standing::new(),
        lowered: 0,
    };
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(watchdog.lowered),
            looked = watchdog.look() => match looked {
                Ok(Seen::Beats | Seen::Lowered) if once => return Ok(watchdog.lowered),
                Err(fault) if once && !matches!(fault, Fault::Stale { .. }) => return Err(fault),
                _ => {}
            },
        }
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(watchdog.lowered),
            () = tokio::time::sleep(Duration::from_secs(config.watchdog_check_s)) => {}
        }
    }
}

/// Result of a check.
enum Seen {
    Beats,
    /// It stands still, not for long enough.
    Waits,
    /// It is old, and nothing published is above what is held.
    Lowered,
}

struct Watchdog<'a> {
    calls: Calls,
    events: Events,
    config: &'a Config,
    still: Still,
    /// Quotas that the heartbeat excepts, and since when.
    excepted: BTreeMap<String, Instant>,
    faults: Standing,
    lowered: u64,
}

impl Watchdog<'_> {
    async fn look(&mut self) -> Result<Seen, Fault> {
        let went = self.look_and_lower().await;
        let outcome = went.as_ref().map(|_| ()).map_err(Clone::clone);
        self.faults.note(
            "",
            &outcome,
            |fault| warn!(%fault, "the watchdog cannot read the heartbeat or lower quotas"),
            |over| info!(lasted_s = over.lasted_s, "the watchdog works again"),
        );
        went
    }

    async fn look_and_lower(&mut self) -> Result<Seen, Fault> {
        let (collection, name) = heartbeat_of(self.config);
        let lease = self.calls.find(&format!("{collection}/{name}")).await?;
        let version = lease.as_ref().and_then(|lease| lease["metadata"]["resourceVersion"].as_str().map(str::to_owned));
        let now = Instant::now();
        let named = lease.as_ref().map(not_renewed).unwrap_or_default();
        self.excepted.retain(|label, _| named.contains(label));
        for label in named {
            self.excepted.entry(label).or_insert(now);
        }
        let beats = self.still.note(now, version);
        let age = self.still.age(now);
        gauge!("headroom_heartbeat_age_seconds").set(age.as_secs_f64());
        let after = Duration::from_secs(self.config.watchdog_after_s);
        if age >= after {
            return self.lower_all(age, None).await.map(|()| Seen::Lowered);
        }
        let old = self.excepted.iter().filter(|(_, since)| now.saturating_duration_since(**since) >= after);
        let old: BTreeSet<String> = old.map(|(label, _)| label.clone()).collect();
        if !old.is_empty() {
            self.lower_all(after, Some(&old)).await?;
        }
        Ok(if beats { Seen::Beats } else { Seen::Waits })
    }

    /// Tries each, or those of these labels; the first fault comes after all of them.
    async fn lower_all(&mut self, age: Duration, only: Option<&BTreeSet<String>>) -> Result<(), Fault> {
        // A fault of one kind does not stop the others.
        let (targets, mut went) = self.targets().await;
        for target in targets.into_iter().filter(|target| only.is_none_or(|only| only.contains(&target.label()))) {
            let lowered = self.lower(&target, age).await;
            let label = target.label();
            self.faults.note(
                &label,
                &lowered,
                |fault| warn!(target_object = label, %fault, "the quota is not lowered"),
                |over| info!(target_object = label, lasted_s = over.lasted_s, "the quota can be lowered again"),
            );
            // Fields of another manager were not published by us.
            if !matches!(lowered, Err(Fault::Owned { .. })) {
                went = went.and(lowered);
            }
        }
        went
    }

    async fn targets(&self) -> (Vec<Target>, Result<(), Fault>) {
        let (mut targets, mut went) = (Vec::new(), Ok(()));
        match kueue_target(&self.calls, self.config).await {
            Ok(found) => targets.extend(found.map(|(target, _)| target)),
            Err(NoTarget::Call(fault)) => went = Err(fault),
            // Nothing was published there either.
            Err(NoTarget::NotServed | NoTarget::OtherForm(_)) => {}
        }
        // `auto` may have had no provider when it began.
        if self.config.kueue == KueueMode::Auto && !targets.contains(&Target::queue(self.config)) {
            targets.push(Target::queue(self.config));
        }
        if self.config.resource_quota {
            let shares = &self.config.resource_quota_shares.0;
            let parts: &[Part] = if self.config.is_apart() { &[Part::Main, Part::AtWill] } else { &[Part::Main] };
            for namespace in shares.keys() {
                targets.extend(parts.iter().map(|part| Target::quota(self.config, namespace, *part)));
            }
        }
        (targets, went)
    }

    async fn lower(&mut self, target: &Target, age: Duration) -> Result<(), Fault> {
        let Some(live) = self.calls.find(&target.path()).await? else { return Ok(()) };
        if target.is_ours(&live).is_err() {
            return Ok(());
        }
        let Some(gpus) = lowered(target, &live) else { return Ok(()) };
        let message = format!("lowered by the watchdog to the held GPUs: not renewed for {} s", age.as_secs());
        let content = Content { gpus, held: held_of(&live).unwrap_or_default(), epoch: epoch_of(&live), message };
        // Where a publisher wrote since it was read this is stale, and the heartbeat is read again first.
        write(&self.calls, target, Some(&live), &content).await?;
        self.lowered += 1;
        self.events.tell(target.regarding(), Note::warning("QuotaLowered", "Watch", content.message.clone()));
        counter!("headroom_watchdog_lowered_total").increment(1);
        warn!(target_object = target.label(), gpus = ?content.gpus, age_s = age.as_secs(), "quota lowered: it was not renewed");
        Ok(())
    }
}

/// Published quota, lowered to the held GPUs; `None` if it is not above them.
fn lowered(target: &Target, live: &Value) -> Option<Gpus> {
    let (published, used) = (target.published(live), target.used(live));
    let lower = |(name, gpus): (&String, &u64)| (name.clone(), (*gpus).min(used.get(name).copied().unwrap_or(0)));
    let lowered: Gpus = published.iter().map(lower).collect();
    (lowered != published).then_some(lowered)
}
