//! The client against a server with a list of responses.

use crate::{Client, ClientError, Options, available_gpus};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::version::TLS13;

/// Answers each connection with the next response, then closes it. Returns its URL and the requests that it has received.
async fn answering(responses: Vec<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Vec::new()));
    let requests = received.clone();
    tokio::spawn(async move {
        for response in responses {
            let (mut connection, _) = listener.accept().await.unwrap();
            let (mut request, mut part) = (Vec::new(), [0; 4_096]);
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                let read = connection.read(&mut part).await.unwrap();
                request.extend_from_slice(&part[..read]);
            }
            requests.lock().unwrap().push(String::from_utf8(request).unwrap());
            connection.write_all(response.as_bytes()).await.unwrap();
            connection.shutdown().await.unwrap();
        }
    });
    (url, received)
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

fn client(url: &str, patience_s: u64) -> Client {
    let options = Options {
        url: url.parse().unwrap(),
        patience: Duration::from_secs(patience_s),
        limit: Duration::from_secs(5),
        ..Options::default()
    };
    Client::new(options).unwrap()
}

fn quota(available: f64) -> String {
    format!(
        r#"{{"cluster": "earth", "gpu_model": "A100", "hours": 4, "guarantee_rate": 0.9, "quota_gpus": 20.0, "used_gpus": 0.0,
            "available_gpus": {available}, "inventory_gpus": 20.0, "capacity_gpus": 40.0, "demand_bound_gpus": 20.0, "eta": 1.0,
            "idle_gpus": 20.0, "aggregation": "pooled", "run_id": null, "computed_at": "2026-01-05T10:00:00Z",
            "valid_until": "2026-01-05T10:10:00Z", "stage": "fresh", "stale": false, "reasons": []}}"#
    )
}

const BUSY: &str =
    r#"{"type": "/problems/overloaded", "title": "Overloaded", "status": 503, "detail": "busy", "code": "overloaded"}"#;

#[tokio::test]
async fn a_patient_client_tries_again_after_the_time_that_the_service_names() {
    let busy = response("503 Service Unavailable", "retry-after: 0\r\n", BUSY);
    let (url, received) = answering(vec![busy.clone(), busy, response("200 OK", "", &quota(3.0))]).await;
    let answer = client(&url, 60).pool("earth", "A100").quota(4).await.unwrap();
    assert_eq!(answer.available_gpus, 3.0);
    let received = received.lock().unwrap();
    assert_eq!(received.len(), 3);
    assert!(received[0].starts_with("GET /v1/quota?cluster=earth&gpu_model=A100&hours=4 HTTP/1.1"), "{}", received[0]);
}

#[tokio::test]
async fn an_impatient_client_says_at_once_that_the_service_is_busy_and_with_which_code() {
    let (url, _) = answering(vec![response("503 Service Unavailable", "retry-after: 7\r\n", BUSY)]).await;
    let fault = client(&url, 0).pools().await.unwrap_err();
    assert_eq!((fault.is_transient(), fault.code(), fault.status()), (true, Some("overloaded"), Some(503)));
    assert!(fault.to_string().ends_with("/v1/pools answers 503: busy"), "{fault}");
}

#[tokio::test]
async fn a_refusal_names_the_refused_fields_and_is_not_sent_again() {
    let problem = r#"{"type": "/problems/invalid-body", "title": "Invalid body", "status": 400, "detail": "a field is refused",
        "code": "invalid-body", "errors": [{"pointer": "/pods", "detail": "a task needs at least one pod"}]}"#;
    let (url, received) = answering(vec![response("400 Bad Request", "", problem)]).await;
    let fault = client(&url, 60).pools().await.unwrap_err();
    assert!(fault.to_string().ends_with("a field is refused; /pods: a task needs at least one pod"), "{fault}");
    assert!(!fault.is_transient() && !fault.is_retryable());
    assert_eq!(received.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_of_something_else_and_a_missing_token_are_named() {
    let (url, _) = answering(vec![response("200 OK", "", "<html>")]).await;
    assert!(matches!(client(&url, 60).pools().await, Err(ClientError::Foreign { .. })));
    let options = Options { token_file: Some("/missing/token".into()), ..Options::default() };
    let fault = Client::new(options).unwrap().pools().await.unwrap_err();
    assert!(fault.to_string().starts_with("token_file: /missing/token: "), "{fault}");
}

#[tokio::test]
async fn a_file_without_one_token_is_refused_before_anything_is_sent() {
    for text in ["", "two\nlines\n", "two words"] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let options = Options { token_file: Some(file.path().to_owned()), ..Options::default() };
        let fault = Client::new(options).unwrap().pools().await.unwrap_err().to_string();
        assert!(fault.contains(file.path().to_str().unwrap()) && fault.contains("expected one token"), "{fault}");
    }
}

