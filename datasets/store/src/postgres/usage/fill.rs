//! Fills a table with rows: many by COPY in its binary format, which neither side has to print or parse:
//! <https://www.postgresql.org/docs/current/sql-copy.html>.

use crate::StoreError;
use crate::stored::{Stamp, milli, postgres_micros};
use crate::usage::batch::Row;
use sqlx::{AssertSqlSafe, PgConnection};

/// Signature, flags, length of the header's extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// Number of columns, then hour, demand and series, each after its length.
const ROW_BYTES: usize = 2 + (4 + 8) + (4 + 8) + (4 + 4);
/// Rows sent at once: half a megabyte, so that both sides work at the same time.
const ROWS_PER_MESSAGE: usize = 16_384;

/// Up to this number one INSERT is faster: a COPY is several messages without an answer to each, and since
/// the driver leaves Nagle's algorithm on, the last of them waits up to 40 ms for the acknowledgement of the first.
pub const ROWS_BY_INSERT: usize = 16_384;

/// Fills a table of the columns hour, `demand_milli` and `series_id`. `ids` are those of the batch's series.
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
        "INSERT INTO {table} (hour, demand_milli, series_id)
         SELECT * FROM unnest($1::timestamptz[], $2::bigint[], $3::integer[])"
    );
    sqlx::query(AssertSqlSafe(statement))
        .bind(rows.iter().map(|row| Stamp::from(row.hour)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| milli(row.demand)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| ids[row.series as usize]).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}

async fn copy(connection: &mut PgConnection, table: &'static str, rows: &[Row], ids: &[i32]) -> Result<(), StoreError> {
    let statement = format!("COPY {table} (hour, demand_milli, series_id) FROM STDIN (FORMAT binary)");
    let mut copy = connection.copy_in_raw(&statement).await?;
    let mut message = Vec::with_capacity(HEADER.len() + ROWS_PER_MESSAGE * ROW_BYTES);
    message.extend_from_slice(HEADER);
    for chunk in rows.chunks(ROWS_PER_MESSAGE) {
        for row in chunk {
            message.extend_from_slice(&encoded(row, ids[row.series as usize]));
        }
        copy.send(&message[..]).await?;
        message.clear();
    }
    copy.send(&TRAILER[..]).await?;
    copy.finish().await?;
    Ok(())
}

fn encoded(row: &Row, id: i32) -> [u8; ROW_BYTES] {
    let mut bytes = [0; ROW_BYTES];
    bytes[..2].copy_from_slice(&3_i16.to_be_bytes());
    bytes[2..6].copy_from_slice(&8_i32.to_be_bytes());
    bytes[6..14].copy_from_slice(&postgres_micros(row.hour.unix_s()).to_be_bytes());
    bytes[14..18].copy_from_slice(&8_i32.to_be_bytes());
    bytes[18..26].copy_from_slice(&milli(row.demand).to_be_bytes());
    bytes[26..30].copy_from_slice(&4_i32.to_be_bytes());
    bytes[30..34].copy_from_slice(&id.to_be_bytes());
    bytes
}
