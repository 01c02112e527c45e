mod append;

use crate::StoreError;
use crate::sqlite::SqliteStore;
use crate::sqlite::clusters::require_cluster;
use crate::stored::{Stamp, all, amount, span, whole};
use crate::usage::batch::Batch;
use crate::usage::{
    AppendReport, COUNT_ORGANIZATIONS, LIST_ORGANIZATIONS, SeriesSummary, SummaryRow, UsageSink, UsageStore, batch,
    listed, series,
};
use async_trait::async_trait;
use futures_util::TryStreamExt;
use sqlx::SqliteConnection;
use std::collections::BTreeMap;
use vocab::{CapacityRow, ClusterName, HourStart, PoolId, SeriesId, UsageRow};

/// Appends rows within a transaction of somebody else.
pub(crate) async fn append_in(connection: &mut SqliteConnection, rows: &[UsageRow]) -> Result<(), StoreError> {
    append_batches(connection, &batch::by_cluster(rows, &[])?).await.map(drop)
}

async fn append_batches(
    connection: &mut SqliteConnection,
    batches: &BTreeMap<&ClusterName, Batch<'_>>,
) -> Result<AppendReport, StoreError> {
    let mut report = AppendReport::default();
    for (cluster, batch) in batches {
        let old = require_cluster(connection, cluster).await?;
        report.add(append::append(connection, cluster, batch, old).await?);
    }
    Ok(report)
}

#[async_trait]
impl UsageStore for SqliteStore {
    async fn append(&self, rows: &[UsageRow], capacity: &[CapacityRow]) -> Result<AppendReport, StoreError> {
        // 1. Think: sort, name each series once, refuse contradictions.
        let batches = batch::by_cluster(rows, capacity)?;
        // 2. Write, alone.
        let mut transaction = self.begin().await?;
        let report = append_batches(&mut transaction, &batches).await?;
        transaction.commit().await?;
        Ok(report)
    }

    async fn load_usage(
        &self,
        cluster: &ClusterName,
        from: HourStart,
        to: HourStart,
        sink: UsageSink<'_>,
    ) -> Result<(), StoreError> {
        let mut snapshot = self.begin_reading().await?;
        require_cluster(&mut snapshot, cluster).await?;
        let listing = sqlx::query_as::<_, (i64, String, String)>(
            "SELECT id, gpu_model, organization FROM series WHERE cluster = $1 ORDER BY gpu_model, organization",
        );
        for (id, gpu_model, organization) in listing.bind(cluster.as_str()).fetch_all(&mut *snapshot).await? {
            let series = series(cluster.as_str(), &gpu_model, &organization)?;
            let query = sqlx::query_as::<_, (Stamp, i64)>(
                "SELECT hour, demand_milli FROM usage WHERE series_id = $1 AND hour >= $2 AND hour < $3 ORDER BY hour",
            );
            let query = query.bind(id).bind(Stamp::from(from)).bind(Stamp::from(to));
            let mut rows = query.fetch(&mut *snapshot);
            while let Some((hour, demand)) = rows.try_next().await? {
                sink(&series, hour.hour()?, amount("demand", demand)?);
            }
        }
        Ok(())
    }

