//! Appends the rows of one cluster, inside the transaction that holds its lock.
//!
//! Under that lock no other append writes its series, so a missing row stays missing. Rows that cannot exist yet are
//! copied straight into the table, the rest through a temporary table and a merge. Neither needs ON CONFLICT, which takes
//! twice the time.

use super::fill::fill;
use crate::StoreError;
use crate::stored::{Span, Stamp, milli};
use crate::usage::batch::{Batch, Row};
use crate::usage::{AppendReport, Merged};
use sqlx::PgConnection;
use vocab::{ClusterName, HourStart, SeriesId};

/// The ids of a batch's series, in their order, and which of them are new.
struct Ids {
    ids: Vec<i32>,
    new: Vec<bool>,
}

/// Numbers of written rows, and their series.
#[derive(Default)]
struct Written {
    inserted: u64,
    changed: u64,
    series: Vec<i32>,
}

pub async fn append(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    batch: &Batch<'_>,
    old: Span,
) -> Result<AppendReport, StoreError> {
    let usage = append_usage(connection, cluster, batch, old).await?;
    let capacity = append_capacity(connection, cluster, batch).await?;
    if usage.wrote() || capacity.wrote() {
        note_change(connection, cluster, batch.span(), batch.demand_span()).await?;
    }
    Ok(AppendReport { usage, capacity })
}

async fn append_usage(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    batch: &Batch<'_>,
    old: Span,
) -> Result<Merged, StoreError> {
    if batch.rows.is_empty() {
        return Ok(batch.merged(0, 0));
    }
    let Ids { ids, new } = resolve(connection, cluster, batch).await?;
    let is_fresh = |row: &Row| new[row.series as usize] || old.is_none_or(|(a, b)| row.hour < a || row.hour > b);
    let (fresh, rest): (Vec<Row>, Vec<Row>) = batch.rows.iter().partition(|row| is_fresh(row));
    let mut written = Written::default();
    if !fresh.is_empty() {
        fill(connection, "usage", &fresh, &ids).await?;
        written.inserted = fresh.len() as u64;
        written.series = distinct(&fresh, &ids);
    }
    if let Some((first, last)) = rest.first().zip(rest.last()) {
        merge(connection, &rest, &ids, (first.hour, last.hour), &mut written).await?;
    }
    sqlx::query("UPDATE series SET changed_at = now() WHERE id = ANY ($1)")
        .bind(written.series)
        .execute(connection)
        .await?;
    Ok(batch.merged(written.inserted, written.changed))
}

/// Finds the ids of the series, and creates new series.
async fn resolve(connection: &mut PgConnection, cluster: &ClusterName, batch: &Batch<'_>) -> Result<Ids, StoreError> {
    let found = find(connection, cluster, &batch.series).await?;
    let new: Vec<bool> = found.iter().map(Option::is_none).collect();
    if !new.contains(&true) {
        return Ok(Ids { ids: found.into_iter().flatten().collect(), new });
    }
    let absent = batch.series.iter().zip(&new).filter(|(_, new)| **new);
    let (gpu_models, organizations) = absent.map(|(series, _)| names(series)).collect::<(Vec<_>, Vec<_>)>();
    sqlx::query(
        "INSERT INTO series (cluster, gpu_model, organization, changed_at)
         SELECT $1, gpu_model, organization, now()
         FROM unnest($2::text[], $3::text[]) AS new (gpu_model, organization)",
    )
    .bind(cluster.as_str())
    .bind(gpu_models)
    .bind(organizations)
    .execute(&mut *connection)
    .await?;
    let ids: Vec<i32> = find(connection, cluster, &batch.series).await?.into_iter().flatten().collect();
    debug_assert_eq!(ids.len(), new.len(), "absent series were just created");
    Ok(Ids { ids, new })
}

async fn find(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    series: &[&SeriesId],
) -> Result<Vec<Option<i32>>, StoreError> {
    let (gpu_models, organizations) = series.iter().map(|series| names(series)).collect::<(Vec<_>, Vec<_>)>();
    let query = sqlx::query_scalar(
        "SELECT id FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS wanted (gpu_model, organization, place)
         LEFT JOIN series ON series.cluster = $1 AND series.gpu_model = wanted.gpu_model
             AND series.organization = wanted.organization
         ORDER BY place",
    );
    Ok(query.bind(cluster.as_str()).bind(gpu_models).bind(organizations).fetch_all(connection).await?)
}

fn names(series: &SeriesId) -> (&str, &str) {
    (series.pool.gpu_model.as_str(), series.organization.as_str())
}

