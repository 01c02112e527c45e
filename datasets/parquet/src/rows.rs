//! Rows of files.

use crate::columns::{self, Batches, CLUSTER, Kind, Value};
use crate::error::SourceError;
use crate::location::Files;
use chrono_tz::Tz;
use datasets::read::SkippedRow;
use datasets::spool::RowPlace;
use datasets::{ReadOptions, RowFault, time};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use vocab::{
    ClusterName, GpuModel, HourStart, MilliGpus, NameError, Organization, PoolId, SeriesId, UsageRow, new_name,
};

/// Rows that are decoded at once.
const ROWS_AT_ONCE: usize = 8_192;
/// Distinct hours of a zone that are remembered at most: 45 years of them.
const HOURS_KNOWN: usize = 400_000;

/// Which rows are wanted, and how they are read.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Times without an offset are read in the zone of their cluster ([`ReadOptions::zone_of`]).
    pub options: &'a ReadOptions,
    /// Rows of this cluster alone.
    pub cluster: Option<&'a ClusterName>,
}

/// Receives a row and its place.
pub type PlacedRowSink<'a> = &'a mut dyn FnMut(&UsageRow, RowPlace) -> Result<(), String>;

impl Files {
    /// Passes the wanted rows of all files on. Answers how many rows these have; bad ones go to `skipped` where they may be
    /// skipped. To be called outside of asynchronous code.
    ///
    /// # Errors
    /// A file cannot be read, has other columns, or (unless bad rows may be skipped) a bad row; or the receiver fails.
    pub fn each_row(
        &self,
        wanted: Wanted<'_>,
        skipped: &mut Vec<SkippedRow>,
        take: PlacedRowSink<'_>,
    ) -> Result<u64, SourceError> {
        let (mut rows, mut known) = (0, Known::default());
        for (number, file) in self.names().iter().enumerate() {
            let mut of = OfFile { file, number: number as u32, wanted, skipped, known: &mut known, row: 0 };
            let broken = |fault: ParquetError| broken(file, &fault);
            let reader = SerializedFileReader::new(self.chunks(number)).map_err(broken)?;
            let columns = columns::find(file, reader.metadata().file_metadata().schema_descr())?;
            for group in 0..reader.num_row_groups() {
                let opened = reader.get_row_group(group).map_err(broken)?;
                let start = of.row;
                if of.may_hold_wanted(&*opened, &columns) {
                    of.group(group, &*opened, &columns, take)?;
                }
                of.row = start + u64::try_from(opened.metadata().num_rows()).unwrap_or(0);
            }
            rows += of.row;
        }
        Ok(rows)
    }
}

/// A file that cannot be opened.
fn broken(file: &Path, fault: &ParquetError) -> SourceError {
    match of_storage(fault) {
        Some(fault) => crate::location::of_storage(file.to_owned(), fault),
        None => SourceError::NotParquet { file: file.to_owned(), why: fault.to_string() },
    }
}

/// The fault of the storage behind one of the reader, which wraps it once or, where bytes are read one after another, twice.
fn of_storage<'a>(fault: &'a (dyn std::error::Error + 'static)) -> Option<&'a object_store::Error> {
    if let Some(found) = fault.downcast_ref() {
        return Some(found);
    }
    // The source of an error of I/O is that of what it wraps.
    let wrapped = fault.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match wrapped {
        Some(wrapped) => of_storage(wrapped),
        None => of_storage(fault.source()?),
    }
}

struct OfFile<'a> {
    file: &'a Path,
    number: u32,
    wanted: Wanted<'a>,
    skipped: &'a mut Vec<SkippedRow>,
    known: &'a mut Known,
    /// Rows before the group.
    row: u64,
}

