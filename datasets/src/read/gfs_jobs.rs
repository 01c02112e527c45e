//! The job list of the GFS trace.

use super::jobs::{Jobs, Submissions};
use super::names::Names;
use super::table::{Extra, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault};
use std::path::Path;
use vocab::{GpuModel, Task, TaskClass, TaskId, UnixSeconds};

/// The header of the published list.
pub const GFS_JOB_COLUMNS: [&str; 9] = [
    "job_name",
    "organization",
    "gpu_model",
    "cpu_request",
    "gpu_request",
    "worker_num",
    "submit_time",
    "duration",
    "job_type",
];

/// Times are seconds.
const SECONDS: (&str, i64) = ("seconds", 1);
/// Cores of a pod: a million.
const MOST_CORES: u64 = 1_000_000;

/// Reads a job list into hourly HP demand (see [`crate::sweep::hourly_hp_demand`]); times count from `epoch`.
///
/// # Errors
/// As [`gfs_tasks`]; or a time or a sum leaves the range of hours or amounts.
pub fn gfs_jobs(file: &Path, epoch: UnixSeconds, options: &ReadOptions) -> Result<Jobs, ReadError> {
    Jobs::with_demand(file, gfs_tasks(file, epoch, options)?, options)
}

/// Reads a job list, the header exactly as published. The report holds no rows of usage; a job that stands there twice is
/// counted once.
///
/// # Errors
/// The file cannot be read, its header is another one, it has no rows, or (unless bad rows may be skipped) a row is bad.
pub fn gfs_tasks(file: &Path, epoch: UnixSeconds, options: &ReadOptions) -> Result<(Vec<Task>, ReadReport), ReadError> {
    let (mut tasks, mut names, mut report) = (Vec::new(), Names::default(), ReadReport::default());
    let mut submissions = Submissions::default();
    let mut table = Table::open(file, &GFS_JOB_COLUMNS, Extra::Refused)?;
    table.each(options, &mut report.skipped, |row| {
        let task = parse(row, epoch)?;
        if names.is_new("job_name", task.id.as_str(), row)? {
            submissions.take(row, SECONDS.0, task.submitted)?;
            tasks.push(task);
        }
        Ok(())
    })?;
    if tasks.is_empty() && report.skipped.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    report.equal_duplicates = names.equal_duplicates;
    Ok((tasks, report))
}

fn parse(row: &Row<'_>, epoch: UnixSeconds) -> Result<Task, RowFault> {
    let class = match row.text("job_type") {
        "HP" => TaskClass::Hp,
        "Spot" => TaskClass::Spot,
        text => return Err(RowFault::JobType { column: "job_type".to_owned(), text: text.to_owned() }),
    };
    let workers = row.integer("worker_num", 1)?;
    let too_many = || RowFault::Integer { column: "worker_num".to_owned(), text: workers.to_string(), least: 1 };
    let mut task = Task::new(
        row.name("job_name", TaskId::parse)?,
        row.tenant("organization")?,
        row.name("gpu_model", GpuModel::parse)?,
        class,
        row.after("submit_time", epoch, SECONDS)?,
        Some(row.duration_s("duration", SECONDS)?),
        row.gpus("gpu_request")?,
        u32::try_from(workers).map_err(|_| too_many())?,
    )
    .map_err(RowFault::Task)?;
    task.cpu_milli_per_pod =
        row.given("cpu_request").map_or(Ok(0), |_| row.thousandths("cpu_request", "cores", MOST_CORES))?;
    Ok(task)
}
