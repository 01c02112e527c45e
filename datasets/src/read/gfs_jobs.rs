//! The job list of the GFS trace.

use super::table::{Extra, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault, SkippedRow};
use crate::sweep;
use std::path::Path;
use vocab::{GpuModel, Organization, Task, TaskClass, TaskId, UnixSeconds};

const COLUMNS: [&str; 9] = [
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

/// The jobs of a list, and their hourly HP demand.
#[derive(Debug)]
pub struct GfsJobs {
    pub tasks: Vec<Task>,
    pub report: ReadReport,
}

/// Reads a job list into hourly HP demand (see [`sweep::hourly_hp_demand`]); times count from `epoch`.
///
/// # Errors
/// As [`gfs_tasks`]; or a time or a sum leaves the range of hours or amounts.
pub fn gfs_jobs(file: &Path, epoch: UnixSeconds, options: &ReadOptions) -> Result<GfsJobs, ReadError> {
    let (tasks, skipped) = gfs_tasks(file, epoch, options)?;
    let rows = sweep::hourly_hp_demand(&options.cluster, &tasks)
        .map_err(|fault| ReadError::Sweep { file: file.to_owned(), fault })?;
    Ok(GfsJobs { tasks, report: ReadReport { rows, skipped, ..ReadReport::default() } })
}

/// Reads a job list, the header exactly as published.
///
/// # Errors
/// The file cannot be read, its header is another one, it has no rows, or (unless bad rows may be skipped) a row is bad.
pub fn gfs_tasks(
    file: &Path,
    epoch: UnixSeconds,
    options: &ReadOptions,
) -> Result<(Vec<Task>, Vec<SkippedRow>), ReadError> {
    let (mut tasks, mut skipped) = (Vec::new(), Vec::new());
    let mut table = Table::open(file, &COLUMNS, Extra::Refused)?;
    table.each(options, &mut skipped, |row| {
        tasks.push(parse(row, epoch)?);
        Ok(())
    })?;
    if tasks.is_empty() && skipped.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    Ok((tasks, skipped))
}

fn parse(row: &Row<'_>, epoch: UnixSeconds) -> Result<Task, RowFault> {
    let class = match row.text("job_type") {
        "HP" => TaskClass::Hp,
        "Spot" => TaskClass::Spot,
        text => return Err(RowFault::JobType { column: "job_type".to_owned(), text: text.to_owned() }),
    };
    let workers = row.integer("worker_num", 1)?;
    let too_many = || RowFault::Integer { column: "worker_num".to_owned(), text: workers.to_string(), least: 1 };
    Task::new(
        row.name("job_name", TaskId::parse)?,
        row.name("organization", Organization::parse)?,
        row.name("gpu_model", GpuModel::parse)?,
        class,
        epoch.plus_s(row.integer("submit_time", 0)?),
        Some(row.integer("duration", 0)?.unsigned_abs()),
        row.gpus("gpu_request")?,
        u32::try_from(workers).map_err(|_| too_many())?,
    )
    .map_err(RowFault::Task)
}
