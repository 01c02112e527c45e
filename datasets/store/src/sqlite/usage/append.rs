//! Appends the rows of one cluster, inside the only transaction that writes: it reads stored rows, compares them here, and
//! writes only those that differ.

use crate::StoreError;
use crate::stored::{Span, Stamp, milli};
use crate::usage::batch::{Batch, Row};
use crate::usage::{AppendReport, Merged, hour_demand};
use sqlx::{AssertSqlSafe, SqliteConnection};
use std::collections::HashMap;
use vocab::{ClusterName, HourDemand, HourStart, SeriesId};

/// Four parameters a row; SQLite takes up to 32,766.
const ROWS_PER_STATEMENT: usize = 1_000;

pub async fn append(
    connection: &mut SqliteConnection,
    cluster: &ClusterName,
    batch: &Batch<'_>,
    old: Span,
) -> Result<AppendReport, StoreError> {
    let usage = append_usage(connection, batch, old).await?;
    let capacity = append_capacity(connection, batch).await?;
    if usage.wrote() || capacity.wrote() {
        note_change(connection, cluster, batch.span(), batch.demand_span()).await?;
    }
    Ok(AppendReport { usage, capacity })
}

/// Appends usage rows; `old` are the hours in which the cluster has rows already.
async fn append_usage(connection: &mut SqliteConnection, batch: &Batch<'_>, old: Span) -> Result<Merged, StoreError> {
    let mut rows = batch.rows.clone();
    rows.sort_unstable_by_key(|row| (row.series, row.hour));
    let (mut inserted, mut changed) = (0, 0);
    let mut writes: Vec<(i64, Row)> = Vec::new();
    for group in rows.chunk_by(|a, b| a.series == b.series) {
        let (id, is_new) = resolve(connection, batch.series[group[0].series as usize]).await?;
        let (first, last) = (group[0].hour, group[group.len() - 1].hour);
        let meets_old = !is_new && old.is_some_and(|(old_first, old_last)| first <= old_last && last >= old_first);
        let stored = if meets_old { stored(connection, id, first, last).await? } else { HashMap::new() };
        let before = writes.len();
        for row in group {
            match stored.get(&row.hour.unix_s()) {
                None => inserted += 1,
                // The end of an hour stays known where the row with the same peak does not know it.
                Some(known) if known.joined(row.demand) != Some(*known) => changed += 1,
                Some(_) => continue,
            }
            writes.push((id, *row));
        }
        if writes.len() > before {
            let noting = sqlx::query("UPDATE series SET changed_at = unixepoch() WHERE id = $1");
            noting.bind(id).execute(&mut *connection).await?;
        }
    }
    for chunk in writes.chunks(ROWS_PER_STATEMENT) {
        upsert(connection, chunk).await?;
    }
    Ok(batch.merged(inserted, changed))
}

/// The id of a series, created if it is new, and whether it is new.
async fn resolve(connection: &mut SqliteConnection, series: &SeriesId) -> Result<(i64, bool), StoreError> {
    let names = [series.pool.cluster.as_str(), series.pool.gpu_model.as_str(), series.organization.as_str()];
    let [cluster, gpu_model, organization] = names;
    let finding =
        sqlx::query_scalar("SELECT id FROM series WHERE cluster = $1 AND gpu_model = $2 AND organization = $3");
    let finding = finding.bind(cluster).bind(gpu_model).bind(organization);
    if let Some(id) = finding.fetch_optional(&mut *connection).await? {
        return Ok((id, false));
    }
    let making = sqlx::query_scalar(
        "INSERT INTO series (cluster, gpu_model, organization, changed_at) VALUES ($1, $2, $3, unixepoch())
         RETURNING id",
    );
    Ok((making.bind(cluster).bind(gpu_model).bind(organization).fetch_one(connection).await?, true))
}

