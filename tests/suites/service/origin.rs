//! Pages of other sites, requests without a host, streams whose token has expired, and the log of refusals.

use super::*;
use axum::http::{Method, Request};
use quota_service::access::{NewToken, digest};
use std::io::{Read, Write};
use std::net::TcpStream;
use store::{Role, TokenRecord};
use tests::{Listening, on_both_databases, program};
use tower::ServiceExt;

on_both_databases![
    without_tokens_pages_of_other_sites_neither_read_nor_write,
    a_name_of_the_service_is_allowed_and_with_tokens_any_host_is,
    streams_and_long_polls_end_when_their_token_is_revoked_or_expires,
    refusals_are_logged_with_route_address_and_token_and_no_secret,
];

const FORM: &str = "application/x-www-form-urlencoded";

async fn without_tokens_pages_of_other_sites_neither_read_nor_write(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let refused = async |method: Method, path: &str, headers: &[(&str, &str)], body: Option<&str>| {
        let answer = service.send(method, path, headers, body.map(str::to_owned)).await;
        (answer.status, answer.body["code"].as_str().unwrap_or_default().to_owned())
    };
    let of = |status: u16, code: &str| (status, code.to_owned());
    let (get, post) = (Method::GET, Method::POST);
    for path in [&*quota_path(1), "/v1/pools", "/metrics", "/openapi.json"] {
        let found = refused(get.clone(), path, &[("host", "evil.example:8080")], None).await;
        assert_eq!(found, of(403, "foreign-host"), "{path}");
        assert_eq!(refused(get.clone(), path, &[("host", "localhost:8080")], None).await.0, 200, "{path}");
    }
    assert_eq!(refused(get, "/healthz", &[("host", "10.1.2.3:8080")], None).await.0, 200, "probes ask by any address");
    let finish = "/v1/tasks/a/finish?cluster=demo&gpu_model=A100";
    let evil = [("host", "localhost:8080"), ("origin", "http://evil.example"), ("content-type", FORM)];
    assert_eq!(refused(post.clone(), finish, &evil, None).await, of(403, "foreign-origin"));
    assert_eq!(
        refused(Method::DELETE, "/v1/nodes/n0?cluster=demo", &[evil[0], ("origin", "null")], None).await,
        of(403, "foreign-origin")
    );
    let form = [evil[0], ("content-type", FORM), ("content-length", "3")];
    assert_eq!(refused(post.clone(), finish, &form, Some("a=b")).await, of(415, "not-json"));
    let own = [evil[0], ("origin", "http://localhost:8080")];
    assert_eq!(refused(post, finish, &own, None).await.0, 404, "the dashboard's own page may write");
}