#[tokio::test]
async fn a_refusal_lists_the_known_names_up_to_a_dozen() {
    let refused = async |names: usize| {
        let known: Vec<String> = (1..=names).map(|name| name.to_string()).collect();
        let problem = serde_json::json!({ "type": "/problems/unknown-hours", "title": "Unknown hours", "status": 404,
            "detail": "choose one of `known`", "code": "unknown-hours", "known": known });
        let (url, _) = answering(vec![response("404 Not Found", "", &problem.to_string())]).await;
        client(&url, 0).pools().await.unwrap_err().to_string()
    };
    assert!(refused(3).await.ends_with("choose one of `known`; known: 1, 2, 3"));
    assert!(refused(15).await.ends_with("10, 11, 12 and 3 more"));
    assert!(refused(0).await.ends_with("choose one of `known`"));
}

#[tokio::test]
async fn a_quota_is_followed_by_its_tag_and_goes_on_after_a_failure() {
    let responses = vec![
        response("200 OK", "etag: \"a\"\r\n", &quota(3.0)),
        response("502 Bad Gateway", "retry-after: 0\r\n", "proxy"),
        response("304 Not Modified", "", ""),
        response("200 OK", "etag: \"b\"\r\n", &quota(5.0)),
    ];
    let (url, received) = answering(responses).await;
    let mut quotas = client(&url, 0).pool("earth", "A100").quotas(4);
    assert_eq!(quotas.next().await.unwrap().available_gpus, 3.0);
    assert!(quotas.next().await.unwrap_err().is_transient());
    assert_eq!(quotas.last().unwrap().available_gpus, 3.0);
    assert_eq!(quotas.next().await.unwrap().available_gpus, 5.0);
    let received = received.lock().unwrap();
    assert!(!received[0].contains("if-none-match") && !received[0].contains("wait="), "{}", received[0]);
    for asked in &received[1..] {
        assert!(asked.contains("if-none-match: \"a\"") && asked.contains("&wait=30s"), "{asked}");
    }
}

#[test]
fn nothing_may_be_admitted_on_a_quota_that_is_too_old() {
    let quota = serde_json::from_str(&quota(3.0)).unwrap();
    let at = |text: &str| text.parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    assert_eq!(available_gpus(&quota, at("2026-01-05T10:09:59Z")), 3.0);
    assert_eq!(available_gpus(&quota, at("2026-01-05T10:10:00Z")), 0.0);
}

#[tokio::test]
async fn events_go_on_after_the_last_one_when_the_stream_breaks_off() {
    let event = |id: &str, kind: &str| {
        let json = format!(
            r#"{{"id": "{id}", "kind": "{kind}", "cluster": "earth", "gpu_model": "A100", "at": "2026-01-05T10:00:00Z"}}"#
        );
        format!("id: {id}\nevent: {kind}\ndata: {json}\n\n: alive\n\n")
    };
    let stream = |text: String| response("200 OK", "content-type: text/event-stream\r\n", &text);
    let first = stream(format!("{}{}", event("7.0", "started"), event("8.0", "evicted")));
    let (url, received) = answering(vec![first, stream(event("9.0", "started"))]).await;
    let mut events = client(&url, 0).pool("earth", "A100").events(Some("6.1".to_owned()));
    let mut ids = vec![events.next().await.unwrap().id, events.next().await.unwrap().id];
    assert!(events.next().await.unwrap_err().is_transient());
    ids.push(events.next().await.unwrap().id);
    assert_eq!(ids, ["7.0", "8.0", "9.0"]);
    let received = received.lock().unwrap();
    assert!(received[0].contains("last-event-id: 6.1") && received[1].contains("last-event-id: 8.0"), "{received:?}");
}

