use super::{Cluster, ClusterRow, ClusterStore, WHAT};
use crate::StoreError;
use crate::postgres::PostgresStore;
use crate::stored::{Span, all, span};
use async_trait::async_trait;
use sqlx::PgConnection;
use std::collections::BTreeSet;
use vocab::ClusterName;

#[async_trait]
impl ClusterStore for PostgresStore {
    async fn put_cluster(&self, cluster: &Cluster) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO clusters (name, time_zone, calendar) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET time_zone = excluded.time_zone, calendar = excluded.calendar",
        )
        .bind(cluster.name.as_str())
        .bind(&cluster.time_zone)
        .bind(&cluster.calendar)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn cluster(&self, name: &ClusterName) -> Result<Option<Cluster>, StoreError> {
        sqlx::query_as::<_, ClusterRow>("SELECT name, time_zone, calendar FROM clusters WHERE name = $1")
            .bind(name.as_str())
            .fetch_optional(&self.pool)
            .await?
            .map(TryInto::try_into)
            .transpose()
    }

    async fn clusters(&self) -> Result<Vec<Cluster>, StoreError> {
        let query = sqlx::query_as::<_, ClusterRow>("SELECT name, time_zone, calendar FROM clusters ORDER BY name");
        all(query.fetch_all(&self.pool).await?)
    }

    async fn usage_version(&self, name: &ClusterName) -> Result<i64, StoreError> {
        sqlx::query_scalar("SELECT usage_version FROM clusters WHERE name = $1")
            .bind(name.as_str())
            .fetch_optional(&self.pool)
            .await?
            .ok_or_else(|| StoreError::not_found(WHAT, name))
    }
}

/// Keeps other appends to the cluster out until the transaction ends, and answers where it has usage rows. Whoever
/// locks several clusters does so by name, so that no two wait for each other. NO KEY, so that rows which only refer to
/// the cluster, such as outcomes and quotas, do not wait for an ingest.
pub(crate) async fn lock_cluster(connection: &mut PgConnection, name: &ClusterName) -> Result<Span, StoreError> {
    sqlx::query_as("SELECT first_hour, last_hour FROM clusters WHERE name = $1 FOR NO KEY UPDATE")
        .bind(name.as_str())
        .fetch_optional(connection)
        .await?
        .map(span)
        .ok_or_else(|| StoreError::not_found(WHAT, name))?
}

/// For batches whose insert is one statement, which would not say whose cluster is missing.
pub(crate) async fn require_clusters<'a>(
    connection: &mut PgConnection,
    names: impl Iterator<Item = &'a ClusterName>,
) -> Result<(), StoreError> {
    let names: BTreeSet<&str> = names.map(ClusterName::as_str).collect();
    let query = sqlx::query_scalar::<_, String>(
        "SELECT wanted FROM unnest($1::text[]) AS wanted
         WHERE wanted NOT IN (SELECT name FROM clusters) ORDER BY wanted LIMIT 1",
    );
    let missing = query.bind(Vec::from_iter(names)).fetch_optional(connection).await?;
    missing.map_or(Ok(()), |name| Err(StoreError::not_found(WHAT, &name)))
}

/// For what touches the usage of all of them.
pub(crate) async fn lock_all_clusters(connection: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query("SELECT FROM clusters ORDER BY name FOR NO KEY UPDATE").execute(connection).await?;
    Ok(())
}
