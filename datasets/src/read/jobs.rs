//! Shared parts of job lists.

use super::{ReadError, ReadOptions, ReadReport};
use crate::sweep;
use std::path::Path;
use vocab::Task;

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
