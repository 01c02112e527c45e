//! Shared parts of job lists.

use super::table::{Extra, Table};
use super::{ReadError, ReadOptions, ReadReport, gfs_tasks, philly_tasks};
use crate::sweep;
use std::path::Path;
use vocab::{Task, UnixSeconds};

/// A column that the list of Philly has, and that of the GFS trace has not.
const OF_PHILLY: &str = "num_gpu";

/// Reads a job list of the GFS trace or of Philly, which its header tells; times count from `epoch`. A file with another header is
/// refused as a list of the GFS trace.
///
/// # Errors
/// As [`gfs_tasks`] or [`philly_tasks`].
pub fn job_list(file: &Path, epoch: UnixSeconds, options: &ReadOptions) -> Result<(Vec<Task>, ReadReport), ReadError> {
    if names_gpu_model(file)? { gfs_tasks(file, epoch, options) } else { philly_tasks(file, epoch, options) }
}

/// Whether the jobs of a list name their GPU model: those of Philly do not.
///
/// # Errors
/// The file cannot be read.
pub fn names_gpu_model(file: &Path) -> Result<bool, ReadError> {
    let table = Table::open(file, &[], Extra::Ignored)?;
    Ok(!table.header().iter().any(|column| column == OF_PHILLY))
}

/// The jobs of a list, and their hourly HP demand.
#[derive(Debug)]
pub struct Jobs {
    /// Tasks of the list.
    pub tasks: Vec<Task>,
    /// Usage and faults.
    pub report: ReadReport,
}

impl Jobs {
    /// Adds the hourly HP demand of the tasks to the report on them (see [`sweep::hourly_hp_demand`]).
    ///
    /// # Errors
    /// A time or a sum leaves the range of hours or amounts.
    pub(super) fn with_demand(
        file: &Path,
        (tasks, report): (Vec<Task>, ReadReport),
        options: &ReadOptions,
    ) -> Result<Self, ReadError> {
        let rows = sweep::hourly_hp_demand(&options.cluster, &tasks)
            .map_err(|fault| ReadError::Sweep { file: file.to_owned(), fault })?;
        Ok(Self { tasks, report: ReadReport { rows, ..report } })
    }
}
