//! Verdicts and tables. The whole program is tested by `tests/suites/kubernetes`.

use super::pod::read_claims;
use super::quota::{quota_text, what_if_text};
use super::verdict::Verdict;
use crate::cluster::slim::Pod;
use crate::config::Config;
use crate::tests::{client, config};
use crate::view::View;
use crate::view::facts::{Life, PodFacts, Reading, Uid};
use crate::view::tests::fixture;
use fake_kubernetes::{FakeKubernetes, Rule};
use placement::Policy;
use serde_json::json;
use vocab::{ClusterName, GpuModel, HorizonHours, TaskClass, UnixSeconds};
use wire::PoolSummary;

fn pool(stage: &str) -> PoolSummary {
    serde_json::from_value(json!({
        "id": "earth:A100", "cluster": "earth", "gpu_model": "A100", "organizations": 1, "offered_hours": [1, 4],
        "capacity_gpus": 64.0, "latest_demand_gpus": 8.0, "quota_gpus_by_hours": {"1": 20.0, "4": 10.5}, "eta": 1.0,
        "computed_at": "2026-11-25T10:00:00Z", "stage": stage, "no_quota": null, "valid_until": null, "guarantee_rate": 0.9,
        "idle_gpus": 1.0, "spot_gpus_by_hours": {"1": 12.0, "4": 2.0}, "available_gpus_by_hours": {"1": 8.0, "4": 8.5},
        "demand_bound_gpus_by_hours": {}, "hp_demand_gpus": null, "forecast": [], "outcomes_24h": {}, "tasks": null, "overrides": 0
    }))
    .unwrap()
}

fn pod(gpus: u32, hours: u64) -> PodFacts {
    PodFacts {
        name: "train-0".into(),
        guarantee: HorizonHours::new(hours).ok(),
        ..fixture::pod(Uid(1), gpus, TaskClass::Spot, None)
    }
}

#[test]
fn a_pod_waits_for_quota_only_where_quota_holds_it_back() {
    let fresh = pool("fresh");
    let of = |pod: &PodFacts| Verdict::of(pod, Some(&fresh), false).code();
    assert_eq!(of(&pod(8, 4)), "scheduler", "8 are left for 4 h, and for the 1 h within them");
    assert_eq!(of(&pod(9, 4)), "over_quota");
    assert_eq!(of(&pod(1, 2)), "hours_not_offered");
    assert_eq!(of(&PodFacts { guarantee: None, ..pod(64, 1) }), "scheduler");
    assert_eq!(of(&PodFacts { class: TaskClass::Hp, ..pod(64, 1) }), "scheduler");
    assert_eq!(of(&PodFacts { life: Life::Runs, ..pod(64, 1) }), "runs");
    assert_eq!(Verdict::of(&pod(1, 4), Some(&fresh), true).code(), "gated");
    assert_eq!(Verdict::of(&pod(1, 4), Some(&pool("conservative")), false).code(), "old_quota");
    assert_eq!(Verdict::of(&pod(1, 4), None, false).code(), "no_pool");
    let sentence = Verdict::of(&pod(9, 4), Some(&fresh), false).sentence(&pod(9, 4));
    assert_eq!(sentence, "spot quota is spent: it asks 9 GPUs for 4 h, and of that quota 8 can still be had");
}

#[test]
fn quotas_are_a_table_with_a_line_for_each_number_of_hours() {
    let expected = "\
GPU MODEL  HOURS  QUOTA  USED  AVAILABLE  CAPACITY  STAGE
A100           1     20    12          8        64  fresh
A100           4   10.5     2        8.5        64  fresh
";
    assert_eq!(quota_text(&[pool("fresh")]), expected);
    let without = PoolSummary { no_quota: Some("its first computation runs".into()), ..pool("fresh") };
    assert!(quota_text(&[without]).ends_with("A100: no quota: its first computation runs\n"));
}

#[test]
fn a_what_if_shows_both_sides_and_the_steps_between_them() {
    let side = |quota: f64| {
        json!({ "quota_gpus": quota, "available_gpus": 1.0, "capacity_gpus": 64.0, "demand_bound_gpus": 40.0, "inventory_gpus": 24.0,
            "idle_gpus": 20.0, "used_gpus": 4.0, "eta": 1.0, "guarantee_rate": 0.9, "reasons": [] })
    };
    let answer = json!({ "cluster": "earth", "gpu_model": "A100", "hours": 4, "now": side(24.0), "then": side(14.0), "steps": ["less"] });
    let text = what_if_text(&serde_json::from_value(answer).unwrap());
    assert!(text.starts_with("earth:A100 for 4 h\n") && text.ends_with("less\n"), "{text}");
    assert!(text.lines().any(|line| line.split_whitespace().eq(["quota", "(GPUs)", "24", "14"])), "{text}");
}

/// Nodes of two models, and devices on one of them.
fn put_devices(fake: &FakeKubernetes) {
    for kind in fake_kubernetes::crds::dynamic_resources(&["v1"]) {
        fake.put(kind);
    }
    for (name, model) in [("n0", "A100"), ("n1", "H100")] {
        let labels = json!({ "nvidia.com/gpu.product": model });
        fake.put(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels } }));
    }
    let selector = json!([{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }]);
    let put = |kind: &str, name: &str, spec: serde_json::Value| {
        fake.put(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": { "name": name, "namespace": "team-a" }, "spec": spec,
        }));
    };
    fake.put(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "gpu.example.com" },
        "spec": { "selectors": selector },
    }));
    fake.put(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": "s" },
        "spec": { "driver": "gpu.example.com", "nodeName": "n1", "devices": [{ "name": "a" }, { "name": "b" }],
            "pool": { "name": "n1", "generation": 1, "resourceSliceCount": 1 } },
    }));
    let request = json!({ "name": "r", "exactly": { "deviceClassName": "gpu.example.com", "count": 2 } });
    put("ResourceClaim", "c", json!({ "devices": { "requests": [request] } }));
}

#[tokio::test]
async fn a_pod_that_waits_by_claims_has_the_model_of_the_nodes_with_its_devices() {
    let fake = FakeKubernetes::start().await;
    put_devices(&fake);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "p", "namespace": "team-a", "uid": "u" },
        "spec": { "containers": [{ "name": "main" }], "resourceClaims": [{ "name": "gpu", "resourceClaimName": "c" }] },
        "status": { "phase": "Pending" },
    }))
    .unwrap();
    let config = Config { device_classes: "gpu.example.com".parse().unwrap(), ..config("me") };
    let (client, now) = (client(&fake).await, UnixSeconds::new(0));
    let asked = async || {
        let mut view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&config), Policy::GFS);
        let without_nodes = read_claims(&client, &mut view, &pod, now).await.unwrap();
        let uid = view.see_pod(&pod, now).unwrap().unwrap().uid;
        view.settle_claims(true, now);
        let facts = view.pod(&uid).unwrap();
        (facts.gpus, facts.gpu_model.clone(), without_nodes.is_some())
    };
    assert_eq!(asked().await, (2, GpuModel::parse("H100").ok(), false));
    fake.deny(Rule::new("list", "", "nodes"));
    assert_eq!(asked().await, (2, None, true), "its GPUs count without the right to list nodes");
}