impl OfFile<'_> {
    /// Whether a row group may hold a row of the wanted cluster, by its statistics.
    fn may_hold_wanted(&self, group: &dyn RowGroupReader, columns: &[columns::Column]) -> bool {
        let Some(cluster) = self.wanted.cluster else { return true };
        let statistics = group.metadata().column(columns[CLUSTER].place).statistics();
        let range = statistics.and_then(|known| Some((known.min_bytes_opt()?, known.max_bytes_opt()?)));
        range.is_none_or(|(least, most)| (least..=most).contains(&cluster.as_str().as_bytes()))
    }

    fn group(
        &mut self,
        number: usize,
        group: &dyn RowGroupReader,
        columns: &[columns::Column],
        take: PlacedRowSink<'_>,
    ) -> Result<(), SourceError> {
        let file = self.file;
        let damaged = |column: &columns::Column, fault: ParquetError| {
            // Decompressors report damaged pages by the same variant.
            if of_storage(&fault).is_some() {
                return broken(file, &fault);
            }
            let why = match fault.to_string() {
                // Brotli: nobody writes usage so, and its decoder is large.
                text if text.contains("Disabled feature") => {
                    format!("{text}: expected no compression, snappy, gzip, lz4 or zstd")
                }
                text => text,
            };
            SourceError::Damaged { file: file.to_owned(), row_group: number, column: column.name, why }
        };
        let open = |column: &columns::Column| {
            let reader = group.get_column_reader(column.place).map_err(|fault| damaged(column, fault))?;
            Batches::new(*column, reader)
                .ok_or_else(|| damaged(column, ParquetError::General("another type".to_owned())))
        };
        let mut all = columns.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut done = 0;
        while done < rows {
            let most = ROWS_AT_ONCE.min(rows - done);
            for batches in &mut all {
                let column = batches.column();
                let count = batches.read(most).map_err(|fault| damaged(&column, fault))?;
                if count != most {
                    let why = format!("{} rows instead of {rows}", done + count);
                    return Err(damaged(&column, ParquetError::General(why)));
                }
            }
            for row in 0..most {
                let place = RowPlace { file: self.number, row: self.row + (done + row) as u64 + 1 };
                match self.row(&mut all) {
                    Ok(Some(row)) => take(&row, place).map_err(SourceError::Receiver)?,
                    Ok(None) => {}
                    Err(fault) => {
                        self.skip(place.row, RowFault::InGroup { row_group: number, fault: Box::new(fault) })?;
                    }
                }
            }
            done += most;
        }
        Ok(())
    }

    fn skip(&mut self, row: u64, fault: RowFault) -> Result<(), SourceError> {
        let file: PathBuf = self.file.to_owned();
        if !self.wanted.options.skip_bad_rows {
            return Err(SourceError::BadRow { file, row, fault });
        }
        self.skipped.push(SkippedRow { file, row, fault });
        Ok(())
    }

    /// The next row, if it is wanted. Every column moves on, also where one before it is bad.
    fn row(&mut self, all: &mut [Batches]) -> Result<Option<UsageRow>, RowFault> {
        let [hour, cluster, gpu_model, organization, demand, at_end @ ..] = all else {
            unreachable!("five columns are found, or six")
        };
        let kind = hour.column().kind;
        let (hour, demand, at_end) = (hour.next(), demand.next(), at_end.first_mut().and_then(Batches::next));
        let names = [cluster.next(), gpu_model.next(), organization.next()];
        // Faults of the rows of another cluster are not ours.
        let is_other = |wanted: &ClusterName| names[0] != Some(Value::Text(wanted.as_str().as_bytes()));
        if self.wanted.cluster.is_some_and(is_other) {
            return Ok(None);
        }
        let mut texts = [&b""[..]; 3];
        for ((text, value), column) in texts.iter_mut().zip(names).zip(&columns::COLUMNS[CLUSTER..]) {
            match value {
                Some(Value::Text(bytes)) => *text = bytes,
                _ => return Err(RowFault::NoValue { column }),
            }
        }
        let series = self.known.series(texts)?;
        let hour = hour.ok_or(RowFault::NoValue { column: columns::COLUMNS[0] })?;
        let hour = self.known.hour(kind, hour, self.wanted.options.zone_of(&series.pool.cluster))?;
        let column = columns::COLUMNS[4];
        let demand = amount(column, demand.ok_or(RowFault::NoValue { column })?)?;
        // How data frames say that a number is missing.
        let is_there = |value: &Value<'_>| match value {
            Value::Double(gpus) => !gpus.is_nan(),
            Value::Single(gpus) => !gpus.is_nan(),
            Value::Whole(_) | Value::Text(_) => true,
        };
        let at_end = at_end.filter(is_there);
        let at_end =
            at_end.map(|value| datasets::read::at_end_gpus(amount(columns::AT_END, value)?, demand)).transpose()?;
        Ok(Some(UsageRow { series, hour, demand, at_end }))
    }
}

