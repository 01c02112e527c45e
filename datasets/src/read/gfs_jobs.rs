//! The job list of the GFS trace.

use super::names::Names;
use super::table::{Extra, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault};
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
    let (tasks, report) = gfs_tasks(file, epoch, options)?;
    let rows = sweep::hourly_hp_demand(&options.cluster, &tasks)
        .map_err(|fault| ReadError::Sweep { file: file.to_owned(), fault })?;
    Ok(GfsJobs { tasks, report: ReadReport { rows, ..report } })
}

/// Reads a job list, the header exactly as published. The report holds no rows of usage; a job that stands there twice is
/// counted once.
///
/// # Errors
/// The file cannot be read, its header is another one, it has no rows, or (unless bad rows may be skipped) a row is bad.
pub fn gfs_tasks(file: &Path, epoch: UnixSeconds, options: &ReadOptions) -> Result<(Vec<Task>, ReadReport), ReadError> {
    let (mut tasks, mut names, mut report) = (Vec::new(), Names::default(), ReadReport::default());
    let mut table = Table::open(file, &COLUMNS, Extra::Refused)?;
    table.each(options, &mut report.skipped, |row| {
        let task = parse(row, epoch)?;
        if names.is_new("job_name", task.id.as_str(), row)? {
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

/// Jobs belong to tenants: `*` is the name of the pool's own peak.
fn organization(row: &Row<'_>) -> Result<Organization, RowFault> {
    let organization = row.name("organization", Organization::parse)?;
    if organization.is_pool_peak() {
        return Err(RowFault::PoolPeak { column: "organization".to_owned() });
    }
    Ok(organization)
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
        organization(row)?,
        row.name("gpu_model", GpuModel::parse)?,
        class,
        epoch.plus_s(row.integer("submit_time", 0)?),
        Some(row.integer("duration", 0)?.unsigned_abs()),
        row.gpus("gpu_request")?,
        u32::try_from(workers).map_err(|_| too_many())?,
    )
    .map_err(RowFault::Task)
}
