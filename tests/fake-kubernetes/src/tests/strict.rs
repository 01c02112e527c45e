//! Requests that a real control plane refuses, and this one let pass before.

use super::{APPLY, get, patch, post};
use crate::FakeKubernetes;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

const PODS: &str = "/api/v1/namespaces/team-a/pods";

fn pod(name: &str, requests: &Value, limits: &Value) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "priorityClassName": "spot",
        "containers": [{ "name": "main", "resources": { "requests": requests, "limits": limits } }] } })
}

fn whole(name: &str, gpus: &str) -> Value {
    let amount = json!({ "nvidia.com/gpu": gpus });
    pod(name, &amount, &amount)
}

async fn cluster() -> FakeKubernetes {
    let fake = FakeKubernetes::start().await;
    fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-a" } }));
    fake.put(json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "spot" }, "value": -10 }));
    fake
}

#[tokio::test]
async fn a_quantity_is_kept_as_it_was_written() {
    let fake = cluster().await;
    for (name, gpus) in [("a", "2e0"), ("b", "2000m"), ("c", "0.002k"), ("d", "20e-1")] {
        assert_eq!(post(&fake, PODS, &whole(name, gpus)).await.0, 201, "{gpus}");
        let (_, kept) = get(&fake, &format!("{PODS}/{name}")).await;
        assert_eq!(kept["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], gpus);
    }
}

#[tokio::test]
async fn extended_resources_are_whole_and_their_limit_is_their_request() {
    let fake = cluster().await;
    let gpus = |amount: &str| json!({ "nvidia.com/gpu": amount });
    let refused = async |body: &Value| {
        let (status, reply) = post(&fake, PODS, body).await;
        assert_eq!(status, 422, "{reply}");
        reply["message"].as_str().unwrap().to_owned()
    };
    assert!(refused(&whole("a", "1500m")).await.contains("must be an integer"));
    assert!(refused(&whole("a", "many")).await.contains("quantities must match"));
    assert!(refused(&whole("a", "-1")).await.contains("greater than or equal to 0"));
    assert!(refused(&pod("a", &gpus("1"), &json!({}))).await.contains("Limit must be set"));
    assert!(refused(&pod("a", &gpus("1"), &gpus("2"))).await.contains("must be equal to nvidia.com/gpu limit"));
    let mut as_a_whole = whole("a", "1");
    as_a_whole["spec"]["resources"] = json!({ "limits": gpus("1") });
    assert!(refused(&as_a_whole).await.contains("pod-level resources"));
    assert_eq!(
        post(&fake, PODS, &pod("a", &json!({}), &gpus("1"))).await.0,
        201,
        "of a limit alone the request is made"
    );
}

#[tokio::test]
async fn a_resource_quota_counts_every_pod_of_its_class_and_refuses_those_beyond() {
    let fake = cluster().await;
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "q", "namespace": "team-a" }, "spec": {
        "hard": { "requests.nvidia.com/gpu": "4" },
        "scopeSelector": { "matchExpressions": [{ "scopeName": "PriorityClass", "operator": "In", "values": ["spot"] }] } } });
    assert_eq!(post(&fake, "/api/v1/namespaces/team-a/resourcequotas", &quota).await.0, 201);
    let used =
        || fake.get("resourcequotas", "team-a", "q").unwrap()["status"]["used"]["requests.nvidia.com/gpu"].clone();
    assert_eq!(post(&fake, PODS, &whole("a", "3")).await.0, 201);
    assert_eq!(used(), "3");
    let (status, reply) = post(&fake, PODS, &whole("b", "2")).await;
    assert_eq!(status, 403, "{reply}");
    assert!(
        reply["message"].as_str().unwrap().contains("exceeded quota: q, requested: requests.nvidia.com/gpu=2"),
        "{reply}"
    );
    let mut other = whole("c", "2");
    other["spec"].as_object_mut().unwrap().remove("priorityClassName");
    assert_eq!(post(&fake, PODS, &other).await.0, 201, "another class");
    fake.patch("pods", "team-a", "a", &json!({ "status": { "phase": "Succeeded" } }));
    assert_eq!((used(), post(&fake, PODS, &whole("b", "2")).await.0), (json!("0"), 201));
    assert_eq!(used(), "2");
}

