//! Through the client that the project uses.

use crate::{FakeKubernetes, Size};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Config};
use serde_json::json;

async fn client(fake: &FakeKubernetes) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&fake.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> u16 {
    match result.unwrap_err() {
        kube::Error::Api(status) => status.code,
        other => panic!("no status: {other}"),
    }
}

#[tokio::test]
async fn a_lease_is_taken_by_one_of_two() {
    let fake = FakeKubernetes::start().await;
    let leases: Api<Lease> = Api::namespaced(client(&fake).await, "default");
    let body = json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15 } });
    let lease: Lease = serde_json::from_value(body).unwrap();
    let made = leases.create(&PostParams::default(), &lease).await.unwrap();
    assert_eq!(code(leases.create(&PostParams::default(), &lease).await), 409);
    let mut mine = made.clone();
    mine.spec.as_mut().unwrap().holder_identity = Some("b".to_owned());
    leases.replace("l", &PostParams::default(), &mine).await.unwrap();
    assert_eq!(code(leases.replace("l", &PostParams::default(), &made).await), 409);
    let mut blind = made;
    blind.metadata.resource_version = None;
    assert_eq!(code(leases.replace("l", &PostParams::default(), &blind).await), 422);
}

#[tokio::test]
async fn a_watcher_lists_by_page_follows_and_lists_again_after_a_forgotten_history() {
    let fake = FakeKubernetes::start().await;
    fake.load(&Size { nodes: 7, pods: 0, ..Size::default() });
    let nodes: Api<Node> = Api::all(client(&fake).await);
    let config = watcher::Config::default().page_size(3);
    let mut events = Box::pin(watcher::watcher(nodes, config));
    for (deeds, expected) in [("start", 7), ("forget", 8)] {
        let mut listed = 0;
        loop {
            match events.next().await.unwrap() {
                Ok(Event::InitDone) => break,
                Ok(Event::InitApply(_)) => listed += 1,
                // The forgotten history comes as an error first.
                Ok(Event::Init | Event::Apply(_)) | Err(_) => {}
                Ok(event) => panic!("{deeds}: {event:?}"),
            }
        }
        assert_eq!(listed, expected, "{deeds}");
        if deeds == "forget" {
            break;
        }
        fake.put(crate::node(7, &Size::default()));
        let event = events.try_next().await.unwrap().unwrap();
        assert!(matches!(event, Event::Apply(node) if node.metadata.name.as_deref() == Some("node-00007")));
        // The next watch begins where history is no more.
        fake.put(crate::node(7, &Size::default()));
        fake.compact();
        fake.close_watches();
    }
}

#[tokio::test]
async fn what_leaves_the_selection_is_deleted_to_the_watcher() {
    let fake = FakeKubernetes::start().await;
    fake.load(&Size { nodes: 1, pods: 2, namespaces: 1, ..Size::default() });
    let pods: Api<Pod> = Api::namespaced(client(&fake).await, "team-000");
    let config = watcher::Config::default().fields("status.phase=Running");
    let mut events = Box::pin(watcher::watcher(pods, config));
    while !matches!(events.try_next().await.unwrap(), Some(Event::InitDone)) {}
    fake.patch("pods", "team-000", "pod-000001", &json!({ "status": { "phase": "Succeeded" } })).unwrap();
    let event = events.try_next().await.unwrap().unwrap();
    assert!(matches!(event, Event::Delete(pod) if pod.metadata.name.as_deref() == Some("pod-000001")));
}

#[tokio::test]
async fn the_client_applies_patches_status_and_evicts() {
    let fake = FakeKubernetes::start().await;
    fake.load(&Size { nodes: 1, pods: 1, namespaces: 1, ..Size::default() });
    let client = client(&fake).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let labelled = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "labels": { "a": "b" } } });
    let node = nodes.patch("node-00000", &PatchParams::apply("a"), &Patch::Apply(&labelled)).await.unwrap();
    assert_eq!(node.metadata.labels.unwrap()["a"], "b");
    let status = json!({ "status": { "phase": "Gone" }, "metadata": { "labels": { "a": "c" } } });
    let node = nodes.patch_status("node-00000", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    assert_eq!(
        (node.status.unwrap().phase.unwrap(), node.metadata.labels.unwrap()["a"].as_str()),
        ("Gone".into(), "b")
    );
    let pods: Api<Pod> = Api::namespaced(client, "team-000");
    pods.evict("pod-000000", &EvictParams::default()).await.unwrap();
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert_eq!(code(pods.evict("pod-000000", &EvictParams::default()).await), 404);
    let managers: Vec<String> = fake.writes().into_iter().map(|one| one.manager).collect();
    assert_eq!(managers, ["a", "", "", ""]);
}

#[tokio::test]
async fn a_wrong_token_is_refused() {
    let fake = FakeKubernetes::start().await;
    let kubeconfig = Kubeconfig::from_yaml(&fake.kubeconfig_of("wrong")).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let nodes: Api<Node> = Api::all(Client::try_from(config).unwrap());
    assert_eq!(code(nodes.list(&ListParams::default()).await), 401);
}
