use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use std::time::{Duration, Instant};
use store::{Backend, StoreError};
use tests::fixture::{at, cluster, hour, outcomes, put_clusters, usage};
use tests::{TestDatabase, fresh_database, on_both_databases};

on_both_databases![
    a_closed_store_is_reported_unavailable,
    a_value_that_this_program_would_not_write_is_reported_as_damage,
    an_instant_outside_the_calendar_is_refused,
];

async fn fault_of(url: &str) -> StoreError {
    match store::connect(url).await {
        Err(fault) => fault,
        Ok(_) => panic!("{url} must not open"),
    }
}

async fn a_closed_store_is_reported_unavailable(database: TestDatabase) {
    let store = database.store().await;
    store.close().await;
    for fault in [store.ping().await.unwrap_err(), store.append(&[], &[]).await.unwrap_err()] {
        assert!(matches!(fault, StoreError::Unavailable { .. }), "{fault}");
        assert!(fault.is_retryable());
    }
}

async fn a_value_that_this_program_would_not_write_is_reported_as_damage(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    store.append(&usage("earth:A100:x 2024-03-01T00 4\nearth:A100:y 2024-03-01T01 4"), &[]).await.unwrap();
    let mut rows = 0;
    for damage in ["UPDATE series SET organization = ' ' WHERE id = 1", "UPDATE usage SET demand_milli = -1"] {
        database.execute(damage).await;
        let mut sink = |_: &_, _, _| rows += 1;
        let load = store.load_usage(&cluster("earth"), hour("2024-01-01T00"), hour("2025-01-01T00"), &mut sink).await;
        assert!(matches!(load, Err(StoreError::Corrupt { .. })), "{load:?}");
        database.execute("UPDATE series SET organization = 'x' WHERE id = 1").await;
    }
    assert_eq!(rows, 0, "nothing damaged was handed out");
}

async fn an_instant_outside_the_calendar_is_refused(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    for second in [i64::MAX, i64::MIN, 253_402_300_800] {
        let fault = store.record_outcomes(&outcomes("a earth:A100 kept", second), at(0)).await.unwrap_err();
        assert!(matches!(fault, StoreError::OutOfRange { .. }), "{fault}");
    }
    let last = outcomes("a earth:A100 kept\n", 253_402_300_799);
    store.record_outcomes(&last, at(0)).await.unwrap();
    assert_eq!(store.newest_outcome(&last[0].pool).await.unwrap().as_ref(), last.first());
}