    async fn load_pool_usage(
        &self,
        pool: &PoolId,
        from: HourStart,
        to: HourStart,
        sink: UsageSink<'_>,
    ) -> Result<(), StoreError> {
        let mut connection = self.readers.acquire().await?;
        require_cluster(&mut connection, &pool.cluster).await?;
        let query = sqlx::query_as::<_, (String, Stamp, i64)>(
            "SELECT organization, hour, demand_milli FROM usage JOIN series ON series.id = series_id
             WHERE cluster = $1 AND gpu_model = $2 AND hour >= $3 AND hour < $4",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str());
        let mut rows = query.bind(Stamp::from(from)).bind(Stamp::from(to)).fetch(&mut *connection);
        while let Some((organization, hour, demand)) = rows.try_next().await? {
            let of = series(pool.cluster.as_str(), pool.gpu_model.as_str(), &organization)?;
            sink(&of, hour.hour()?, amount("demand", demand)?);
        }
        Ok(())
    }

    async fn usage_range(&self, cluster: &ClusterName) -> Result<Option<(HourStart, HourStart)>, StoreError> {
        sqlx::query_as("SELECT first_demand_hour, last_demand_hour FROM clusters WHERE name = $1")
            .bind(cluster.as_str())
            .fetch_optional(&self.readers)
            .await?
            .map(span)
            .ok_or_else(|| StoreError::not_found("cluster", cluster))?
    }

    async fn measured_range(&self, cluster: &ClusterName) -> Result<Option<(HourStart, HourStart)>, StoreError> {
        sqlx::query_as("SELECT first_hour, last_hour FROM clusters WHERE name = $1")
            .bind(cluster.as_str())
            .fetch_optional(&self.readers)
            .await?
            .map(span)
            .ok_or_else(|| StoreError::not_found("cluster", cluster))?
    }

    async fn organization_count(&self, cluster: &ClusterName) -> Result<u64, StoreError> {
        let counting = sqlx::query_scalar::<_, i64>(COUNT_ORGANIZATIONS).bind(cluster.as_str());
        whole("number of organizations", counting.fetch_one(&self.readers).await?)
    }

    async fn organizations(&self, cluster: &ClusterName) -> Result<Vec<SeriesId>, StoreError> {
        let listing = sqlx::query_as::<_, (String, String)>(LIST_ORGANIZATIONS).bind(cluster.as_str());
        listed(cluster, &listing.fetch_all(&self.readers).await?)
    }

    async fn describe_usage(&self, cluster: &ClusterName) -> Result<Vec<SeriesSummary>, StoreError> {
        let mut connection = self.readers.acquire().await?;
        require_cluster(&mut connection, cluster).await?;
        let query = sqlx::query_as::<_, SummaryRow>(
            "SELECT cluster, gpu_model, organization,
                 min(hour) AS first_hour, max(hour) AS last_hour, count(*) AS row_count, changed_at
             FROM series JOIN usage ON series_id = id
             WHERE cluster = $1 GROUP BY id ORDER BY gpu_model, organization",
        );
        all(query.bind(cluster.as_str()).fetch_all(&mut *connection).await?)
    }

    async fn delete_usage_before(&self, before: HourStart) -> Result<u64, StoreError> {
        let mut transaction = self.begin().await?;
        // By series, since the key begins with it: else every row would be looked at.
        let deleting = sqlx::query("DELETE FROM usage WHERE series_id IN (SELECT id FROM series) AND hour < $1");
        let deleted = deleting.bind(Stamp::from(before)).execute(&mut *transaction).await?.rows_affected();
        move_bounds(&mut transaction, before).await?;
        transaction.commit().await?;
        Ok(deleted)
    }
}

/// After rows before an hour are gone: for every cluster that had some, a new version and the bounds of what is left.
/// The bounds are exact, so a cluster without a row before the hour has lost nothing.
async fn move_bounds(connection: &mut SqliteConnection, before: HourStart) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE clusters SET usage_version = usage_version + 1,
             first_hour = (
                 SELECT min(first) FROM (SELECT (SELECT min(hour) FROM usage WHERE series_id = id) AS first
                 FROM series WHERE cluster = clusters.name)),
             last_hour = CASE WHEN last_hour >= $1 THEN last_hour END,
             first_demand_hour = (
                 SELECT min(first) FROM (SELECT (SELECT min(hour) FROM usage WHERE series_id = id) AS first
                 FROM series WHERE cluster = clusters.name AND organization <> '*')),
             last_demand_hour = CASE WHEN last_demand_hour >= $1 THEN last_demand_hour END
         WHERE first_hour < $1",
    )
    .bind(Stamp::from(before))
    .execute(connection)
    .await?;
    Ok(())
}
