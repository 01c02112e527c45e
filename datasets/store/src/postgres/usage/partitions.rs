//! One partition of `usage` for each month, named `usage_YYYY_MM`.

use crate::StoreError;
use crate::stored::Stamp;
use sqlx::{AssertSqlSafe, PgConnection};
use vocab::HourStart;

/// The advisory lock of transactions that create or drop partitions, taken after the locks of clusters. Any unique number
/// serves: these are the letters "usage".
const LOCK: i64 = 0x75_73_61_67_65;

row! {
    /// A month and its bounds, as SQL texts.
    struct Month {
        partition: String,
        first: String,
        next: String,
    }
}

/// Creates the partitions that the hours need. Concurrent appends continue: to attach a partition does not block readers and
/// writers of the table, as CREATE TABLE … PARTITION OF would.
pub async fn ensure(connection: &mut PgConnection, hours: &[Stamp]) -> Result<(), StoreError> {
    if missing(connection, hours).await?.is_empty() {
        return Ok(());
    }
    lock(connection).await?;
    for Month { partition, first, next } in missing(connection, hours).await? {
        let make = format!("CREATE TABLE {partition} (LIKE usage INCLUDING DEFAULTS INCLUDING CONSTRAINTS)");
        sqlx::query(AssertSqlSafe(make)).execute(&mut *connection).await?;
        let attach =
            format!("ALTER TABLE usage ATTACH PARTITION {partition} FOR VALUES FROM ('{first}') TO ('{next}')");
        sqlx::query(AssertSqlSafe(attach)).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Drops the partitions that end at the hour or before. Returns the number of their rows.
pub async fn drop_before(connection: &mut PgConnection, before: HourStart) -> Result<u64, StoreError> {
    lock(connection).await?;
    // DROP waits for all readers of the table, and new readers wait for it: limit that.
    sqlx::query("SET LOCAL lock_timeout = '5s'").execute(&mut *connection).await?;
    // A partition of an earlier month than the hour's ends at the hour or before; names sort as months do.
    let query = sqlx::query_scalar::<_, String>(
        "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
         WHERE inhparent = 'usage'::regclass AND relname ~ '^usage_[0-9]{4}_[0-9]{2}$'
             AND relname < 'usage_' || to_char($1 AT TIME ZONE 'UTC', 'YYYY_MM')
         ORDER BY relname",
    );
    let partitions = query.bind(Stamp::from(before)).fetch_all(&mut *connection).await?;
    let mut rows = 0;
    for partition in partitions {
        let count = format!("SELECT count(*) FROM {partition}");
        rows += sqlx::query_scalar::<_, i64>(AssertSqlSafe(count)).fetch_one(&mut *connection).await? as u64;
        sqlx::query(AssertSqlSafe(format!("DROP TABLE {partition}"))).execute(&mut *connection).await?;
    }
    Ok(rows)
}

async fn lock(connection: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(connection).await?;
    Ok(())
}

async fn missing(connection: &mut PgConnection, hours: &[Stamp]) -> Result<Vec<Month>, StoreError> {
    let query = sqlx::query_as(
        "SELECT 'usage_' || to_char(month, 'YYYY_MM') AS partition,
             to_char(month, 'YYYY-MM-DD 00:00:00+00') AS first,
             to_char(month + interval '1 month', 'YYYY-MM-DD 00:00:00+00') AS next
         FROM (SELECT DISTINCT date_trunc('month', hour AT TIME ZONE 'UTC') AS month FROM unnest($1) AS hour) AS months
         WHERE NOT EXISTS (
             SELECT FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
             WHERE inhparent = 'usage'::regclass AND relname = 'usage_' || to_char(month, 'YYYY_MM')
         ) ORDER BY month",
    );
    Ok(query.bind(hours).fetch_all(connection).await?)
}
