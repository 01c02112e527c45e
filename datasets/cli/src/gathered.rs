//! Rows that an ingest has read, usage in order on disk: a file may hold more rows than memory does.

use crate::error::CliError;
use crate::outages::Outages;
use datasets::read::{self, RowFault, SkippedRow, ZeroHours};
use datasets::spool::{Conflict, Hours, RowPlace, Spool, SpoolError, Spooled};
use datasets::{ReadError, ReadOptions, ReadReport};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vocab::{CapacityRow, ClusterName, HourStart, PoolId, UsageRow};

/// Rows that go to the database at once: 40 MB.
const ROWS_PER_BATCH: usize = 1 << 19;

/// Content of what was read.
#[derive(Debug)]
pub struct Gathered {
    pub usage: Spooled,
    pub capacity: Vec<CapacityRow>,
    pub equal_duplicates: u64,
    pub jobs_without_gpus: u64,
    pub skipped: Vec<SkippedRow>,
}

fn spool() -> Result<Spool, SpoolError> {
    Spool::new(&std::env::temp_dir())
}

impl Gathered {
    /// Of a reader that keeps its rows in memory, each hour of a series once.
    pub fn of_report(report: ReadReport) -> Result<Self, CliError> {
        let ReadReport { rows, capacity, equal_duplicates, jobs_without_gpus, skipped } = report;
        let mut usage = spool()?;
        for (row, number) in rows.into_iter().zip(0..) {
            add(&mut usage, &row, RowPlace { file: 0, row: number })?;
        }
        let usage = usage.finish()?;
        Ok(Self { usage, capacity, equal_duplicates, jobs_without_gpus, skipped })
    }

    /// Of `usage.csv`.
    pub fn of_usage(file: &Path, options: &ReadOptions) -> Result<Self, CliError> {
        let (mut usage, mut skipped, mut full) = (spool()?, Vec::new(), None);
        let take = &mut |row: &UsageRow, number: u64| {
            if full.is_none() {
                full = add(&mut usage, row, RowPlace { file: 0, row: number }).err();
            }
            Ok(())
        };
        let rows = read::each_usage(file, options, &mut skipped, take)?;
        full.map_or(Ok(()), Err)?;
        if rows == 0 {
            return Err(ReadError::NoRows { file: file.to_owned() }.into());
        }
        Self::of_spool(usage, skipped, &[file.to_owned()], options.skip_bad_rows)
    }

