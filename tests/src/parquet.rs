//! Parquet files of usage, as a data lake has them.

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

const SCHEMA: &str = "message usage {
    required int64 hour (TIMESTAMP(MILLIS,true));
    required binary cluster (STRING);
    required binary gpu_model (STRING);
    required binary organization (STRING);
    required double demand_gpus;
}";
/// Rows of a group.
const GROUP: usize = 1_000;

/// A row of usage.csv: milliseconds, three names, GPUs.
type Row<'a> = (i64, [&'a str; 3], f64);

/// The rows of a usage.csv, whose hours are in UTC, as a Parquet file.
///
/// # Panics
/// It is no such file.
#[must_use]
pub fn parquet_of_csv(csv: &str) -> Vec<u8> {
    let row = |line| row(line).unwrap_or_else(|| panic!("no row of usage: {line}"));
    let rows: Vec<Row<'_>> = csv.lines().skip(1).map(row).collect();
    let schema = Arc::new(parse_message_type(SCHEMA).expect("it is a schema"));
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::new())).expect("a file");
    for rows in rows.chunks(GROUP) {
        let mut group = file.next_row_group().expect("a group");
        let mut hours = group.next_column().expect("valid").expect("five columns");
        let values: Vec<i64> = rows.iter().map(|row| row.0).collect();
        hours.typed::<Int64Type>().write_batch(&values, None, None).expect("written");
        hours.close().expect("written");
        for place in 0..3 {
            let mut names = group.next_column().expect("valid").expect("five columns");
            let values: Vec<ByteArray> = rows.iter().map(|row| row.1[place].into()).collect();
            names.typed::<ByteArrayType>().write_batch(&values, None, None).expect("written");
            names.close().expect("written");
        }
        let mut demand = group.next_column().expect("valid").expect("five columns");
        let values: Vec<f64> = rows.iter().map(|row| row.2).collect();
        demand.typed::<DoubleType>().write_batch(&values, None, None).expect("written");
        demand.close().expect("written");
        group.close().expect("written");
    }
    file.into_inner().expect("written")
}

fn row(line: &str) -> Option<Row<'_>> {
    let fields: Vec<&str> = line.split(',').collect();
    let [hour, cluster, gpu_model, organization, demand] = fields[..] else { return None };
    let hour = chrono::DateTime::parse_from_rfc3339(hour).ok()?;
    Some((hour.timestamp_millis(), [cluster, gpu_model, organization], demand.parse().ok()?))
}
