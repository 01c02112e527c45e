//! `usage.csv`: Headroom's own format.

use super::ledger::Ledger;
use super::table::{Extra, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault, SkippedRow};
use crate::time;
use chrono_tz::Tz;
use std::collections::HashMap;
use std::path::Path;
use vocab::{ClusterName, GpuModel, HourStart, MilliGpus, Organization, PoolId, SeriesId, UsageRow};

const COLUMNS: [&str; 5] = ["hour", "cluster", "gpu_model", "organization", "demand_gpus"];
/// Demand at the end of the hour, where it is known.
const AT_END: &str = "demand_at_end_gpus";

/// Reads `hour,cluster,gpu_model,organization,demand_gpus`. Hours are RFC 3339, or naive in the zone of their cluster
/// ([`ReadOptions::zone_of`]); organization `*` is the pool's own hourly peak. A sixth column `demand_at_end_gpus` may hold the demand at the end of
/// the hour, or nothing where it is not known.
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
///     zones: datasets::Zones::new(),
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
    let rows = each_usage(file, options, &mut report.skipped, &mut |row, number| ledger.add(row.clone(), number))?;
    if rows == 0 {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    ledger.finish(&mut report);
    Ok(report)
}

/// Receives a row and its number.
pub type RowSink<'a> = &'a mut dyn FnMut(&UsageRow, u64) -> Result<(), RowFault>;

/// Passes the rows of such a file on, one after the other: a file may hold more than memory does. Answers how many rows it has, bad
/// ones among them; those go to `skipped` where they may be skipped. A row with the hour of another one is passed on, too.
///
/// # Errors
/// The file cannot be read, its header is another one, or (unless bad rows may be skipped) a row is bad.
pub fn each_usage(
    file: &Path,
    options: &ReadOptions,
    skipped: &mut Vec<SkippedRow>,
    take: RowSink<'_>,
) -> Result<u64, ReadError> {
    let mut texts = Texts::default();
    let mut table = Table::open(file, &COLUMNS, Extra::Among(&[AT_END]))?;
    table.each(options, skipped, |row| {
        let series = texts.series(row)?;
        let hour = texts.hour(row.text("hour"), options.zone_of(&series.pool.cluster))?;
        let demand = row.gpus("demand_gpus")?;
        let at_end = row.given(AT_END).map(|_| at_end_gpus(row.gpus(AT_END)?, demand)).transpose()?;
        take(&UsageRow { series, hour, demand, at_end }, row.number())
    })
}

/// Demand at the end of an hour, which is no more than its peak.
///
/// # Errors
/// It is more.
pub fn at_end_gpus(at_end: MilliGpus, peak: MilliGpus) -> Result<MilliGpus, RowFault> {
    if at_end > peak { Err(RowFault::AbovePeak { column: AT_END, at_end, peak }) } else { Ok(at_end) }
}

/// Texts that were read before: rows repeat their hour or their series.
#[derive(Default)]
struct Texts {
    hours: HashMap<Tz, HashMap<String, HourStart>>,
    series: HashMap<String, SeriesId>,
    key: String,
}

/// Hours of a zone that are remembered at most: 45 years of them.
const HOURS_KNOWN: usize = 400_000;

impl Texts {
    fn hour(&mut self, text: &str, zone: Tz) -> Result<HourStart, RowFault> {
        let hours = self.hours.entry(zone).or_default();
        if let Some(known) = hours.get(text) {
            return Ok(*known);
        }
        let column = || "hour".to_owned();
        let at = time::whole(text, zone).map_err(|fault| RowFault::Time { column: column(), fault })?;
        let hour = HourStart::from_unix_s(at.get()).map_err(|fault| RowFault::Hour { column: column(), fault })?;
        if hours.len() < HOURS_KNOWN {
            hours.insert(text.to_owned(), hour);
        }
        Ok(hour)
    }

    fn series(&mut self, row: &Row<'_>) -> Result<SeriesId, RowFault> {
        self.key.clear();
        for column in ["cluster", "gpu_model", "organization"] {
            self.key.push_str(row.text(column));
            // Stands in no name.
            self.key.push('\u{1f}');
        }
        if let Some(known) = self.series.get(&self.key) {
            return Ok(known.clone());
        }
        let pool = PoolId {
            cluster: row.name("cluster", ClusterName::parse)?,
            gpu_model: row.name("gpu_model", GpuModel::parse)?,
        };
        let series = SeriesId { pool, organization: row.name("organization", Organization::parse)? };
        self.series.insert(self.key.clone(), series.clone());
        Ok(series)
    }
}