#[tokio::test]
async fn a_page_in_place_of_a_stream_of_events_is_no_quota_service() {
    let page = response("200 OK", "content-type: text/html\r\n", "<html>sign in</html>");
    let (url, _) = answering(vec![page]).await;
    let fault = client(&url, 0).pool("earth", "A100").events(None).next().await.unwrap_err();
    assert!(!fault.is_transient() && fault.to_string().contains("text/html"), "{fault}");
}

#[tokio::test]
async fn reservations_are_sold_tried_listed_and_withdrawn_and_their_calendar_is_text() {
    let stored = r#"{"id": 7, "cluster": "earth", "gpu_model": "A100", "organization": "lab", "gpus": 8.0,
        "from": "2026-12-01T09:00:00Z", "to": "2026-12-01T17:00:00Z", "repeats": null, "by": "desk",
        "created_at": "2026-11-01T00:00:00Z", "withdrawn_at": null, "withdrawn_by": null, "windows": []}"#;
    let request = wire::ReservationRequest {
        cluster: "earth".to_owned(),
        gpu_model: "A100".to_owned(),
        organization: "lab".to_owned(),
        gpus: 8.0,
        from: "2026-12-01T09:00:00Z".to_owned(),
        to: "2026-12-01T17:00:00Z".to_owned(),
        repeats: None,
    };
    let calendar = response("200 OK", "content-type: text/calendar; charset=utf-8\r\n", "BEGIN:VCALENDAR\r\n");
    let responses = vec![
        response("200 OK", "", &stored.replace("\"id\": 7", "\"id\": null")),
        response("503 Service Unavailable", "retry-after: 0\r\n", BUSY),
        response("201 Created", "", stored),
        response("200 OK", "", stored),
        response("200 OK", "", &format!("{{\"reservations\": [{stored}]}}")),
        calendar,
        "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_owned(),
        response("200 OK", "content-type: text/html\r\n", "<html>"),
    ];
    let (url, received) = answering(responses).await;
    let (client, pool) = (client(&url, 60), client(&url, 0).pool("earth", "A100"));
    assert_eq!(client.dry_run_reservation(&request).await.unwrap().id, None);
    assert_eq!(client.reserve(&request).await.unwrap().id, Some(7));
    assert_eq!(client.reservation(7).await.unwrap().organization, "lab");
    assert_eq!(pool.reservations(true).await.unwrap().reservations.len(), 1);
    assert_eq!(pool.reservations_ics(false).await.unwrap(), "BEGIN:VCALENDAR\r\n");
    client.withdraw(7).await.unwrap();
    let page = pool.reservations_ics(false).await.unwrap_err().to_string();
    assert!(page.contains("expected text/calendar, found text/html"), "{page}");
    let received = received.lock().unwrap();
    let asked: Vec<&str> = received.iter().map(|one| one.split(" HTTP").next().unwrap()).collect();
    let of = "cluster=earth&gpu_model=A100";
    assert_eq!(
        asked,
        [
            "POST /v1/reservations?dry_run=true",
            "POST /v1/reservations",
            "POST /v1/reservations",
            "GET /v1/reservations/7",
            &format!("GET /v1/reservations?{of}&past=true"),
            &format!("GET /v1/reservations.ics?{of}"),
            "DELETE /v1/reservations/7",
            &format!("GET /v1/reservations.ics?{of}"),
        ]
    );
}

#[tokio::test]
async fn a_pause_that_no_clock_holds_is_no_panic() {
    // The second is larger than any number of seconds that a program counts in.
    for named in ["18446744073709551615", "18446744073709551616"] {
        let busy = response("503 Service Unavailable", &format!("retry-after: {named}\r\n"), "proxy");
        let (url, requests) = answering(vec![busy.clone(), busy]).await;
        assert!(client(&url, 30).pools().await.unwrap_err().is_transient());
        assert_eq!(requests.lock().unwrap().len(), 1, "{named} s are beyond its patience");
    }
}

