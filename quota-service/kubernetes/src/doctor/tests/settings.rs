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
