//! A Postgres that goes away while requests wait for it: writes are answered in time, and reads go on.

use super::*;
use axum::http::Method;
use quota_service::health;
use std::time::Instant;
use tests::{Backend, Fault, Listening, Proxy, fresh_database, program};

/// Within which it is known, a proof of a write included.
const KNOWN_WITHIN: Duration = Duration::from_secs(20);
/// The stated time is 2 s; a machine that does much else at the same time takes its time.
const ANSWERED_WITHIN: Duration = Duration::from_secs(4);

/// A service whose Postgres is behind a network, and which asks whether it is there.
async fn behind_a_network(database: &TestDatabase) -> (Proxy, TestService) {
    drop(serving(database, 500).await);
    let network = Proxy::to(&database.url).await;
    let store = store::connect(&network.url(&database.url)).await.unwrap();
    let service = TestService::start(store, end().plus_s(60)).await;
    service.renew().await;
    let _ = quota(&service, 4).await;
    let _ = service.post("/v1/outcomes", &outcomes(0, 1, "kept", end().get())).await.expect(200);
    tokio::spawn(health::pulse(service.service.core.clone(), service.service.health.clone()));
    (network, service)
}

/// Asks for what needs the database, until it is known to be gone and beyond.
async fn is_answered_in_time(service: &TestService, how: &str) {
    let body = outcomes(1, 1, "kept", end().get()).to_string();
    for round in 0..3 {
        for (method, path, body) in
            [(Method::POST, "/v1/outcomes", Some(body.clone())), (Method::GET, "/v1/runs?cluster=demo", None)]
        {
            let asked = Instant::now();
            let answer = service.send(method.clone(), path, &[], body).await;
            let took = asked.elapsed();
            println!(
                "{how}, round {round}: {method} {path} is answered {} after {} ms",
                answer.status,
                took.as_millis()
            );
            assert_eq!((answer.status, &answer.body["code"]), (503, &"store-unavailable".into()), "{}", answer.body);
            assert!(took < ANSWERED_WITHIN, "{how}, round {round}: {method} {path} took {took:?}");
        }
    }
    let begun = Instant::now();
    while service.get("/readyz").await.status != 503 {
        assert!(begun.elapsed() < KNOWN_WITHIN, "{how}: /readyz does not tell");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(service.get("/readyz?for=all").await.expect(503)["code"], "no-writes");
    assert_eq!(service.get("/readyz?for=reads").await.status, 200, "{how}: quotas are answered");
    assert_eq!(service.get("/readyz?for=writes").await.status, 400);
    assert_eq!(service.get(&quota_path(4)).await.status, 200, "{how}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_a_postgres_that_falls_silent_are_refused_within_two_seconds_and_go_on_afterwards() {
    let database = fresh_database(Backend::Postgres).await;
    let (network, service) = behind_a_network(&database).await;
    network.inject(Fault::Silent);
    is_answered_in_time(&service, "silent").await;
    network.heal();
    let begun = Instant::now();
    let body = outcomes(1, 1, "kept", end().get());
    while service.post("/v1/outcomes", &body).await.status != 200 {
        assert!(begun.elapsed() < KNOWN_WITHIN, "writes go on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_a_postgres_whose_port_is_closed_are_refused_within_two_seconds() {
    let database = fresh_database(Backend::Postgres).await;
    let (mut network, service) = behind_a_network(&database).await;
    network.close().await;
    is_answered_in_time(&service, "port closed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_without_the_tables_of_its_service_is_a_fault_of_the_database() {
    let database = fresh_database(Backend::Postgres).await;
    drop(serving(&database, 500).await);
    let service = TestService::start(database.store().await, end().plus_s(60)).await;
    service.renew().await;
    let body = outcomes(1, 1, "kept", end().get());
    // As after a change of search_path, or in a schema that was dropped.
    database.execute("ALTER TABLE outcomes RENAME TO elsewhere").await;
    let refused = service.post("/v1/outcomes", &body).await;
    assert_eq!(refused.expect(503)["code"], "store-unavailable");
    assert_eq!(service.get(&quota_path(4)).await.status, 200);
    database.execute("ALTER TABLE elsewhere RENAME TO outcomes").await;
    let _ = service.post("/v1/outcomes", &body).await.expect(200);
}

#[tokio::test]
async fn without_a_quota_a_service_is_ready_for_nothing() {
    let database = fresh_database(Backend::Sqlite).await;
    let service = TestService::start(database.store().await, end().plus_s(60)).await;
    assert_eq!(service.get("/readyz?for=reads").await.expect(503)["code"], "no-quota-yet");
}

/// Makes each new session of a database read-only, or no longer.
async fn set_read_only(database: &TestDatabase, value: &str) {
    let set =
        format!("EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {value}', current_database())");
    database.execute(&format!("BEGIN READ WRITE; DO $$ BEGIN {set}; END $$; COMMIT")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_whose_postgres_is_read_only_at_the_start_answers_the_last_quotas_until_it_takes_writes() {
    let database = fresh_database(Backend::Postgres).await;
    drop(serving(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("last.json");
    let config = folder.path().join("headroom.toml");
    std::fs::write(&config, format!("[quota-service]\nlog = \"error\"\nfallback_file = {file:?}\n")).unwrap();
    let arguments = ["--database", &database.url, "--config", config.to_str().unwrap()];
    let service = Listening::start(&arguments);
    let answered = service.get_until(&quota_path(4), |status, _| status == 200);
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < KNOWN_WITHIN, "no file of the last quotas");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(service.stop().code, 0);
    set_read_only(&database, "on").await;
    let service = Listening::start(&arguments);
    let (status, old) = service.get(&quota_path(4));
    assert_eq!((status, &old["computed_at"]), (200, &answered["computed_at"]), "{old}");
    assert!(old["reasons"].to_string().contains("name the server that takes writes"), "{old}");
    set_read_only(&database, "off").await;
    let _ = service.get_until("/readyz", |status, _| status == 200);
    assert_eq!(service.stop().code, 0);
    set_read_only(&database, "on").await;
    let ran = program("quota-service", &["--listen", "127.0.0.1:0", "--database", &database.url]);
    assert!(ran.code == 1 && ran.stderr.contains("name the server that takes writes"), "without a file: {ran:?}");
}
