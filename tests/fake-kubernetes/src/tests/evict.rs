use super::{get, patch, post};
use crate::{FakeKubernetes, Size};
use serde_json::{Value, json};

const POD: &str = "/api/v1/namespaces/team-000/pods/pod-000000";

fn eviction() -> Value {
    json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "pod-000000", "namespace": "team-000" } })
}

async fn with_budget(allowed: i64) -> FakeKubernetes {
    let fake = FakeKubernetes::start().await;
    fake.load(&Size { nodes: 1, pods: 1, ..Size::default() });
    fake.put(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b", "namespace": "team-000" },
        "spec": { "selector": { "matchLabels": { "app": "app-0" } } }, "status": { "disruptionsAllowed": allowed },
    }));
    fake
}

#[tokio::test]
async fn a_spent_budget_refuses_an_eviction() {
    let fake = with_budget(0).await;
    let (status, reply) = post(&fake, &format!("{POD}/eviction"), &eviction()).await;
    assert_eq!((status, &reply["reason"]), (429, &json!("TooManyRequests")));
    assert_eq!(reply["details"]["causes"][0]["reason"], "DisruptionBudget");
    assert_eq!(get(&fake, POD).await.0, 200);
}

#[tokio::test]
async fn an_evicted_pod_is_marked_and_goes_after_its_grace() {
    let fake = with_budget(1).await;
    fake.grace(None);
    assert_eq!(post(&fake, &format!("{POD}/eviction"), &eviction()).await.0, 201);
    let (_, pod) = get(&fake, POD).await;
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["reason"] == "EvictionByEvictionAPI"));
    let budget = fake.get("poddisruptionbudgets", "team-000", "b").unwrap();
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert_eq!(fake.finish_deletions(), 1);
    assert_eq!(get(&fake, POD).await.0, 404);
    assert_eq!(post(&fake, &format!("{POD}/eviction"), &eviction()).await.0, 404);
}

#[tokio::test]
async fn an_eviction_is_of_the_pod_it_names_by_uid() {
    let fake = with_budget(1).await;
    let mut body = eviction();
    body["deleteOptions"] = json!({ "preconditions": { "uid": "another" } });
    assert_eq!(post(&fake, &format!("{POD}/eviction"), &body).await.0, 409);
}

#[tokio::test]
async fn a_pod_is_bound_once_and_its_spec_is_fixed() {
    let fake = FakeKubernetes::start().await;
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "main" }], "priorityClassName": "spot" } });
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(post(&fake, pods, &pod).await.0, 403, "the class is not there");
    fake.put(json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "spot" }, "value": -10 }));
    let (status, made) = post(&fake, pods, &pod).await;
    assert_eq!((status, &made["spec"]["priority"], &made["status"]["phase"]), (201, &json!(-10), &json!("Pending")));
    let node = json!({ "spec": { "nodeName": "n" } });
    assert_eq!(patch(&fake, &format!("{pods}/p"), super::MERGE, &node).await.0, 422);
    let binding =
        json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "p" }, "target": { "name": "n" } });
    assert_eq!(post(&fake, &format!("{pods}/p/binding"), &binding).await.0, 201);
    assert_eq!(post(&fake, &format!("{pods}/p/binding"), &binding).await.0, 409);
}
