//! Faults of the file in which rows wait.

use std::path::PathBuf;
use vocab::AmountError;

/// Why rows could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The disk did not take or give them.
    #[error("a temporary file in {}: {source}; name a folder with room in TMPDIR", folder.display())]
    Io {
        /// Folder of the file.
        folder: PathBuf,
        /// The fault.
        source: std::io::Error,
    },
    /// The value that was read back is no amount.
    #[error("a temporary file holds what was not written to it: {0}")]
    Amount(#[from] AmountError),
}
