//! Against an API server and small HTTP servers.

use super::*;
use crate::calls::Calls;
use crate::tests::{client, config, eventually};
use crate::view::facts::{Life, Reading};
use fake_kubernetes::FakeKubernetes;
use fake_kubernetes::crds::served_definition;
use std::sync::Mutex as StdMutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that answers each request with the next of these, the last one again and again; and what it was sent.
async fn server(answers: &[&str]) -> (u16, Arc<StdMutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (seen, answers) =
        (Arc::new(StdMutex::new(Vec::new())), answers.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let keeping = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut sent = Vec::new();
            loop {
                let mut part = [0; 4_096];
                let read = stream.read(&mut part).await.unwrap_or(0);
                sent.extend_from_slice(&part[..read]);
                let text = String::from_utf8_lossy(&sent).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let head = head.to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if read == 0 || body.len() >= length.unwrap_or(0) {
                    break;
                }
            }
            keeping.lock().unwrap().push(String::from_utf8_lossy(&sent).into_owned());
            let (status, body) = answers[number.min(answers.len() - 1)].split_once(' ').unwrap();
            number += 1;
            let text =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            let _ = stream.write_all(text.as_bytes()).await;
        }
    });
    (port, seen)
}

fn pod(extra: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "cheap", "namespace": "team-a", "annotations": {}, "labels": {} },
        "spec": {
            "nodeName": "n1", "priorityClassName": "spot",
            "containers": [{ "name": "main", "resources": { "requests": { "nvidia.com/gpu": "8" } } }],
        },
        "status": { "phase": "Running", "podIP": "127.0.0.1" },
    });
    for part in ["metadata", "spec", "status"] {
        for (key, value) in extra[part].as_object().into_iter().flatten() {
            pod[part][key] = value.clone();
        }
    }
    pod
}

/// A victim that is evicted in 60 s from now.
fn victim(fake: &FakeKubernetes, extra: &Value) -> (Notice, UnixSeconds) {
    let object = fake.put(pod(extra));
    let read = serde_json::from_value(object.clone()).unwrap();
    let (facts, _) = PodFacts::read(&read, &Reading::of(&Config::default())).unwrap().unwrap();
    assert_eq!(facts.life, Life::Runs);
    let now = connectors::clock::now();
    (Notice::of(&facts, &object, now.plus_s(60), now), now)
}

async fn notices(fake: &FakeKubernetes, config: Config) -> Notices {
    Notices::new(&client(fake).await, &config).unwrap()
}

fn secret() -> (tempfile::TempDir, crate::config::FilePath) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    let path = file.to_str().unwrap().parse().unwrap();
    (folder, path)
}

fn condition(fake: &FakeKubernetes) -> Value {
    let pod = fake.get("pods", "team-a", "cheap").unwrap();
    let all = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|one| one["type"] == "headroom.dev/EvictionNotice").unwrap_or_default()
}

#[tokio::test]
async fn a_victim_gets_a_condition_and_another_when_it_stays() {
    let fake = FakeKubernetes::start().await;
    let (notice, _) = victim(&fake, &json!({}));
    let mut notices = notices(&fake, config("me")).await;
    notices.announce(notice.clone()).await;
    assert_eq!(
        (condition(&fake)["status"].clone(), condition(&fake)["reason"].clone()),
        (json!("True"), json!("HighPriorityDemand"))
    );
    let object = fake.get("pods", "team-a", "cheap").unwrap();
    notices.take_back(&notice.pod, &object).await;
    assert_eq!(condition(&fake)["status"], "False");
}

/// The kinds of `lifecycle.k8s.io`, of which a spec has these properties.
fn install(fake: &FakeKubernetes, spec: &Value) {
    let schema = json!({ "type": "object", "properties": spec });
    fake.put(served_definition(
        "lifecycle.k8s.io",
        "EvictionRequest",
        "evictionrequests",
        &["v1alpha1"],
        true,
        &schema,
    ));
}

fn known() -> Value {
    let text = json!({ "type": "string" });
    let pod = json!({ "type": "object", "properties": { "name": text, "uid": text } });
    json!({ "intent": text, "requester": text, "target": { "type": "object", "properties": { "pod": pod } } })
}

