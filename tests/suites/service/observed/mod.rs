//! The running service from outside: traces, and a log with each fault once.

mod collector;

use super::drift::Log;
use super::retrain::with_run;
use super::*;
use collector::{Collector, Received};
use tempfile::TempDir;
use tests::{Backend, Fault, Listening, Proxy, fresh_database, promote};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A service with these settings, and the folder of its settings file.
fn start(database: &TestDatabase, lines: &str) -> (Listening, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.toml");
    std::fs::write(&file, format!("[quota-service]\nshutdown_grace_s = 1\n{lines}\n")).unwrap();
    let arguments = ["--database", &database.url, "--config", file.to_str().unwrap()];
    (Listening::start(&arguments), folder)
}

fn traced(collector: &Collector, replica: &str) -> String {
    format!("otlp_endpoint = {:?}\nreplica = {replica:?}", collector.endpoint)
}

/// Asks as a caller with a trace, sampled or not.
fn ask(service: &Listening, method: &str, path: &str, body: Option<&Value>, sampled: bool) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let (url, parent) =
        (format!("http://{}{path}", service.address), format!("00-{TRACE}-{CALLER}-0{}", u8::from(sampled)));
    let sent = match (method, body) {
        ("PUT", Some(body)) => agent.put(url).header("traceparent", parent).send_json(body),
        (_, Some(body)) => agent.post(url).header("traceparent", parent).send_json(body),
        _ => agent.get(url).header("traceparent", parent).call(),
    };
    sent.unwrap().status().as_u16()
}

fn of<'a>(spans: &'a [Received], name: &str, parent: &str) -> &'a Received {
    let found = spans.iter().find(|span| span.name == name && span.parent == parent);
    found.unwrap_or_else(|| panic!("no {name} under {parent:?}: {spans:#?}"))
}

fn task(id: &str) -> Value {
    json!({ "cluster": "demo", "gpu_model": "A100", "id": id, "organization": "org-000", "class": "hp",
        "gpus_per_pod": 1.0, "pods": 1 })
}

#[tokio::test]
async fn requests_renewals_and_decisions_are_traced_and_quotas_are_not() {
    let database = fresh_database(Backend::Sqlite).await;
    with_run(&database, 0).await.close().await;
    let collector = Collector::start();
    let (service, _folder) = start(&database, &traced(&collector, "one"));
    let _ = service.get_until(&quota_path(4), |status, _| status == 200);
    assert_eq!(ask(&service, "GET", "/v1/pools", None, true), 200);
    assert_eq!(ask(&service, "GET", "/v1/nodes?cluster=demo", None, false), 200);
    assert_eq!(ask(&service, "GET", &quota_path(4), None, true), 200);
    let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
    assert_eq!(ask(&service, "PUT", "/v1/nodes/n0", Some(&node), true), 200);
    assert_eq!(ask(&service, "POST", "/v1/tasks", Some(&task("a")), true), 200);
    assert_eq!(service.stop().code, 0);
    let spans = collector.spans();
    // 1. Requests, in the trace of their caller.
    let pools = of(&spans, "GET /v1/pools", CALLER);
    assert_eq!(pools.trace, TRACE);
    let attribute = |span: &Received, key: &str| span.attributes.get(key).cloned().unwrap_or_default();
    assert_eq!(
        ["http.request.method", "http.route", "http.response.status_code"].map(|key| attribute(pools, key)),
        ["GET", "/v1/pools", "200"]
    );
    let resource = ["service.name", "service.version", "service.instance.id"].map(|key| pools.resource[key].clone());
    assert_eq!(resource, ["headroom-quota-service", env!("CARGO_PKG_VERSION"), "one"]);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert!(!names.iter().any(|name| name.contains("quota") || name.contains("GET /v1/nodes")), "{names:?}");
    // 2. What the pool decided, under the request.
    let submitted = of(&spans, "POST /v1/tasks", CALLER);
    let decided = spans.iter().filter(|span| span.name == "decide" && span.parent == submitted.id);
    let decided: Vec<_> = decided.map(|span| ["pool", "asked", "outcome"].map(|key| attribute(span, key))).collect();
    assert!(decided.contains(&[POOL, "submit", "running"].map(str::to_owned)), "{decided:?}");
    // 3. Renewals, step by step.
    let complete = |renewal: &&Received| {
        let cluster = spans.iter().find(|span| span.name == "cluster" && span.parent == renewal.id);
        let steps = |cluster: &Received| spans.iter().filter(|span| span.parent == cluster.id).count();
        cluster.is_some_and(|cluster| attribute(cluster, "cluster") == "demo" && steps(cluster) == 4)
    };
    let renewal = spans.iter().filter(|span| span.name == "renewal").find(complete).expect("a whole renewal");
    let cluster = of(&spans, "cluster", &renewal.id);
    for step in ["read", "think", "write", "publish"] {
        assert_eq!(of(&spans, step, &cluster.id).trace, renewal.trace);
    }
    assert!(renewal.trace != TRACE && renewal.parent.is_empty(), "{renewal:?}");
}

