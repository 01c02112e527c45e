use super::{MERGE, ask, get, patch, post};
use crate::FakeKubernetes;
use serde_json::json;

#[tokio::test]
async fn a_kind_is_there_while_its_definition_is() {
    let fake = FakeKubernetes::start().await;
    let path = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues";
    assert_eq!(get(&fake, path).await.0, 404);
    fake.install_kueue();
    assert_eq!(get(&fake, path).await.1["kind"], "ClusterQueueList");
    let (status, reply) = get(&fake, &format!("{path}/q")).await;
    assert_eq!((status, &reply["reason"]), (404, &json!("NotFound")));
    assert_eq!(reply["message"], "clusterqueues.kueue.x-k8s.io \"q\" not found");
    assert_eq!(get(&fake, "/apis/kueue.x-k8s.io/v1beta2").await.1["groupVersion"], "kueue.x-k8s.io/v1beta2");
    assert!(fake.delete("customresourcedefinitions", "", "clusterqueues.kueue.x-k8s.io"));
    assert_eq!(get(&fake, path).await.0, 404);
}

#[tokio::test]
async fn status_and_the_rest_are_written_apart() {
    let fake = FakeKubernetes::start().await;
    fake.install_kueue();
    fake.put(json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": { "name": "c" },
        "spec": { "controllerName": "x/y" } }));
    let path = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks/c";
    let condition = json!({ "type": "Active", "status": "True", "reason": "Is", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let both = json!({ "metadata": { "labels": { "a": "b" } }, "status": { "conditions": [condition] } });
    let (_, reply) = patch(&fake, path, MERGE, &both).await;
    assert!(reply.get("status").is_none() && reply["metadata"]["labels"]["a"] == "b", "{reply}");
    let more = json!({ "metadata": { "labels": { "a": "c" } }, "status": { "conditions": [condition] } });
    let (_, reply) = patch(&fake, &format!("{path}/status"), MERGE, &more).await;
    assert_eq!(reply["status"]["conditions"][0]["type"], "Active");
    assert_eq!((&reply["metadata"]["labels"]["a"], &reply["metadata"]["generation"]), (&json!("b"), &json!(1)));
}

#[tokio::test]
async fn creating_refuses_what_is_there_misnamed_or_in_no_namespace() {
    let fake = FakeKubernetes::start().await;
    let map = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let path = "/api/v1/namespaces/default/configmaps";
    assert_eq!(post(&fake, path, &map("m")).await.0, 201);
    let (status, reply) = post(&fake, path, &map("m")).await;
    assert_eq!((status, &reply["reason"]), (409, &json!("AlreadyExists")));
    assert_eq!(post(&fake, path, &map("M_")).await.0, 422);
    assert_eq!(post(&fake, "/api/v1/namespaces/absent/configmaps", &map("m")).await.0, 404);
    let generated = json!({ "metadata": { "generateName": "m-" } });
    let (_, reply) = post(&fake, path, &generated).await;
    assert!(reply["metadata"]["name"].as_str().unwrap().len() > 2);
}

#[tokio::test]
async fn deletion_waits_for_finalizers_and_holds_to_preconditions() {
    let fake = FakeKubernetes::start().await;
    fake.put(json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "m", "namespace": "default", "finalizers": ["a/b"] } }));
    let path = "/api/v1/namespaces/default/configmaps/m";
    let other = json!({ "preconditions": { "uid": "another" } }).to_string();
    assert_eq!(ask(&fake, "DELETE", path, "application/json", &other).await.0, 409);
    assert_eq!(ask(&fake, "DELETE", path, "", "").await.0, 200);
    assert!(get(&fake, path).await.1["metadata"]["deletionTimestamp"].is_string());
    patch(&fake, path, MERGE, &json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(get(&fake, path).await.0, 404);
}

#[tokio::test]
async fn a_dry_run_answers_and_changes_nothing() {
    let fake = FakeKubernetes::start().await;
    let map = json!({ "metadata": { "name": "m" } });
    assert_eq!(post(&fake, "/api/v1/namespaces/default/configmaps?dryRun=All", &map).await.0, 201);
    assert!(fake.get("configmaps", "default", "m").is_none() && fake.writes().is_empty());
}
