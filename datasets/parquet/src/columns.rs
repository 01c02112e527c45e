//! The columns of a file: where they are, what they hold, and batches of their values.

use crate::error::SourceError;
use parquet::basic::{LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use std::path::Path;

/// In the order in which readers take them.
pub const COLUMNS: [&str; 5] = ["hour", "cluster", "gpu_model", "organization", "demand_gpus"];
/// Demand at the end of the hour; files may lack it, and rows a value.
pub const AT_END: &str = "demand_at_end_gpus";
/// Place of the column with clusters.
pub const CLUSTER: usize = 1;

const HOURS: &str = "timestamps of milli-, micro- or nanoseconds, or text; cast it, Spark's INT96 by outputTimestampType=TIMESTAMP_MICROS";
const NAMES: &str = "text; cast it to a string";
const AMOUNTS: &str = "numbers of 8 to 64 bits or decimals; cast it to a 64-bit float";

/// Kind of values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Instants, or times of the cluster's zone, so many a second.
    Stamp {
        /// Units of a second.
        per_s: i64,
        /// Whether they are instants.
        is_utc: bool,
    },
    /// Text.
    Text,
    /// Numbers as they are.
    Number,
    /// Whole numbers from 0 on.
    Unsigned,
    /// Decimals: whole numbers of so many digits behind the point.
    Decimal {
        /// Digits behind the point.
        digits: i32,
    },
}

/// A column that is read.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Place among all columns of the file.
    pub place: usize,
    /// Kind of its values.
    pub kind: Kind,
    /// Whether rows may lack a value.
    is_optional: bool,
}

/// Finds the columns of a file; that of [`AT_END`] comes last, where there is one.
///
/// # Errors
/// One is missing, or holds something else.
pub fn find(file: &Path, schema: &SchemaDescriptor) -> Result<Vec<Column>, SourceError> {
    let known = || schema.columns().iter().map(|column| column.path().string());
    let find = |(number, name): (usize, &'static str)| {
        if known().filter(|known| known == name).count() > 1 {
            return Err(SourceError::TwiceNamed { file: file.to_owned(), column: name });
        }
        let place = known().position(|known| known == name).ok_or_else(|| SourceError::MissingColumn {
            file: file.to_owned(),
            column: name,
            expected: COLUMNS.join(","),
            found: known().collect::<Vec<_>>().join(","),
        })?;
        let column = schema.column(place);
        let (kind, expected) = match number {
            0 => (hour(&column).or_else(|| text(&column)), HOURS),
            4 => (amount(&column), AMOUNTS),
            // One without a single value has no type of its own.
            5 => (amount(&column).or_else(|| is_empty(&column).then_some(Kind::Number)), AMOUNTS),
            _ => (text(&column), NAMES),
        };
        let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
        let other = || {
            let logical = column.logical_type_ref().map_or_else(String::new, |logical| format!(" ({logical:?})"));
            let found = format!("{}{logical}", column.physical_type());
            SourceError::OtherType { file: file.to_owned(), column: name, expected, found }
        };
        let kind = kind.filter(|_| is_flat).ok_or_else(other)?;
        Ok(Column { name, place, kind, is_optional: column.max_def_level() > 0 })
    };
    let at_end = known().any(|known| known == AT_END).then_some(AT_END);
    COLUMNS.into_iter().chain(at_end).enumerate().map(find).collect()
}

fn hour(column: &ColumnDescriptor) -> Option<Kind> {
    if column.physical_type() != Type::INT64 {
        return None;
    }
    match column.logical_type_ref()? {
        LogicalType::Timestamp(stamp) => {
            let per_s = match stamp.unit {
                TimeUnit::MILLIS => 1_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => 1_000_000_000,
            };
            Some(Kind::Stamp { per_s, is_utc: stamp.is_adjusted_to_u_t_c })
        }
        _ => None,
    }
}

fn text(column: &ColumnDescriptor) -> Option<Kind> {
    let is_text = matches!(column.logical_type_ref(), None | Some(LogicalType::String | LogicalType::Enum));
    (column.physical_type() == Type::BYTE_ARRAY && is_text).then_some(Kind::Text)
}

fn amount(column: &ColumnDescriptor) -> Option<Kind> {
    let physical = column.physical_type();
    let is_number = matches!(physical, Type::DOUBLE | Type::FLOAT | Type::INT32 | Type::INT64);
    match column.logical_type_ref() {
        None => is_number.then_some(Kind::Number),
        Some(LogicalType::Integer(whole)) => Some(if whole.is_signed { Kind::Number } else { Kind::Unsigned }),
        Some(LogicalType::Decimal(decimal)) => {
            let is_read = is_number || physical == Type::FIXED_LEN_BYTE_ARRAY && column.type_length() <= 16;
            is_read.then_some(Kind::Decimal { digits: decimal.scale })
        }
        Some(_) => None,
    }
}

