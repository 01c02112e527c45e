//! Readers of published formats. Every row becomes checked values or a fault that names file, row and remedy; nothing is
//! dropped silently.

mod alibaba_hourly;
mod dates;
mod days;
mod gfs_jobs;
mod helios;
mod ical;
mod jobs;
mod ledger;
mod lines;
mod names;
mod nodes;
/// The OpenB trace: nodes and pods.
pub mod openb;
mod options;
mod phases;
mod philly;
mod power;
mod quotes;
mod table;
#[cfg(test)]
mod tests;
mod usage;
mod zero_hours;

pub use alibaba_hourly::{ALIBABA_EPOCH, alibaba_hourly};
pub use dates::ReadDays;
pub use days::{DayFault, days, days_csv};
pub use gfs_jobs::{GFS_JOB_COLUMNS, gfs_jobs, gfs_tasks};
pub use helios::{helios, helios_minutes};
pub use ical::EventFault;
pub use jobs::{Jobs, job_list, names_gpu_model};
pub use lines::Lines;
pub use nodes::{GFS_NODE_COLUMNS, NodeRow, capacity_by_model, gfs_nodes};
pub use options::{ReadOptions, Zones};
pub use phases::{PHASE_COLUMNS, PhaseRow, phases};
pub use philly::{
    LABEL_COLUMNS, SPEED_COLUMNS, job_labels, model_speeds, philly, philly_deadlines, philly_models, philly_tasks,
};
pub use power::{PowerRow, Powered, power};
pub use quotes::QuoteFault;
pub use usage::{RowSink, at_end_gpus, each_usage, usage};
pub use zero_hours::ZeroHours;

use crate::spool::Conflict;
use crate::sweep::SweepError;
use crate::time::TimeError;
use std::path::PathBuf;
use vocab::{
    AmountError, CapacityRow, HourDemand, HourError, HourStart, MilliGpus, NameError, SeriesId, TaskError, UsageRow,
};

/// Content of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadReport {
    pub rows: Vec<UsageRow>,
    pub capacity: Vec<CapacityRow>,
    /// Rows that repeat an earlier one of the file with the same value.
    pub equal_duplicates: u64,
    /// Jobs that ask for no GPU and are left out.
    pub jobs_without_gpus: u64,
    /// Bad rows, where they may be skipped.
    pub skipped: Vec<SkippedRow>,
}

/// A row that was left out, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct SkippedRow {
    pub file: PathBuf,
    pub row: u64,
    pub fault: RowFault,
}

