mod append;
mod fill;
mod partitions;

use super::clusters::{lock_all_clusters, lock_cluster, require_clusters};
use super::{LONG, PostgresStore};
use crate::StoreError;
use crate::stored::{Stamp, all};
use crate::transaction::Transaction;
use crate::usage::batch::{self, Batch};
use crate::usage::{AppendReport, SeriesSummary, SummaryRow, UsageSink, hour_demand, series};
use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, PgConnection, Postgres, raw_sql};
use std::collections::BTreeMap;
use vocab::{ClusterName, HourStart, SeriesId, UsageRow};

/// Memory for the sorts and joins of a large append or load, which are rare and alone: with the usual 4 MB a merge of
/// 480,000 rows goes to disk.
const WORK_MEM: &str = "SET LOCAL work_mem = '64MB'";

/// Gives a transaction the memory and the time of a large append or load, in one round trip.
async fn is_large(connection: &mut PgConnection) -> Result<(), StoreError> {
    raw_sql(AssertSqlSafe(format!("{WORK_MEM}; {LONG}"))).execute(connection).await?;
    Ok(())
}

/// Appends batches of `rows` rows in all, in one transaction.
pub(crate) async fn append(
    store: &PostgresStore,
    rows: usize,
    batches: &BTreeMap<&ClusterName, Batch<'_>>,
) -> Result<AppendReport, StoreError> {
    let mut transaction = Transaction::begin(&store.pool, "BEGIN").await?;
    if rows > fill::ROWS_BY_INSERT {
        // In case the caller gives up: a COPY that stops half-way confuses the driver about the next answers of the
        // server, so such a connection must not go back to the pool.
        transaction.closes_unless_committed();
    }
    store.insert_audit(&mut transaction).await?;
    is_large(&mut transaction).await?;
    let report = append_within(&mut transaction, batches).await?;
    transaction.commit().await?;
    Ok(report)
}

/// Begins a transaction for batches of rows.
pub(crate) async fn begin_append(store: &PostgresStore) -> Result<Transaction<Postgres>, StoreError> {
    let mut transaction = Transaction::begin(&store.pool, "BEGIN").await?;
    transaction.closes_unless_committed();
    store.insert_audit(&mut transaction).await?;
    is_large(&mut transaction).await?;
    Ok(transaction)
}

/// Appends rows within the caller's transaction.
pub(crate) async fn append_in(connection: &mut PgConnection, rows: &[UsageRow]) -> Result<(), StoreError> {
    append_within(connection, &batch::by_cluster(rows, &[])?).await.map(drop)
}

/// Passes the rows of a cluster to `sink`, series by series.
pub(crate) async fn load(
    store: &PostgresStore,
    cluster: &ClusterName,
    from: HourStart,
    to: HourStart,
    sink: UsageSink<'_>,
) -> Result<(), StoreError> {
    let mut snapshot = store.begin().await?;
    is_large(&mut snapshot).await?;
    // Grouping by sorting: a hash table would hold the arrays of all series at once.
    sqlx::query("SET LOCAL enable_hashagg = off").execute(&mut *snapshot).await?;
    require_clusters(&mut snapshot, [cluster].into_iter()).await?;
    // One row for each series: arrays save the cost of a row for each hour. IS TRUE keeps the filter on series away from
    // the index, whose key begins with the hour: with both filters, Postgres would read it once for each series.
    let query = sqlx::query_as::<_, (String, String, Vec<Stamp>, Vec<i64>, Option<Vec<i64>>)>(
        "WITH loaded AS MATERIALIZED (
             SELECT series_id, array_agg(hour) AS hours, array_agg(demand_milli) AS demands,
                 CASE WHEN count(at_end_milli) > 0 THEN array_agg(coalesce(at_end_milli, -1)) END AS ends FROM usage
             WHERE hour >= $2 AND hour < $3
                 AND (series_id IN (SELECT id FROM series WHERE cluster = $1)) IS TRUE
             GROUP BY series_id
         )
         SELECT gpu_model, organization, hours, demands, ends FROM loaded JOIN series ON id = series_id
         ORDER BY gpu_model, organization",
    )
    .bind(cluster.as_str())
    .bind(Stamp::from(from))
    .bind(Stamp::from(to))
    // Planned again each time: which months are read depends on the hours.
    .persistent(false);
    let mut rows = query.fetch(&mut *snapshot);
    while let Some((gpu_model, organization, hours, demands, ends)) = rows.try_next().await? {
        let ends = ends.as_deref().unwrap_or_default();
        pass_on(&series(cluster.as_str(), &gpu_model, &organization)?, &hours, (&demands, ends), sink)?;
    }
    Ok(())
}

