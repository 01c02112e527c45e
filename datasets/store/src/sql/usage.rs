use super::dialect::clusters::require_clusters;
use super::{SqlStore, dialect};
use crate::stored::{Stamp, span, whole};
use crate::usage::{AppendReport, SeriesSummary, UsageBatches, UsageSink, UsageStore, batch, hour_demand, series};
use crate::{Cluster, StoreError};
use async_trait::async_trait;
use futures_util::TryStreamExt;
use std::collections::BTreeMap;
use vocab::{CapacityRow, ClusterName, HourStart, PoolId, SeriesId, UsageRow};

#[async_trait]
impl UsageStore for SqlStore {
    async fn append(&self, rows: &[UsageRow], capacity: &[CapacityRow]) -> Result<AppendReport, StoreError> {
        // 1. Sort, name each series once, refuse contradictions.
        let batches = batch::by_cluster(rows, capacity)?;
        // 2. Write, in one transaction.
        dialect::usage::append(self, rows.len(), &batches).await
    }

    async fn append_batches(
        &self,
        clusters: &[Cluster],
        batches: UsageBatches<'_>,
        capacity: &[CapacityRow],
    ) -> Result<AppendReport, StoreError> {
        let (mut transaction, mut report) = (dialect::usage::begin_append(self).await?, AppendReport::default());
        // All of them first, in order: a batch may hold rows of some alone.
        let in_order: BTreeMap<&ClusterName, &Cluster> =
            clusters.iter().map(|cluster| (&cluster.name, cluster)).collect();
        for cluster in in_order.into_values() {
            super::clusters::put(&mut transaction, cluster).await?;
        }
        for rows in batches {
            let rows = rows.map_err(|reason| StoreError::NoBatch { reason })?;
            let batches = batch::by_cluster(&rows, &[])?;
            report.add(dialect::usage::append_within(&mut transaction, &batches).await?);
        }
        let batches = batch::by_cluster(&[], capacity)?;
        report.add(dialect::usage::append_within(&mut transaction, &batches).await?);
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
        dialect::usage::load(self, cluster, from, to, sink).await
    }

    async fn load_pool_usage(
        &self,
        pool: &PoolId,
        from: HourStart,
        to: HourStart,
        sink: UsageSink<'_>,
    ) -> Result<(), StoreError> {
        let mut connection = self.readers().acquire().await?;
        require_clusters(&mut connection, [&pool.cluster].into_iter()).await?;
        let query = sqlx::query_as::<_, (String, Stamp, i64, Option<i64>)>(
            "SELECT organization, hour, demand_milli, at_end_milli FROM usage JOIN series ON series.id = series_id
             WHERE cluster = $1 AND gpu_model = $2 AND hour >= $3 AND hour < $4",
        );
        let query = query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str());
        let mut rows = query.bind(Stamp::from(from)).bind(Stamp::from(to)).fetch(&mut *connection);
        while let Some((organization, hour, demand, at_end)) = rows.try_next().await? {
            let of = series(pool.cluster.as_str(), pool.gpu_model.as_str(), &organization)?;
            sink(&of, hour.hour()?, hour_demand(demand, at_end)?);
        }
        Ok(())
    }

    async fn usage_range(&self, cluster: &ClusterName) -> Result<Option<(HourStart, HourStart)>, StoreError> {
        self.range(cluster, "SELECT first_demand_hour, last_demand_hour FROM clusters WHERE name = $1").await
    }

    async fn measured_range(&self, cluster: &ClusterName) -> Result<Option<(HourStart, HourStart)>, StoreError> {
        self.range(cluster, "SELECT first_hour, last_hour FROM clusters WHERE name = $1").await
    }

    async fn knows_ends(&self, cluster: &ClusterName) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM usage JOIN series ON series.id = series_id
             WHERE cluster = $1 AND at_end_milli IS NOT NULL)",
        );
        Ok(query.bind(cluster.as_str()).fetch_one(self.readers()).await?)
    }

    async fn organization_count(&self, cluster: &ClusterName) -> Result<u64, StoreError> {
        let query =
            sqlx::query_scalar::<_, i64>("SELECT count(*) FROM series WHERE cluster = $1 AND organization <> '*'");
        whole("number of organizations", query.bind(cluster.as_str()).fetch_one(self.readers()).await?)
    }

    async fn organizations(&self, cluster: &ClusterName) -> Result<Vec<SeriesId>, StoreError> {
        let query = sqlx::query_as::<_, (String, String)>(
            "SELECT gpu_model, organization FROM series WHERE cluster = $1 AND organization <> '*'
             ORDER BY gpu_model, organization",
        );
        let rows = query.bind(cluster.as_str()).fetch_all(self.readers()).await?;
        rows.iter().map(|(gpu_model, organization)| series(cluster.as_str(), gpu_model, organization)).collect()
    }

    async fn describe_usage(&self, cluster: &ClusterName) -> Result<Vec<SeriesSummary>, StoreError> {
        dialect::usage::describe(self, cluster).await
    }

    async fn delete_usage_before(&self, before: HourStart) -> Result<u64, StoreError> {
        dialect::usage::delete_before(self, before).await
    }
}

impl SqlStore {
    /// First and last hour of a cluster, from the columns that `statement` selects.
    async fn range(
        &self,
        cluster: &ClusterName,
        statement: &'static str,
    ) -> Result<Option<(HourStart, HourStart)>, StoreError> {
        sqlx::query_as(statement)
            .bind(cluster.as_str())
            .fetch_optional(self.readers())
            .await?
            .map(span)
            .ok_or_else(|| StoreError::not_found("cluster", cluster))?
    }
}
