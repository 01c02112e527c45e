//! A CSV file as rows of named fields, each with its row number as an editor shows it.

use super::lines::{Archive, Lines};
use super::{QuoteFault, ReadError, ReadOptions, RowFault, SkippedRow};
use csv::{ErrorKind, StringRecord};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use vocab::{MilliGpus, NameError, Organization, UnixSeconds, new_name};

/// Of a header without the columns that are needed, so much is shown.
const FOUND_CHARS: usize = 200;

pub struct Table {
    file: PathBuf,
    reader: csv::Reader<Lines<Box<dyn Read>>>,
    header: Vec<String>,
}

/// Whether columns that the reader does not use may stand in the header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    Refused,
    Ignored,
    /// These may, others may not.
    Among(&'static [&'static str]),
}

impl Table {
    /// Opens a file whose header holds all of `columns`; an empty list takes any header.
    pub fn open(file: &Path, columns: &[&'static str], extra: Extra) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { file: file.to_owned(), source };
        let opened = File::open(file).map_err(io)?;
        Self::of(file, Box::new(opened), columns, extra)
    }

    /// As [`Self::open`], of what was opened already; `file` names it in errors.
    pub fn of(file: &Path, source: Box<dyn Read>, columns: &[&'static str], extra: Extra) -> Result<Self, ReadError> {
        Self::built(file, Lines::new(source), columns, extra, &mut csv::ReaderBuilder::new())
    }

    /// As [`Self::open`] with these columns alone, and lines that begin with # are notes to people.
    pub fn with_notes(file: &Path, columns: &[&'static str]) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { file: file.to_owned(), source };
        let opened = File::open(file).map_err(io)?;
        let notes = &mut csv::ReaderBuilder::new();
        let lines: Lines<Box<dyn Read>> = Lines::with_notes(Box::new(opened));
        Self::built(file, lines, columns, Extra::Refused, notes.comment(Some(b'#')))
    }

    fn built(
        file: &Path,
        source: Lines<Box<dyn Read>>,
        columns: &[&'static str],
        extra: Extra,
        builder: &mut csv::ReaderBuilder,
    ) -> Result<Self, ReadError> {
        let mut reader = builder.trim(csv::Trim::All).from_reader(source);
        let read = reader.headers().map(|header| header.iter().map(str::to_owned).collect::<Vec<_>>());
        if let Some(archive) = reader.get_ref().archive() {
            let fault = match archive {
                Archive::Gzip => RowFault::Compressed,
                Archive::Zip => RowFault::Zipped,
            };
            return Err(ReadError::Row { file: file.to_owned(), row: 1, fault });
        }
        let end = reader.position().byte();
        if let Some(fault) = reader.get_mut().quote_fault(end) {
            let row = reader.get_mut().number_from(0);
            return Err(ReadError::Row { file: file.to_owned(), row, fault: RowFault::Quote(fault) });
        }
        let header = read.map_err(|fault| form_error(file, 1, &fault))?;
        check_header(file, &header, columns, extra)?;
        Ok(Self { file: file.to_owned(), reader, header })
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Calls `take` with each row. A fault, be it of the row's form or from `take`, ends the reading, or goes to
    /// `skipped` where bad rows may be skipped.
    pub fn each(
        &mut self,
        options: &ReadOptions,
        skipped: &mut Vec<SkippedRow>,
        take: impl FnMut(&Row<'_>) -> Result<(), RowFault>,
    ) -> Result<u64, ReadError> {
        self.rows(options.skip_bad_rows.then_some(skipped), take)
    }

    /// As [`Self::each`], and the first fault ends the reading.
    pub fn each_good(&mut self, take: impl FnMut(&Row<'_>) -> Result<(), RowFault>) -> Result<u64, ReadError> {
        self.rows(None, take)
    }

    /// As [`Self::each`]; a fault goes to `skipped` where that is given.
    pub fn rows(
        &mut self,
        mut skipped: Option<&mut Vec<SkippedRow>>,
        mut take: impl FnMut(&Row<'_>) -> Result<(), RowFault>,
    ) -> Result<u64, ReadError> {
        let mut record = StringRecord::new();
        let mut rows = 0;
        loop {
            let start = self.reader.position().byte();
            let read = self.reader.read_record(&mut record);
            let row = self.reader.get_mut().number_from(start);
            let end = self.reader.position().byte();
            let quote = self.reader.get_mut().quote_fault(end);
            if let Some(open @ QuoteFault::Open { .. }) = quote {
                // Left out as one bad row it would take the good ones along that it has swallowed.
                return Err(ReadError::Row { file: self.file.clone(), row, fault: RowFault::Quote(open) });
            }
            let outcome = match read {
                Ok(false) => return Ok(rows),
                _ if quote.is_some() => Err(RowFault::Quote(QuoteFault::Within)),
                Ok(true) => take(&Row { record: &record, header: &self.header, number: row }),
                Err(fault) => match form_error(&self.file, row, &fault) {
                    ReadError::Row { fault, .. } => Err(fault),
                    other => return Err(other),
                },
            };
            rows += 1;
            if let Err(fault) = outcome {
                match &mut skipped {
                    Some(skipped) => skipped.push(SkippedRow { file: self.file.clone(), row, fault }),
                    None => return Err(ReadError::Row { file: self.file.clone(), row, fault }),
                }
            }
        }
    }
}

fn check_header(file: &Path, header: &[String], columns: &[&'static str], extra: Extra) -> Result<(), ReadError> {
    let optional = match extra {
        Extra::Among(names) => names,
        Extra::Refused | Extra::Ignored => &[],
    };
    let may = if optional.is_empty() { String::new() } else { format!(" and may hold {}", optional.join(",")) };
    let (file, expected) = (file.to_owned(), columns.join(",") + &may);
    if let Some(column) = columns.iter().copied().find(|column| !header.iter().any(|name| name == column)) {
        return Err(ReadError::MissingColumn { file, column, found: found(header), expected });
    }
    if let Some((index, column)) = header.iter().enumerate().find(|(index, name)| header[..*index].contains(name)) {
        debug_assert!(index > 0);
        return Err(ReadError::RepeatedColumn { file, column: column.clone() });
    }
    let known = |name: &str| columns.contains(&name) || optional.contains(&name);
    match header.iter().find(|name| !known(name)) {
        Some(column) if extra != Extra::Ignored => {
            Err(ReadError::UnknownColumn { file, column: column.clone(), expected })
        }
        _ => Ok(()),
    }
}

/// Description of a header without the columns: of another separator, or with other names.
fn found(header: &[String]) -> String {
    let text = header.join(",");
    let separator =
        [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")].into_iter().find(|(one, _)| text.contains(*one));
    match separator {
        Some((_, name)) if header.len() == 1 => format!(": its columns are separated by {name}, not by commas"),
        _ if text.is_empty() => String::new(),
        _ => format!(": found {}", text.chars().filter(|one| !one.is_control()).take(FOUND_CHARS).collect::<String>()),
    }
}

/// A fault of the CSV form itself, with its row.
fn form_error(file: &Path, row: u64, fault: &csv::Error) -> ReadError {
    let fault = match fault.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            RowFault::Fields { expected: *expected_len, found: *len }
        }
        ErrorKind::Io(source) => {
            let source = std::io::Error::new(source.kind(), source.to_string());
            return ReadError::Io { file: file.to_owned(), source };
        }
        _ => RowFault::NotText,
    };
    ReadError::Row { file: file.to_owned(), row, fault }
}

/// Of a job: ten years. Longer ones are slips of a unit, and a replay would take minutes for each.
pub(super) const MOST_DURATION_S: i64 = 10 * 366 * vocab::SECONDS_PER_DAY;

/// One row, its fields by column name.
pub struct Row<'a> {
    record: &'a StringRecord,
    header: &'a [String],
    number: u64,
}

impl Row<'_> {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// All fields, as one text to compare.
    pub fn fields(&self) -> String {
        self.record.iter().collect::<Vec<_>>().join("\u{1f}")
    }

    /// The field at a position of the header.
    pub fn nth(&self, index: usize) -> &str {
        self.record.get(index).unwrap_or_default()
    }

    /// The field of a column that the header was checked to hold.
    pub fn text(&self, column: &str) -> &str {
        self.header.iter().position(|name| name == column).map_or("", |index| self.nth(index))
    }

    pub fn gpus(&self, column: &str) -> Result<MilliGpus, RowFault> {
        gpus(column, self.text(column))
    }

    /// Thousandths of a decimal of 0 to `most` with at most three decimals.
    pub fn thousandths(&self, column: &str, unit: &'static str, most: u64) -> Result<u64, RowFault> {
        let text = self.text(column);
        let fault = || RowFault::Decimal { column: column.to_owned(), text: text.to_owned(), unit, most };
        // GPUs lie on the same grid.
        let milli = MilliGpus::parse(text).map_err(|_| fault())?.milli();
        if milli <= most.saturating_mul(1_000) { Ok(milli) } else { Err(fault()) }
    }

    /// A whole number of `least` to `most`.
    pub fn within(&self, column: &str, least: u64, most: u64) -> Result<u64, RowFault> {
        let text = self.text(column);
        let fault = || RowFault::Within { column: column.to_owned(), text: text.to_owned(), least, most };
        whole(text)
            .and_then(|number| u64::try_from(number).ok())
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(fault)
    }

    /// As [`Self::within`] from 0 on; `None` where the file has no such column, or nothing in it.
    pub fn optional(&self, column: &str, most: u64) -> Result<Option<u64>, RowFault> {
        self.given(column).map(|_| self.within(column, 0, most)).transpose()
    }

    /// The field of a column that may be empty or absent; `nan` is how data frames show what is empty.
    pub fn given(&self, column: &str) -> Option<&str> {
        Some(self.text(column)).filter(|text| !text.is_empty() && !text.eq_ignore_ascii_case("nan"))
    }

    pub fn integer(&self, column: &str, least: i64) -> Result<i64, RowFault> {
        self.number_in(column, self.text(column), least)
    }

    /// The first of whole numbers with hyphens between them, as `159-189-229`.
    pub fn first_integer(&self, column: &str, least: i64) -> Result<i64, RowFault> {
        let text = self.text(column);
        self.number_in(column, text.split_once('-').map_or(text, |(first, _)| first), least)
    }

    /// `part` of the field of a column as a whole number.
    fn number_in(&self, column: &str, part: &str, least: i64) -> Result<i64, RowFault> {
        let text = || self.text(column).to_owned();
        let fault = || RowFault::Integer { column: column.to_owned(), text: text(), least };
        whole(part).filter(|number| *number >= least).ok_or_else(fault)
    }

    /// Jobs belong to tenants: `*` is the name of the pool's own peak.
    pub fn tenant(&self, column: &str) -> Result<Organization, RowFault> {
        let organization = self.name(column, Organization::parse)?;
        if organization.is_pool_peak() {
            return Err(RowFault::PoolPeak { column: column.to_owned() });
        }
        Ok(organization)
    }

    /// `column`, which counts seconds × `unit_s` from `epoch`, as an instant within the years of the calendar.
    pub fn after(
        &self,
        column: &str,
        epoch: UnixSeconds,
        (unit, unit_s): (&'static str, i64),
    ) -> Result<UnixSeconds, RowFault> {
        let at = epoch.plus_s(self.integer(column, 0)?.saturating_mul(unit_s));
        let beyond =
            || RowFault::BeyondCalendar { column: column.to_owned(), text: self.text(column).to_owned(), unit };
        at.hour().map(|_| at).map_err(|_| beyond())
    }

    /// `column`, which counts seconds × `unit_s`, as the seconds of a duration of at most ten years.
    pub fn duration_s(&self, column: &str, (unit, unit_s): (&'static str, i64)) -> Result<u64, RowFault> {
        let (text, most) = (self.text(column), (MOST_DURATION_S / unit_s).unsigned_abs());
        let number = self.integer(column, 0)?.unsigned_abs();
        if number > most {
            return Err(RowFault::TooLong { column: column.to_owned(), text: text.to_owned(), unit, most });
        }
        Ok(number * unit_s.unsigned_abs())
    }

    pub fn name<T>(&self, column: &str, parse: impl Fn(&str) -> Result<T, NameError>) -> Result<T, RowFault> {
        let text = self.text(column);
        new_name(text).and_then(|()| parse(text)).map_err(|fault| RowFault::Name { column: column.to_owned(), fault })
    }
}

/// Exports of data frames write whole numbers as `60.0`.
fn whole(text: &str) -> Option<i64> {
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}

pub fn gpus(column: &str, text: &str) -> Result<MilliGpus, RowFault> {
    MilliGpus::stated(MilliGpus::parse(text)).map_err(|fault| RowFault::Amount { column: column.to_owned(), fault })
}