/// Replaces rows that differ (a row with the same peak that does not know the end of its hour does not) and inserts missing ones, all of them between the hours of `span`.
async fn merge(
    connection: &mut PgConnection,
    rows: &[Row],
    ids: &[i32],
    span: (HourStart, HourStart),
    written: &mut Written,
) -> Result<(), StoreError> {
    sqlx::query(
        "CREATE TEMPORARY TABLE IF NOT EXISTS staged
             (hour timestamptz NOT NULL, demand_milli bigint NOT NULL, at_end_milli bigint, series_id integer NOT NULL)
             ON COMMIT DROP",
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query("TRUNCATE staged").execute(&mut *connection).await?;
    fill(connection, "staged", rows, ids).await?;
    let changed = "WITH written AS (
             UPDATE usage SET demand_milli = staged.demand_milli, at_end_milli = staged.at_end_milli FROM staged
             WHERE usage.hour = staged.hour AND usage.series_id = staged.series_id
                 AND (usage.demand_milli <> staged.demand_milli
                     OR usage.at_end_milli IS DISTINCT FROM coalesce(staged.at_end_milli, usage.at_end_milli))
                 AND usage.hour BETWEEN $1 AND $2
             RETURNING usage.series_id
         ) SELECT series_id, count(*) FROM written GROUP BY series_id";
    written.changed += run(connection, changed, span, &mut written.series).await?;
    let inserted = "WITH written AS (
             INSERT INTO usage (hour, demand_milli, at_end_milli, series_id)
             SELECT hour, demand_milli, at_end_milli, series_id FROM staged
             WHERE NOT EXISTS (
                 SELECT FROM usage WHERE usage.hour = staged.hour AND usage.series_id = staged.series_id
                     AND usage.hour BETWEEN $1 AND $2
             ) RETURNING series_id
         ) SELECT series_id, count(*) FROM written GROUP BY series_id";
    written.inserted += run(connection, inserted, span, &mut written.series).await?;
    Ok(())
}

/// Runs one half of a merge: adds the series that it wrote to `series`, and returns the number of written rows. Planned
/// again each time, since the hours of the span decide which partitions are read.
async fn run(
    connection: &mut PgConnection,
    statement: &'static str,
    (first, last): (HourStart, HourStart),
    series: &mut Vec<i32>,
) -> Result<u64, StoreError> {
    let query = sqlx::query_as::<_, (i32, i64)>(statement).bind(Stamp::from(first)).bind(Stamp::from(last));
    let counts = query.persistent(false).fetch_all(connection).await?;
    series.extend(counts.iter().map(|(id, _)| id));
    Ok(counts.iter().map(|&(_, count)| count as u64).sum())
}

async fn append_capacity(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    batch: &Batch<'_>,
) -> Result<Merged, StoreError> {
    if batch.capacity.is_empty() {
        return Ok(batch.merged_capacity(0, 0));
    }
    let gpu_models: Vec<&str> = batch.capacity.iter().map(|row| row.pool.gpu_model.as_str()).collect();
    let hours: Vec<Stamp> = batch.capacity.iter().map(|row| Stamp::from(row.from)).collect();
    let amounts: Vec<i64> = batch.capacity.iter().map(|row| milli(row.capacity)).collect();
    let changing = sqlx::query(
        "UPDATE capacity SET capacity_milli = new.capacity_milli
         FROM unnest($2::text[], $3, $4) AS new (gpu_model, from_hour, capacity_milli)
         WHERE capacity.cluster = $1 AND capacity.gpu_model = new.gpu_model AND capacity.from_hour = new.from_hour
             AND capacity.capacity_milli <> new.capacity_milli",
    );
    let changing = changing.bind(cluster.as_str()).bind(&gpu_models).bind(&hours).bind(&amounts);
    let changed = changing.execute(&mut *connection).await?.rows_affected();
    let inserting = sqlx::query(
        "INSERT INTO capacity (cluster, gpu_model, from_hour, capacity_milli)
         SELECT $1, new.* FROM unnest($2::text[], $3, $4) AS new ON CONFLICT DO NOTHING",
    );
    let inserting = inserting.bind(cluster.as_str()).bind(&gpu_models).bind(&hours).bind(&amounts);
    let inserted = inserting.execute(connection).await?.rows_affected();
    Ok(batch.merged_capacity(inserted, changed))
}

/// Raises the version of the cluster, and widens its bounds to the rows.
async fn note_change(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    span: Span,
    demand_span: Span,
) -> Result<(), StoreError> {
    // LEAST and GREATEST ignore NULL.
    sqlx::query(
        "UPDATE clusters SET usage_version = usage_version + 1,
             first_hour = LEAST(first_hour, $2), last_hour = GREATEST(last_hour, $3),
             first_demand_hour = LEAST(first_demand_hour, $4), last_demand_hour = GREATEST(last_demand_hour, $5)
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

fn distinct(rows: &[Row], ids: &[i32]) -> Vec<i32> {
    let mut seen = vec![false; ids.len()];
    for row in rows {
        seen[row.series as usize] = true;
    }
    ids.iter().zip(seen).filter(|(_, seen)| *seen).map(|(id, _)| *id).collect()
}