#[tokio::test]
async fn a_url_without_a_database_has_a_remedy() {
    for url in ["mysql://db/headroom", "headroom.db", "sqlite://", "sqlite://:memory:", "sqlite://x.db?mode=ro"] {
        let fault = fault_of(url).await;
        assert!(matches!(fault, StoreError::BadUrl { .. }), "{fault}");
        assert!(fault.to_string().contains("write sqlite://PATH or postgres://"), "{fault}");
    }
    let fault = fault_of("sqlite:///missing/folder/headroom.db").await;
    assert!(matches!(fault, StoreError::Denied { .. }), "{fault}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_at_once() {
    let started = Instant::now();
    let fault = fault_of("postgres://headroom@127.0.0.1:1/headroom").await;
    assert!(matches!(fault, StoreError::Unavailable { .. }) && fault.is_retryable(), "{fault}");
    assert!(started.elapsed() < Duration::from_secs(5), "without waiting for the time limit of a pool");
}

#[tokio::test]
async fn a_wrong_password_or_database_is_denied() {
    let database = fresh_database(Backend::Postgres).await;
    let (login, place) = database.url.rsplit_once('@').unwrap();
    let (user, _) = login.rsplit_once(':').unwrap();
    for url in [format!("{user}:wrong@{place}"), format!("{}x", database.url)] {
        let fault = fault_of(&url).await;
        assert!(matches!(fault, StoreError::Denied { .. }), "{fault}");
        assert!(!fault.is_retryable());
    }
}

#[tokio::test]
async fn a_connection_lost_in_an_append_is_unavailable_and_the_next_one_works() {
    let database = fresh_database(Backend::Postgres).await;
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let mut blocker = PgConnection::connect(&database.url).await.unwrap();
    let mut lock = blocker.begin().await.unwrap();
    sqlx::query("SELECT FROM clusters FOR UPDATE").execute(&mut *lock).await.unwrap();
    let rows = usage("earth:A100:x 2024-03-01T00 4");
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let killing = async {
        while sqlx::query(kill).execute(&mut *lock).await.unwrap().rows_affected() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        lock.rollback().await.unwrap();
    };
    let (append, ()) = tokio::join!(store.append(&rows, &[]), killing);
    let fault = append.unwrap_err();
    assert!(matches!(fault, StoreError::Unavailable { .. }), "{fault}");
    assert_eq!(store.append(&rows, &[]).await.unwrap().usage.inserted, 1, "on a new connection");
}

#[tokio::test]
async fn faults_of_postgres_are_sorted_by_remedy() {
    let database = fresh_database(Backend::Postgres).await;
    let with_message = async |message: &str, code: &str| {
        let sql = format!("DO $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{code}'; END $$");
        database.try_execute(&sql).await.unwrap_err()
    };
    let raised = async |code: &str| with_message("as a test", code).await;
    assert!(matches!(raised("53100").await, StoreError::Full { .. }), "disk full");
    assert!(
        matches!(with_message("could not write init file", "XX000").await, StoreError::Full { .. }),
        "disk full at a new connection"
    );
    assert!(matches!(raised("XX000").await, StoreError::Unexpected(_)), "another mistake of Postgres");
    assert!(matches!(raised("57P01").await, StoreError::Unavailable { .. }), "shutting down");
    assert!(matches!(raised("40P01").await, StoreError::Busy { .. }), "deadlock");
    assert!(matches!(raised("XX001").await, StoreError::Corrupt { .. }), "damaged page");
    assert!(matches!(raised("42P01").await, StoreError::Schema { .. }), "a table that was there is gone");
    assert!(matches!(raised("42601").await, StoreError::Unexpected(_)), "a mistake in this program");
}

#[tokio::test]
async fn a_read_only_postgres_still_answers_and_refuses_writes_with_reason() {
    let database = fresh_database(Backend::Postgres).await;
    let store = database.store().await;
    let (_, name) = database.url.rsplit_once('/').unwrap();
    database.execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
    let fault = store.append(&usage("earth:A100:x 2024-03-01T00 4"), &[]).await.unwrap_err();
    assert!(matches!(fault, StoreError::Full { .. }) && !fault.is_retryable(), "{fault}");
    assert!(store.clusters().await.unwrap().is_empty());
    assert!(matches!(store.prove_write().await, Err(StoreError::Full { .. })));
    let reader = store::connect(&database.url).await.expect("a program that only reads begins");
    assert!(reader.clusters().await.unwrap().is_empty());
    let reset = format!("ALTER DATABASE {name} RESET default_transaction_read_only");
    database.execute(&format!("BEGIN READ WRITE; {reset}; COMMIT")).await;
    store.prove_write().await.unwrap();
    // The sessions of before would stay read-only.
    put_clusters(&*store, &["earth"]).await;
}

#[tokio::test]
async fn full_sqlite_is_named() {
    let database = fresh_database(Backend::Sqlite).await;
    put_clusters(&*database.store().await, &["earth"]).await;
    let mut small = SqliteConnection::connect(&database.url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe("PRAGMA max_page_count = 1".to_owned())).execute(&mut small).await.unwrap();
    let filling = "INSERT INTO pool_settings VALUES ('earth', 'A100', hex(zeroblob(1000000)), 1)";
    let fault = StoreError::from(sqlx::query(filling).execute(&mut small).await.unwrap_err());
    assert!(matches!(fault, StoreError::Full { .. }), "{fault}");
    sqlx::raw_sql(AssertSqlSafe("PRAGMA query_only = on".to_owned())).execute(&mut small).await.unwrap();
    let fault = StoreError::from(sqlx::query("DELETE FROM clusters").execute(&mut small).await.unwrap_err());
    assert!(matches!(fault, StoreError::Full { .. }), "{fault}");
}
