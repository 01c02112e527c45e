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
async fn an_extender_without_tls_that_others_reach_fails() {
    let mut patient = Patient::new().await;
    patient.config.extender = true;
    patient.config.extender_listen = "0.0.0.0:8443".parse().unwrap();
    has(&patient.failures().await, "extender: 0.0.0.0:8443 is reachable from other machines without TLS");
    patient.config.tls_certificate_file = "/absent/tls.crt".parse().unwrap();
    patient.config.tls_key_file = "/absent/tls.key".parse().unwrap();
    has(&patient.failures().await, "extender: /absent/tls.crt");
}