fn amount(column: &'static str, value: Value<'_>) -> Result<MilliGpus, RowFault> {
    let gpus = match value {
        Value::Double(gpus) => MilliGpus::exact(gpus),
        // Thousandths are closer to each other than numbers of 32 bits.
        Value::Single(gpus) => MilliGpus::nearest(f64::from(gpus)),
        Value::Whole(gpus) => MilliGpus::exact(gpus as f64),
        Value::Text(_) => return Err(RowFault::NoValue { column }),
    };
    MilliGpus::stated(gpus).map_err(|fault| RowFault::Amount { column: column.to_owned(), fault })
}

/// Values that were read before: rows repeat their hour or their series.
#[derive(Default)]
struct Known {
    stamps: HashMap<Tz, HashMap<i64, HourStart>>,
    texts: HashMap<Tz, HashMap<Vec<u8>, HourStart>>,
    series: HashMap<Vec<u8>, SeriesId>,
    key: Vec<u8>,
}

impl Known {
    fn hour(&mut self, kind: Kind, value: Value<'_>, zone: Tz) -> Result<HourStart, RowFault> {
        let column = columns::COLUMNS[0];
        let of_time = |fault| RowFault::Time { column: column.to_owned(), fault };
        let of_hour = |fault| RowFault::Hour { column: column.to_owned(), fault };
        match (kind, value) {
            (Kind::Stamp { per_s, is_utc }, Value::Whole(stamp)) => {
                let stamps = self.stamps.entry(zone).or_default();
                if let Some(known) = stamps.get(&stamp) {
                    return Ok(*known);
                }
                let (seconds, part) = (stamp.div_euclid(per_s), stamp.rem_euclid(per_s));
                if part > 0 {
                    let nanos = u32::try_from(part * (1_000_000_000 / per_s)).unwrap_or_default();
                    return Err(of_time(time::fraction(seconds, nanos, is_utc)));
                }
                let unix_s = if is_utc { seconds } else { time::local(seconds, zone).map_err(of_time)?.get() };
                let hour = HourStart::from_unix_s(unix_s).map_err(of_hour)?;
                if stamps.len() < HOURS_KNOWN {
                    stamps.insert(stamp, hour);
                }
                Ok(hour)
            }
            (_, Value::Text(bytes)) => {
                let texts = self.texts.entry(zone).or_default();
                if let Some(known) = texts.get(bytes) {
                    return Ok(*known);
                }
                let text = std::str::from_utf8(bytes).map_err(|_| RowFault::NotText)?;
                let at = time::whole(text, zone).map_err(of_time)?;
                let hour = HourStart::from_unix_s(at.get()).map_err(of_hour)?;
                if texts.len() < HOURS_KNOWN {
                    texts.insert(bytes.to_vec(), hour);
                }
                Ok(hour)
            }
            _ => Err(RowFault::NoValue { column }),
        }
    }

    fn series(&mut self, texts: [&[u8]; 3]) -> Result<SeriesId, RowFault> {
        self.key.clear();
        for text in texts {
            self.key.extend_from_slice(text);
            // Stands in no name.
            self.key.push(0x1f);
        }
        if let Some(known) = self.series.get(&self.key) {
            return Ok(known.clone());
        }
        let [cluster, gpu_model, organization] = texts;
        let pool =
            PoolId { cluster: name(1, cluster, ClusterName::parse)?, gpu_model: name(2, gpu_model, GpuModel::parse)? };
        let series = SeriesId { pool, organization: name(3, organization, Organization::parse)? };
        self.series.insert(self.key.clone(), series.clone());
        Ok(series)
    }
}

fn name<T>(column: usize, bytes: &[u8], parse: impl Fn(&str) -> Result<T, NameError>) -> Result<T, RowFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| RowFault::NotText)?;
    let fault = |fault| RowFault::Name { column: columns::COLUMNS[column].to_owned(), fault };
    new_name(text).and_then(|()| parse(text)).map_err(fault)
}
