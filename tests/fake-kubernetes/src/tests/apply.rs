use super::{APPLY, MERGE, get, patch};
use crate::FakeKubernetes;
use serde_json::{Value, json};

const QUOTA: &str = "/api/v1/namespaces/default/resourcequotas/q";

fn quota(hard: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ResourceQuota", "spec": { "hard": hard } })
}

async fn apply(fake: &FakeKubernetes, manager: &str, more: &str, hard: Value) -> (u16, Value) {
    patch(fake, &format!("{QUOTA}?fieldManager={manager}{more}"), APPLY, &quota(&hard)).await
}

#[tokio::test]
async fn a_field_of_another_manager_is_a_conflict_unless_forced() {
    let fake = FakeKubernetes::start().await;
    assert_eq!(apply(&fake, "a", "", json!({ "gpu": "1", "cpu": "5" })).await.0, 201);
    let (status, reply) = apply(&fake, "b", "", json!({ "gpu": "2" })).await;
    assert_eq!(status, 409);
    assert_eq!(reply["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(reply["details"]["causes"][0]["field"], ".spec.hard.gpu");
    assert_eq!(reply["details"]["causes"][0]["message"], "conflict with \"a\"");
    assert_eq!(apply(&fake, "b", "", json!({ "gpu": "1" })).await.0, 200, "the same value is shared");
    let (status, reply) = apply(&fake, "b", "&force=true", json!({ "gpu": "3" })).await;
    assert_eq!((status, &reply["spec"]["hard"]), (200, &json!({ "cpu": "5", "gpu": "3" })));
    assert_eq!(fake.requests().iter().filter(|one| one.force).count(), 1);
}

#[tokio::test]
async fn a_field_that_is_no_more_applied_goes_unless_another_owns_it() {
    let fake = FakeKubernetes::start().await;
    apply(&fake, "a", "", json!({ "gpu": "1", "cpu": "5", "memory": "1Gi" })).await;
    apply(&fake, "b", "", json!({ "cpu": "5" })).await;
    let (_, reply) = apply(&fake, "a", "", json!({ "memory": "1Gi" })).await;
    assert_eq!(reply["spec"]["hard"], json!({ "cpu": "5", "memory": "1Gi" }));
}

#[tokio::test]
async fn an_empty_map_takes_nothing_of_what_others_have_in_it() {
    let fake = FakeKubernetes::start().await;
    apply(&fake, "a", "", json!({ "gpu": "1" })).await;
    let (status, reply) = apply(&fake, "b", "&force=true", json!({})).await;
    assert_eq!((status, &reply["spec"]["hard"]), (200, &json!({ "gpu": "1" })));
}

#[tokio::test]
async fn what_changes_nothing_makes_no_version() {
    let fake = FakeKubernetes::start().await;
    apply(&fake, "a", "", json!({ "gpu": "1" })).await;
    // Its controller has written the status since.
    let (_, first) = get(&fake, QUOTA).await;
    let (_, again) = apply(&fake, "a", "", json!({ "gpu": "1" })).await;
    assert_eq!(first, again);
    let (_, other) = apply(&fake, "a", "", json!({ "gpu": "2" })).await;
    assert_ne!(first["metadata"]["resourceVersion"], other["metadata"]["resourceVersion"]);
    assert_eq!(other["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_plain_write_takes_fields_over() {
    let fake = FakeKubernetes::start().await;
    apply(&fake, "a", "", json!({ "gpu": "1" })).await;
    let change = json!({ "spec": { "hard": { "gpu": "7" } } });
    assert_eq!(patch(&fake, &format!("{QUOTA}?fieldManager=admin"), MERGE, &change).await.0, 200);
    let (status, reply) = apply(&fake, "a", "", json!({ "gpu": "1" })).await;
    assert_eq!((status, &reply["details"]["causes"][0]["message"]), (409, &json!("conflict with \"admin\"")));
}

#[tokio::test]
async fn an_apply_needs_a_manager_and_the_version_it_names() {
    let fake = FakeKubernetes::start().await;
    assert_eq!(patch(&fake, QUOTA, APPLY, &quota(&json!({}))).await.0, 422);
    apply(&fake, "a", "", json!({ "gpu": "1" })).await;
    let mut body = quota(&json!({ "gpu": "2" }));
    body["metadata"] = json!({ "resourceVersion": "1" });
    assert_eq!(patch(&fake, &format!("{QUOTA}?fieldManager=a"), APPLY, &body).await.0, 409);
}

#[tokio::test]
async fn resource_groups_are_one_leaf_and_checks_have_keys() {
    let fake = FakeKubernetes::start().await;
    fake.install_kueue();
    let queue = |count: &str| {
        let resources = json!([{ "name": "nvidia.com/gpu", "nominalQuota": count }]);
        let groups =
            json!([{ "coveredResources": ["nvidia.com/gpu"], "flavors": [{ "name": "a", "resources": resources }] }]);
        json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": { "resourceGroups": groups } })
    };
    let path = |manager: &str| format!("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q?fieldManager={manager}");
    assert_eq!(patch(&fake, &path("a"), APPLY, &queue("1")).await.0, 201);
    let (_, reply) = patch(&fake, &path("b"), APPLY, &queue("2")).await;
    assert_eq!(reply["details"]["causes"][0]["field"], ".spec.resourceGroups");
    let workload = json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": { "name": "w", "namespace": "t" } });
    fake.put(workload.clone());
    for name in ["one", "two"] {
        let check =
            json!({ "name": name, "state": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let mut body = workload.clone();
        body["status"] = json!({ "admissionChecks": [check] });
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/t/workloads/w/status?fieldManager={name}");
        assert_eq!(patch(&fake, &path, APPLY, &body).await.0, 200);
    }
    let checks = fake.get("workloads", "t", "w").unwrap()["status"]["admissionChecks"].clone();
    assert_eq!(checks.as_array().unwrap().len(), 2, "each manager has its own: {checks}");
}

#[tokio::test]
async fn a_field_of_another_draft_is_refused() {
    let fake = FakeKubernetes::start().await;
    fake.install_dynamic_quota("managedFlavors");
    let path = "/apis/kueue.x-k8s.io/v1alpha1/capacityproviders/p";
    let body = |flavors: &str| {
        json!({ "apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "CapacityProvider", "metadata": { "name": "p" },
            "spec": { "controllerName": "x/y", flavors: [{ "name": "a" }] } })
    };
    let (status, reply) = patch(&fake, &format!("{path}?fieldManager=a"), APPLY, &body("orchestratedFlavors")).await;
    assert_eq!(status, 500);
    assert!(reply["message"].as_str().unwrap().ends_with(".spec.orchestratedFlavors: field not declared in schema"));
    let (status, reply) =
        super::post(&fake, "/apis/kueue.x-k8s.io/v1alpha1/capacityproviders", &body("orchestratedFlavors")).await;
    assert_eq!((status, &reply["details"]["causes"][0]["field"]), (422, &json!("spec.managedFlavors")));
    assert_eq!(patch(&fake, &format!("{path}?fieldManager=a"), APPLY, &body("managedFlavors")).await.0, 201);
    let other = json!({ "spec": { "controllerName": "z" } });
    assert_eq!(patch(&fake, path, MERGE, &other).await.0, 422, "the controller's name cannot change");
}
