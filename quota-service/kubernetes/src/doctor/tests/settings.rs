//! Settings that name what is not there, or that do not go together.

use super::*;

#[tokio::test]
async fn device_classes_that_do_not_exist_are_named_with_those_that_do() {
    let mut patient = Patient::new().await;
    patient.config.device_classes = "gpu.nvidia.com,gpu.nvida.com=H800".parse().unwrap();
    let none_is_served = patient.warnings().await;
    has(
        &none_is_served,
        "device class gpu.nvidia.com: no DeviceClass has this name, and it counts no GPUs; there are none",
    );
    for kind in fake_kubernetes::crds::dynamic_resources(&["v1beta1"]) {
        patient.fake.put(kind);
    }
    patient.fake.put(json!({
        "apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": { "name": "gpu.nvidia.com" }, "spec": {},
    }));
    let warned: Vec<String> =
        patient.warnings().await.into_iter().filter(|line| line.starts_with("device class")).collect();
    assert_eq!(warned.len(), 1, "{warned:#?}");
    assert!(
        warned[0].starts_with(
            "device class gpu.nvida.com: no DeviceClass has this name, and it counts no GPUs; there are gpu.nvidia.com"
        ),
        "{warned:#?}"
    );
}

#[tokio::test]
async fn a_quota_that_is_published_twice_is_warned_of() {
    let mut patient = Patient::new().await;
    patient.config.kueue = KueueMode::ClusterQueue;
    has(&patient.warnings().await, "kueue beside resource_quota: each publishes the whole quota");
    patient.config.resource_quota = false;
    let warnings = patient.warnings().await;
    assert!(!warnings.iter().any(|line| line.starts_with("kueue beside")), "{warnings:#?}");
}

#[tokio::test]
async fn spot_pods_that_no_published_quota_holds_are_counted() {
    let mut patient = Patient::new().await;
    patient.config.kueue = KueueMode::ClusterQueue;
    patient.config.resource_quota = false;
    let outside = |lines: &[String]| lines.iter().find(|line| line.starts_with("spot outside of the quota")).cloned();
    assert_eq!(outside(&patient.warnings().await), None, "the check counts every promise");
    patient.config.admission_check = false;
    let warned = outside(&patient.warnings().await).expect("no namespace has a LocalQueue");
    assert!(warned.contains("2 spot pods hold 2 GPUs on top of the published quota"), "{warned}");
    assert!(warned.contains("switch admission_check on"), "{warned}");
    patient.fake.deny(Rule::new("list", "kueue.x-k8s.io", "localqueues"));
    assert_eq!(outside(&patient.warnings().await), None, "it is not known which namespaces Kueue governs");
    patient.fake.deny_nothing();
    for pod in patient.fake.list("pods") {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap();
        patient.fake.put(json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "spec": { "clusterQueue": "headroom-spot" },
            "metadata": { "name": "spot", "namespace": namespace },
        }));
    }
    assert_eq!(outside(&patient.warnings().await), None);
    patient.config.kueue = KueueMode::Off;
    patient.config.resource_quota = true;
    patient.config.resource_quota_shares = "nobody=1".parse().unwrap();
    let warned = outside(&patient.warnings().await).expect("no namespace of theirs has a share");
    assert!(warned.contains("2 spot pods hold 2 GPUs"), "{warned}");
    patient.config.admission_check = true;
    let warned = outside(&patient.warnings().await).expect("no ResourceQuota asks the check");
    assert!(!warned.contains("switch admission_check on"), "{warned}");
}

/// A spot pod that runs with 2 GPUs, and its labels and owner.
fn running(name: &str, labels: &Value, owner: Option<(&str, &str)>) -> Value {
    let spec = json!({ "priorityClassName": "spot", "nodeName": "node-00000" });
    let mut pod = waiting(name, "2", &spec);
    (pod["status"]["phase"], pod["metadata"]["labels"]) = ("Running".into(), labels.clone());
    pod["metadata"]["uid"] = name.into();
    if let Some((kind, uid)) = owner {
        let owner = json!({ "apiVersion": "v1", "kind": kind, "name": uid, "uid": uid, "controller": true });
        pod["metadata"]["ownerReferences"] = json!([owner]);
    }
    pod
}

