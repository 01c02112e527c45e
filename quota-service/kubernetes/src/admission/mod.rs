//! Kueue's admission check for guaranteed hours: a Workload starts once the quota of its hours has room.
//!
//! Kueue's quota knows no hours, and Q_H does. The check is answered by an apply that takes our entry of the list from Kueue, which
//! made it: an apply without force meets a conflict each time, and a merge patch would write the entries of other controllers,
//! too. It carries the version that was read, so nothing is taken that was not seen.

mod check;
pub mod decide;
#[cfg(test)]
mod tests;

use crate::calls::{Calls, Fault};
use crate::cluster::watch::Shared;
use crate::config::Config;
use crate::events::{Note, Regarding};
use crate::headroom::Offers;
use crate::lead::{Epoch, Fence};
use crate::names::{GUARANTEE_HOURS, GUARANTEE_MANAGER};
use crate::workloads::{Store, WorkloadFacts, watch_into};
use check::Check;
use decide::{Answer, World, held, plan};
use kube::Client;
use serde_json::{Value, json};
use serving::standing::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vocab::{GpuModel, UnixSeconds};

/// Of one request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Least pause between two rounds.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// Most answers of one round; the rest follows in the next.
const MOST_ANSWERS: usize = 100;

/// Answers until `stop` is set. Writes only while this replica leads.
pub async fn run(
    client: Client,
    config: Arc<Config>,
    shared: Arc<Shared>,
    offers: watch::Receiver<Arc<Offers>>,
    lead: watch::Receiver<Option<Epoch>>,
    mut stop: watch::Receiver<bool>,
) {
    let store = Store::new(shared.read().reading().clone(), config.admission_check_name.as_str());
    let every = Duration::from_secs(config.poll_s);
    let inputs = (offers, Fence::new(lead));
    let mut guarantees = Guarantees::new(client.clone(), &config, Arc::clone(&shared), inputs, Arc::clone(&store));
    let mut changes = store.changes();
    let looking = async {
        loop {
            guarantees.look(shared.now()).await;
            tokio::time::sleep(LEAST_PAUSE).await;
            let _ = tokio::time::timeout(every, changes.changed()).await;
        }
    };
    tokio::select! {
        () = watch_into(client, store) => {}
        () = looking => {}
        _ = stop.wait_for(|stops| *stops) => {}
    }
}

/// Answers the checks of Workloads.
struct Guarantees {
    calls: Calls,
    check: Check,
    shared: Arc<Shared>,
    offers: watch::Receiver<Arc<Offers>>,
    fence: Fence,
    store: Arc<Store>,
    flavors: BTreeMap<String, GpuModel>,
    /// Number of `Retry` answers by UID.
    tries: BTreeMap<String, u32>,
    /// End of the wait that the API server asked for.
    throttled: Option<Instant>,
    standing: Standing,
}

impl Guarantees {
    fn new(
        client: Client,
        config: &Config,
        shared: Arc<Shared>,
        (offers, fence): (watch::Receiver<Arc<Offers>>, Fence),
        store: Arc<Store>,
    ) -> Self {
        Self {
            calls: Calls::new(client, ANSWERS_WITHIN),
            check: Check::new(config.admission_check_name.as_str()),
            shared,
            offers,
            fence,
            store,
            flavors: config.flavors.0.clone(),
            tries: BTreeMap::new(),
            throttled: None,
            standing: Standing::new(),
        }
    }

    /// Reads, decides, writes.
    async fn look(&mut self, now: UnixSeconds) {
        // 1. Read: Workloads, cluster and quotas.
        let Some(mut workloads) = self.store.all() else { return };
        let there: BTreeSet<&String> = workloads.iter().map(|one| &one.uid).collect();
        self.tries.retain(|uid, _| there.contains(uid));
        // 2. Decide. Every replica reports the state of pools, so every replica needs the waits of Workloads.
        let planned = {
            let (view, offers) = (self.shared.read(), self.offers.borrow().clone());
            let mut planner = view.planner();
            for one in &mut workloads {
                one.read_claims(&view, &mut planner, &self.flavors);
                one.read_pods(&view);
            }
            plan(&workloads, &World { view: &view, offers: &offers, flavors: &self.flavors, tries: &self.tries, now })
        };
        self.shared.set_workload_waits(planned.waits_s);
        self.tell_held(&workloads, now);
        // 3. Write.
        if self.throttled.is_some_and(|until| Instant::now() < until) || self.fence.epoch().is_none() {
            return;
        }
        if self.shared.is_stale() {
            // Running pods are not known: nothing new is promised.
            return;
        }
        if !self.check.is_ours(&self.calls, &self.fence, now).await {
            return;
        }
        for (one, why) in planned.growing {
            let text = format!("its new pods wait, those that run go on: {why}");
            let note = Note::warning("GuaranteeWaits", "Check", text);
            self.shared.events().tell(Regarding::workload(&one.namespace, &one.name, &one.uid), note);
        }
        for (workload, answer) in planned.answers.iter().take(MOST_ANSWERS) {
            // Between two writes the lead may be lost.
            if self.fence.epoch().is_none() {
                return;
            }
            let went = self.answer(workload, answer, now).await;
            if !self.goes_on(&went) {
                return;
            }
        }
    }

