//! Lists of jobs in each of their forms: that of the GFS trace, that of Philly, and records of Slurm.

use crate::args::JobLists;
use crate::error::TrainingError;
use command_line::print_notice;
use datasets::ReadError;
use datasets::read::{self, ReadOptions};
use slurm_records::demand::{Reading, tasks};
use slurm_records::{RecordsError, source};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use vocab::{PoolId, Task, TaskId, UnixSeconds};

/// The tasks of all lists, each once. Times of those that are tables count from the epoch.
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
    let mut all = Lists::default();
    for (file, is_records) in lists.files.iter().zip(are_records) {
        all.add(if is_records {
            of_records(file, lists, options, pools)?
        } else {
            of_table(file, lists, options, pools)?
        });
    }
    if all.again > 0 {
        let again = vocab::count(all.again, "job").verb("stands", "stand");
        print_notice(format_args!("note: of --jobs {again} in several lists; each counts once"));
    }
    Ok(all.tasks)
}

/// The tasks of several lists, which may overlap, as those of one month and of the next do.
#[derive(Default)]
struct Lists {
    tasks: Vec<Task>,
    /// Places of the tasks of lists before, by their name and start. Within a list names may repeat.
    places: HashMap<(TaskId, UnixSeconds), usize>,
    /// Tasks that an earlier list has, too.
    again: u64,
}

impl Lists {
    /// Adds those of a further list. Of a task that two lists have, the longer one counts: it still ran when the other list was printed.
    fn add(&mut self, list: Vec<Task>) {
        let start = self.tasks.len();
        for task in list {
            match self.places.get(&(task.id.clone(), task.submitted)) {
                Some(place) => {
                    self.again += 1;
                    if task.duration_s > self.tasks[*place].duration_s {
                        self.tasks[*place] = task;
                    }
                }
                None => self.tasks.push(task),
            }
        }
        let added = self.tasks.iter().enumerate().skip(start);
        self.places.extend(added.map(|(place, task)| ((task.id.clone(), task.submitted), place)));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{GpuModel, MilliGpus, Organization, TaskClass};

    fn task(id: &str, submitted: i64, lasts_s: u64) -> Task {
        Task::new(
            TaskId::parse(id).unwrap(),
            Organization::parse("vision").unwrap(),
            GpuModel::parse("A100").unwrap(),
            TaskClass::Hp,
            UnixSeconds::new(submitted),
            Some(lasts_s),
            MilliGpus::from_gpus(8),
            1,
        )
        .unwrap()
    }

    #[test]
    fn a_job_in_two_lists_counts_once_for_as_long_as_it_is_known_to_have_run() {
        let mut lists = Lists::default();
        lists.add(vec![task("a", 100, 50), task("b", 200, 10), task("b", 200, 10)]);
        // "a" still ran when the first list was printed; "b" started again.
        lists.add(vec![task("a", 100, 900), task("b", 400, 10), task("c", 500, 5)]);
        lists.add(vec![task("a", 100, 50)]);
        let all: Vec<_> =
            lists.tasks.iter().map(|task| (task.id.as_str(), task.submitted.get(), task.duration_s)).collect();
        let b = ("b", 200, Some(10));
        assert_eq!(all, [("a", 100, Some(900)), b, b, ("b", 400, Some(10)), ("c", 500, Some(5))]);
        assert_eq!(lists.again, 2);
    }
}
