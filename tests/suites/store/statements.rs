//! Bounds of a statement.

use quota_service::args::Config;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection, raw_sql};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Backend, Store, StoreError};
use tests::fixture::{hour, pool, put_clusters, usage};
use tests::{TestDatabase, on_both_databases};

on_both_databases![an_ordinary_statement_ends_after_its_timeout_and_imports_and_retention_go_on];

/// Longer than the timeout, and shorter than the limit of what may take long.
const HELD: Duration = Duration::from_secs(3);

/// A database with rows, opened as the service does with a timeout of a second.
async fn opened(database: &TestDatabase) -> Arc<dyn Store> {
    let config = Config { database: database.url.clone(), statement_timeout_s: 1, ..Config::default() };
    let store = config.open_database().await.unwrap();
    put_clusters(&*store, &["earth"]).await;
    store.append(&usage("earth:A100:x 2024-03-01T00 4"), &[]).await.unwrap();
    store
}

async fn an_ordinary_statement_ends_after_its_timeout_and_imports_and_retention_go_on(database: TestDatabase) {
    match database.backend {
        Backend::Postgres => on_postgres(&database).await,
        Backend::Sqlite => on_sqlite(&database).await,
    }
}

async fn on_postgres(database: &TestDatabase) {
    let store = opened(database).await;
    let mut other = PgConnection::connect(&database.url).await.unwrap();
    let lock = "BEGIN; LOCK TABLE usage IN ACCESS EXCLUSIVE MODE";
    raw_sql(lock).execute(&mut other).await.unwrap();
    let (earth, from, to) = (pool("earth:A100"), hour("2024-03-01T00"), hour("2024-04-01T00"));
    let begun = Instant::now();
    let fault = store.load_pool_usage(&earth, from, to, &mut |_, _, _| ()).await.unwrap_err();
    assert!(matches!(fault, StoreError::Busy { .. }) && fault.is_retryable(), "{fault:?}");
    assert!(fault.to_string().contains("statement timeout"), "{fault}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let releases = async {
        tokio::time::sleep(HELD).await;
        raw_sql("COMMIT").execute(&mut other).await.unwrap();
    };
    let rows = usage("earth:A100:x 2024-03-01T01 5");
    let (appended, ()) = tokio::join!(store.append(&rows, &[]), releases);
    assert_eq!(appended.unwrap().usage.inserted, 1, "an import waits");
    raw_sql(lock).execute(&mut other).await.unwrap();
    let releases = async {
        tokio::time::sleep(HELD).await;
        raw_sql("COMMIT").execute(&mut other).await.unwrap();
    };
    let (deleted, ()) = tokio::join!(store.delete_usage_before(hour("2024-03-01T01")), releases);
    assert_eq!(deleted.unwrap(), 1, "retention waits");
    let mut loaded = 0;
    store.load_pool_usage(&earth, from, to, &mut |_, _, _| loaded += 1).await.unwrap();
    assert_eq!(loaded, 1, "and the connections are as they were");
    // A longer limit holds in its transaction alone.
    raw_sql(lock).execute(&mut other).await.unwrap();
    let fault = store.load_pool_usage(&earth, from, to, &mut |_, _, _| ()).await.unwrap_err();
    assert!(fault.to_string().contains("statement timeout"), "{fault}");
}

async fn on_sqlite(database: &TestDatabase) {
    let store = opened(database).await;
    let mut other = SqliteConnection::connect(&database.url).await.unwrap();
    raw_sql(AssertSqlSafe("BEGIN IMMEDIATE")).execute(&mut other).await.unwrap();
    let (begun, rows) = (Instant::now(), usage("earth:A100:x 2024-03-01T01 5"));
    let fault = store.append(&rows, &[]).await.unwrap_err();
    assert!(matches!(fault, StoreError::Busy { .. }) && fault.is_retryable(), "{fault:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let mut loaded = 0;
    let (from, to) = (hour("2024-03-01T00"), hour("2024-04-01T00"));
    store.load_pool_usage(&pool("earth:A100"), from, to, &mut |_, _, _| loaded += 1).await.unwrap();
    assert_eq!(loaded, 1, "reads wait for no writer");
    raw_sql("COMMIT").execute(&mut other).await.unwrap();
    assert_eq!(store.append(&rows, &[]).await.unwrap().usage.inserted, 1);
}
