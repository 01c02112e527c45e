use super::SqliteStore;
use super::owner::owner;
use crate::inspect::{APPLIED, Applied, Inspected, Schema};
use crate::migrations;
use crate::{Backend, StoreError};
use sqlx::{ConnectOptions, Connection};
use std::sync::Arc;
use std::time::Instant;

/// Opens a file read-only; does not create a missing one, and leaves one of another program as it is.
pub async fn inspect(path: &str) -> Result<Inspected, StoreError> {
    owner(path).await?;
    let options = SqliteStore::options(path).pragma("query_only", "on");
    let mut connection = options.connect().await?;
    let server_version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut connection).await?;
    let asked = Instant::now();
    // The first statement that reads the file.
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut connection)
        .await?;
    let latency = asked.elapsed();
    let clock_unix_ms: i64 = sqlx::query_scalar("SELECT CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)")
        .fetch_one(&mut connection)
        .await?;
    let clock_at = Instant::now();
    let applied: Vec<Applied> =
        if tables > 0 { sqlx::query_as(APPLIED).fetch_all(&mut connection).await? } else { Vec::new() };
    connection.close().await?;
    // Opened, and not written to.
    let takes_writes = std::fs::OpenOptions::new().append(true).open(path).is_ok();
    let schema = Schema::of(&migrations::SQLITE, &applied);
    let (backend, store) = (Backend::Sqlite, Arc::new(SqliteStore::lazily(options)));
    Ok(Inspected { backend, server_version, latency, clock_unix_ms, clock_at, takes_writes, schema, store })
}
