//! Shared parts of job lists.

use super::table::{Extra, MOST_DURATION_S, Row, Table};
use super::{ReadError, ReadOptions, ReadReport, RowFault, gfs_tasks, philly_tasks};
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

/// The times at which the jobs of a list are submitted: all of them lie within ten years of the first row. A later one is a slip of
/// a unit, and a replay would go through the years between hour by hour.
#[derive(Default)]
pub(super) struct Submissions {
    /// With the number of its row.
    first: Option<(UnixSeconds, u64)>,
}

impl Submissions {
    /// # Errors
    /// The job of the row is too far from the first one.
    pub fn take(&mut self, row: &Row<'_>, unit: &'static str, submitted: UnixSeconds) -> Result<(), RowFault> {
        let (first, first_row) = *self.first.get_or_insert((submitted, row.number()));
        if submitted.get().abs_diff(first.get()) <= MOST_DURATION_S.unsigned_abs() {
            return Ok(());
        }
        let (column, text) = ("submit_time", row.text("submit_time").to_owned());
        Err(RowFault::FarFrom { column, text, unit, first_row })
    }
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
