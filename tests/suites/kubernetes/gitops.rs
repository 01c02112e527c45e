//! A sync by Argo CD or Flux beside a connector that writes.

use super::installed::{connector, installed, path};
use super::joined::service;
use super::{Site, until};
use fake_kubernetes::yaml;
use serde_json::{Value, json};
use tests::workspace_root;

fn shipped(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(workspace_root().join("deploy/chart/gitops").join(name)).unwrap();
    text.split("\n---\n").map(|document| yaml(document).expect("it is YAML")).collect()
}

/// Outcome that a forced apply would make of an object, as both tools ask; nothing is stored.
fn would_be(site: &Site, manifest: &Value) -> Value {
    let url = format!("{}{}?fieldManager=gitops&force=true&dryRun=All", site.cluster.url, path(manifest));
    let request = ureq::patch(&url).header("authorization", &format!("Bearer {}", site.cluster.token));
    let mut answer = request.header("content-type", "application/apply-patch+yaml").send(manifest.to_string()).unwrap();
    content(serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap())
}

fn live(site: &Site, manifest: &Value) -> Value {
    let url = format!("{}{}", site.cluster.url, path(manifest));
    let request = ureq::get(&url).header("authorization", &format!("Bearer {}", site.cluster.token));
    serde_json::from_str(&request.call().unwrap().body_mut().read_to_string().unwrap()).unwrap()
}

/// All but who owns which field.
fn content(mut object: Value) -> Value {
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .retain(|field, _| field != "managedFields" && field != "resourceVersion");
    object
}

/// A manifest without fields of a set, as `fieldsV1` writes it.
fn without(manifest: &mut Value, fields: &Value) {
    for (step, below) in fields.as_object().into_iter().flatten() {
        let Some(name) = step.strip_prefix("f:") else { continue };
        if below.as_object().is_some_and(serde_json::Map::is_empty) {
            manifest.as_object_mut().into_iter().for_each(|object| drop(object.remove(name)));
        } else if let Some(inner) = manifest.get_mut(name) {
            without(inner, below);
        }
    }
}

/// As Argo CD syncs with `RespectIgnoreDifferences`.
fn by_argo(site: &Site, manifest: &Value) -> Value {
    let application = &shipped("argocd.yaml")[0];
    assert!(application["spec"]["syncPolicy"]["syncOptions"].to_string().contains("RespectIgnoreDifferences=true"));
    let managers = &application["spec"]["ignoreDifferences"][0]["managedFieldsManagers"];
    let (mut manifest, live) = (manifest.clone(), live(site, manifest));
    for entry in live["metadata"]["managedFields"].as_array().into_iter().flatten() {
        if managers.as_array().unwrap().contains(&entry["manager"]) {
            without(&mut manifest, &entry["fieldsV1"]);
        }
    }
    manifest
}

/// As Flux corrects drift: without the paths that it ignores.
fn by_flux(_: &Site, manifest: &Value) -> Value {
    let release = shipped("flux.yaml").into_iter().find(|one| one["kind"] == "HelmRelease").unwrap();
    let mut manifest = manifest.clone();
    for rule in release["spec"]["driftDetection"]["ignore"].as_array().unwrap() {
        if rule["target"]["kind"] != manifest["kind"] {
            continue;
        }
        for pointer in rule["paths"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()) {
            let (above, last) = pointer.rsplit_once('/').unwrap();
            let above = manifest.pointer_mut(above).and_then(Value::as_object_mut);
            if let Some(object) = above {
                drop(object.remove(&last.replace("~1", "/")));
            }
        }
    }
    manifest
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_finds_no_drift_and_takes_no_quota_from_the_connector() {
    let Some((site, manifests)) = installed(&["modes.kueue=cluster-queue"]).await else { return };
    let (service, _database) = service(&site).await;
    let connector = connector(&site, &service);
    let queue = manifests.iter().find(|one| one["kind"] == "ClusterQueue").unwrap();
    let groups = || live(&site, queue)["spec"]["resourceGroups"].clone();
    until("the queue has a quota", || groups().is_array().then_some(())).await;
    assert_eq!(connector.stop().code, 0);
    // 1. What the chart makes is as it was: nothing of it is written by the connector.
    for manifest in &manifests {
        assert_eq!(would_be(&site, manifest), content(live(&site, manifest)), "{}", path(manifest));
    }
    // 2. Fields of the connector that stand in Git anyway would be taken, but for the rules that are shipped.
    let mut careless = queue.clone();
    let flavor = json!({ "name": "a100-spot", "resources": [{ "name": "nvidia.com/gpu", "nominalQuota": "1" }] });
    careless["spec"]["resourceGroups"] = json!([{ "coveredResources": ["nvidia.com/gpu"], "flavors": [flavor] }]);
    careless["metadata"]["annotations"] = json!({ "headroom.dev/epoch": "0" });
    assert_ne!(would_be(&site, &careless), content(live(&site, queue)), "the rules are needed");
    for tool in [by_argo, by_flux] {
        assert_eq!(would_be(&site, &tool(&site, &careless)), content(live(&site, queue)));
    }
}