    /// Of Parquet files.
    #[cfg(feature = "parquet")]
    pub fn of_parquet(location: &str, options: &ReadOptions) -> Result<Self, CliError> {
        // Reads block, on a runtime of their own.
        let read = || {
            let files = parquet_source::Files::open(location)?;
            let (mut usage, mut skipped, mut full) = (spool()?, Vec::new(), None);
            let take = &mut |row: &UsageRow, place: RowPlace| {
                add(&mut usage, row, place).map_err(|fault| {
                    full = Some(fault);
                    String::new()
                })
            };
            let wanted = parquet_source::Wanted { options, cluster: None };
            let rows = files.each_row(wanted, &mut skipped, take);
            full.map_or(Ok(()), Err)?;
            if rows? == 0 {
                return Err(ReadError::NoRows { file: location.into() }.into());
            }
            Self::of_spool(usage, skipped, files.names(), options.skip_bad_rows)
        };
        std::thread::scope(|scope| scope.spawn(read).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// As it is built, this program reads no Parquet.
    #[cfg(not(feature = "parquet"))]
    pub fn of_parquet(location: &str, _: &ReadOptions) -> Result<Self, CliError> {
        Err(CliError::BuiltWithoutParquet { location: location.to_owned() })
    }

    /// Of the rows of some files; `skipped` are the bad ones.
    pub fn of_spool(
        usage: Spool,
        mut skipped: Vec<SkippedRow>,
        files: &[PathBuf],
        skip_bad_rows: bool,
    ) -> Result<Self, CliError> {
        let usage = usage.finish()?;
        let conflicts = usage.conflicts().iter().map(|conflict| bad_row(conflict, files));
        skipped.extend(conflicts);
        skipped.sort_by(|one, other| (&one.file, one.row).cmp(&(&other.file, other.row)));
        if !skip_bad_rows && !skipped.is_empty() {
            let SkippedRow { file, row, fault } = skipped.swap_remove(0);
            return Err(ReadError::Row { file, row, fault }.into());
        }
        let equal_duplicates = usage.equal_duplicates();
        Ok(Self { usage, capacity: Vec::new(), equal_duplicates, jobs_without_gpus: 0, skipped })
    }

    /// Leaves out all rows of the hours in which every organization of a cluster is at zero ([`ZeroHours`]). Answers the number of
    /// hours that were left out, over all clusters.
    pub fn without_zero_hours(self) -> Result<(Self, usize), CliError> {
        let mut zero_hours = ZeroHours::default();
        for hour in self.usage.hours() {
            let (hour, rows) = hour?;
            for (series, demand) in &rows {
                zero_hours.add(series, hour, demand.peak);
            }
        }
        let gaps = zero_hours.finish();
        if gaps.is_empty() {
            return Ok((self, 0));
        }
        let (mut usage, place) = (spool()?, RowPlace { file: 0, row: 0 });
        for hour in self.usage.hours() {
            let (hour, rows) = hour?;
            for (series, demand) in rows {
                if !gaps.contains(&(series.pool.cluster.clone(), hour)) {
                    add(&mut usage, &demand.row(series.clone(), hour), place)?;
                }
            }
        }
        Ok((Self { usage: usage.finish()?, ..self }, gaps.len()))
    }

    /// Clusters with usage, by name.
    pub fn clusters(&self) -> BTreeSet<ClusterName> {
        self.usage.series().map(|series| series.id.pool.cluster.clone()).collect()
    }

    /// Pools with usage, and the first hour of each.
    pub fn pools(&self) -> BTreeMap<PoolId, HourStart> {
        let mut pools = BTreeMap::new();
        for series in self.usage.series() {
            let first = pools.entry(series.id.pool.clone()).or_insert(series.span.0);
            *first = series.span.0.min(*first);
        }
        pools
    }

    /// First and last hour of the series that are `wanted`.
    pub fn span(&self, wanted: impl Fn(&ClusterName) -> bool) -> Option<(HourStart, HourStart)> {
        let spans = self.usage.series().filter(|series| wanted(&series.id.pool.cluster)).map(|series| series.span);
        spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// The rows, hours rising, in batches for the database.
    pub fn batches(&self) -> Batches<'_> {
        Batches { hours: self.usage.hours(), outages: Outages::default() }
    }
}

fn add(usage: &mut Spool, row: &UsageRow, place: RowPlace) -> Result<(), SpoolError> {
    let number = usage.number(&row.series);
    usage.add(number, row.hour, row.hour_demand(), place)
}

fn bad_row(conflict: &Conflict, files: &[PathBuf]) -> SkippedRow {
    let place = conflict.second.0;
    let file = files.get(place.file as usize).cloned().unwrap_or_default();
    SkippedRow { file, row: place.row, fault: RowFault::conflict(conflict, files) }
}

/// Rows for the database, batch by batch.
pub struct Batches<'a> {
    hours: Hours<'a>,
    outages: Outages,
}

impl Batches<'_> {
    /// Hours of zeros among those that have passed.
    pub const fn outages(&self) -> &Outages {
        &self.outages
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<Vec<UsageRow>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = Vec::new();
        while batch.len() < ROWS_PER_BATCH {
            match self.hours.next() {
                None => break,
                Some(Err(fault)) => return Some(Err(fault.to_string())),
                Some(Ok((hour, rows))) => {
                    self.outages.note(hour, &rows);
                    let row =
                        |(series, demand): (&vocab::SeriesId, vocab::HourDemand)| demand.row(series.clone(), hour);
                    batch.extend(rows.into_iter().map(row));
                }
            }
        }
        (!batch.is_empty()).then_some(Ok(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{MilliGpus, Organization, SeriesId};

    /// Lines of `CLUSTER:MODEL:ORGANIZATION` with GPUs hour by hour; a dot is a gap.
    fn gathered(picture: &str) -> Gathered {
        let rows = picture.lines().flat_map(|line| {
            let (series, gpus) = line.split_once(' ').unwrap();
            let (pool, organization) = series.rsplit_once(':').unwrap();
            let organization = Organization::parse(organization).unwrap();
            let series = SeriesId { pool: PoolId::parse(pool).unwrap(), organization };
            let row = move |(hour, gpus): (i64, &str)| UsageRow {
                series: series.clone(),
                hour: HourStart::from_unix_s(hour * 3_600).unwrap(),
                demand: MilliGpus::parse(gpus).unwrap(),
                at_end: None,
            };
            (0..).zip(gpus.split(' ')).filter(|(_, gpus)| *gpus != ".").map(row).collect::<Vec<_>>()
        });
        Gathered::of_report(ReadReport { rows: rows.collect(), ..ReadReport::default() }).unwrap()
    }

    fn left(picture: &str) -> (usize, u64) {
        let (gathered, hours) = gathered(picture).without_zero_hours().unwrap();
        (hours, gathered.usage.series().map(|series| series.rows).sum())
    }

    #[test]
    fn hours_of_zeros_are_left_out_of_a_trace_that_has_them_for_gaps() {
        assert_eq!(left("x:m:a 3 0 0 .\nx:m:b 2 0 1 0\nx:m:* 4 0 1 0"), (2, 6), "the pool's own peak goes with them");
        assert_eq!(left("x:m:a 3 0 0\nx:m:b 2 0 0\ny:m:a 1 1 1"), (2, 5), "other clusters keep their rows");
    }

    #[test]
    fn zeros_of_a_single_organization_stay() {
        assert_eq!(left("x:m:a 3 0 1\nx:m:* 3 0 1"), (0, 6));
    }

    #[test]
    fn batches_hold_all_rows_hour_by_hour() {
        let gathered = gathered("x:m:b 1 2 .\nx:m:a . 3 4\ny:m:a 5");
        let rows: Vec<UsageRow> = gathered.batches().flat_map(|batch| batch.unwrap()).collect();
        let shown: Vec<String> =
            rows.iter().map(|row| format!("{} {} {}", row.hour.unix_s() / 3_600, row.series, row.demand)).collect();
        let expected = ["0 x:m:b 1.000", "0 y:m:a 5.000", "1 x:m:a 3.000", "1 x:m:b 2.000", "2 x:m:a 4.000"];
        assert_eq!(shown, expected);
    }
}
