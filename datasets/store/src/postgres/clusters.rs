use crate::StoreError;
use crate::clusters::CLUSTER;
use crate::stored::{Span, span};
use sqlx::PgConnection;
use std::collections::BTreeSet;
use vocab::ClusterName;

/// Blocks other appends to the cluster until the transaction ends. Returns the hours that have usage rows. Lock several
/// clusters in the order of their names, to avoid deadlocks. NO KEY, so that rows which only refer to the cluster, such as
/// outcomes and quotas, do not wait for an ingest.
pub(crate) async fn lock_cluster(connection: &mut PgConnection, name: &ClusterName) -> Result<Span, StoreError> {
    sqlx::query_as("SELECT first_hour, last_hour FROM clusters WHERE name = $1 FOR NO KEY UPDATE")
        .bind(name.as_str())
        .fetch_optional(connection)
        .await?
        .map(span)
        .ok_or_else(|| StoreError::not_found(CLUSTER, name))?
}

/// Refuses the first unknown cluster, for batches whose insert is one statement and would not name it.
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
    missing.map_or(Ok(()), |name| Err(StoreError::not_found(CLUSTER, &name)))
}

/// Blocks appends to every cluster until the transaction ends.
pub(crate) async fn lock_all_clusters(connection: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query("SELECT FROM clusters ORDER BY name FOR NO KEY UPDATE").execute(connection).await?;
    Ok(())
}

/// Blocks other writers of the clusters' rows until the transaction ends, as an append does: the values read now are those
/// that the transaction will replace.
pub(crate) async fn lock_clusters(
    connection: &mut PgConnection,
    names: impl Iterator<Item = &ClusterName>,
) -> Result<(), StoreError> {
    let names: BTreeSet<&str> = names.map(ClusterName::as_str).collect();
    sqlx::query("SELECT 1 FROM clusters WHERE name = ANY ($1) ORDER BY name FOR UPDATE")
        .bind(Vec::from_iter(names))
        .execute(connection)
        .await?;
    Ok(())
}