/// Stored rows of a series by hour, in seconds since 1970.
async fn stored(
    connection: &mut SqliteConnection,
    id: i64,
    first: HourStart,
    last: HourStart,
) -> Result<HashMap<i64, HourDemand>, StoreError> {
    let query = sqlx::query_as::<_, (i64, i64, Option<i64>)>(
        "SELECT hour, demand_milli, at_end_milli FROM usage WHERE series_id = $1 AND hour BETWEEN $2 AND $3",
    );
    let rows = query.bind(id).bind(first.unix_s()).bind(last.unix_s()).fetch_all(connection).await?;
    rows.into_iter().map(|(hour, demand, at_end)| Ok((hour, hour_demand(demand, at_end)?))).collect()
}

async fn upsert(connection: &mut SqliteConnection, rows: &[(i64, Row)]) -> Result<(), StoreError> {
    let places = vec!["(?, ?, ?, ?)"; rows.len()].join(", ");
    let statement = format!(
        "INSERT INTO usage (series_id, hour, demand_milli, at_end_milli) VALUES {places}
         ON CONFLICT (series_id, hour)
         DO UPDATE SET demand_milli = excluded.demand_milli, at_end_milli = excluded.at_end_milli"
    );
    // Prepared for full chunks only: a statement for each number of rows would evict all others from the cache.
    let mut query = sqlx::query(AssertSqlSafe(statement)).persistent(rows.len() == ROWS_PER_STATEMENT);
    for (id, row) in rows {
        query = query.bind(id).bind(row.hour.unix_s()).bind(milli(row.demand.peak)).bind(row.demand.at_end.map(milli));
    }
    query.execute(connection).await?;
    Ok(())
}

async fn append_capacity(connection: &mut SqliteConnection, batch: &Batch<'_>) -> Result<Merged, StoreError> {
    let (mut inserted, mut changed) = (0, 0);
    for row in &batch.capacity {
        let (cluster, gpu_model) = (row.pool.cluster.as_str(), row.pool.gpu_model.as_str());
        let changing = sqlx::query(
            "UPDATE capacity SET capacity_milli = $4
             WHERE cluster = $1 AND gpu_model = $2 AND from_hour = $3 AND capacity_milli <> $4",
        );
        let (from, amount) = (Stamp::from(row.from), milli(row.capacity));
        let changing = changing.bind(cluster).bind(gpu_model).bind(from).bind(amount);
        changed += changing.execute(&mut *connection).await?.rows_affected();
        let inserting = sqlx::query(
            "INSERT INTO capacity (cluster, gpu_model, from_hour, capacity_milli) VALUES ($1, $2, $3, $4)
             ON CONFLICT DO NOTHING",
        );
        let inserting = inserting.bind(cluster).bind(gpu_model).bind(from).bind(amount);
        inserted += inserting.execute(&mut *connection).await?.rows_affected();
    }
    Ok(batch.merged_capacity(inserted, changed))
}

/// Raises the version of the cluster, and widens its bounds to the rows.
async fn note_change(
    connection: &mut SqliteConnection,
    cluster: &ClusterName,
    span: Span,
    demand_span: Span,
) -> Result<(), StoreError> {
    // min and max of several values are NULL if one of them is: either side may have no bound yet.
    sqlx::query(
        "UPDATE clusters SET usage_version = usage_version + 1,
             first_hour = coalesce(min(first_hour, $2), first_hour, $2),
             last_hour = coalesce(max(last_hour, $3), last_hour, $3),
             first_demand_hour = coalesce(min(first_demand_hour, $4), first_demand_hour, $4),
             last_demand_hour = coalesce(max(last_demand_hour, $5), last_demand_hour, $5)
         WHERE name = $1",
    )
    .bind(cluster.as_str())
    .bind(span.map(|(first, _)| Stamp::from(first)))
    .bind(span.map(|(_, last)| Stamp::from(last)))
    .bind(demand_span.map(|(first, _)| Stamp::from(first)))
    .bind(demand_span.map(|(_, last)| Stamp::from(last)))
    .execute(connection)
    .await?;
    Ok(())
}
