//! Claims and gangs against an API server: kinds by discovery, and a cluster without them.

use super::objects;
use super::world::Node;
use crate::cluster::served::ListFault;
use crate::cluster::watch::{self as watches, Shared};
use crate::config::Config;
use crate::show;
use crate::tests::{client, config, eventually};
use crate::view::View;
use crate::view::facts::Reading;
use connectors::clock;
use fake_kubernetes::crds::{dynamic_resources, served_definition};
use fake_kubernetes::{FakeKubernetes, Rule};
use placement::Policy;
use serde_json::{Value, json};
use std::sync::Arc;
use vocab::ClusterName;

fn counting() -> Config {
    let device_classes = "gpu.example.com".parse().unwrap();
    Config { device_classes, gangs: true, ..config("me") }
}

fn shared() -> Arc<Shared> {
    let view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&counting()), Policy::GFS);
    Shared::new(view, clock::now)
}

fn claim(name: &str, version: &str, count: u64) -> Value {
    let mut request = json!({ "deviceClassName": "gpu.example.com", "count": count });
    if version == "v1beta1" {
        request["name"] = "r".into();
    } else {
        request = json!({ "name": "r", "exactly": request });
    }
    json!({
        "apiVersion": format!("resource.k8s.io/{version}"), "kind": "ResourceClaim",
        "metadata": { "name": name, "namespace": "team-a" }, "spec": { "devices": { "requests": [request] } },
    })
}

fn pod(name: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "team-a" },
        "spec": { "containers": [{ "name": "main" }], "resourceClaims": [{ "name": "gpu", "resourceClaimName": claim }] },
        "status": { "phase": "Pending" },
    })
}

/// A node with three devices, a claim for two of them, and a pod that asks for that.
fn fill(fake: &FakeKubernetes, version: &str) {
    fake.put(objects::node(0, &Node { product: "A100", has_label: true, plugin_gpus: 0 }));
    let selector = json!([{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }]);
    let api = format!("resource.k8s.io/{version}");
    fake.put(json!({ "apiVersion": api, "kind": "DeviceClass", "metadata": { "name": "gpu.example.com" }, "spec": { "selectors": selector } }));
    let device =
        |name: &str| if version == "v1beta1" { json!({ "name": name, "basic": {} }) } else { json!({ "name": name }) };
    let spec = json!({
        "driver": "gpu.example.com", "nodeName": "n0", "pool": { "name": "n0", "generation": 1, "resourceSliceCount": 1 },
        "devices": [device("a"), device("b"), device("c")],
    });
    fake.put(json!({ "apiVersion": api, "kind": "ResourceSlice", "metadata": { "name": "s" }, "spec": spec }));
    fake.put(claim("c", version, 2));
    fake.put(pod("p", "c"));
}

/// GPUs of the only pool, and HP demand in it.
fn counted(view: &View) -> Option<(u64, u64)> {
    let (model, pool) = view.pools().iter().next()?;
    Some((pool.allocatable_gpus(), view.demand(model).values().map(|gpus| gpus.milli() / 1_000).sum()))
}

#[tokio::test]
async fn kinds_are_watched_in_the_newest_version_that_is_served() {
    for versions in [&["v1beta1"][..], &["v1beta1", "v1beta2"], &["v1beta2", "v1"]] {
        let fake = FakeKubernetes::start().await;
        for kind in dynamic_resources(versions) {
            fake.put(kind);
        }
        let newest = versions.iter().max_by_key(|version| (!version.contains("beta"), **version)).unwrap();
        fill(&fake, newest);
        let shared = shared();
        let watching = tokio::spawn(watches::run(client(&fake).await, Arc::clone(&shared)));
        let is_whole = || shared.synced().borrow().is_whole();
        eventually("all lists are complete", || is_whole() && counted(&shared.read()) == Some((3, 2))).await;
        fake.put(claim("c", newest, 3));
        eventually("the claim has grown", || counted(&shared.read()) == Some((3, 3))).await;
        fake.delete("resourceslices", "", "s");
        eventually("the devices have gone", || shared.read().nodes().is_empty()).await;
        let listed =
            fake.requests().iter().any(|one| one.path.starts_with(&format!("/apis/resource.k8s.io/{newest}/")));
        assert!(listed, "{versions:?}");
        watching.abort();
    }
}

