//! Kueue's priority boost: of spot Workloads those stay that would lose most.
//!
//! Kueue preempts by priority and knows no checkpoints. An annotation raises a Workload's priority inside its ClusterQueue
//! by what an eviction would waste. Only one controller may write it: what another one owns is left to it.

pub mod level;
#[cfg(test)]
mod tests;

use crate::calls::{Calls, Fault};
use crate::cluster::watch::Shared;
use crate::config::Config;
use crate::headroom::Offers;
use crate::lead::{Epoch, Fence};
use crate::names::{BOOST_MANAGER, PRIORITY_BOOST};
use crate::workloads::{Store, WorkloadFacts, watch_into};
use kube::Client;
use level::{Change, Known, changes};
use serde_json::json;
use serving::standing::Standing;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vocab::UnixSeconds;

/// Of one request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Between two rounds without a change of Workloads: levels last for ten minutes at least.
const EVERY: Duration = Duration::from_secs(30);
/// Least pause between two rounds. An evicted Workload may be admitted again within seconds, and must not be boosted then.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// Writes of one round.
const MOST_WRITES: usize = 50;

/// Boosts until `stop` is set. Writes only while this replica leads. Quotas do not matter here.
pub async fn run(
    client: Client,
    config: Arc<Config>,
    shared: Arc<Shared>,
    _offers: watch::Receiver<Arc<Offers>>,
    lead: watch::Receiver<Option<Epoch>>,
    mut stop: watch::Receiver<bool>,
) {
    let store = Store::new(shared.read().reading().clone(), config.admission_check_name.as_str());
    let boosts = Boosts::new(client.clone(), &config, shared, Fence::new(lead), Arc::clone(&store));
    tokio::select! {
        () = watch_into(client, store) => {}
        () = rounds(boosts, EVERY) => {}
        _ = stop.wait_for(|stops| *stops) => {}
    }
}

/// Looks at each change of a Workload, and without one at least so often. Never returns.
async fn rounds(mut boosts: Boosts, every: Duration) {
    let mut changes = boosts.store.changes();
    loop {
        let now = boosts.shared.now();
        boosts.look(now).await;
        tokio::time::sleep(LEAST_PAUSE).await;
        let _ = tokio::time::timeout(every, changes.changed()).await;
    }
}

struct Boosts {
    calls: Calls,
    cluster_queue: String,
    shared: Arc<Shared>,
    fence: Fence,
    store: Arc<Store>,
    known: BTreeMap<String, Known>,
    throttled: Option<Instant>,
    standing: Standing,
}

impl Boosts {
    fn new(client: Client, config: &Config, shared: Arc<Shared>, fence: Fence, store: Arc<Store>) -> Self {
        Self {
            calls: Calls::new(client, ANSWERS_WITHIN),
            cluster_queue: config.cluster_queue.to_string(),
            shared,
            fence,
            store,
            known: BTreeMap::new(),
            throttled: None,
            standing: Standing::new(),
        }
    }

    async fn look(&mut self, now: UnixSeconds) {
        let Some(workloads) = self.store.all() else { return };
        let changes = {
            let view = self.shared.read();
            changes(&workloads, &view, &self.cluster_queue, &mut self.known, now)
        };
        if self.throttled.is_some_and(|until| Instant::now() < until) {
            return;
        }
        for change in changes.iter().take(MOST_WRITES) {
            if self.fence.epoch().is_none() {
                return;
            }
            let went = self.write(change, now).await;
            if !self.goes_on(&change.workload, &went) {
                return;
            }
        }
    }

    async fn write(&mut self, change: &Change, now: UnixSeconds) -> Result<(), Fault> {
        let WorkloadFacts { namespace, name, uid, .. } = &change.workload;
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads/{name}");
        let mut metadata = json!({ "name": name, "namespace": namespace, "uid": uid });
        if let Some(level) = change.level {
            metadata["annotations"] = json!({ PRIORITY_BOOST: level.to_string() });
        }
        let body = json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata });
        let written = self.calls.apply(&path, BOOST_MANAGER, &body).await?;
        // An apply without the annotation removes it only if we own it.
        let stays = written["metadata"]["annotations"].get(PRIORITY_BOOST).is_some();
        let is_foreign = change.level.is_none() && stays;
        self.known.insert(uid.clone(), Known { changed: now, is_foreign });
        self.store.wrote(written);
        if is_foreign {
            leave(&change.workload, "the annotation stays after we gave it up");
        } else {
            metrics::counter!("headroom_priority_boosts_total").increment(1);
            tracing::debug!(namespace, name, level = change.level, "the priority boost is written");
        }
        Ok(())
    }

    /// Whether to go on with the next one.
    fn goes_on(&mut self, workload: &WorkloadFacts, went: &Result<(), Fault>) -> bool {
        match went {
            Err(Fault::Stale { .. } | Fault::Absent { .. }) => return true,
            Err(Fault::Owned { detail, .. }) => {
                let known = Known { changed: UnixSeconds::new(i64::MIN), is_foreign: true };
                self.known.insert(workload.uid.clone(), known);
                leave(workload, detail);
                return true;
            }
            Err(Fault::Throttled { after }) => self.throttled = Some(Instant::now() + *after),
            Ok(()) | Err(_) => {}
        }
        self.standing.note(
            "",
            went,
            |fault| tracing::warn!(%fault, "priority boosts cannot be written: a message follows when they can"),
            |over| tracing::info!(lasted_s = over.lasted_s, times = over.times, "priority boosts are written again"),
        );
        went.is_ok()
    }
}

fn leave(workload: &WorkloadFacts, why: &str) {
    let WorkloadFacts { namespace, name, .. } = workload;
    tracing::warn!(
        namespace,
        name,
        why,
        "another controller writes {PRIORITY_BOOST}: this Workload is left to it; only one may, so switch one of them off"
    );
}
