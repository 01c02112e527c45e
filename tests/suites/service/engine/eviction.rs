//! Evicted runs: announced to the task, as events, and to the webhook.

use super::*;
use crate::service::tokens::{asked, token};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::post;
use quota_service::config::WebhookFormat;
use quota_service::engine::Webhook;
use std::sync::Mutex;
use std::time::Duration;
use store::Role;
use tests::on_both_databases;
use tower::ServiceExt;

on_both_databases![
    hp_evicts_spot_after_its_grace_period_and_both_receive_events,
    events_go_on_behind_the_last_one_that_was_seen,
    the_webhook_receives_every_event_signed_once_it_answers,
    a_chat_gets_a_sentence_for_each_event_of_the_kinds_that_it_wants,
    a_message_that_is_refused_for_good_is_set_aside_and_counted_and_the_next_ones_arrive,
    a_failed_node_and_a_drained_one_cut_runs_that_break_no_promise,
    a_task_that_is_evicted_again_and_again_rests,
    a_token_with_an_organization_sees_no_name_of_a_task_of_another,
    a_waiting_task_is_answered_with_the_reason_of_now_as_the_list_has_it,
];

const SECRET: &[u8] = b"a secret of a webhook";

/// The next events of a stream, as pairs of id and data.
pub(super) async fn events(service: &TestService, last: Option<&str>, count: usize) -> Vec<(String, Value)> {
    let mut request = Request::get(format!("/v1/events?{OF_POOL}"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = service.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    stream_events(&mut response.into_body(), count).await
}

async fn hp_evicts_spot_after_its_grace_period_and_both_receive_events(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &spot("spot", 4.0, 2, None)).await;
    service.pass_s(100);
    let now = end().plus_s(160);
    let started = submit(&service, &hp("urgent", 8.0, 1)).await;
    assert_eq!(started["detail"]["victims"], json!(["spot"]));
    assert_eq!(started["detail"]["run"]["since"], now.to_string());
    assert_eq!(started["detail"]["run"]["starts"], now.plus_s(30).to_string(), "when spot has saved its work");
    let cut = task(&service, "spot").await;
    assert_eq!((&cut["status"], &cut["detail"]["waits"]["code"]), (&"waiting".into(), &"rests".into()));
    let expected =
        json!({ "at": now.to_string(), "code": "evicted", "by": "urgent", "deadline": now.plus_s(30).to_string() });
    assert_eq!(cut["detail"]["cut"], expected);
    let kinds: Vec<_> = events(&service, Some("0.0"), 4).await.into_iter().map(|(_, event)| event).collect();
    let of = |kind: &str| kinds.iter().find(|event| event["kind"] == kind).unwrap();
    assert_eq!((&of("evicted")["task"], &of("evicted")["by"]), (&"spot".into(), &"urgent".into()));
    assert_eq!((&of("evicted")["deadline"], &of("evicted")["nodes"]), (&expected["deadline"], &json!(["n0"])));
    assert_eq!((&kinds[3]["kind"], &kinds[3]["task"]), (&"started".into(), &"urgent".into()), "after it made room");
    service.pass_s(30);
    let _ = tell(&service, "urgent", "finish").await.expect(200);
    let again = task(&service, "spot").await;
    assert_eq!(
        (&again["status"], &again["detail"]["run"]["since"]),
        (&"running".into(), &now.plus_s(30).to_string().into())
    );
}

async fn events_go_on_behind_the_last_one_that_was_seen(database: TestDatabase) {
    let service = placing(&database, 1).await;
    for number in 0..3 {
        let _ = submit(&service, &hp(&format!("task-{number}"), 1.0, 1)).await;
    }
    let all = events(&service, Some("0.0"), 4).await;
    assert_eq!(all[0].1["kind"], "quota_changed", "the first task met the quotas");
    assert_eq!(all[0].1["limits"].as_array().unwrap().len(), 3);
    let ids: Vec<_> = all.iter().map(|(id, event)| (id, event["id"].as_str().unwrap())).collect();
    assert!(ids.iter().all(|(id, inside)| id == inside), "{ids:?}");
    assert_eq!(events(&service, Some(&all[1].0), 2).await, all[2..]);
    let waiting = events(&service, Some(&all[3].0), 1);
    let submitting = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let _ = tell(&service, "task-0", "checkpoint").await.expect(200);
        submit(&service, &hp("late", 1.0, 1)).await
    };
    let (received, _) = tokio::join!(waiting, submitting);
    assert_eq!(received[0].1["task"], "late");
}

