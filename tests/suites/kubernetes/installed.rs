//! The chart's manifests, applied in their order, and the connector with their settings and their rights.

use super::joined::service;
use super::{CLUSTER, MODEL, Site, until};
use crate::chart::{of_kind, rendered, renderer};
use fake_kubernetes::Rule;
use serde_json::{Value, json};
use tests::Listening;

const TOKEN: &str = "connector-token";
const ACCOUNT: &str = "headroom-connector";

/// The path under which objects of this kind are, as a manifest names them.
pub fn path(manifest: &Value) -> String {
    let (version, kind) = (manifest["apiVersion"].as_str().unwrap(), manifest["kind"].as_str().unwrap().to_lowercase());
    let plural = match kind.as_str() {
        kind if kind.ends_with("policy") => format!("{}ies", kind.trim_end_matches('y')),
        kind if kind.ends_with("class") => format!("{kind}es"),
        kind => format!("{kind}s"),
    };
    let root = if version.contains('/') { "apis" } else { "api" };
    let namespace = manifest["metadata"]["namespace"].as_str();
    let within = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    format!("/{root}/{version}/{within}{plural}/{}", manifest["metadata"]["name"].as_str().unwrap())
}

/// Applies a manifest as Helm would. The answer's status and body.
fn apply(site: &Site, manifest: &Value) -> (u16, String) {
    let url = format!("{}{}?fieldManager=helm", site.cluster.url, path(manifest));
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = agent.patch(&url).header("authorization", &format!("Bearer {}", site.cluster.token));
    let request = request.header("content-type", "application/apply-patch+yaml");
    let mut answer = request.send(manifest.to_string()).unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

/// The rights of the roles bound to an account.
fn rights(manifests: &[Value], account: &str) -> Vec<Rule> {
    let is_bound = |binding: &&Value| {
        let subjects = binding["subjects"].as_array().unwrap();
        subjects.iter().any(|subject| subject["name"] == account)
    };
    let mut rules = Vec::new();
    for (binding, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        for bound in of_kind(manifests, binding).into_iter().filter(is_bound) {
            let is_named = |role: &&Value| {
                let namespace = &bound["metadata"]["namespace"];
                role["metadata"]["name"] == bound["roleRef"]["name"] && role["metadata"]["namespace"] == *namespace
            };
            rules.extend(of_kind(manifests, role).into_iter().filter(is_named).flat_map(Rule::of_role));
        }
    }
    rules
}

/// The settings that the chart gives to the connector.
fn settings(manifests: &[Value]) -> String {
    let maps = of_kind(manifests, "ConfigMap");
    let map = maps.into_iter().find(|map| map["metadata"]["name"].as_str().unwrap().contains("connector")).unwrap();
    map["data"]["headroom.toml"].as_str().unwrap().to_owned()
}

pub async fn installed(sets: &[&str]) -> Option<(Site, Vec<Value>)> {
    installed_in("orchestratedFlavors", sets).await
}

/// In a cluster whose Kueue has this form of the CapacityProvider.
async fn installed_in(form: &str, sets: &[&str]) -> Option<(Site, Vec<Value>)> {
    let renderer = renderer()?;
    let cluster = format!("connector.cluster={CLUSTER}");
    let manifests = rendered(renderer, "kueue", &[&[cluster.as_str()][..], sets].concat());
    let site = Site::new(4).await;
    site.pods(0..6, false);
    site.pods(6..10, true);
    site.cluster.install_kueue();
    site.cluster.install_dynamic_quota(form);
    site.cluster.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu"}}));
    for manifest in &manifests {
        let (status, body) = apply(&site, manifest);
        assert!([200, 201].contains(&status), "{}: {status} {body}", path(manifest));
    }
    site.cluster.add_user(TOKEN, ACCOUNT, Some(rights(&manifests, ACCOUNT)));
    std::fs::write(site.path("kubeconfig"), site.cluster.kubeconfig_of(TOKEN)).unwrap();
    std::fs::write(site.path("headroom.toml"), settings(&manifests).replace("=A100-SXM4-80GB", &format!("={MODEL}")))
        .unwrap();
    site.cluster.forget_requests();
    Some((site, manifests))
}

/// The connector with the chart's settings; the places of things on this machine are given beside.
pub fn connector(site: &Site, service: &Listening) -> Listening {
    let (config, kubeconfig) = (site.path("headroom.toml"), site.path("kubeconfig"));
    let url = format!("http://{}", service.address);
    let listen = ["--listen", "127.0.0.1:0", "--extender-listen", "127.0.0.1:0", "--json", "--headroom-url", &url];
    let arguments = [&["run", "--config", &config, "--kubeconfig", &kubeconfig][..], &listen].concat();
    let here = [
        ("HEADROOM_HEADROOM_TOKEN_FILE", ""),
        ("HEADROOM_HEADROOM_CA_FILE", ""),
        ("HEADROOM_LEASE_S", "3"),
        ("HEADROOM_RENEW_S", "2"),
        ("HEADROOM_RETRY_S", "1"),
        ("HEADROOM_POLL_S", "1"),
        ("HEADROOM_REPORT_S", "1"),
        ("HEADROOM_PUBLISH_S", "1"),
        ("HEADROOM_RAISE_AFTER_S", "1"),
    ];
    Listening::of("headroom-kubernetes", &arguments, &here)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_rights_and_settings_of_the_chart_the_quota_arrives_and_helm_can_upgrade() {
    let sets = ["modes.kueue=capacity-provider", "kueue.printClusterQueue=false"];
    let Some((site, _)) = installed(&sets).await else { return };
    let (service, _database) = service(&site).await;
    let connector = connector(&site, &service);
    let path = format!("/quota?cluster={CLUSTER}&gpu_model={MODEL}&hours=1");
    let quota = service.get_until(&path, |_, body| body["capacity_gpus"] == 32.0 && body["used_gpus"] == 4.0);
    let wanted = quota["quota_gpus"].as_f64().unwrap().floor().to_string();
    let provider = || site.cluster.get("capacityproviders", "", "headroom-spot").unwrap();
    let capacity = || provider()["status"]["capacity"]["flavors"][0]["resources"]["nvidia.com/gpu"].clone();
    until("the capacity is published", || (capacity() == json!(wanted)).then_some(())).await;
    assert_eq!(provider()["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    // Helm can upgrade: nothing that it applies belongs to another manager.
    let made = provider();
    let upgraded = json!({
        "apiVersion": made["apiVersion"], "kind": "CapacityProvider",
        "metadata": {"name": "headroom-spot", "labels": {"app.kubernetes.io/managed-by": "Helm"}}, "spec": made["spec"],
    });
    let (status, body) = apply(&site, &upgraded);
    assert_eq!(status, 200, "{body}");
    let refused: Vec<_> = site.cluster.requests().into_iter().filter(|one| one.status == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let ended = connector.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chart_writes_either_form_of_the_capacity_provider_and_the_connector_fills_it() {
    for form in ["orchestratedFlavors", "managedFlavors"] {
        let provider_form = format!("kueue.providerForm={form}");
        let sets = ["modes.kueue=capacity-provider", "kueue.printClusterQueue=false", &provider_form];
        let Some((site, _)) = installed_in(form, &sets).await else { return };
        let (service, _database) = service(&site).await;
        let connector = connector(&site, &service);
        let provider = || site.cluster.get("capacityproviders", "", "headroom-spot").unwrap();
        assert_eq!(provider()["spec"][form][0]["name"], "a100-spot");
        let capacity = || provider()["status"]["capacity"]["flavors"][0]["resources"]["nvidia.com/gpu"].clone();
        until("the capacity is published", || capacity().as_str().is_some_and(|gpus| gpus != "0").then_some(())).await;
        let orchestrator = site.cluster.get("dynamicquotaorchestrators", "", "headroom-spot").unwrap();
        assert_eq!(orchestrator["spec"]["capacityDiscovery"]["providers"][0]["name"], "headroom-spot");
        assert_eq!(connector.stop().code, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_that_the_chart_prints_is_filled_by_the_connector() {
    let Some((site, _)) = installed(&["modes.kueue=cluster-queue"]).await else { return };
    let (service, _database) = service(&site).await;
    let connector = connector(&site, &service);
    let nominal = || {
        let queue = site.cluster.get("clusterqueues", "", "headroom-spot")?;
        let quota = &queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"];
        quota.as_u64().or_else(|| quota.as_str()?.parse().ok()).filter(|gpus| *gpus > 0)
    };
    until("the queue has a quota", nominal).await;
    let refused: Vec<_> = site.cluster.requests().into_iter().filter(|one| one.status == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let ended = connector.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}
