use crate::StoreError;
use crate::clusters::CLUSTER;
use crate::stored::{Span, span};
use sqlx::SqliteConnection;
use vocab::ClusterName;

/// The hours of the cluster that have usage rows. No lock: a transaction that writes locks the whole database.
pub(crate) async fn require_cluster(connection: &mut SqliteConnection, name: &ClusterName) -> Result<Span, StoreError> {
    sqlx::query_as("SELECT first_hour, last_hour FROM clusters WHERE name = $1")
        .bind(name.as_str())
        .fetch_optional(connection)
        .await?
        .map(span)
        .ok_or_else(|| StoreError::not_found(CLUSTER, name))?
}

/// Refuses the first unknown cluster.
pub(crate) async fn require_clusters(
    connection: &mut SqliteConnection,
    names: impl Iterator<Item = &ClusterName>,
) -> Result<(), StoreError> {
    for name in names {
        require_cluster(&mut *connection, name).await?;
    }
    Ok(())
}

/// Does nothing: a transaction that writes locks the whole database.
pub(crate) async fn lock_clusters(
    _connection: &mut SqliteConnection,
    _names: impl Iterator<Item = &ClusterName>,
) -> Result<(), StoreError> {
    Ok(())
}