/// A signature, where there is one, and the body under it.
type Signed = (Option<String>, Vec<u8>);

/// The received events of a webhook, and whether it takes any.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<(bool, Vec<Signed>)>>);

impl Taken {
    /// Waits until so many bodies are there, for ten seconds at most.
    async fn bodies(&self, count: usize) -> Vec<Value> {
        for _ in 0..100 {
            if self.0.lock().unwrap().1.len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.0.lock().unwrap().1.iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect()
    }
}

async fn hook() -> (Taken, String) {
    let taken = Taken::default();
    let seen = taken.clone();
    let take = move |headers: HeaderMap, body: Bytes| async move {
        let mut seen = seen.0.lock().unwrap();
        if !seen.0 {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        let signature = headers.get("headroom-signature").map(|value| value.to_str().unwrap().to_owned());
        seen.1.push((signature, body.to_vec()));
        StatusCode::NO_CONTENT
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/hook", post(take))).await });
    (taken, url)
}

async fn the_webhook_receives_every_event_signed_once_it_answers(database: TestDatabase) {
    let (taken, url) = hook().await;
    let webhook = Webhook::new(&url, SECRET).unwrap();
    let store = serving(&database, 500).await.service.core.store.clone();
    let service = TestService::start_with(store, end().plus_s(60), 10_000, Some(webhook)).await;
    put_node(&service, "n0", false).await;
    let _ = submit(&service, &spot("spot", 8.0, 1, None)).await;
    let _ = submit(&service, &hp("urgent", 8.0, 1)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    taken.0.lock().unwrap().0 = true;
    for _ in 0..100 {
        if taken.0.lock().unwrap().1.len() >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let taken = taken.0.lock().unwrap().1.clone();
    let signer = serving::webhook::Webhook::new(&url, SECRET).unwrap();
    assert!(taken.iter().all(|(signature, body)| *signature == signer.signature(body)), "every body is signed");
    let bodies: Vec<Value> = taken.iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect();
    let received: Vec<Value> = bodies.iter().map(|body| json!([body["kind"], body["task"]])).collect();
    let expected = json!([["started", "spot"], ["evicted", "spot"], ["started", "urgent"]]);
    assert_eq!(Value::Array(received), expected);
}

async fn a_chat_gets_a_sentence_for_each_event_of_the_kinds_that_it_wants(database: TestDatabase) {
    let (taken, url) = hook().await;
    taken.0.lock().unwrap().0 = true;
    let kinds = "evicted".parse().unwrap();
    let webhook = Webhook::unsigned(&url).unwrap().sending(WebhookFormat::Slack, kinds);
    let store = serving(&database, 500).await.service.core.store.clone();
    let service = TestService::start_with(store, end().plus_s(60), 10_000, Some(webhook)).await;
    put_node(&service, "n0", false).await;
    let _ = submit(&service, &spot("spot", 8.0, 1, None)).await;
    let _ = submit(&service, &hp("urgent", 8.0, 1)).await;
    for _ in 0..100 {
        if !taken.0.lock().unwrap().1.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let taken = taken.0.lock().unwrap().1.clone();
    let [(None, message)] = taken.as_slice() else { panic!("one, and unsigned: {taken:?}") };
    let message: Value = serde_json::from_slice(message).unwrap();
    assert!(message["text"].as_str().unwrap().contains(": spot is evicted for urgent on n0"), "{message}");
}

/// Refuses each message about the task `poison` with 400, and the first one about the task `slow` with 429.
async fn picky_hook() -> (Taken, String) {
    let taken = Taken::default();
    let seen = taken.clone();
    let take = move |body: Bytes| async move {
        let mut seen = seen.0.lock().unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        if text.contains("poison") {
            return (StatusCode::BAD_REQUEST, "invalid_payload");
        }
        if text.contains("slow") && !seen.0 {
            seen.0 = true;
            return (StatusCode::TOO_MANY_REQUESTS, "");
        }
        seen.1.push((None, body.to_vec()));
        (StatusCode::NO_CONTENT, "")
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/hook", post(take))).await });
    (taken, url)
}

/// The metrics of this process, from the first call on.
fn metrics() -> String {
    static RENDER: std::sync::OnceLock<Box<dyn Fn() -> String + Send + Sync>> = std::sync::OnceLock::new();
    let install = || -> Box<dyn Fn() -> String + Send + Sync> {
        let render = quota_service::metrics::install();
        Box::new(move || render.render())
    };
    RENDER.get_or_init(install)()
}

async fn a_message_that_is_refused_for_good_is_set_aside_and_counted_and_the_next_ones_arrive(database: TestDatabase) {
    let _ = metrics();
    let (taken, url) = picky_hook().await;
    let webhook = Webhook::unsigned(&url).unwrap().sending(WebhookFormat::Json, "started".parse().unwrap());
    let store = serving(&database, 500).await.service.core.store.clone();
    let service = TestService::start_with(store, end().plus_s(60), 10_000, Some(webhook)).await;
    put_node(&service, "n0", false).await;
    for task in ["first", "poison", "slow", "last"] {
        let _ = submit(&service, &hp(task, 1.0, 1)).await;
    }
    let bodies = taken.bodies(3).await;
    let tasks: Vec<&str> = bodies.iter().map(|body| body["task"].as_str().unwrap()).collect();
    assert_eq!(tasks, ["first", "slow", "last"], "one that may be taken later is sent again before those behind it");
    let metrics = metrics();
    let counted = |line: &str| line.starts_with("headroom_webhook_refused_total{") && line.contains("status=\"400\"");
    assert!(metrics.lines().any(counted), "{metrics}");
    let kept = events(&service, Some("0.0"), 4).await;
    assert!(kept.iter().any(|(_, event)| event["task"] == "poison"), "nothing is lost: {kept:?}");
}

async fn a_failed_node_and_a_drained_one_cut_runs_that_break_no_promise(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let _ = submit(&service, &hp("other", 1.0, 1)).await;
    for (id, cause, events_so_far) in [("a", "failed", 5), ("b", "drained", 8)] {
        let started = submit(&service, &spot(id, 8.0, 1, Some(1))).await;
        let node = nodes(&started)[0].to_owned();
        let path = format!("/v1/nodes/{node}?cluster=demo&cause={cause}");
        assert_eq!(service.send(Method::DELETE, &path, &[], None).await.status, 204);
        let again = task(&service, id).await;
        assert_eq!(again["status"], "running", "elsewhere: {again}");
        assert_ne!(nodes(&again), [node.as_str()]);
        let received = events(&service, Some("0.0"), events_so_far).await;
        assert!(
            received.iter().any(|(_, event)| event["kind"] == "node_lost" && event["by"] == node),
            "{cause}: {received:?}"
        );
    }
    let counts = service.service.core.store.count_outcomes(&pool(POOL), at(0)).await.unwrap();
    let counts: Vec<u64> = counts.into_values().collect();
    assert_eq!(counts, [0, 0, 1, 1, 0], "kept, broken, node failure, drain, deleted");
    let path = "/v1/nodes/n9?cluster=demo&cause=bored";
    assert_eq!(service.send(Method::DELETE, path, &[], None).await.status, 400);
}

async fn a_task_that_is_evicted_again_and_again_rests(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &spot("spot", 8.0, 1, None)).await;
    for number in 0..4 {
        let _ = submit(&service, &hp(&format!("hp-{number}"), 8.0, 1)).await;
        service.pass_s(30);
        let _ = tell(&service, &format!("hp-{number}"), "finish").await.expect(200);
    }
    let rests = task(&service, "spot").await;
    assert_eq!((&rests["status"], &rests["detail"]["waits"]["code"]), (&"waiting".into(), &"rests".into()));
    service.pass_s(900);
    service.renew().await;
    assert_eq!(task(&service, "spot").await["status"], "running");
}

async fn a_token_with_an_organization_sees_no_name_of_a_task_of_another(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let admin = token(&service, 1, Role::Admin, None, &[]).await;
    let mine = token(&service, 2, Role::Place, Some("org-000"), &[]).await;
    let theirs = token(&service, 3, Role::Place, Some("org-001"), &[]).await;
    let of_them = |mut body: Value| {
        body["organization"] = "org-001".into();
        body
    };
    let post = async |token: &str, path: &str, body: Value| asked(&service, token, "post", path, Some(&body)).await;
    let get = async |token: &str, id: &str| {
        asked(&service, token, "get", &format!("/v1/tasks/{id}?{OF_POOL}"), None).await.expect(200)
    };
    let _ = post(&mine, "/v1/tasks", spot("merger", 8.0, 1, None)).await.expect(200);
    let secret = of_them(hp("secret", 8.0, 1));
    for path in ["/v1/tasks/dry-run", "/v1/tasks"] {
        let answer = post(&theirs, path, secret.clone()).await.expect(200);
        assert_eq!(answer["status"], "running");
        assert!(!answer.to_string().contains("merger"), "{path}: {answer}");
    }
    let cut = get(&mine, "merger").await["detail"]["cut"].clone();
    assert_eq!((&cut["code"], &cut["by"]), (&json!("evicted"), &json!("")), "{cut}");
    assert_eq!(get(&admin, "org-000%2Fmerger").await["detail"]["cut"]["by"], "org-001/secret");
    assert_eq!(get(&admin, "org-001%2Fsecret").await["detail"]["victims"], json!(["org-000/merger"]));
    // Its own tasks have the names that it uses.
    let finish = format!("/v1/tasks/secret/finish?{OF_POOL}");
    let _ = asked(&service, &theirs, "post", &finish, None).await.expect(200);
    let _ = post(&theirs, "/v1/tasks", of_them(spot("own", 8.0, 1, None))).await.expect(200);
    let again = post(&theirs, "/v1/tasks", of_them(hp("again", 8.0, 1))).await.expect(200);
    assert_eq!(again["detail"]["victims"], json!(["own"]), "{again}");
    assert_eq!(get(&theirs, "own").await["detail"]["cut"]["by"], "again");
}

async fn a_waiting_task_is_answered_with_the_reason_of_now_as_the_list_has_it(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &spot("spot", 4.0, 2, None)).await;
    let _ = submit(&service, &hp("urgent", 8.0, 1)).await;
    assert_eq!(task(&service, "spot").await["detail"]["waits"]["code"], "rests");
    service.pass_s(60);
    service.renew().await;
    let list = service.get(&format!("/v1/tasks?{OF_POOL}&status=waiting")).await.expect(200);
    let now = &list["tasks"][0]["detail"]["waits"];
    assert_ne!(now["code"], "rests", "{list}");
    let one = task(&service, "spot").await;
    assert_eq!((&one["detail"]["waits"], &one["detail"]["cut"]["by"]), (now, &json!("urgent")), "{one}");
    let explained = service.get(&format!("/v1/tasks/spot/explain?{OF_POOL}")).await.expect(200);
    assert_eq!(&explained["task"]["detail"]["waits"], now, "{explained}");
}
