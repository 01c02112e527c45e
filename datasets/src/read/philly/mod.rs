//! Jobs of Microsoft's Philly cluster, as published with Chronus (`trace_job_Philly_MIX1.csv`).

mod elastic;
#[cfg(test)]
mod tests;

pub use elastic::{LABEL_COLUMNS, SPEED_COLUMNS, job_labels, model_speeds};

use super::jobs::{Jobs, Submissions};
use super::names::Names;
use super::table::{Extra, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault, SkippedRow};
use std::collections::BTreeMap;
use std::path::Path;
use vocab::{MilliGpus, Task, TaskClass, TaskId, UnixSeconds};

/// Columns of the demand. The file has six more, about the training and the expectations of each job.
const COLUMNS: [&str; 6] = ["job_id", "user", "num_gpu", "submit_time", "duration", "best_effort"];
/// Times are minutes.
const MINUTES: (&str, i64) = ("minutes", 60);
/// GPUs of one worker at most: a machine of the cluster has 8.
const WORKER_GPUS_MOST: u32 = 8;

/// Reads a job list into hourly HP demand (see [`crate::sweep::hourly_hp_demand`]); times count from `epoch`. The file
/// names no GPU model: the jobs are of `options.gpu_model`.
///
/// # Errors
/// As [`philly_tasks`]; or a sum leaves the range of amounts.
pub fn philly(file: &Path, epoch: UnixSeconds, options: &ReadOptions) -> Result<Jobs, ReadError> {
    Jobs::with_demand(file, philly_tasks(file, epoch, options)?, options)
}

/// Reads a job list. The report holds no rows of usage; a job that stands there twice is counted once, and jobs that ask
/// for no GPU are counted and left out.
///
/// # Errors
/// The file cannot be read, a column is missing, it has no rows, or (unless bad rows may be skipped) a row is bad.
pub fn philly_tasks(
    file: &Path,
    epoch: UnixSeconds,
    options: &ReadOptions,
) -> Result<(Vec<Task>, ReadReport), ReadError> {
    let (mut tasks, mut names, mut report) = (Vec::new(), Names::default(), ReadReport::default());
    let (mut without_gpus, mut submissions) = (0, Submissions::default());
    let mut table = Table::open(file, &COLUMNS, Extra::Ignored)?;
    let rows = table.each(options, &mut report.skipped, |row| {
        let (id, task) = parse(row, epoch, options)?;
        if names.is_new("job_id", id.as_str(), row)? {
            without_gpus += u64::from(task.is_none());
            if let Some(task) = &task {
                submissions.take(row, MINUTES.0, task.submitted)?;
            }
            tasks.extend(task);
        }
        Ok(())
    })?;
    if rows == 0 {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    report.equal_duplicates = names.equal_duplicates;
    report.jobs_without_gpus = without_gpus;
    Ok((tasks, report))
}

/// Which model each job trains, by the job's name. Jobs without GPUs are among them.
///
/// # Errors
/// As [`philly_tasks`].
pub fn philly_models(file: &Path, options: &ReadOptions) -> Result<BTreeMap<TaskId, String>, ReadError> {
    let (mut models, mut skipped) = (BTreeMap::new(), Vec::new());
    let mut table = Table::open(file, &["job_id", "model_name"], Extra::Ignored)?;
    table.each(options, &mut skipped, |row| {
        models.insert(row.name("job_id", TaskId::parse)?, row.text("model_name").to_owned());
        Ok(())
    })?;
    Ok(models)
}

/// Until when each job is wanted, in seconds after its submission, by the job's name; a best-effort job has no deadline.
///
/// The list writes it as `expect_time_list`, in minutes after the submission: of the 21,724 jobs of the published list that
/// are not best effort (`job_type` strict) each has one time, 1.10 to 4.95 times its duration, and best-effort jobs repeat
/// their submission there. Chronus's simulator reads it so, and adds the submission. Its lists of soft deadlines write
/// several times, each worth less than the one before it: the first one counts here.
///
/// # Errors
/// The file cannot be read, a column is missing, or (unless bad rows may be skipped, which go to `skipped`) a job that is not
/// best effort has no such time.
pub fn philly_deadlines(
    file: &Path,
    options: &ReadOptions,
    skipped: &mut Vec<SkippedRow>,
) -> Result<BTreeMap<TaskId, Option<u64>>, ReadError> {
    let mut deadlines = BTreeMap::new();
    let mut table = Table::open(file, &["job_id", "expect_time_list", "best_effort"], Extra::Ignored)?;
    table.each(options, skipped, |row| {
        let deadline_s = match class(row)? {
            TaskClass::Hp => Some(row.first_integer("expect_time_list", 0)?.saturating_mul(MINUTES.1).unsigned_abs()),
            TaskClass::Spot => None,
        };
        deadlines.insert(row.name("job_id", TaskId::parse)?, deadline_s);
        Ok(())
    })?;
    Ok(deadlines)
}

fn class(row: &Row<'_>) -> Result<TaskClass, RowFault> {
    let best_effort = row.text("best_effort");
    match best_effort.strip_suffix(".0").unwrap_or(best_effort) {
        "0" => Ok(TaskClass::Hp),
        "1" => Ok(TaskClass::Spot),
        text => {
            let known = "0 (high priority) and 1 (spot)";
            Err(RowFault::Choice { column: "best_effort", text: text.to_owned(), known })
        }
    }
}

/// A job and its task; a job without GPUs is none, and its row is checked anyway.
fn parse(row: &Row<'_>, epoch: UnixSeconds, options: &ReadOptions) -> Result<(TaskId, Option<Task>), RowFault> {
    let class = class(row)?;
    let id = row.name("job_id", TaskId::parse)?;
    let organization = row.tenant("user")?;
    let submitted = row.after("submit_time", epoch, MINUTES)?;
    let duration_s = row.duration_s("duration", MINUTES)?;
    let gpus = row.within("num_gpu", 0, u64::from(u32::MAX))? as u32;
    if gpus == 0 {
        return Ok((id, None));
    }
    let (gpus_per_pod, pods) = workers(gpus);
    let model = options.gpu_model.clone();
    let gpus_per_pod = MilliGpus::from_gpus(gpus_per_pod);
    Task::new(id.clone(), organization, model, class, submitted, Some(duration_s), gpus_per_pod, pods)
        .map(|task| (id, Some(task)))
        .map_err(RowFault::Task)
}

/// GPUs of each worker, and workers: the fewest that are alike and fit a machine each, so 12 GPUs are two workers of 6.
fn workers(gpus: u32) -> (u32, u32) {
    let divides = |each: &u32| gpus.is_multiple_of(*each);
    let each = (1..=WORKER_GPUS_MOST).rev().find(divides).expect("1 divides every number");
    (each, gpus / each)
}
