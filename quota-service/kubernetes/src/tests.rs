//! Helpers of the tests.

use crate::config::Config;
use fake_kubernetes::FakeKubernetes;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::time::{Duration, Instant};

/// Settings of a replica with the shortest times.
pub fn config(identity: &str) -> Config {
    Config {
        cluster: "earth".parse().unwrap(),
        identity: identity.to_owned(),
        lease_s: 3,
        renew_s: 2,
        retry_s: 1,
        ..Config::default()
    }
}

/// A client of the server.
pub async fn client(fake: &FakeKubernetes) -> Client {
    client_of(&fake.kubeconfig()).await
}

/// A client of whose kubeconfig this is.
pub async fn client_of(kubeconfig: &str) -> Client {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let read = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let mut made = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    made.default_retry = false;
    Client::try_from(made).unwrap()
}

/// Waits until it is so. Far longer than anything here lasts: it says what never came, and measures nothing.
pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < end, "it never came: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