/// Summarizes every series of a cluster that has rows.
pub(crate) async fn describe(store: &PostgresStore, cluster: &ClusterName) -> Result<Vec<SeriesSummary>, StoreError> {
    let mut connection = store.pool.acquire().await?;
    require_clusters(&mut connection, [cluster].into_iter()).await?;
    let query = sqlx::query_as::<_, SummaryRow>(
        "WITH summed AS MATERIALIZED (
             SELECT series_id, min(hour) AS first_hour, max(hour) AS last_hour, count(*) AS row_count FROM usage
             WHERE (series_id IN (SELECT id FROM series WHERE cluster = $1)) IS TRUE
             GROUP BY series_id
         )
         SELECT cluster, gpu_model, organization, first_hour, last_hour, row_count, changed_at
         FROM summed JOIN series ON id = series_id ORDER BY gpu_model, organization",
    );
    all(query.bind(cluster.as_str()).fetch_all(&mut *connection).await?)
}

/// Deletes all rows before an hour: whole months by dropping their partitions.
pub(crate) async fn delete_before(store: &PostgresStore, before: HourStart) -> Result<u64, StoreError> {
    let mut transaction = store.begin_long().await?;
    lock_all_clusters(&mut transaction).await?;
    let mut deleted = partitions::drop_before(&mut transaction, before).await?;
    let rest = sqlx::query("DELETE FROM usage WHERE hour < $1").bind(Stamp::from(before));
    deleted += rest.execute(&mut *transaction).await?.rows_affected();
    move_bounds(&mut transaction, before).await?;
    transaction.commit().await?;
    Ok(deleted)
}

/// Locks the clusters in order, creates missing partitions, and writes.
pub(crate) async fn append_within(
    connection: &mut PgConnection,
    batches: &BTreeMap<&ClusterName, Batch<'_>>,
) -> Result<AppendReport, StoreError> {
    let mut spans = Vec::with_capacity(batches.len());
    for &cluster in batches.keys() {
        spans.push(lock_cluster(connection, cluster).await?);
    }
    let hours: Vec<Stamp> = batches.values().flat_map(Batch::hours).map(Stamp::from).collect();
    partitions::ensure(connection, &hours).await?;
    let mut report = AppendReport::default();
    for ((cluster, batch), old) in batches.iter().zip(spans) {
        report.add(append::append(connection, cluster, batch, old).await?);
    }
    Ok(report)
}

/// Passes one series to `sink`, by hour: the query plan decides the order of the hours within an array. `ends` are empty where none is
/// known, and -1 where that of an hour is not.
fn pass_on(
    series: &SeriesId,
    hours: &[Stamp],
    (demands, ends): (&[i64], &[i64]),
    sink: UsageSink<'_>,
) -> Result<(), StoreError> {
    let mut rows: Vec<(HourStart, i64, Option<i64>)> = Vec::with_capacity(hours.len());
    for (place, (hour, demand)) in hours.iter().zip(demands).enumerate() {
        rows.push((hour.hour()?, *demand, ends.get(place).copied().filter(|end| *end >= 0)));
    }
    rows.sort_unstable();
    for (hour, demand, at_end) in rows {
        sink(series, hour, hour_demand(demand, at_end)?);
    }
    Ok(())
}

/// After the deletion of rows before an hour: raises the version of each cluster that lost rows, and computes its bounds
/// again. The bounds are exact, so a cluster without a row before the hour has lost nothing.
async fn move_bounds(connection: &mut PgConnection, before: HourStart) -> Result<(), StoreError> {
    let losing = sqlx::query_scalar::<_, String>("SELECT name FROM clusters WHERE first_hour < $1");
    for cluster in losing.bind(Stamp::from(before)).fetch_all(&mut *connection).await? {
        let first_hour = first_remaining_hour(connection, &cluster, before, "last_hour", "true").await?;
        let first_demand_hour =
            first_remaining_hour(connection, &cluster, before, "last_demand_hour", "organization <> '*'").await?;
        sqlx::query(
            "UPDATE clusters SET usage_version = usage_version + 1,
                 first_hour = $2, last_hour = CASE WHEN $2 IS NOT NULL THEN last_hour END,
                 first_demand_hour = $3, last_demand_hour = CASE WHEN $3 IS NOT NULL THEN last_demand_hour END
             WHERE name = $1",
        )
        .bind(cluster)
        .bind(first_hour)
        .bind(first_demand_hour)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// The first remaining hour of a cluster. `last` is the column of the last hour of such rows: if that hour is gone too,
/// there is nothing to search. Otherwise the search stops at the first row that it finds, mostly at once.
async fn first_remaining_hour(
    connection: &mut PgConnection,
    cluster: &str,
    before: HourStart,
    last: &'static str,
    which: &'static str,
) -> Result<Option<Stamp>, StoreError> {
    let statement = format!(
        "SELECT hour FROM usage
         WHERE hour >= $2 AND (SELECT {last} >= $2 FROM clusters WHERE name = $1)
             AND (series_id IN (SELECT id FROM series WHERE cluster = $1 AND {which})) IS TRUE
         ORDER BY hour LIMIT 1"
    );
    let query = sqlx::query_scalar(AssertSqlSafe(statement)).bind(cluster).bind(Stamp::from(before));
    Ok(query.fetch_optional(connection).await?)
}
