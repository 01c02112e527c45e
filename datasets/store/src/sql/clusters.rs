use super::{SqlConnection, SqlStore};
use crate::StoreError;
use crate::clusters::{CLUSTER, Cluster, ClusterRow, ClusterStore};
use crate::stored::all;
use async_trait::async_trait;
use vocab::ClusterName;

/// Creates a cluster, or changes its time zone and calendar, within the caller's transaction, which locks it.
pub(super) async fn put(connection: &mut SqlConnection, cluster: &Cluster) -> Result<(), StoreError> {
    let query = sqlx::query(
        "INSERT INTO clusters (name, time_zone, calendar) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET time_zone = excluded.time_zone, calendar = excluded.calendar",
    );
    let query = query.bind(cluster.name.as_str()).bind(&cluster.time_zone).bind(&cluster.calendar);
    query.execute(connection).await?;
    Ok(())
}

#[async_trait]
impl ClusterStore for SqlStore {
    async fn put_cluster(&self, cluster: &Cluster) -> Result<(), StoreError> {
        let mut connection = self.writer()?.acquire().await?;
        put(&mut connection, cluster).await
    }

    async fn cluster(&self, name: &ClusterName) -> Result<Option<Cluster>, StoreError> {
        sqlx::query_as::<_, ClusterRow>("SELECT name, time_zone, calendar FROM clusters WHERE name = $1")
            .bind(name.as_str())
            .fetch_optional(self.readers())
            .await?
            .map(TryInto::try_into)
            .transpose()
    }

    async fn clusters(&self) -> Result<Vec<Cluster>, StoreError> {
        let query = sqlx::query_as::<_, ClusterRow>("SELECT name, time_zone, calendar FROM clusters ORDER BY name");
        all(query.fetch_all(self.readers()).await?)
    }

    async fn usage_version(&self, name: &ClusterName) -> Result<i64, StoreError> {
        sqlx::query_scalar("SELECT usage_version FROM clusters WHERE name = $1")
            .bind(name.as_str())
            .fetch_optional(self.readers())
            .await?
            .ok_or_else(|| StoreError::not_found(CLUSTER, name))
    }
}