fn is_empty(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Unknown)) && column.physical_type() == Type::INT32
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Whole(i64),
    Text(&'a [u8]),
    Double(f64),
    Single(f32),
}

enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Text(Vec<ByteArray>),
    Double(Vec<f64>),
    Single(Vec<f32>),
    Fixed(Vec<FixedLenByteArray>),
}

/// Values of one column of a row group, batch by batch.
pub struct Batches {
    column: Column,
    reader: ColumnReader,
    levels: Vec<i16>,
    values: Values,
    /// Of the next row and value in the batch.
    next: (usize, usize),
}

impl Batches {
    /// Of a column; `None` where the reader is of another type than its file's schema says.
    pub fn new(column: Column, reader: ColumnReader) -> Option<Self> {
        let values = match &reader {
            ColumnReader::Int32ColumnReader(_) => Values::Int32(Vec::new()),
            ColumnReader::Int64ColumnReader(_) => Values::Int64(Vec::new()),
            ColumnReader::ByteArrayColumnReader(_) => Values::Text(Vec::new()),
            ColumnReader::DoubleColumnReader(_) => Values::Double(Vec::new()),
            ColumnReader::FloatColumnReader(_) => Values::Single(Vec::new()),
            ColumnReader::FixedLenByteArrayColumnReader(_) => Values::Fixed(Vec::new()),
            _ => return None,
        };
        Some(Self { column, reader, levels: Vec::new(), values, next: (0, 0) })
    }

    /// The column.
    pub const fn column(&self) -> Column {
        self.column
    }

    /// Reads the next rows, at most so many; answers how many there are.
    ///
    /// # Errors
    /// A page cannot be decoded.
    pub fn read(&mut self, rows: usize) -> Result<usize, ParquetError> {
        self.next = (0, 0);
        self.levels.clear();
        let levels = self.column.is_optional.then_some(&mut self.levels);
        match (&mut self.reader, &mut self.values) {
            (ColumnReader::Int32ColumnReader(reader), Values::Int32(values)) => read(reader, rows, levels, values),
            (ColumnReader::Int64ColumnReader(reader), Values::Int64(values)) => read(reader, rows, levels, values),
            (ColumnReader::ByteArrayColumnReader(reader), Values::Text(values)) => read(reader, rows, levels, values),
            (ColumnReader::DoubleColumnReader(reader), Values::Double(values)) => read(reader, rows, levels, values),
            (ColumnReader::FloatColumnReader(reader), Values::Single(values)) => read(reader, rows, levels, values),
            (ColumnReader::FixedLenByteArrayColumnReader(reader), Values::Fixed(values)) => {
                read(reader, rows, levels, values)
            }
            _ => Ok(0),
        }
    }

    /// The value of the next row of the batch; `None` where it has none.
    pub fn next(&mut self) -> Option<Value<'_>> {
        let (row, value) = self.next;
        let is_there = !self.column.is_optional || self.levels.get(row).is_some_and(|level| *level > 0);
        self.next = (row + 1, value + usize::from(is_there));
        if !is_there {
            return None;
        }
        let kind = self.column.kind;
        match &self.values {
            Values::Int32(values) => values.get(value).map(|value| {
                // The bits of larger ones are those of numbers below 0.
                let unsigned = i64::from(value.cast_unsigned());
                whole(kind, i128::from(if kind == Kind::Unsigned { unsigned } else { i64::from(*value) }))
            }),
            Values::Int64(values) => values.get(value).map(|value| {
                let is_unsigned = kind == Kind::Unsigned;
                whole(kind, if is_unsigned { i128::from(value.cast_unsigned()) } else { i128::from(*value) })
            }),
            Values::Fixed(values) => values.get(value).map(|value| whole(kind, big_endian(value.data()))),
            Values::Text(values) => values.get(value).map(|value| Value::Text(value.data())),
            Values::Double(values) => values.get(value).map(|value| Value::Double(*value)),
            Values::Single(values) => values.get(value).map(|value| Value::Single(*value)),
        }
    }
}

fn whole(kind: Kind, number: i128) -> Value<'static> {
    match (kind, i64::try_from(number)) {
        (Kind::Decimal { digits }, _) => Value::Double(number as f64 / 10_f64.powi(digits)),
        (_, Ok(number)) => Value::Whole(number),
        (_, Err(_)) => Value::Double(number as f64),
    }
}

/// The number of at most 16 bytes, the highest first, whose first bit is its sign.
fn big_endian(bytes: &[u8]) -> i128 {
    let sign = bytes.first().map_or(0, |first| if first.cast_signed() < 0 { -1 } else { 0 });
    bytes.iter().fold(sign, |number, byte| number << 8 | i128::from(*byte))
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> Result<usize, ParquetError> {
    values.clear();
    let (records, _, _) = reader.read_records(rows, levels, None, values)?;
    Ok(records)
}