/// Fault of a row. Rows are counted as an editor counts lines: the header is row 1.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RowFault {
    #[error("{found} fields, but the header has {expected}: quote fields that contain commas")]
    Fields { expected: u64, found: u64 },
    #[error("not UTF-8 text: save the file as UTF-8")]
    NotText,
    #[error("compressed by gzip: decompress the file first (gunzip)")]
    Compressed,
    #[error("a workbook or another zip archive: save the table as CSV, or unpack the archive")]
    Zipped,
    #[error("row group {row_group}, {fault}")]
    InGroup { row_group: usize, fault: Box<RowFault> },
    #[error("column {column}: no value: fill it, or leave the row out")]
    NoValue { column: &'static str },
    #[error("column {column}: {fault}")]
    Amount { column: String, fault: AmountError },
    #[error(
        "column {column}: {at_end} GPUs is above the peak of the hour, {peak}: leave it empty where it is not known"
    )]
    AbovePeak { column: &'static str, at_end: MilliGpus, peak: MilliGpus },
    #[error("column {column}: {text:?} is not a whole number of at least {least}")]
    Integer { column: String, text: String, least: i64 },
    #[error("column {column}: {text:?} is not a whole number from {least} to {most}")]
    Within { column: String, text: String, least: u64, most: u64 },
    #[error("column {column}: {text:?} is not a number of {unit} from 0 to {most}, with at most three decimals")]
    Decimal { column: String, text: String, unit: &'static str, most: u64 },
    #[error("column {column}: {text} {unit} are longer than the limit of {most}: write the duration in {unit}")]
    TooLong { column: String, text: String, unit: &'static str, most: u64 },
    #[error(
        "column {column}: {text} {unit} is more than ten years from the job of row {first_row}: write {unit} after the epoch, \
         or make a list of each ten years"
    )]
    FarFrom { column: &'static str, text: String, unit: &'static str, first_row: u64 },
    #[error("column {column}: unknown value {text:?}: expected {known}")]
    Choice { column: &'static str, text: String, known: &'static str },
    #[error("column {column}: {fault}")]
    Time { column: String, fault: TimeError },
    #[error("column {column}: {fault}; hourly usage starts on the hour")]
    Hour { column: String, fault: HourError },
    #[error("column {column}: {fault}")]
    Name { column: String, fault: NameError },
    #[error("column {column}: {text:?} is not a job type: expected HP or Spot")]
    JobType { column: String, text: String },
    #[error(
        "column pending_gpu_num: the tenants together have {gpus:e} GPUs in this minute, which exceeds the limit of {max} GPUs: \
         check running_gpu_num and pending_gpu_num of each",
        max = MilliGpus::MAX_GPUS
    )]
    TenantsTogether { gpus: f64 },
    #[error("{0}")]
    Task(TaskError),
    #[error("{0}")]
    Quote(QuoteFault),
    #[error("column {column}: {text} {unit} after the epoch lie beyond the years of the calendar")]
    BeyondCalendar { column: String, text: String, unit: &'static str },
    #[error(
        "num_gpu {num_gpu} with gpu_milli {gpu_milli}: write 0 and 0 for no GPU, 1 and 1 to 1000 for a part of one, more \
         than 1 and 1000 for whole ones"
    )]
    GpuAsk { num_gpu: u64, gpu_milli: u64 },
    #[error("gpu {gpus} with model {model:?}: a node with GPUs needs a model, a node without GPUs has none")]
    ModelOfNode { gpus: u64, model: String },
    #[error("{idle_w} W idle exceed {full_w} W at full load: swap them")]
    Watts { idle_w: u32, full_w: u32 },
    #[error("{} is a GPU model and has no cores: leave cores empty, or name the row cpu", model.escape_debug())]
    CoresOfGpu { model: String },
    #[error("column {later}: {later_s} s is before {earlier}, {earlier_s} s")]
    TimesSwapped { earlier: &'static str, earlier_s: u64, later: &'static str, later_s: u64 },
    #[error("column {column}: * stands for the pool as a whole: name the tenant")]
    PoolPeak { column: String },
    #[error("column {column}: {} is already in row {first_row} with other fields: keep one of them", name.escape_debug())]
    NameTwice { column: String, name: String, first_row: u64 },
    #[error("time {text:?} is not after the time of the row before: sort the file by time")]
    NotRising { text: String },
    #[error(transparent)]
    Day(#[from] DayFault),
    #[error("{series} has {} for {hour} here and {} at row {first_row}: keep one of them", both[1], both[0])]
    Conflict { series: Box<SeriesId>, hour: HourStart, first_row: u64, both: Box<[HourDemand; 2]> },
    #[error(
        "{series} has {} for {hour} here and {} in {}, row {first_row}: keep one of them",
        both[1], both[0], first_file.display()
    )]
    ConflictOfFiles {
        series: Box<SeriesId>,
        hour: HourStart,
        first_file: PathBuf,
        first_row: u64,
        both: Box<[HourDemand; 2]>,
    },
}

impl RowFault {
    /// The fault of the second of two rows that contradict each other; `files` are those that were read.
    #[must_use]
    pub fn conflict(conflict: &Conflict, files: &[PathBuf]) -> Self {
        let Conflict { series, hour, first: (first_place, first), second: (place, second) } = conflict;
        let (series, hour) = (Box::new(series.clone()), *hour);
        let (first_row, both) = (first_place.row, Box::new([*first, *second]));
        if first_place.file == place.file {
            return Self::Conflict { series, hour, first_row, both };
        }
        let first_file = files.get(first_place.file as usize).cloned().unwrap_or_default();
        Self::ConflictOfFiles { series, hour, first_file, first_row, both }
    }
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{}: {source}; name a file that can be read", file.display())]
    Io { file: PathBuf, source: std::io::Error },
    #[error("{}, row {row}: {fault}", file.display())]
    Row { file: PathBuf, row: u64, fault: RowFault },
    #[error("{}, line {line}: {fault}", file.display())]
    Line { file: PathBuf, line: u64, fault: EventFault },
    #[error("{}: no days", file.display())]
    NoDays { file: PathBuf },
    #[error("{}, row 1: column {column} is missing{found}; the header must hold {expected}", file.display())]
    MissingColumn { file: PathBuf, column: &'static str, found: String, expected: String },
    #[error("{}, row 1: column {column:?} is unknown; the header must be {expected}", file.display())]
    UnknownColumn { file: PathBuf, column: String, expected: String },
    #[error("{}, row 1: column {column:?} is listed twice", file.display())]
    RepeatedColumn { file: PathBuf, column: String },
    #[error("{}: no rows", file.display())]
    NoRows { file: PathBuf },
    #[error("{}: no file named vc*.csv", folder.display())]
    NoTenants { folder: PathBuf },
    #[error(
        "{}: the tenants together have more than {max} GPUs at {hour}: check total_gpu_num of each",
        folder.display(),
        max = MilliGpus::MAX_GPUS
    )]
    Capacity { folder: PathBuf, hour: HourStart },
    #[error("{}: {fault}", file.display())]
    Sweep { file: PathBuf, fault: SweepError },
}
