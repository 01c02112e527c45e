use super::PostgresStore;
use crate::inspect::{APPLIED, Applied, Inspected, Schema};
use crate::migrations;
use crate::{Backend, StoreError};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use std::sync::Arc;
use std::time::Instant;

/// The tables, views and sequences of the schema in which this program makes its own; those of extensions belong to nobody.
const RELATIONS: &str = "SELECT current_database()::text, current_schema()::text, count(*),
        count(*) FILTER (WHERE relname = '_sqlx_migrations'), count(*) FILTER (WHERE relname = 'clusters')
    FROM pg_class
    WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        AND NOT EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
        )";

/// Refuses a schema with the tables of another program. One without tables is nobody's, and other schemas are not read.
///
/// # Errors
/// [`StoreError::OtherTables`]; no schema of `search_path` exists; the database does not answer.
pub async fn refuse_other(connection: &mut PgConnection) -> Result<(), StoreError> {
    // One snapshot: a program that makes its tables at this moment shows either none of them or all.
    let mut reading = connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let counts: (String, Option<String>, i64, i64, i64) = sqlx::query_as(RELATIONS).fetch_one(&mut *reading).await?;
    let (database, schema, all, histories, clusters) = counts;
    let Some(schema) = schema else {
        let reason = format!("no schema of search_path is there in {database}: create it, or correct search_path");
        return Err(StoreError::Schema { reason });
    };
    // Other programs have a history of migrations of this name, too. It is made before the first migration, and empty then.
    let is_own = match (all, histories, clusters) {
        (0, ..) | (_, 1, 1) => true,
        (1, 1, 0) => {
            let history = "SELECT count(*) FROM _sqlx_migrations";
            sqlx::query_scalar::<_, i64>(history).fetch_one(&mut *reading).await? == 0
        }
        _ => false,
    };
    reading.rollback().await?;
    if is_own { Ok(()) } else { Err(StoreError::OtherTables { database, schema }) }
}

/// The state of the schema.
///
/// # Errors
/// The database does not answer.
pub async fn schema(connection: &mut PgConnection) -> Result<Schema, StoreError> {
    let has_history: bool =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL").fetch_one(&mut *connection).await?;
    let applied: Vec<Applied> =
        if has_history { sqlx::query_as(APPLIED).fetch_all(connection).await? } else { Vec::new() };
    Ok(Schema::of(&migrations::POSTGRES, &applied))
}

/// Opens a database read-only.
pub async fn inspect(options: PgConnectOptions) -> Result<Inspected, StoreError> {
    // Without the setting of the store, to see that of the server; this connection only reads.
    let mut connection = PostgresStore::first_connection(&PostgresStore::session(options.clone())).await?;
    let (server_version, takes_writes): (String, bool) = sqlx::query_as(
        "SELECT current_setting('server_version'),
                NOT pg_is_in_recovery() AND NOT current_setting('default_transaction_read_only')::boolean",
    )
    .fetch_one(&mut connection)
    .await?;
    let asked = Instant::now();
    let clock_unix_ms: i64 = sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(&mut connection)
        .await?;
    let latency = asked.elapsed();
    refuse_other(&mut connection).await?;
    let schema = schema(&mut connection).await?;
    connection.close().await?;
    let read_only = options.options([("default_transaction_read_only", "on")]);
    let store = Arc::new(PostgresStore::lazily(PostgresStore::session(read_only)));
    let (backend, clock_at) = (Backend::Postgres, asked + latency / 2);
    Ok(Inspected { backend, server_version, latency, clock_unix_ms, clock_at, takes_writes, schema, store })
}
