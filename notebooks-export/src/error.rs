//! Errors of `notebooks-export`, and the exit code of each.

use command_line::{Exit, Failure};
use polars::prelude::PolarsError;
use std::path::PathBuf;
use store::StoreError;
use training::TrainingError;
use vocab::{HourStart, NameError, PoolId, RateError, SeriesId};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{}: {source}; name a file that can be read", file.display())]
    Read { file: PathBuf, source: std::io::Error },
    #[error("{}, row {row}: {fault}", file.display())]
    Row { file: PathBuf, row: u64, fault: Box<RowFault> },
    #[error("{}: no rows", file.display())]
    NoRows { file: PathBuf },
    #[error(
        "{}: all {rows} rows are in recording gaps (every series of their cluster is zero): no row can be scored",
        file.display()
    )]
    NothingScored { file: PathBuf, rows: usize },
    #[error("{}: {source}", file.display())]
    Write { file: PathBuf, source: std::io::Error },
    #[error("--out {}: a file has this name; name a folder", out.display())]
    NotAFolder { out: PathBuf },
    #[error("{}: {source}", file.display())]
    Parquet { file: PathBuf, source: PolarsError },
    #[error("--{flag} {name:?}: unknown model; the forecasts have {}", known.join(", "))]
    NoModel { flag: &'static str, name: String, known: Vec<String> },
    #[error("--capacity {text}: the bounds are of {}; write --capacity POOL=GPUS for each", pools.join(", "))]
    WhichPool { text: String, pools: Vec<String> },
    #[error(transparent)]
    Training(#[from] TrainingError),
    #[error(transparent)]
    Rate(#[from] RateError),
    #[error("no runtime for the database: {0}")]
    Runtime(std::io::Error),
}

impl From<StoreError> for ExportError {
    fn from(fault: StoreError) -> Self {
        Self::Training(fault.into())
    }
}

/// Fault of a row. Rows are counted as an editor counts lines: the header is row 1.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum RowFault {
    #[error("column {column} is missing; the header must hold {expected}")]
    MissingColumn { column: &'static str, expected: String },
    #[error("column {column:?} is unknown; the header must hold {expected}")]
    UnknownColumn { column: String, expected: String },
    #[error("column {column:?} occurs twice: keep one of them")]
    RepeatedColumn { column: String },
    #[error("{found} fields, but the header has {expected}: quote fields that contain commas")]
    Fields { expected: u64, found: u64 },
    #[error("{0}")]
    Quote(datasets::read::QuoteFault),
    #[error("not UTF-8 text: save the CSV file as UTF-8")]
    NotText,
    #[error(
        "column {column}: {text:?} is not a finite number of less than a billion GPUs: write a decimal such as 4.25"
    )]
    Number { column: &'static str, text: String },
    #[error("column {column}: {text} is negative: {column} is at least 0")]
    Negative { column: &'static str, text: String },
    #[error("column {column}: {text:?} is not a whole number of hours from 1 to 168")]
    Hours { column: &'static str, text: String },
    #[error("column {column}: {text:?}: {fault}")]
    Time { column: &'static str, text: String, fault: String },
    #[error("column {column}: {fault}")]
    Name { column: &'static str, fault: NameError },
    #[error("column {column} is empty: name it")]
    NoName { column: &'static str },
    #[error("column guarantee_rate: {0}")]
    Rate(RateError),
    #[error(
        "target_time is {target}, and step {step} of issue_time {issue} starts at {expected}: step 1 starts at issue_time"
    )]
    Target { issue: HourStart, step: u8, target: HourStart, expected: HourStart },
    #[error("quantiles cross: q0.5 is {q50}, q0.9 {q90}, q0.95 {q95}; each must be at least the one before")]
    Crossing { q50: f64, q90: f64, q95: f64 },
    #[error("{what} occurs twice, first in row {first_row}: keep one of them")]
    Twice { what: String, first_row: u64 },
    #[error(
        "{lacking} has no {what}, but {having} has; {having} has {having_rows} rows and {lacking} \
         {lacking_rows}: compare models over the same hours and series"
    )]
    Uneven { what: String, having: String, having_rows: usize, lacking: String, lacking_rows: usize },
    #[error(
        "actual of {series} at {target} is {second} here and {first} in row {first_row}: score against one history"
    )]
    Contradiction { series: Box<SeriesId>, target: HourStart, first: f64, first_row: u64, second: f64 },
    #[error("there is no forecast of pool {pool}; the forecasts are of {known}: give both files of one backtest")]
    OtherPool { pool: Box<PoolId>, known: String },
    #[error("there is no forecast of model {model}; the forecasts are of {known}: give both files of one backtest")]
    OtherModel { model: String, known: String },
    #[error("issue_time is {issue}; the forecasts were issued from {first} to {last}: give both files of one backtest")]
    OtherWindow { issue: HourStart, first: HourStart, last: HourStart },
    #[error("hours is {hours} at most, and the forecasts reach {horizon}: give both files of one backtest")]
    OtherHorizon { hours: u8, horizon: u8 },
    #[error("guarantee_rate is {rate} here and {first} in row {first_row}: make one report for each rate")]
    OtherRate { rate: String, first: String, first_row: u64 },
}

impl From<ExportError> for Failure {
    fn from(fault: ExportError) -> Self {
        use ExportError::{
            NoModel, NoRows, NotAFolder, NothingScored, Parquet, Rate, Read, Row, Runtime, Training, WhichPool, Write,
        };
        let exit = match fault {
            // The exit code of training holds here, too.
            Training(fault) => return fault.into(),
            Read { .. } | Row { .. } | NoRows { .. } | NothingScored { .. } => Exit::DataInvalid,
            NoModel { .. } | NotAFolder { .. } | WhichPool { .. } => Exit::Usage,
            Rate(_) => Exit::ConfigInvalid,
            Write { .. } | Parquet { .. } | Runtime(_) => Exit::Failure,
        };
        Self::new(exit, fault)
    }
}
