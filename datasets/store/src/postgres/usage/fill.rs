//! Fills a table with rows: many by COPY in its binary format, which neither side has to print or parse:
//! <https://www.postgresql.org/docs/current/sql-copy.html>.

use crate::StoreError;
use crate::stored::{Stamp, milli, postgres_micros};
use crate::usage::batch::Row;
use sqlx::{AssertSqlSafe, PgConnection};

/// Signature, flags, length of the header's extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// At most: number of columns, then hour, demand, demand at the end and series, each after its length.
const ROW_BYTES: usize = 2 + (4 + 8) + (4 + 8) + (4 + 8) + (4 + 4);
/// Rows sent at once: half a megabyte, so that both sides work at the same time.
const ROWS_PER_MESSAGE: usize = 16_384;

/// Up to this number one INSERT is faster: a COPY is several messages without an answer to each, and since
/// the driver leaves Nagle's algorithm on, the last of them waits up to 40 ms for the acknowledgement of the first.
pub const ROWS_BY_INSERT: usize = 16_384;

/// Fills a table of the columns hour, `demand_milli`, `at_end_milli` and `series_id`. `ids` are those of the batch's series.
pub async fn fill(
    connection: &mut PgConnection,
    table: &'static str,
    rows: &[Row],
    ids: &[i32],
) -> Result<(), StoreError> {
    if rows.len() <= ROWS_BY_INSERT {
        insert(connection, table, rows, ids).await
    } else {
        copy(connection, table, rows, ids).await
    }
}

async fn insert(
    connection: &mut PgConnection,
    table: &'static str,
    rows: &[Row],
    ids: &[i32],
) -> Result<(), StoreError> {
    let statement = format!(
        "INSERT INTO {table} (hour, demand_milli, at_end_milli, series_id)
         SELECT * FROM unnest($1::timestamptz[], $2::bigint[], $3::bigint[], $4::integer[])"
    );
    sqlx::query(AssertSqlSafe(statement))
        .bind(rows.iter().map(|row| Stamp::from(row.hour)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| milli(row.demand.peak)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.demand.at_end.map(milli)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| ids[row.series as usize]).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}

async fn copy(connection: &mut PgConnection, table: &'static str, rows: &[Row], ids: &[i32]) -> Result<(), StoreError> {
    let statement = format!("COPY {table} (hour, demand_milli, at_end_milli, series_id) FROM STDIN (FORMAT binary)");
    let mut copy = connection.copy_in_raw(&statement).await?;
    let mut message = Vec::with_capacity(HEADER.len() + ROWS_PER_MESSAGE * ROW_BYTES);
    message.extend_from_slice(HEADER);
    for chunk in rows.chunks(ROWS_PER_MESSAGE) {
        for row in chunk {
            encode(row, ids[row.series as usize], &mut message);
        }
        copy.send(&message[..]).await?;
        message.clear();
    }
    copy.send(&TRAILER[..]).await?;
    copy.finish().await?;
    Ok(())
}

fn encode(row: &Row, id: i32, message: &mut Vec<u8>) {
    message.extend_from_slice(&4_i16.to_be_bytes());
    for number in [postgres_micros(row.hour.unix_s()), milli(row.demand.peak)] {
        put(&number.to_be_bytes(), message);
    }
    match row.demand.at_end {
        Some(at_end) => put(&milli(at_end).to_be_bytes(), message),
        // Null is a length of -1, and no bytes.
        None => message.extend_from_slice(&(-1_i32).to_be_bytes()),
    }
    put(&id.to_be_bytes(), message);
}

/// A value after its length.
fn put(value: &[u8], message: &mut Vec<u8>) {
    message.extend_from_slice(&(value.len() as i32).to_be_bytes());
    message.extend_from_slice(value);
}
