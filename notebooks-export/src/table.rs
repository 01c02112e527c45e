//! A CSV file as rows of fields in a known order, each row with its number.
//!
//! Read with the csv crate, not with polars: a refusal names row and field as an editor shows them, and the reader of
//! polars, which parses columns in chunks side by side, tells neither. Polars writes what was checked here.

use crate::error::{ExportError, RowFault};
use command_line::Progress;
use csv::{ErrorKind, StringRecord};
use datasets::read::Lines;
use std::fs::File;
use std::path::{Path, PathBuf};
use vocab::{HorizonHours, HourStart, MilliGpus, NameError};

/// Rows between two looks at the progress.
const PROGRESS_ROWS: u64 = 10_000;

/// A file whose header holds `N` columns, in any order.
pub struct Table<const N: usize> {
    file: PathBuf,
    bytes: u64,
    reader: csv::Reader<Lines<File>>,
    /// Where each column stands.
    places: [usize; N],
}

impl<const N: usize> Table<N> {
    /// Opens a file whose header holds `columns` and no other.
    pub fn open(file: &Path, columns: [&'static str; N]) -> Result<Self, ExportError> {
        let io = |source| ExportError::Read { file: file.to_owned(), source };
        let opened = File::open(file).map_err(io)?;
        let bytes = opened.metadata().map_err(io)?.len();
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(Lines::new(opened));
        let read = reader.headers().cloned();
        let (row, end) = (reader.get_mut().number_from(0), reader.position().byte());
        quoted(reader.get_mut(), end).map_err(|fault| at(file, row, fault))?;
        let header = read.map_err(|fault| form_fault(file, 1, fault))?;
        let places = places(&header, columns).map_err(|fault| at(file, row, fault))?;
        Ok(Self { file: file.to_owned(), bytes, reader, places })
    }

    /// Calls `take` with the number and the fields of each row, in the order of the columns.
    pub fn each(&mut self, mut take: impl FnMut(u64, [&str; N]) -> Result<(), RowFault>) -> Result<(), ExportError> {
        let progress = Progress::new(&format!("reading {}", self.file.display()), self.bytes);
        let mut record = StringRecord::new();
        for count in 0_u64.. {
            let start = self.reader.position().byte();
            let outcome = self.reader.read_record(&mut record);
            let row = self.reader.get_mut().number_from(start);
            let end = self.reader.position().byte();
            quoted(self.reader.get_mut(), end).map_err(|fault| at(&self.file, row, fault))?;
            match outcome {
                Ok(true) => take(row, self.places.map(|place| record.get(place).unwrap_or_default()))
                    .map_err(|fault| at(&self.file, row, fault))?,
                Ok(false) if count == 0 => return Err(ExportError::NoRows { file: self.file.clone() }),
                Ok(false) => break,
                Err(fault) => return Err(form_fault(&self.file, row, fault)),
            }
            if count.is_multiple_of(PROGRESS_ROWS) {
                progress.step(start, String::new());
            }
        }
        progress.done();
        Ok(())
    }
}

/// Refuses quotes that are out of place before a byte.
fn quoted(lines: &mut Lines<File>, end: u64) -> Result<(), RowFault> {
    lines.quote_fault(end).map_or(Ok(()), |fault| Err(RowFault::Quote(fault)))
}

/// A fault with its place.
pub fn at(file: &Path, row: u64, fault: RowFault) -> ExportError {
    ExportError::Row { file: file.to_owned(), row, fault: Box::new(fault) }
}

fn places<const N: usize>(header: &StringRecord, columns: [&'static str; N]) -> Result<[usize; N], RowFault> {
    let expected = || columns.join(",");
    if let Some(column) = columns.into_iter().find(|column| !header.iter().any(|name| name == *column)) {
        return Err(RowFault::MissingColumn { column, expected: expected() });
    }
    if let Some(column) = header.iter().find(|name| !columns.contains(name)) {
        return Err(RowFault::UnknownColumn { column: column.to_owned(), expected: expected() });
    }
    let twice = |name: &&str| header.iter().filter(|other| other == name).count() > 1;
    if let Some(column) = header.iter().find(twice) {
        return Err(RowFault::RepeatedColumn { column: column.to_owned() });
    }
    Ok(columns.map(|column| header.iter().position(|name| name == column).expect("looked for above")))
}

/// A fault of the CSV form itself.
fn form_fault(file: &Path, row: u64, fault: csv::Error) -> ExportError {
    match fault.into_kind() {
        ErrorKind::Io(source) => ExportError::Read { file: file.to_owned(), source },
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            at(file, row, RowFault::Fields { expected: expected_len, found: len })
        }
        _ => at(file, row, RowFault::NotText),
    }
}

/// A finite number that an amount of GPUs could be; it may be negative.
pub fn gpus(column: &'static str, text: &str) -> Result<f64, RowFault> {
    // Beyond this, a model has exploded (vocab refuses such forecasts, too); below it, no score overflows.
    const LIMIT_GPUS: f64 = MilliGpus::MAX_GPUS as f64;
    let number = text.parse().ok().filter(|number: &f64| number.abs() < LIMIT_GPUS);
    number.ok_or_else(|| RowFault::Number { column, text: text.to_owned() })
}

/// As [`gpus`], at least 0.
pub fn gpus_from_zero(column: &'static str, text: &str) -> Result<f64, RowFault> {
    let number = gpus(column, text)?;
    if number < 0.0 { Err(RowFault::Negative { column, text: text.to_owned() }) } else { Ok(number) }
}

/// Hours, or the step that lies so many hours ahead.
pub fn hours(column: &'static str, text: &str) -> Result<HorizonHours, RowFault> {
    // Data frames write whole numbers as `4.0` once a column has had a gap.
    let digits = text.strip_suffix(".0").unwrap_or(text);
    let hours = digits.parse().ok().and_then(|hours| HorizonHours::new(hours).ok());
    hours.ok_or_else(|| RowFault::Hours { column, text: text.to_owned() })
}

pub fn hour(column: &'static str, text: &str) -> Result<HourStart, RowFault> {
    command_line::hour(text).map_err(|fault| RowFault::Time { column, text: text.to_owned(), fault })
}

pub fn name<T>(column: &'static str, text: &str, parse: fn(&str) -> Result<T, NameError>) -> Result<T, RowFault> {
    parse(text).map_err(|fault| RowFault::Name { column, fault })
}

/// A name without rules of its own: of a model, or of an aggregation.
pub fn label(column: &'static str, text: &str) -> Result<String, RowFault> {
    if text.is_empty() { Err(RowFault::NoName { column }) } else { Ok(text.to_owned()) }
}
