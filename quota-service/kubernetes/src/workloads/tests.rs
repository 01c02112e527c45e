//! Helpers of the writers' tests: a cluster with two nodes, Workloads, and a leader.

use super::Store;
use crate::cluster::objects::Event;
use crate::cluster::slim::{Node, Pod};
use crate::cluster::watch::Shared;
use crate::config::Config;
use crate::headroom::{Offer, Offers};
use crate::lead::Epoch;
use crate::view::View;
use crate::view::facts::Reading;
use connectors::clock;
use fake_kubernetes::FakeKubernetes;
use placement::{Limit, Policy, Stage};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vocab::{ClusterName, GpuModel, HorizonHours, MilliGpus, UnixSeconds};

pub fn model() -> GpuModel {
    GpuModel::parse("A100").unwrap()
}

/// Seconds after 10 o'clock of some day.
pub fn at(seconds: i64) -> UnixSeconds {
    command_line::instant("2026-11-22T10:00:00Z").unwrap().plus_s(seconds)
}

pub fn config() -> Config {
    Config { flavors: "a100-spot=A100".parse().unwrap(), evict_grace_s: 30, poll_s: 1, ..crate::tests::config("me") }
}

/// Whether this replica leads, for as long as the sender lives.
pub fn lead(leads: bool) -> (watch::Sender<Option<Epoch>>, watch::Receiver<Option<Epoch>>) {
    let until = Instant::now() + Duration::from_mins(10);
    watch::channel(leads.then(|| Epoch::new(1, until, Arc::new(watch::Sender::new(0)))))
}

/// A view of what the server has.
pub fn shared(fake: &FakeKubernetes) -> Arc<Shared> {
    let view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config()), Policy::GFS);
    let shared = Shared::new(view, clock::now);
    see(fake, &shared, at(0));
    shared
}

/// Lets the view see what the server has now.
pub fn see(fake: &FakeKubernetes, shared: &Shared, now: UnixSeconds) {
    let mut view = shared.write();
    for node in fake.list("nodes") {
        let node: Node = serde_json::from_value(node).unwrap();
        view.see_node(&node, now).unwrap().expect("it has GPUs");
    }
    let mut seen = BTreeSet::new();
    for pod in fake.list("pods") {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let reading = view.see_pod(&pod, now).unwrap().expect("it asks for GPUs");
        assert!(reading.faults.is_empty(), "{:?}", reading.faults);
        seen.insert(reading.uid);
    }
    view.see_all_pods(&seen, now);
    view.pass_to(now);
}

/// Lets the store see what the server has now.
pub fn tell(fake: &FakeKubernetes, store: &Store) {
    store.tell(Event::Init);
    for workload in fake.list("workloads") {
        store.tell(Event::InitApply(serde_json::from_value(workload).unwrap()));
    }
    store.tell(Event::InitDone);
}

/// Two nodes with 8 GPUs each, and Kueue.
pub async fn cluster() -> FakeKubernetes {
    let fake = FakeKubernetes::start().await;
    fake.install_kueue();
    for name in ["n1", "n2"] {
        fake.put(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "nvidia.com/gpu.product": "A100" } },
            "status": { "allocatable": { "nvidia.com/gpu": "8" }, "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
    }
    fake
}

/// Q_1 and Q_4 of the only pool.
pub fn offers(quotas: [u32; 2], stage: Stage) -> Arc<Offers> {
    let limits = [1, 4]
        .into_iter()
        .zip(quotas)
        .map(|(hours, gpus)| Limit { hours: HorizonHours::new(hours).unwrap(), quota: MilliGpus::from_gpus(gpus) });
    let offer = Offer {
        limits: limits.collect(),
        bounds: Vec::new(),
        eta: placement::Eta::ONE,
        capacity: MilliGpus::from_gpus(16),
        stage,
        computed_at: at(0),
    };
    Arc::new(Offers { pools: BTreeMap::from([(model(), offer)]), asked_at: Some(at(0)) })
}

/// A Workload of Kueue with a check of ours, and one of another controller.
pub fn workload(name: &str, gpus: u32, hours: &str, state: &str) -> Value {
    let check = |name: &str, state: &str| json!({ "name": name, "state": state, "message": "", "lastTransitionTime": "2026-11-22T09:50:00Z" });
    let mut others = check("other", "Pending");
    others["podSetUpdates"] = json!([{ "name": "main", "nodeSelector": { "a": "b" } }]);
    let container = json!({ "name": "main", "resources": { "requests": { "nvidia.com/gpu": "2" } } });
    let pods = json!({ "priorityClassName": "spot", "containers": [container] });
    let flavors = json!({ "nvidia.com/gpu": "a100-spot" });
    let reserved = json!({
        "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
        "lastTransitionTime": "2026-11-22T09:50:00Z",
    });
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {
            "name": name, "namespace": "team-a", "uid": format!("uid-{name}"), "creationTimestamp": "2026-11-22T09:30:00Z",
            "annotations": { "headroom.dev/guarantee-hours": hours },
        },
        "spec": { "podSets": [{ "name": "main", "count": gpus / 2, "template": { "spec": pods } }] },
        "status": {
            "conditions": [reserved], "admissionChecks": [check("headroom-guarantee", state), others],
            "admission": {
                "clusterQueue": "headroom-spot", "podSetAssignments": [{ "name": "main", "flavors": flavors, "count": gpus / 2 }],
            },
        },
    })
}

/// With one more condition, since some second.
pub fn with(mut workload: Value, condition: &str, since: i64) -> Value {
    let since = at(since).to_string();
    let condition = json!({
        "type": condition, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": since,
    });
    workload["status"]["conditions"].as_array_mut().unwrap().push(condition);
    workload
}

/// Verb, resource and field manager of what was written.
pub fn written(fake: &FakeKubernetes) -> BTreeSet<String> {
    fake.writes().iter().map(|one| format!("{} {} {}", one.verb, one.resource, one.manager)).collect()
}
