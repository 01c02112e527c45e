//! The objects of a database, so that what a restore has made can be removed from it.

use super::{LONG, PostgresStore};
use crate::StoreError;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, raw_sql};

/// Kind and name of each object, as `DROP` takes them. Those of the server and of extensions belong to nobody. The order is one
/// in which they can be dropped.
const OBJECTS: &str = "
    SELECT kind, name FROM (
        SELECT 1 AS step, 'EXTENSION' AS kind, quote_ident(extname) AS name, extname AS owner,
            'pg_extension'::regclass AS catalog, oid FROM pg_extension
        UNION ALL
        SELECT 2, CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'f' THEN 'FOREIGN TABLE'
                WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
            format('%I.%I', nspname, relname), nspname, 'pg_class'::regclass, pg_class.oid
        FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        UNION ALL
        SELECT 3, 'ROUTINE', format('%I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(pg_proc.oid)), nspname,
            'pg_proc'::regclass, pg_proc.oid
        FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
        UNION ALL
        SELECT 4, 'SCHEMA', quote_ident(nspname), nspname, 'pg_namespace'::regclass, oid FROM pg_namespace
    ) AS found
    WHERE owner <> 'information_schema' AND owner NOT LIKE 'pg\\_%' AND NOT EXISTS (
        SELECT FROM pg_depend WHERE classid = found.catalog AND objid = found.oid AND deptype = 'e'
    )
    ORDER BY step, name";

/// Tables, views, sequences, functions, schemas and extensions of a Postgres database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerObjects(Vec<(String, String)>);

impl ServerObjects {
    /// Names of tables, views and sequences of all schemas, with their schema.
    pub fn relations(&self) -> impl Iterator<Item = &str> {
        let is_relation = |kind: &str| !matches!(kind, "EXTENSION" | "ROUTINE" | "SCHEMA");
        self.0.iter().filter(move |(kind, _)| is_relation(kind)).map(|(_, name)| name.as_str())
    }
}

async fn listed(connection: &mut PgConnection) -> Result<ServerObjects, StoreError> {
    Ok(ServerObjects(sqlx::query_as(OBJECTS).fetch_all(connection).await?))
}

/// Lists the objects of a database, without writing to it.
pub async fn objects(options: PgConnectOptions) -> Result<ServerObjects, StoreError> {
    let mut connection = PostgresStore::first_connection(&PostgresStore::session(options)).await?;
    let found = listed(&mut connection).await?;
    connection.close().await?;
    Ok(found)
}

/// Removes the objects that were not there before: all of them, or none.
pub async fn remove_new(options: PgConnectOptions, before: &ServerObjects) -> Result<(), StoreError> {
    let mut connection = PostgresStore::first_connection(&PostgresStore::session(options)).await?;
    let mut transaction = connection.begin().await?;
    raw_sql(LONG).execute(&mut *transaction).await?;
    let ServerObjects(found) = listed(&mut transaction).await?;
    for (kind, name) in found.into_iter().filter(|object| !before.0.contains(object)) {
        // The sequence of a table goes with it.
        let statement = AssertSqlSafe(format!("DROP {kind} IF EXISTS {name} CASCADE"));
        raw_sql(statement).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    connection.close().await?;
    Ok(())
}