#[tokio::test]
async fn spot_pods_that_pass_kueue_by_beside_a_local_queue_are_counted() {
    let mut patient = Patient::new().await;
    patient.config.kueue = KueueMode::ClusterQueue;
    (patient.config.resource_quota, patient.config.admission_check) = (false, false);
    for pod in patient.fake.list("pods") {
        let (namespace, name) = (pod["metadata"]["namespace"].as_str().unwrap(), pod["metadata"]["name"].as_str());
        assert!(patient.fake.delete("pods", namespace, name.unwrap()));
    }
    let in_team = |api: &str, kind: &str, name: &str, owner: Option<&str>, spec: Value| {
        let owners: Vec<Value> = owner
            .iter()
            .map(|uid| json!({ "apiVersion": "v1", "kind": "Job", "name": uid, "uid": uid, "controller": true }))
            .collect();
        patient.fake.put(json!({
            "apiVersion": api, "kind": kind, "spec": spec,
            "metadata": { "name": name, "namespace": "team-000", "uid": name, "ownerReferences": owners },
        }));
    };
    let kueue = "kueue.x-k8s.io/v1beta2";
    in_team(kueue, "LocalQueue", "spot", None, json!({ "clusterQueue": "headroom-spot" }));
    in_team("batch/v1", "Job", "queued", None, json!({}));
    in_team("batch/v1", "Job", "alone", None, json!({}));
    in_team(kueue, "Workload", "w", Some("queued"), json!({ "podSets": [] }));
    for (name, labels, owner) in [
        ("bare", json!({}), None),
        ("of-replicas", json!({}), Some(("ReplicaSet", "rs"))),
        ("of-alone", json!({}), Some(("Job", "alone"))),
        ("of-queued", json!({}), Some(("Job", "queued"))),
        ("labelled", json!({ "kueue.x-k8s.io/queue-name": "spot" }), None),
        ("unknown", json!({}), Some(("RayCluster", "ray"))),
    ] {
        patient.fake.put(running(name, &labels, owner));
    }
    let beside = |lines: &[String]| lines.iter().find(|line| line.starts_with("spot beside Kueue")).cloned();
    let warned = beside(&patient.warnings().await).expect("three pass Kueue by");
    assert!(warned.contains("3 spot pods hold 6 GPUs on top of the published quota, without a queue"), "{warned}");
    for name in ["team-000/bare", "team-000/of-replicas", "team-000/of-alone"] {
        assert!(warned.contains(name), "{name}: {warned}");
    }
    patient.fake.deny(Rule::new("list", "batch", "jobs"));
    let warned = beside(&patient.warnings().await).expect("two are of no Job");
    assert!(warned.contains("2 spot pods hold 4 GPUs"), "{warned}");
    patient.fake.deny_nothing();
    patient.config.admission_check = true;
    assert_eq!(beside(&patient.warnings().await), None, "the check counts every promise");
}

#[tokio::test]
async fn resource_quotas_that_no_setting_names_any_more_are_named_with_the_command_that_deletes_them() {
    let mut patient = Patient::new().await;
    let quota = |namespace: &str, name: &str, manager: &str| {
        patient.fake.put(json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "spec": { "hard": { "requests.nvidia.com/gpu": "8" } },
            "metadata": { "name": name, "namespace": namespace, "labels": { "app.kubernetes.io/managed-by": manager } },
        }));
    };
    quota("team-000", "headroom-spot", "headroom");
    quota("team-001", "headroom-spot", "headroom");
    quota("team-002", "headroom-spot", "Helm");
    let left = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().filter(|line| line.starts_with("resourcequota ")).collect()
    };
    let warned = left(patient.warnings().await);
    assert_eq!(warned.len(), 1, "{warned:#?}");
    has(&warned, "-> kubectl --namespace team-001 delete resourcequota headroom-spot");
    patient.config.resource_quota = false;
    assert_eq!(left(patient.warnings().await).len(), 2, "team-000 has a share no more");
}

#[tokio::test]
async fn an_extender_without_tls_that_others_reach_fails() {
    let mut patient = Patient::new().await;
    patient.config.extender = true;
    patient.config.extender_listen = "0.0.0.0:8443".parse().unwrap();
    has(&patient.failures().await, "extender: 0.0.0.0:8443 is reachable from other machines without TLS");
    patient.config.tls_certificate_file = "/absent/tls.crt".parse().unwrap();
    patient.config.tls_key_file = "/absent/tls.key".parse().unwrap();
    has(&patient.failures().await, "extender: /absent/tls.crt");
}