#[tokio::test]
async fn a_pod_with_responders_is_requested_and_one_without_is_not() {
    let fake = FakeKubernetes::start().await;
    install(&fake, &known());
    let mut notices = notices(&fake, config("me")).await;
    let (plain, _) = victim(&fake, &json!({}));
    notices.announce(plain).await;
    assert_eq!(fake.list("evictionrequests"), [] as [Value; 0], "Kubernetes would evict it at once");
    let responders =
        json!({ "spec": { "evictionResponders": [{ "name": "saver.example.com/save", "priority": 10_000 }] } });
    let (notice, _) = victim(&fake, &responders);
    notices.announce(notice.clone()).await;
    let intent =
        || fake.list("evictionrequests").into_iter().map(|one| one["spec"]["intent"].clone()).collect::<Vec<_>>();
    assert_eq!(intent(), ["Eviction"]);
    let request = &fake.list("evictionrequests")[0];
    let target = json!({ "pod": { "name": "cheap", "uid": notice.pod.uid.to_string() } });
    assert_eq!((&request["spec"]["target"], &request["spec"]["requester"]), (&target, &json!("headroom.dev/evict")));
    let object = fake.get("pods", "team-a", "cheap").unwrap();
    notices.take_back(&notice.pod, &object).await;
    assert_eq!(intent(), ["Withdrawn"]);
    notices.announce(notice.clone()).await;
    assert_eq!(intent(), ["Eviction"], "asked for again");
    let grouped = json!({ "spec": { "evictionResponders": [{}], "schedulingGroup": { "podGroupName": "g" } } });
    assert!(Notice::of(&notice.pod, &pod(&grouped), notice.at, notice.since).has_group);
}

#[tokio::test]
async fn a_form_of_the_request_that_is_not_known_is_refused_and_nothing_is_written() {
    let fake = FakeKubernetes::start().await;
    let mut other = known();
    other["target"] = json!({ "type": "object", "properties": { "podRef": { "type": "object" } } });
    install(&fake, &other);
    let mut notices = notices(&fake, config("me")).await;
    let responders = json!({ "spec": { "evictionResponders": [{ "name": "saver.example.com/save", "priority": 1 }] } });
    let (notice, _) = victim(&fake, &responders);
    notices.announce(notice).await;
    assert_eq!(fake.list("evictionrequests"), [] as [Value; 0]);
    let calls = Calls::new(client(&fake).await, ANSWERS_WITHIN);
    let schema = calls.get("/openapi/v3/apis/lifecycle.k8s.io/v1alpha1").await.unwrap();
    assert_eq!(understood(&schema), Err("spec.target.pod is missing".to_owned()));
    assert!(understood(&json!({})).unwrap_err().contains("no kind EvictionRequest"));
}

