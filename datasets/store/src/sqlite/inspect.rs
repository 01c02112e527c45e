use super::SqliteStore;
use crate::inspect::{APPLIED, Applied, Inspected, Schema};
use crate::migrations;
use crate::{Backend, StoreError};
use sqlx::{ConnectOptions, Connection};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The program whose tables a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It has no tables.
    Nobody,
    Headroom,
    Other,
}

/// Reads whose tables a file has, and writes nothing to it.
///
/// # Errors
/// [`StoreError::NoFile`]; the file cannot be read.
pub async fn owner(path: &str) -> Result<Owner, StoreError> {
    let Ok(known) = Path::new(path).metadata() else { return Err(StoreError::NoFile { path: path.to_owned() }) };
    if known.len() == 0 {
        return Ok(Owner::Nobody);
    }
    let mut connection = SqliteStore::options(path).pragma("query_only", "on").connect().await?;
    // Other programs have a history of migrations of this name, too.
    let counts = "SELECT count(*), count(*) FILTER (WHERE name IN ('_sqlx_migrations', 'clusters')) FROM sqlite_master";
    let (all, own): (i64, i64) = sqlx::query_as(counts).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(match (all, own) {
        (0, _) => Owner::Nobody,
        (_, 2) => Owner::Headroom,
        _ => Owner::Other,
    })
}

/// Opens a file read-only; does not create a missing one.
pub async fn inspect(path: &str) -> Result<Inspected, StoreError> {
    if !Path::new(path).exists() {
        return Err(StoreError::NoFile { path: path.to_owned() });
    }
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
    let schema = Schema::of(&migrations::SQLITE, &applied);
    let (backend, store) = (Backend::Sqlite, Arc::new(SqliteStore::lazily(options)));
    Ok(Inspected { backend, server_version, latency, clock_unix_ms, clock_at, schema, store })
}