#[tokio::test]
async fn a_patient_client_asks_until_its_patience_ends() {
    let began = std::time::Instant::now();
    let fault = client("http://127.0.0.1:9", 2).pools().await.unwrap_err();
    // After 0.7 to 1 s, and at the end, though the second pause would be longer.
    assert!(fault.is_transient() && began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_id_of_dots_or_of_nothing_is_sent_by_no_call() {
    // Nothing listens there: a request would be a fault of another kind.
    let client = client("http://127.0.0.1:9", 0);
    let pool = client.pool("earth", "A100");
    let node = serde_json::from_str(r#"{"cluster": "earth", "gpu_model": "A100", "gpus": 8}"#).unwrap();
    for id in ["", ".", ".."] {
        let faults = [
            client.put_node(id, &node).await.unwrap_err(),
            pool.task(id).await.unwrap_err(),
            pool.explain_task(id).await.unwrap_err(),
            pool.task_eta(id).await.unwrap_err(),
            pool.delete(id).await.unwrap_err(),
            pool.finish(id).await.unwrap_err(),
            pool.checkpoint(id).await.unwrap_err(),
        ];
        assert!(faults.iter().all(|fault| *fault == ClientError::NoId { id: id.to_owned() }), "{faults:?}");
    }
}

/// Accepts one connection, by TLS where there is one, and writes these bytes.
async fn writing(bytes: &'static [u8], tls: Option<Arc<ServerConfig>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        if let Some(tls) = tls {
            let _ = tokio_rustls::TlsAcceptor::from(tls).accept(connection).await;
            return;
        }
        let mut begin = [0; 16];
        let _ = connection.read(&mut begin).await;
        let _ = connection.write_all(bytes).await;
        let _ = connection.shutdown().await;
    });
    port
}

#[tokio::test]
async fn a_connection_that_no_later_try_brings_about_is_named_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let made = |is_ca: rcgen::IsCa| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = is_ca;
        (params.self_signed(&key).unwrap(), key)
    };
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let server = |(certificate, key): &(rcgen::Certificate, rcgen::KeyPair)| {
        let server = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS13]).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        server.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap()
    };
    // As openssl makes it where nothing else is asked for.
    let own = made(rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
    let (as_authority, server) = (server(&own), server(&made(rcgen::IsCa::NoCa)));
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, own.0.pem()).unwrap();
    let asked = async |url: String| {
        let options = Options {
            url: url.parse().unwrap(),
            ca_file: Some(ca_file.clone()),
            setting_prefix: "api_",
            patience: Duration::from_mins(1),
            ..Options::default()
        };
        Client::new(options).unwrap().get::<serde_json::Value>("/v1/pools").await.unwrap_err()
    };
    let untrusted = asked(format!("https://localhost:{}", writing(b"", Some(Arc::new(server))).await)).await;
    assert!(matches!(&untrusted, ClientError::Settings { setting, .. } if setting == "api_ca_file"), "{untrusted}");
    let authority = asked(format!("https://localhost:{}", writing(b"", Some(Arc::new(as_authority))).await)).await;
    assert!(authority.to_string().contains("its certificate is one of an authority"), "{authority}");
    let plain = asked(format!("https://localhost:{}", writing(b"HTTP/1.1 400 Bad Request\r\n\r\n", None).await)).await;
    assert!(matches!(&plain, ClientError::Foreign { detail, .. } if detail.contains("http://")), "{plain}");
    // An alert of TLS.
    let secure = asked(format!("http://localhost:{}", writing(b"\x15\x03\x03\x00\x02\x02\x46", None).await)).await;
    assert!(matches!(&secure, ClientError::Foreign { detail, .. } if detail.contains("https://")), "{secure}");
    let moved = response("307 Temporary Redirect", "location: https://elsewhere.test/\r\n", "");
    let moved = asked(answering(vec![moved]).await.0).await;
    assert!(moved.to_string().contains("leads to https://elsewhere.test/"), "{moved}");
}