    /// Reports Workloads whose reservation stands though they do not run.
    fn tell_held(&self, workloads: &[WorkloadFacts], now: UnixSeconds) {
        let held = held(workloads, now);
        metrics::gauge!("headroom_admission_held_workloads").set(held.len() as f64);
        if self.fence.epoch().is_none() {
            return;
        }
        for one in held {
            let (reason, text) = if one.evicted.is_some() {
                ("QuotaHeldAfterEviction", "Kueue evicts it and keeps its reservation")
            } else {
                ("QuotaHeldInRetry", "it waits for the quota of its hours, and Kueue keeps its reservation")
            };
            let note =
                Note::warning(reason, "Check", format!("{text}: set spec.active to false to give its GPUs back"));
            self.shared.events().tell(Regarding::workload(&one.namespace, &one.name, &one.uid), note);
        }
    }

    async fn answer(&mut self, workload: &WorkloadFacts, answer: &Answer, now: UnixSeconds) -> Result<(), Fault> {
        let WorkloadFacts { namespace, name, .. } = workload;
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads/{name}/status");
        let written = self.calls.take(&path, GUARANTEE_MANAGER, &self.body(workload, answer, now)).await?;
        self.store.wrote(written);
        let state = answer.state().as_str();
        metrics::counter!("headroom_admission_checks_total", "state" => state).increment(1);
        tracing::debug!(namespace, name, state, message = answer.message(), "the check is answered");
        let text = answer.message().to_owned();
        let note = match answer {
            Answer::Ready { .. } => Note::normal("GuaranteeGiven", "Check", text),
            Answer::Retry { .. } => Note::normal("GuaranteeWaits", "Check", text),
            Answer::Rejected { .. } => Note::warning("GuaranteeRejected", "Check", text),
        };
        self.shared.events().tell(Regarding::workload(namespace, name, &workload.uid), note);
        if matches!(answer, Answer::Retry { .. }) {
            *self.tries.entry(workload.uid.clone()).or_insert(0) += 1;
        }
        Ok(())
    }

    fn body(&self, workload: &WorkloadFacts, answer: &Answer, now: UnixSeconds) -> Value {
        let mut entry = json!({
            "name": self.check.name, "state": answer.state().as_str(), "message": answer.message(),
            "lastTransitionTime": now.to_string(),
        });
        match answer {
            Answer::Retry { after_s, .. } => entry["requeueAfterSeconds"] = (*after_s).into(),
            Answer::Ready { .. } => {
                let updates = hours_of_pods(workload);
                if !updates.is_empty() {
                    entry["podSetUpdates"] = updates.into();
                }
            }
            Answer::Rejected { .. } => {}
        }
        let (name, namespace) = (&workload.name, &workload.namespace);
        let version = &workload.resource_version;
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": { "name": name, "namespace": namespace, "uid": workload.uid, "resourceVersion": version },
            "status": { "admissionChecks": [entry] },
        })
    }

    /// Whether to go on with the next one.
    fn goes_on(&mut self, went: &Result<(), Fault>) -> bool {
        if let Err(Fault::Stale { .. } | Fault::Absent { .. }) = went {
            // It has changed or gone: the watch reports it, and the next round decides again.
            return true;
        }
        if let Err(Fault::Throttled { after }) = went {
            self.throttled = Some(Instant::now() + *after);
        }
        self.standing.note(
            "",
            went,
            |fault| tracing::warn!(%fault, "admission checks cannot be answered: a message follows when they can"),
            |over| tracing::info!(lasted_s = over.lasted_s, times = over.times, "admission checks are answered again"),
        );
        // A refusal of one Workload does not hold up those behind it.
        matches!(went, Ok(()) | Err(Fault::Refused { .. } | Fault::Owned { .. }))
    }
}

/// Writes the promised hours on pods that do not carry them: promises are counted by the hours on pods.
fn hours_of_pods(workload: &WorkloadFacts) -> Vec<Value> {
    let Ok(Some(hours)) = workload.hours else { return Vec::new() };
    let silent: BTreeSet<&str> =
        workload.sets.iter().flatten().filter(|set| !set.says_hours).map(|set| set.name.as_str()).collect();
    if silent.is_empty() {
        return Vec::new();
    }
    let update = |name: &str| json!({ "name": name, "annotations": { GUARANTEE_HOURS: hours.get().to_string() } });
    // Kueue takes an entry for each set of pods or none at all, those without GPUs included.
    let each = workload.set_names.iter();
    each.map(|name| if silent.contains(name.as_str()) { update(name) } else { json!({ "name": name }) }).collect()
}
