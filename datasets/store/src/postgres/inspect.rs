use super::PostgresStore;
use crate::inspect::{APPLIED, Applied, Inspected, Schema};
use crate::migrations;
use crate::{Backend, StoreError};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use std::sync::Arc;
use std::time::Instant;

/// Opens a database read-only.
pub async fn inspect(options: PgConnectOptions) -> Result<Inspected, StoreError> {
    let options = options.options([("default_transaction_read_only", "on")]);
    let (store, mut connection) = PostgresStore::reach(options).await?;
    let server_version: String =
        sqlx::query_scalar("SELECT current_setting('server_version')").fetch_one(&mut connection).await?;
    let asked = Instant::now();
    let clock_unix_ms: i64 = sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(&mut connection)
        .await?;
    let latency = asked.elapsed();
    let has_history: bool =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL").fetch_one(&mut connection).await?;
    let applied: Vec<Applied> =
        if has_history { sqlx::query_as(APPLIED).fetch_all(&mut connection).await? } else { Vec::new() };
    connection.close().await?;
    let schema = Schema::of(&migrations::POSTGRES, &applied);
    let (backend, store) = (Backend::Postgres, Arc::new(store));
    let clock_at = asked + latency / 2;
    Ok(Inspected { backend, server_version, latency, clock_unix_ms, clock_at, schema, store })
}

impl PostgresStore {
    /// A store without a migration, and its first connection.
    async fn reach(options: PgConnectOptions) -> Result<(Self, PgConnection), StoreError> {
        let options = Self::session(options);
        let connection = Self::first_connection(&options).await?;
        Ok((Self::lazily(options), connection))
    }
}