#[tokio::test]
async fn a_server_that_is_down_takes_no_connection_and_cuts_those_there_are() {
    let fake = cluster().await;
    let address = fake.url.trim_start_matches("http://").to_owned();
    let before = TcpStream::connect(&address).await.unwrap();
    fake.go_down();
    let mut rest = [0; 1];
    before.readable().await.unwrap();
    assert_eq!(before.try_read(&mut rest).unwrap_or(0), 0, "it is cut");
    let mut after = TcpStream::connect(&address).await.unwrap();
    assert_eq!(after.read(&mut rest).await.unwrap_or(0), 0, "nothing is answered");
    fake.come_up();
    assert_eq!(get(&fake, PODS).await.0, 200);
}

#[tokio::test]
async fn an_eviction_that_is_a_trial_spends_no_budget_and_one_that_says_so_in_half_is_refused() {
    let fake = cluster().await;
    let mut made = whole("a", "1");
    made["metadata"]["namespace"] = "team-a".into();
    (made["apiVersion"], made["kind"]) = ("v1".into(), "Pod".into());
    made["metadata"]["labels"] = json!({ "app": "a" });
    made["status"] = json!({ "phase": "Running" });
    fake.put(made);
    let budget = |allowed: i64, seen: i64| {
        json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b", "namespace": "team-a" },
            "spec": { "selector": { "matchLabels": { "app": "a" } } },
            "status": { "disruptionsAllowed": allowed, "observedGeneration": seen } })
    };
    fake.put(budget(1, 1));
    let eviction = |options: Value| json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" }, "deleteOptions": options });
    let path = format!("{PODS}/a/eviction");
    let (status, reply) = post(&fake, &path, &eviction(json!({ "dryRun": ["All"] }))).await;
    assert!(status == 400 && reply["message"].as_str().unwrap().contains("Non-matching dry-run"), "{reply}");
    assert_eq!(post(&fake, &format!("{path}?dryRun=All"), &eviction(json!({}))).await.0, 201);
    assert_eq!(fake.get("poddisruptionbudgets", "team-a", "b").unwrap()["status"]["disruptionsAllowed"], 1);
    fake.put(budget(1, 0));
    let (status, reply) = post(&fake, &path, &eviction(json!({}))).await;
    assert_eq!(
        (status, &reply["details"]["causes"][0]["reason"]),
        (429, &json!("DisruptionBudget")),
        "it is not up to date"
    );
}

#[tokio::test]
async fn each_form_of_dynamic_quota_has_its_own_fields() {
    let provider = |flavors: &str| {
        let mut spec = json!({ "controllerName": "a/b" });
        spec[flavors] = json!([{ "name": "x" }]);
        json!({ "apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "CapacityProvider", "metadata": { "name": "p" }, "spec": spec })
    };
    let status = |time: bool| {
        let mut status = json!({ "apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "CapacityProvider", "metadata": { "name": "p" },
            "status": { "capacity": { "flavors": [{ "name": "x", "resources": { "nvidia.com/gpu": "1" } }] } } });
        if time {
            status["status"]["capacity"]["lastUpdateTime"] = "2026-01-01T00:00:00Z".into();
        }
        status
    };
    let path = "/apis/kueue.x-k8s.io/v1alpha1/capacityproviders/p";
    for (flavors, is_older) in [("orchestratedFlavors", false), ("managedFlavors", true)] {
        let fake = cluster().await;
        fake.install_dynamic_quota(flavors);
        let apply =
            async |path: &str, body: Value| patch(&fake, &format!("{path}?fieldManager=a"), APPLY, &body).await.0;
        assert_eq!(apply(path, provider(flavors)).await, 201);
        let with_time = apply(&format!("{path}/status"), status(true)).await;
        let without = apply(&format!("{path}/status"), status(false)).await;
        let expected = if is_older { (200, 422) } else { (500, 200) };
        assert_eq!((with_time, without), expected, "{flavors}");
    }
}
