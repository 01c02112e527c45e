//! `usage.csv`: Headroom's own format.

use super::ledger::Ledger;
use super::table::{Extra, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault};
use crate::time;
use std::path::Path;
use vocab::{ClusterName, GpuModel, Organization, PoolId, SeriesId, UsageRow};

const COLUMNS: [&str; 5] = ["hour", "cluster", "gpu_model", "organization", "demand_gpus"];

/// Reads `hour,cluster,gpu_model,organization,demand_gpus`. Hours are RFC 3339, or naive in the zone of
/// `options.calendar`; organization `*` is the pool's own hourly peak.
///
/// ```
/// use datasets::{Calendar, ReadOptions, read};
/// use vocab::{ClusterName, GpuModel};
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("usage.csv");
/// let rows = "hour,cluster,gpu_model,organization,demand_gpus\n2024-03-01T00:00:00Z,earth,A100,vision,2.5\n";
/// std::fs::write(&file, rows)?;
/// let options = ReadOptions {
///     cluster: ClusterName::parse("earth")?,
///     gpu_model: GpuModel::parse("any")?,
///     calendar: Calendar::parse("UTC", Calendar::WEEKDAYS)?,
///     skip_bad_rows: false,
/// };
/// let report = read::usage(&file, &options)?;
/// assert_eq!(report.rows[0].demand.milli(), 2_500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The file cannot be read, its header is another one, it has no rows, or (unless bad rows may be skipped) a row is bad.
pub fn usage(file: &Path, options: &ReadOptions) -> Result<ReadReport, ReadError> {
    let mut report = ReadReport::default();
    let mut ledger = Ledger::default();
    let mut table = Table::open(file, &COLUMNS, Extra::Refused)?;
    table.each(options, &mut report.skipped, |row| ledger.add(parse(row, options)?, row.number()))?;
    if ledger.is_empty() && report.skipped.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    ledger.finish(&mut report);
    Ok(report)
}

fn parse(row: &Row<'_>, options: &ReadOptions) -> Result<UsageRow, RowFault> {
    let column = || "hour".to_owned();
    let at = time::parse(row.text("hour"), options.calendar.zone())
        .map_err(|fault| RowFault::Time { column: column(), fault })?;
    let hour = vocab::HourStart::from_unix_s(at.get()).map_err(|fault| RowFault::Hour { column: column(), fault })?;
    let pool = PoolId {
        cluster: row.name("cluster", ClusterName::parse)?,
        gpu_model: row.name("gpu_model", GpuModel::parse)?,
    };
    let organization = row.name("organization", Organization::parse)?;
    Ok(UsageRow { series: SeriesId { pool, organization }, hour, demand: row.gpus("demand_gpus")? })
}
