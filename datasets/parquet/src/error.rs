//! Why files could not be read.

use datasets::RowFault;
use std::path::PathBuf;

/// Why files could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The location names no files that can be read.
    #[error("invalid location {location:?}: {why}; expected a file or folder, or s3://BUCKET/PREFIX")]
    Location {
        /// As it was written.
        location: String,
        /// The fault.
        why: String,
    },
    /// A setting of the storage is wrong.
    #[error("{location}: {why}")]
    Setting {
        /// As it was written.
        location: String,
        /// The variable, and what was expected.
        why: String,
    },
    /// There is no file.
    #[error("{location}: no file whose name ends in .parquet")]
    NoFiles {
        /// The folder or prefix.
        location: String,
    },
    /// The disk or the object storage does not give a file.
    #[error("{}: {why}", file.display())]
    Missing {
        /// Name of the file.
        file: PathBuf,
        /// The cause, and what to do.
        why: String,
    },
    /// The object storage does not answer, or refuses.
    #[error("{}: the storage does not answer: {why}; check address, network and credentials, and try again", file.display())]
    Unavailable {
        /// Name of the file or folder.
        file: PathBuf,
        /// The cause.
        why: String,
    },
    /// The bytes are no Parquet file, or a damaged one.
    #[error("{}: not a Parquet file, or damaged: {why}; write it again", file.display())]
    NotParquet {
        /// Name of the file.
        file: PathBuf,
        /// The cause.
        why: String,
    },
    /// A page cannot be decoded.
    #[error("{}, row group {row_group}, column {column}: {why}; write the file again", file.display())]
    Damaged {
        /// Name of the file.
        file: PathBuf,
        /// From 0.
        row_group: usize,
        /// The column.
        column: &'static str,
        /// The cause.
        why: String,
    },
    /// A column is not there.
    #[error("{}: column {column} is missing: expected {expected}, found {found}", file.display())]
    MissingColumn {
        /// Name of the file.
        file: PathBuf,
        /// The column.
        column: &'static str,
        /// All columns that a file has to have.
        expected: String,
        /// Those of the file.
        found: String,
    },
    /// Two columns have one name.
    #[error("{}: column {column} is there twice: leave one of them", file.display())]
    TwiceNamed {
        /// Name of the file.
        file: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A column holds something else.
    #[error("{}: column {column} holds {found}: expected {expected}", file.display())]
    OtherType {
        /// Name of the file.
        file: PathBuf,
        /// The column.
        column: &'static str,
        /// Types that it may have, and how to get there.
        expected: &'static str,
        /// Its type.
        found: String,
    },
    /// A row is bad, where bad rows may not be skipped.
    #[error("{}, row {row}: {fault}", file.display())]
    BadRow {
        /// Name of the file.
        file: PathBuf,
        /// From 1.
        row: u64,
        /// The fault; names row group and column.
        fault: RowFault,
    },
    /// The receiver of the rows failed.
    #[error("{0}")]
    Receiver(String),
}

impl SourceError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