#[tokio::test]
async fn a_request_that_is_forwarded_stays_one_trace() {
    let database = fresh_database(Backend::Sqlite).await;
    let store = with_run(&database, 0).await;
    let collector = Collector::start();
    let (one, _one) = start(&database, &traced(&collector, "one"));
    let _ = one.get_until(&quota_path(1), |status, _| status == 200);
    let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
    assert_eq!(one.send("PUT", "/v1/nodes/n0", Some(&node)).unwrap().0, 200);
    let (two, _two) = start(&database, &traced(&collector, "two"));
    assert_eq!(ask(&two, "POST", "/v1/tasks", Some(&task("a")), true), 200);
    assert_eq!((two.stop().code, one.stop().code), (0, 0));
    let spans = collector.named("POST /v1/tasks");
    let first = of(&spans, "POST /v1/tasks", CALLER);
    let second = of(&spans, "POST /v1/tasks", &first.id);
    let instance = |span: &Received| span.resource["service.instance.id"].clone();
    assert_eq!((instance(first), instance(second), second.trace.as_str()), ("two".into(), "one".into(), TRACE));
    store.close().await;
}

#[tokio::test]
async fn a_collector_that_is_gone_costs_spans_and_nothing_else_and_is_logged_once() {
    let database = fresh_database(Backend::Sqlite).await;
    with_run(&database, 0).await.close().await;
    let address = tests::free_address();
    let lines = format!("otlp_endpoint = \"http://{address}\"\nlog_format = \"json\"");
    let (service, _folder) = start(&database, &lines);
    let _ = service.get_until(&quota_path(4), |status, _| status == 200);
    for _ in 0..50 {
        assert_eq!(service.get("/v1/pools").0, 200);
    }
    let ended = service.stop();
    assert_eq!(ended.code, 0, "{ended:?}");
    // Every line is an object, with its time, level and message.
    let lines: Vec<Value> = ended.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["message"].is_string()), "{lines:?}");
    let answer: Vec<&Value> =
        lines.iter().filter(|line| line["message"].to_string().contains("takes no spans")).collect();
    assert_eq!(answer.len(), 1, "{lines:?}");
    assert!(answer[0]["level"] == "WARN" && answer[0]["why"].to_string().contains("refused"), "{}", answer[0]);
}

#[tokio::test]
async fn an_outage_of_the_database_is_logged_when_it_begins_and_when_it_is_over() {
    let database = fresh_database(Backend::Postgres).await;
    let store = with_usage(&database, 500).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    let network = Proxy::to(&database.url).await;
    let through = store::connect(&network.url(&database.url)).await.unwrap();
    let service = TestService::start(through, end().plus_s(60)).await;
    let log = Log::default();
    let _listening = log.listen();
    service.renew().await;
    let begins = || log.lines_with(&["WARN", "not renewed"]);
    let over = || log.lines_with(&["INFO", "the quotas are renewed again", "times=3"]);
    assert_eq!((begins(), over()), (0, 0));
    network.inject(Fault::Gone);
    for _ in 0..3 {
        service.pass_s(300);
        service.renew().await;
    }
    assert_eq!((begins(), over()), (1, 0));
    network.heal();
    for _ in 0..2 {
        service.pass_s(300);
        service.renew().await;
    }
    assert_eq!((begins(), over()), (1, 1));
}
