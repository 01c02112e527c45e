//! The power draw of GPUs and sockets, with a user's additions.

use datasets::read::{Powered, ReadError, power};
use placement::power::{PowerError, PowerTable};
use std::path::Path;

/// Why it is not known.
#[derive(Debug, thiserror::Error)]
pub enum PowerFault {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{fault}, and name the file with --power")]
    Unknown { fault: PowerError },
}

impl From<PowerError> for PowerFault {
    fn from(fault: PowerError) -> Self {
        Self::Unknown { fault }
    }
}

/// The built-in table, with the rows of a file.
///
/// # Errors
/// The file cannot be read, or a row is bad.
pub fn table(file: Option<&Path>) -> Result<PowerTable, PowerFault> {
    let mut table = PowerTable::default();
    for row in file.map(power).transpose()?.into_iter().flatten() {
        match row.of {
            Powered::Gpu(model) => table.set_gpu(&model, row.idle_w, row.full_w)?,
            Powered::Cpu { cores } => table.set_cpu(row.idle_w, row.full_w, cores)?,
        }
    }
    Ok(table)
}
