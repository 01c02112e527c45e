//! Lists of jobs in each of their forms: that of the GFS trace, that of Philly, and records of Slurm.

use crate::args::JobLists;
use crate::error::TrainingError;
use datasets::ReadError;
use datasets::read::{self, ReadOptions};
use slurm_records::demand::{Reading, tasks};
use slurm_records::{RecordsError, source};
use std::collections::BTreeSet;
use std::path::Path;
use vocab::{PoolId, Task};

/// The tasks of every list. Times of those that are tables count from the epoch.
///
/// # Errors
/// A list cannot be read, holds a bad row, or names no GPU model where there are several; a flag is missing or has no meaning.
pub(super) fn tasks_of(
    lists: &JobLists,
    options: &ReadOptions,
    pools: &BTreeSet<PoolId>,
) -> Result<Vec<Task>, TrainingError> {
    let mut are_records = Vec::with_capacity(lists.files.len());
    for file in &lists.files {
        are_records.push(source::is_document(file)?);
    }
    check(lists, &are_records)?;
    let mut all = Vec::new();
    for (file, is_records) in lists.files.iter().zip(are_records) {
        all.extend(if is_records {
            of_records(file, lists, options, pools)?
        } else {
            of_table(file, lists, options, pools)?
        });
    }
    Ok(all)
}

/// Whether each flag belongs to one of the files.
pub(super) fn check(lists: &JobLists, are_records: &[bool]) -> Result<(), TrainingError> {
    let file_of = |is_records| are_records.iter().position(|is| *is == is_records).map(|place| &lists.files[place]);
    match (file_of(false), lists.epoch) {
        (Some(file), None) => return Err(TrainingError::JobsWithoutEpoch { file: file.clone() }),
        (None, Some(_)) => {
            return Err(TrainingError::JobFlags { flags: "--epoch".to_owned(), of: "lists of gfs-jobs and philly" });
        }
        _ => {}
    }
    let flags = lists.slurm.given();
    if flags.is_empty() || file_of(true).is_some() {
        return Ok(());
    }
    Err(TrainingError::JobFlags { flags: flags.join(", "), of: "records of Slurm" })
}

fn of_table(
    file: &Path,
    lists: &JobLists,
    options: &ReadOptions,
    pools: &BTreeSet<PoolId>,
) -> Result<Vec<Task>, TrainingError> {
    let broken = |fault: ReadError| TrainingError::Jobs(Box::new(fault));
    let Some(epoch) = lists.epoch else { return Err(TrainingError::JobsWithoutEpoch { file: file.to_owned() }) };
    if pools.len() > 1 && !read::names_gpu_model(file).map_err(broken)? {
        return Err(TrainingError::JobsOfWhichModel { file: file.to_owned(), pools: pools.len() });
    }
    Ok(read::job_list(file, epoch, options).map_err(broken)?.0)
}

/// Starts of jobs, each a task. One that still ran when the records were printed ends after that, and its last second is the
/// one of which the records tell. Jobs that waited then are left out: how long they will run is not known.
fn of_records(
    file: &Path,
    lists: &JobLists,
    options: &ReadOptions,
    pools: &BTreeSet<PoolId>,
) -> Result<Vec<Task>, TrainingError> {
    let place = || file.display().to_string();
    let (mut history, _) = source::history_of_file(file)?;
    if let Some(bad) = history.skipped.first() {
        return Err(RecordsError::Record { place: place(), record: bad.to_string() }.into());
    }
    history.jobs.retain(|job| job.started.is_some());
    let after = history.latest.map(|latest| latest.plus_s(1));
    history.jobs.iter_mut().for_each(|job| job.ended = job.ended.or(after));
    let reading = Reading {
        rules: lists.slurm.rules()?,
        cluster: Some(options.cluster.clone()),
        untyped: (pools.len() == 1).then(|| options.gpu_model.clone()),
        ..Reading::default()
    };
    let read = tasks(&history, &reading);
    read.map_err(|fault| TrainingError::JobRecords { place: place(), fault: Box::new(fault) })
}
