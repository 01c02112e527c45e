mod append;

use super::SqliteStore;
use super::clusters::require_cluster;
use crate::StoreError;
use crate::stored::{Stamp, all};
use crate::transaction::Transaction;
use crate::usage::batch::{self, Batch};
use crate::usage::{AppendReport, SeriesSummary, SummaryRow, UsageSink, hour_demand, series};
use futures_util::TryStreamExt;
use sqlx::{Sqlite, SqliteConnection};
use std::collections::BTreeMap;
use vocab::{ClusterName, HourStart, UsageRow};

/// Appends batches in one transaction, which is the only one that writes. SQLite does not need the number of `_rows`.
pub(crate) async fn append(
    store: &SqliteStore,
    _rows: usize,
    batches: &BTreeMap<&ClusterName, Batch<'_>>,
) -> Result<AppendReport, StoreError> {
    let mut transaction = store.begin().await?;
    let report = append_within(&mut transaction, batches).await?;
    transaction.commit().await?;
    Ok(report)
}

/// Begins a transaction for batches of rows: the only one that writes.
pub(crate) async fn begin_append(store: &SqliteStore) -> Result<Transaction<Sqlite>, StoreError> {
    store.begin().await
}

/// Appends rows within the caller's transaction.
pub(crate) async fn append_in(connection: &mut SqliteConnection, rows: &[UsageRow]) -> Result<(), StoreError> {
    append_within(connection, &batch::by_cluster(rows, &[])?).await.map(drop)
}

/// Passes the rows of a cluster to `sink`, series by series.
pub(crate) async fn load(
    store: &SqliteStore,
    cluster: &ClusterName,
    from: HourStart,
    to: HourStart,
    sink: UsageSink<'_>,
) -> Result<(), StoreError> {
    let mut snapshot = store.begin_reading().await?;
    require_cluster(&mut snapshot, cluster).await?;
    let listing = sqlx::query_as::<_, (i64, String, String)>(
        "SELECT id, gpu_model, organization FROM series WHERE cluster = $1 ORDER BY gpu_model, organization",
    );
    for (id, gpu_model, organization) in listing.bind(cluster.as_str()).fetch_all(&mut *snapshot).await? {
        let series = series(cluster.as_str(), &gpu_model, &organization)?;
        let query = sqlx::query_as::<_, (Stamp, i64, Option<i64>)>(
            "SELECT hour, demand_milli, at_end_milli FROM usage
             WHERE series_id = $1 AND hour >= $2 AND hour < $3 ORDER BY hour",
        );
        let query = query.bind(id).bind(Stamp::from(from)).bind(Stamp::from(to));
        let mut rows = query.fetch(&mut *snapshot);
        while let Some((hour, demand, at_end)) = rows.try_next().await? {
            sink(&series, hour.hour()?, hour_demand(demand, at_end)?);
        }
    }
    Ok(())
}

/// Summarizes every series of a cluster that has rows.
pub(crate) async fn describe(store: &SqliteStore, cluster: &ClusterName) -> Result<Vec<SeriesSummary>, StoreError> {
    let mut connection = store.readers.acquire().await?;
    require_cluster(&mut connection, cluster).await?;
    let query = sqlx::query_as::<_, SummaryRow>(
        "SELECT cluster, gpu_model, organization,
             min(hour) AS first_hour, max(hour) AS last_hour, count(*) AS row_count, changed_at
         FROM series JOIN usage ON series_id = id
         WHERE cluster = $1 GROUP BY id ORDER BY gpu_model, organization",
    );
    all(query.bind(cluster.as_str()).fetch_all(&mut *connection).await?)
}

/// Deletes all rows before an hour.
pub(crate) async fn delete_before(store: &SqliteStore, before: HourStart) -> Result<u64, StoreError> {
    let mut transaction = store.begin().await?;
    // By series, since the key begins with it: else the statement would read every row.
    let deleting = sqlx::query("DELETE FROM usage WHERE series_id IN (SELECT id FROM series) AND hour < $1");
    let deleted = deleting.bind(Stamp::from(before)).execute(&mut *transaction).await?.rows_affected();
    move_bounds(&mut transaction, before).await?;
    transaction.commit().await?;
    Ok(deleted)
}

pub(crate) async fn append_within(
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

/// After the deletion of rows before an hour: raises the version of each cluster that lost rows, and computes its bounds
/// again. The bounds are exact, so a cluster without a row before the hour has lost nothing.
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