/// Rights of a user: devices, and claims of their own namespace.
#[tokio::test]
async fn a_user_who_may_not_see_claims_of_others_reads_those_of_their_pod() {
    let fake = FakeKubernetes::start().await;
    for kind in dynamic_resources(&["v1"]) {
        fake.put(kind);
    }
    fill(&fake, "v1");
    let mut of_own = Rule::new("list", "resource.k8s.io", "resourceclaims,resourceclaimtemplates");
    of_own.namespaces = vec!["team-a".to_owned()];
    fake.allow_only(vec![Rule::new("list", "resource.k8s.io", "deviceclasses,resourceslices"), of_own]);
    let client = client(&fake).await;
    let mut view = View::new(ClusterName::parse("earth").unwrap(), Reading::of(&counting()), Policy::GFS);
    crate::claims::watch::read_for(&client, &mut view, "team-a", clock::now()).await.unwrap();
    let stored = fake.get("pods", "team-a", "p").unwrap();
    let seen = view.see_pod(&serde_json::from_value(stored).unwrap(), clock::now()).unwrap();
    view.settle_claims(true, clock::now());
    let gpus = seen.and_then(|seen| view.pod(&seen.uid).map(|pod| pod.gpus));
    assert_eq!(gpus, Some(2));
    let refused = crate::claims::watch::read_for(&client, &mut view, "team-b", clock::now()).await.unwrap_err();
    assert!(matches!(refused, ListFault::Refused { code: 403, .. }), "{refused}");
}

#[tokio::test]
async fn a_cluster_without_the_kinds_is_whole_and_counts_the_rest() {
    let fake = FakeKubernetes::start().await;
    fake.put(objects::node(0, &Node { product: "A100", has_label: true, plugin_gpus: 4 }));
    let shared = shared();
    let watching = tokio::spawn(watches::run(client(&fake).await, Arc::clone(&shared)));
    let is_whole = || shared.synced().borrow().is_whole();
    eventually("all that there is is known", || is_whole() && counted(&shared.read()) == Some((4, 0))).await;
    let written: Vec<String> = fake.writes().iter().map(|one| one.path.clone()).collect();
    assert_eq!(written, [] as [String; 0]);
    watching.abort();
}

#[tokio::test]
async fn show_counts_claims_and_gangs_and_names_what_it_does_not_understand() {
    let fake = FakeKubernetes::start().await;
    for kind in dynamic_resources(&["v1"]) {
        fake.put(kind);
    }
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    fake.put(served_definition("scheduling.k8s.io", "PodGroup", "podgroups", &["v1beta1"], true, &any));
    fill(&fake, "v1");
    fake.put(json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": { "name": "g", "namespace": "team-a" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 3 } } },
    }));
    let mut member = pod("p", "c");
    member["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
    fake.put(member);
    let client = client(&fake).await;
    let show::Read { view, faults, .. } = show::read_by(&client, &counting(), clock::now()).await.unwrap();
    assert_eq!((counted(&view), faults.len()), (Some((3, 6)), 0), "one of three pods is there");
    let (json, text) = (show::as_json(&view, &faults, clock::now()), show::as_text(&view, &faults, clock::now()));
    assert_eq!(json["pools"][0]["hp"]["missing_gpus"], 4.0, "{json}");
    let column = text.lines().next().unwrap().find("HP missing").expect("a column");
    assert_eq!(text.lines().nth(1).unwrap()[..column + 10].split_whitespace().last(), Some("4"), "{text}");
    let spec = json!({ "selectors": [{ "cel": { "expression": "device.driver ==" } }] });
    fake.put(json!({ "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "gpu.example.com" }, "spec": spec }));
    let show::Read { view, faults, .. } = show::read_by(&client, &counting(), clock::now()).await.unwrap();
    assert!(counted(&view).is_none());
    assert!(faults.iter().any(|fault| fault.to_string().contains("device.driver ==")), "{faults:?}");
}