async fn a_name_of_the_service_is_allowed_and_with_tokens_any_host_is(database: TestDatabase) {
    drop(serving(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("headroom.toml");
    std::fs::write(&config, "[quota-service]\nlog = \"error\"\nallowed_hosts = \"headroom.example, other\"\n").unwrap();
    let arguments = ["--database", &database.url, "--config", config.to_str().unwrap()];
    let service = Listening::start(&arguments);
    let asked = |service: &Listening, head: &str| {
        let mut stream = TcpStream::connect(&service.address).unwrap();
        stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.get(9..12).unwrap_or_default().to_owned()
    };
    let get = "GET /v1/pools HTTP/1.1\r\n";
    assert_eq!(asked(&service, &format!("{get}host: headroom.example\r\n")), "200");
    assert_eq!(asked(&service, &format!("{get}host: Other:80\r\n")), "200");
    assert_eq!(asked(&service, &format!("{get}host: another\r\n")), "403");
    assert_eq!(asked(&service, "GET http://another/v1/pools HTTP/1.1\r\nhost: other\r\n"), "403");
    // A request without exactly one host is none.
    assert_eq!(asked(&service, get), "400");
    assert_eq!(asked(&service, &format!("{get}host: other\r\nhost: other\r\n")), "400");
    assert_eq!(asked(&service, "GET /healthz HTTP/1.0\r\n"), "200");
    assert_eq!(service.stop().code, 0);
    let made =
        program("quota-service", &["token", "create", "--name", "a", "--role", "read", "--database", &database.url]);
    assert_eq!(made.code, 0);
    let service = Listening::start(&["--database", &database.url]);
    assert_eq!(asked(&service, &format!("{get}host: anything.example\r\n")), "401", "the token decides, not the name");
    assert_eq!(service.stop().code, 0);
}

async fn token(service: &TestService, number: u8, lasts_s: i64) -> (String, String) {
    let new = NewToken::of(&[number; 38]);
    let now = service.service.core.clock.now();
    let record = TokenRecord {
        id: new.id.clone(),
        name: format!("token {number}"),
        role: Role::Read,
        organization: None,
        pools: Vec::new(),
        secret_sha256: digest(&new.secret).to_vec(),
        created_at: now,
        expires_at: Some(now.plus_s(lasts_s)),
        revoked_at: None,
    };
    service.service.core.store.insert_token(&record).await.unwrap();
    service.service.access.read_tokens().await.unwrap();
    (new.id.clone(), format!("Bearer {}", new.text()))
}

async fn streams_and_long_polls_end_when_their_token_is_revoked_or_expires(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let open = async |path: &str, bearer: Option<&str>, seen: Option<&str>| {
        let mut request = Request::get(path);
        for (name, value) in [("authorization", bearer), ("if-none-match", seen)] {
            request = value.into_iter().fold(request, |request, value| request.header(name, value));
        }
        service.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    };
    let stream = "/v1/quota/stream?cluster=demo&gpu_model=A100&hours=1";
    let anyone = open(stream, None, None).await;
    assert_eq!(anyone.status(), 200);
    let ((revoked, first), (_, second)) = (token(&service, 1, 10_000).await, token(&service, 2, 100).await);
    let ends = async |body: Body| tokio::time::timeout(Duration::from_secs(5), body.collect()).await.is_ok();
    assert!(ends(anyone.into_body()).await, "where there are tokens, nobody listens without");
    let streams = [open(stream, Some(&first), None).await, open(stream, Some(&second), None).await];
    let etag = open(&quota_path(1), Some(&first), None).await.headers()["etag"].to_str().unwrap().to_owned();
    let waiting = format!("{}&wait=60s", quota_path(1));
    let (polls, revoking) = (
        async { tokio::join!(open(&waiting, Some(&first), Some(&etag)), open(&waiting, Some(&second), Some(&etag))) },
        async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = service.service.core.clock.now();
            service.service.core.store.revoke_token(&revoked, now).await.unwrap();
            service.service.access.read_tokens().await.unwrap();
            service.pass_s(100);
            service.service.access.read_tokens().await.unwrap();
        },
    );
    let ended = tokio::time::timeout(Duration::from_secs(10), async { tokio::join!(polls, revoking).0 }).await;
    let (one, two) = ended.expect("long polls end");
    assert_eq!((one.status().as_u16(), two.status().as_u16()), (401, 401));
    for one in streams {
        assert!(one.status() == 200 && ends(one.into_body()).await, "streams end");
    }
}

async fn refusals_are_logged_with_route_address_and_token_and_no_secret(database: TestDatabase) {
    drop(serving(&database, 500).await);
    let create = ["token", "create", "--name", "a", "--role", "read", "--json", "--database", &database.url];
    let made = program("quota-service", &create).json();
    let (text, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    let service = Listening::start(&["--database", &database.url]);
    let task = json!({});
    for _ in 0..5 {
        assert_eq!(service.send_as(text, "POST", "/v1/tasks", Some(&task)).unwrap().0, 403);
        assert_eq!(service.get("/v1/pools").0, 401);
    }
    let forged = text.replace(&text[60..], &"0".repeat(text.len() - 60));
    assert_eq!(service.send_as(&forged, "GET", "/v1/pools", None).unwrap().0, 401);
    assert_eq!(service.send_as("my-password", "GET", "/v1/pools", None).unwrap().0, 401);
    let log = service.stop().stderr;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("a request was refused")).collect();
    assert!((2..=4).contains(&lines.len()), "{log}");
    assert!(lines[0].contains("403") && lines[0].contains("/v1/tasks") && lines[0].contains(id), "{}", lines[0]);
    assert!(
        lines[1].contains("401") && lines[1].contains("/v1/pools") && lines[1].contains("127.0.0.1"),
        "{}",
        lines[1]
    );
    assert!(!log.contains(&text[20..]) && !log.contains("my-password") && !log.contains("00000000"), "{log}");
}
