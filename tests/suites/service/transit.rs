//! Clients that do not read their answers, or do not send their requests to the end.

use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;
use tests::{Listening, on_both_databases, program};

on_both_databases![
    answers_without_a_reader_take_bounded_memory_and_end,
    one_token_leaves_half_of_the_reads_to_the_others,
    requests_that_never_end_take_bounded_memory,
    a_stopping_service_ends_within_its_grace_period_for_any_clients,
];

const MIB: u64 = 1 << 20;
/// Some 8 MB as JSON.
const LARGE: &str = "/v1/audit?limit=10000";
const AUDIT: &str = "INSERT INTO audit (at, actor, action, target, status) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
                     WHERE i < 10000) SELECT (SELECT coalesce(max(at), AT) FROM audit), 'operator', 'GET', TEXT, 200 FROM n";

/// A database whose audit is large, and a service on it.
async fn with_large_answers(database: &TestDatabase, settings: &str) -> (Listening, tempfile::TempDir) {
    drop(serving(database, 500).await);
    let (at, text) = match database.backend {
        tests::Backend::Postgres => ("timestamptz '2024-03-01'", "repeat('x', 700)"),
        tests::Backend::Sqlite => ("1709251200", "printf('%.700c', 'x')"),
    };
    database.execute(&AUDIT.replace("AT)", &format!("{at})")).replace("TEXT", text)).await;
    listening(database, settings)
}

fn listening(database: &TestDatabase, settings: &str) -> (Listening, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("headroom.toml");
    std::fs::write(&config, format!("[quota-service]\nlog = \"error\"\n{settings}\n")).unwrap();
    let service = Listening::start(&["--database", &database.url, "--config", config.to_str().unwrap()]);
    let _ = service.get_until(&quota_path(1), |status, _| status == 200);
    (service, folder)
}

/// A connection that has sent a text, and the status that begins the answer; the rest of the answer is left unread.
fn unread(address: &str, text: &[u8]) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut status = [0; 12];
    let _ = stream.write_all(text).and_then(|()| stream.read_exact(&mut status));
    (stream, String::from_utf8_lossy(&status[9..]).into_owned())
}

fn asking(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

async fn answers_without_a_reader_take_bounded_memory_and_end(database: TestDatabase) {
    let limits =
        "max_reads = 24\nmax_transit_bytes = 33554432\nmax_transit_bytes_per_client = 33554432\nwrite_timeout_s = 3";
    let (service, _folder) = with_large_answers(&database, limits).await;
    // The first one says how large the answer is.
    assert!(service.get(LARGE).1["entries"].as_array().unwrap().len() >= 9_000);
    let before = service.resident_bytes();
    let (mut open, mut statuses, began) = (Vec::new(), Vec::new(), Instant::now());
    for _ in 0..24 {
        let (stream, status) = unread(&service.address, &asking(LARGE));
        statuses.push(status);
        open.push(stream);
        if statuses.len() >= 8 && began.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    let grew = service.resident_bytes().saturating_sub(before);
    let refused = statuses.iter().filter(|status| *status == "503").count();
    assert!(refused > 0 && statuses.contains(&"200".to_owned()), "{statuses:?}");
    assert!(grew < 100 * MIB, "{} MiB for {statuses:?}", grew / MIB);
    let (asked, (status, _)) = (Instant::now(), service.get(&quota_path(1)));
    assert!(status == 200 && asked.elapsed() < Duration::from_secs(1), "quotas wait for nobody");
    // Their connections end, and there is room again.
    let _ = service.get_until(LARGE, |status, _| status == 200);
    let mut rest = Vec::new();
    let _ = open[0].read_to_end(&mut rest);
    assert!(rest.len() < 8_000_000, "the answer was cut: {}", rest.len());
    drop(open);
    assert_eq!(service.stop().code, 0);
}

async fn one_token_leaves_half_of_the_reads_to_the_others(database: TestDatabase) {
    let (service, _folder) = with_large_answers(&database, "max_reads = 4\nwrite_timeout_s = 60").await;
    let [greedy, other] = ["greedy", "other"].map(|name| {
        let create = ["token", "create", "--name", name, "--role", "admin", "--json", "--database", &database.url];
        program("quota-service", &create).json()["token"].as_str().unwrap().to_owned()
    });
    // Until the service has read them, everyone may ask.
    let _ = service.get_until("/v1/pools", |status, _| status == 401);
    // Answers that nobody reads keep their places.
    let asking = format!("GET {LARGE} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {greedy}\r\n\r\n");
    let (open, statuses): (Vec<_>, Vec<_>) = (0..4).map(|_| unread(&service.address, asking.as_bytes())).unzip();
    assert_eq!(statuses, ["200", "200", "503", "503"]);
    assert_eq!([&greedy, &other].map(|token| service.get_as(token, "/v1/pools").0), [503, 200]);
    drop(open);
}

async fn requests_that_never_end_take_bounded_memory(database: TestDatabase) {
    drop(serving(&database, 500).await);
    let limits = "max_transit_bytes = 33554432\nmax_transit_bytes_per_client = 33554432\nrequest_limit_s = 20";
    let (service, _folder) = listening(&database, limits);
    let before = service.resident_bytes();
    let head = |length: &str| {
        format!("POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{length}\r\n\r\n")
    };
    let mut stated = head("content-length: 8000000").into_bytes();
    stated.resize(stated.len() + 7_900_000, b' ');
    // One piece of 7.9 MB, which is not the last.
    let mut pieces = head("transfer-encoding: chunked").into_bytes();
    pieces.extend_from_slice(b"788b60\r\n");
    pieces.resize(pieces.len() + 0x78_8b60, b' ');
    let open: Vec<TcpStream> = (0..20)
        .map(|number| {
            let mut stream = TcpStream::connect(&service.address).unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
            let _ = stream.write_all(if number % 2 == 0 { &stated } else { &pieces });
            stream
        })
        .collect();
    let grew = service.resident_bytes().saturating_sub(before);
    assert!(grew < 80 * MIB, "{} MiB", grew / MIB);
    let (another, status) = unread(&service.address, head("content-length: 4000000").as_bytes());
    assert_eq!(status, "503", "there is no room for another large one");
    assert_eq!(service.send("POST", "/v1/tasks", Some(&json!({}))).unwrap().0, 400, "small ones pass");
    drop((open, another));
    assert_eq!(service.stop().code, 0);
}

async fn a_stopping_service_ends_within_its_grace_period_for_any_clients(database: TestDatabase) {
    let (service, _folder) = with_large_answers(&database, "shutdown_grace_s = 4").await;
    let head =
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let mut half = TcpStream::connect(&service.address).unwrap();
    half.write_all(head.as_bytes()).unwrap();
    let (unread, status) = unread(&service.address, &asking(LARGE));
    assert_eq!(status, "200");
    let asked_at = Instant::now();
    let ended = service.stop();
    let took = asked_at.elapsed();
    assert!(ended.code == 0 && took < Duration::from_millis(4_500), "{took:?} {ended:?}");
    drop((half, unread));
}
