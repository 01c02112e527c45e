//! Streams of quotas, and what happens where too much is asked.

use super::*;
use axum::http::Request;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;
use tests::{Listening, on_both_databases};
use tower::ServiceExt;

on_both_databases![
    a_stream_sends_the_quota_and_each_new_one_and_no_old_ones,
    slow_clients_and_those_that_ask_too_often_are_refused_and_quotas_are_answered,
    beyond_its_connections_the_service_lets_others_wait,
];

const STREAM: &str = "/v1/quota/stream?cluster=demo&gpu_model=A100&hours=1";

async fn a_stream_sends_the_quota_and_each_new_one_and_no_old_ones(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let open = async |last: Option<&str>| {
        let request =
            last.into_iter().fold(Request::get(STREAM), |request, last| request.header("last-event-id", last));
        let response = service.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        response.into_body()
    };
    let mut stream = open(None).await;
    let first = stream_events(&mut stream, 1).await;
    assert_eq!(first[0].1, quota(&service, 1).await);
    // Three quotas that nobody read meanwhile are one event: the newest.
    for idle in [30, 20, 10] {
        let path = "/v1/pools/demo:A100/state";
        service.pass_s(1);
        let now = service.service.core.clock.now();
        let _ = service.put(path, &state(90, idle, &json!({}), now)).await.expect(200);
        service.renew().await;
    }
    let second = stream_events(&mut stream, 1).await;
    assert_eq!(second[0].1, quota(&service, 1).await);
    assert_ne!(first[0].0, second[0].0);
    // A client that has seen that receives the next one alone.
    let mut late = open(Some(&second[0].0)).await;
    service.pass_s(660);
    let aged = stream_events(&mut late, 1).await;
    assert_eq!(aged[0].1["stage"], "stale", "an answer that ages is another one");
    let unknown = service.get(&STREAM.replace("A100", "B200")).await.expect(404);
    assert_eq!(unknown["code"], "unknown-pool");
    assert_eq!(service.get(&STREAM.replace("hours=1", "hours=9")).await.expect(404)["code"], "unknown-hours");
}

fn listening(database: &TestDatabase, settings: &str) -> (Listening, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("headroom.toml");
    std::fs::write(&config, format!("[quota-service]\nlog = \"error\"\n{settings}\n")).unwrap();
    let service = Listening::start(&["--database", &database.url, "--config", config.to_str().unwrap()]);
    (service, folder)
}

/// The answer to a text that is sent as it is, until the connection is closed or nothing more comes for so long.
fn raw(address: &str, text: &str, wait: Duration) -> (String, Duration) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(wait)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let (started, mut answer, mut buffer) = (Instant::now(), Vec::new(), [0; 4_096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..read]);
        if answer.ends_with(b"}") {
            break;
        }
    }
    (String::from_utf8(answer).unwrap(), started.elapsed())
}

async fn slow_clients_and_those_that_ask_too_often_are_refused_and_quotas_are_answered(database: TestDatabase) {
    let _ = serving(&database, 500).await;
    let limits = "header_limit_s = 1\nrequest_limit_s = 1\nmax_requests_per_s = 5";
    let (service, _folder) = listening(&database, limits);
    let quota = quota_path(1);
    let _ = service.get_until(&quota, |status, _| status == 200);
    // Half a head: the connection is closed.
    let (answer, took) = raw(&service.address, "GET /quota HTTP/1.1\r\nho", Duration::from_secs(8));
    assert!(took < Duration::from_secs(6) && !answer.contains("200"), "{took:?} {answer}");
    // A body that does not come: the answer names the fault.
    let head =
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let (answer, _) = raw(&service.address, head, Duration::from_secs(8));
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("too-slow"), "{answer}");
    // Twenty at once are more than ten, two seconds' worth: some are refused, quotas never are.
    let asked: Vec<(u16, Value)> = (0..20).map(|_| service.get("/v1/pools")).collect();
    let refused: Vec<_> = asked.iter().filter(|(status, _)| *status == 429).collect();
    assert!((5..20).contains(&refused.len()), "{asked:?}");
    assert_eq!((&refused[0].1["code"], refused[0].1["retry_after_s"].is_u64()), (&"too-many".into(), true));
    assert!((0..40).all(|_| service.get(&quota).0 == 200));
    assert_eq!(service.stop().code, 0);
}

async fn beyond_its_connections_the_service_lets_others_wait(database: TestDatabase) {
    let _ = serving(&database, 500).await;
    let (service, _folder) = listening(&database, "max_connections = 2\nmax_streams = 1");
    let quota = quota_path(1);
    let _ = service.get_until(&quota, |status, _| status == 200);
    let request = format!("GET {STREAM} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let open = |text: &str| {
        let mut stream = TcpStream::connect(&service.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut buffer = [0; 4_096];
        let read = stream.read(&mut buffer);
        (stream, read.map(|read| String::from_utf8_lossy(&buffer[..read]).into_owned()).unwrap_or_default())
    };
    let (first, answer) = open(&request);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (second, answer) = open(&request);
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after"), "one stream is all: {answer}");
    // Both connections are taken: a third one is answered when one of them has gone.
    let waiting = std::thread::spawn({
        let (address, text) = (service.address.clone(), format!("GET {quota} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        move || raw(&address, &text, Duration::from_secs(20))
    });
    std::thread::sleep(Duration::from_millis(700));
    assert!(!waiting.is_finished());
    drop(second);
    let (answer, took) = waiting.join().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && took >= Duration::from_millis(500), "{took:?} {answer}");
    drop(first);
    assert_eq!(service.stop().code, 0);
}