#[tokio::test]
async fn the_webhook_gets_a_signed_notice_until_it_takes_it_and_may_say_that_the_work_is_saved() {
    let fake = FakeKubernetes::start().await;
    let (port, seen) = server(&["503 busy", r#"200 {"ready": true}"#]).await;
    let (_folder, notice_secret_file) = secret();
    let url = format!("http://127.0.0.1:{port}/hook").parse().unwrap();
    let mut notices = notices(&fake, Config { notice_webhook_url: url, notice_secret_file, ..config("me") }).await;
    let (notice, now) = victim(&fake, &json!({}));
    notices.announce(notice.clone()).await;
    eventually("the victim is ready", || notices.is_ready(&notice.pod, notice.at)).await;
    assert!(!notices.is_ready(&notice.pod, notice.at.plus_s(1)), "for another eviction it is not");
    let sent = seen.lock().unwrap().clone();
    assert_eq!(sent.len(), 2, "refused once");
    let (head, body) = sent[1].split_once("\r\n\r\n").unwrap();
    let expected =
        serving::webhook::Webhook::new("http://x/", b"0123456789abcdef").unwrap().signature(body.as_bytes()).unwrap();
    assert!(head.contains(&format!("headroom-signature: {expected}")), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (&body["kind"], &body["evict_at"], &body["gpus"]),
        (&json!("eviction_notice"), &json!(notice.at.to_string()), &json!(8.0))
    );
    notices.evicted(&notice.pod, now.plus_s(5));
    assert!(!notices.is_ready(&notice.pod, notice.at), "over");
}

#[tokio::test]
async fn a_pod_with_a_checkpoint_hook_gets_the_notice_on_its_own_address() {
    let fake = FakeKubernetes::start().await;
    let (port, seen) = server(&["202 later", "204 "]).await;
    let (_folder, notice_secret_file) = secret();
    let on = Config { notice_checkpoint_hooks: true, notice_secret_file, ..config("me") };
    let mut notices = notices(&fake, on).await;
    let hook = json!({ "headroom.dev/checkpoint-port": port.to_string(), "headroom.dev/checkpoint-path": "save" });
    let on_node = json!({ "metadata": { "annotations": hook }, "spec": { "hostNetwork": true } });
    let (notice, _) = victim(&fake, &on_node);
    notices.announce(notice).await;
    let (notice, _) = victim(&fake, &json!({ "metadata": { "annotations": hook }, "spec": { "hostNetwork": false } }));
    notices.announce(notice.clone()).await;
    eventually("the hook is asked", || !seen.lock().unwrap().is_empty()).await;
    assert!(seen.lock().unwrap()[0].starts_with("POST /save "));
    assert!(!notices.is_ready(&notice.pod, notice.at), "202: it says so later, by its annotation");
    let ready = PodFacts { ready_for: Some(notice.at), ..notice.pod.clone() };
    assert!(notices.is_ready(&ready, notice.at));
    notices.announce(notice.clone()).await;
    eventually("the victim is ready", || notices.is_ready(&notice.pod, notice.at)).await;
    assert_eq!(seen.lock().unwrap().len(), 2, "none to the port of a node");
}

#[tokio::test]
async fn a_worker_of_ray_is_drained_by_a_job_of_its_cluster() {
    let fake = FakeKubernetes::start().await;
    let nodes = json!({ "result": true, "data": { "result": { "total": 2, "result": [
        { "node_id": "00ff", "node_ip": "10.0.0.9", "state": "ALIVE" }, { "node_id": "abcd", "node_ip": "127.0.0.1", "state": "ALIVE" },
    ]}}});
    let (port, seen) = server(&[&format!("200 {nodes}"), r#"200 {"submission_id": "x"}"#]).await;
    let notice_ray_url = format!("http://127.0.0.1:{port}/{{cluster}}.{{namespace}}").parse().unwrap();
    let mut notices = notices(&fake, Config { notice_ray_url, ..config("me") }).await;
    let labels =
        |kind: &str| json!({ "metadata": { "labels": { "ray.io/cluster": "train", "ray.io/node-type": kind } } });
    let (head, _) = victim(&fake, &labels("head"));
    notices.announce(head).await;
    let (notice, _) = victim(&fake, &labels("worker"));
    notices.announce(notice.clone()).await;
    eventually("the job is submitted", || seen.lock().unwrap().len() == 2).await;
    let sent = seen.lock().unwrap().clone();
    assert!(sent[0].starts_with("GET /train.team-a/api/v0/nodes"), "{}", sent[0]);
    let (head, body) = sent[1].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /train.team-a/api/jobs/ "), "{head}");
    let job: Value = serde_json::from_str(body).unwrap();
    let entrypoint = job["entrypoint"].as_str().unwrap();
    assert!(
        entrypoint.starts_with("ray drain-node --node-id abcd --reason DRAIN_NODE_REASON_PREEMPTION"),
        "{entrypoint}"
    );
    let left_s: i64 = entrypoint.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(entrypoint.contains("--deadline-remaining-seconds") && (40..=60).contains(&left_s), "{entrypoint}");
    assert!(job["submission_id"].as_str().unwrap().starts_with("headroom-drain-"));
}

#[test]
fn settings_that_cannot_give_notice_are_refused_with_their_key() {
    let refused = |config: Config| check(&config).unwrap_err().to_string();
    let url = || "http://127.0.0.1:1/hook".parse().unwrap();
    let none = refused(Config { notice_webhook_url: url(), ..Config::default() });
    assert!(none.starts_with("notice_secret_file: it is not set"), "{none}");
    let missing =
        Config { notice_checkpoint_hooks: true, notice_secret_file: "/missing".parse().unwrap(), ..Config::default() };
    assert!(refused(missing).starts_with("notice_secret_file: /missing"));
    assert_eq!(check(&Config::default()), Ok(()));
}
