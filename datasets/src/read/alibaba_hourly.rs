//! The hourly file of the Alibaba spot trace: GPUs asked for by all jobs alive, one column a GPU model.

use super::ledger::Ledger;
use super::table::{self, Extra, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault};
use std::path::Path;
use vocab::{GpuModel, HourStart, Organization, PoolId, SeriesId, UsageRow};

/// Hour 0 of the published file: 2024-03-01 00:00 in Asia/Shanghai.
pub const ALIBABA_EPOCH: &str = "2024-03-01T00:00:00+08:00";

/// The file sums over organizations.
const ORGANIZATION: &str = "all";

/// Reads `hour,MODEL,MODEL,…`, hours counted from `epoch`. The organization of every row is `all`.
///
/// # Errors
/// The file cannot be read, its header is another one, it has no rows, or (unless bad rows may be skipped) a row is bad.
pub fn alibaba_hourly(file: &Path, epoch: HourStart, options: &ReadOptions) -> Result<ReadReport, ReadError> {
    let mut report = ReadReport::default();
    let mut ledger = Ledger::default();
    let mut table = Table::open(file, &["hour"], Extra::Ignored)?;
    let series = series(&table, options)?;
    table.each(options, &mut report.skipped, |row| {
        parse(row, epoch, &series)?.into_iter().try_for_each(|one| ledger.add(one, row.number()))
    })?;
    if ledger.is_empty() && report.skipped.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    ledger.finish(&mut report);
    Ok(report)
}

/// The series of each column but `hour`, by its position.
fn series(table: &Table, options: &ReadOptions) -> Result<Vec<(usize, SeriesId)>, ReadError> {
    let organization = Organization::parse(ORGANIZATION).expect("the name is a good one");
    let models = table.header().iter().enumerate().filter(|(_, name)| *name != "hour");
    models
        .map(|(index, name)| {
            let gpu_model = GpuModel::parse(name).map_err(|fault| ReadError::Row {
                file: table.file().to_owned(),
                row: 1,
                // The name is the file's own, and may be none to print.
                fault: RowFault::Name { column: name.escape_debug().to_string(), fault },
            })?;
            let pool = PoolId { cluster: options.cluster.clone(), gpu_model };
            Ok((index, SeriesId { pool, organization: organization.clone() }))
        })
        .collect()
}

/// A row is taken whole or not at all.
fn parse(row: &Row<'_>, epoch: HourStart, series: &[(usize, SeriesId)]) -> Result<Vec<UsageRow>, RowFault> {
    let after = row.integer("hour", 0)?;
    // Hours past the calendar end at its last hour.
    let hour = epoch.plus_hours(after);
    if hour.hours_since(epoch) != after {
        return Err(RowFault::BeyondCalendar {
            column: "hour".to_owned(),
            text: row.text("hour").to_owned(),
            unit: "hours",
        });
    }
    series
        .iter()
        .map(|(index, series)| {
            let demand = table::gpus(series.pool.gpu_model.as_str(), row.nth(*index))?;
            Ok(UsageRow { series: series.clone(), hour, demand, at_end: None })
        })
        .collect()
}
