//! Errors of reading records.

use crate::form::FormFault;
use crate::rules::AccountsFault;

/// Why records could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The file or the output cannot be read.
    #[error("{place}: {source}; name a file that can be read")]
    Io {
        /// File or command.
        place: String,
        /// Cause.
        source: std::io::Error,
    },
    /// No JSON, or cut off.
    #[error("{place}, line {line}: {detail}; expected the whole output of --json")]
    Json {
        /// File or command.
        place: String,
        /// Line of the text.
        line: usize,
        /// Cause.
        detail: String,
    },
    /// A compressed file.
    #[error("{place}: compressed by gzip: decompress the file first (gunzip)")]
    Compressed {
        /// File.
        place: String,
    },
    /// Not the document of this command.
    #[error("{place}: no list of {list}: expected the output of {command}")]
    Other {
        /// File or command.
        place: String,
        /// Key of the list.
        list: &'static str,
        /// Command that prints it.
        command: &'static str,
    },
    /// The version of the JSON.
    #[error("{place}: {fault}")]
    Form {
        /// File or command.
        place: String,
        /// Cause.
        fault: FormFault,
    },
    /// Slurm printed an error into the document.
    #[error("{place}: Slurm reports an error: {detail}; the records may not be all")]
    Reported {
        /// File or command.
        place: String,
        /// Its words.
        detail: String,
    },
    /// A record that cannot be read.
    #[error("{place}, {record}")]
    Record {
        /// File or command.
        place: String,
        /// Record with its fault.
        record: String,
    },
    /// A list of accounts that is none.
    #[error("{place}, {fault}")]
    Accounts {
        /// File.
        place: String,
        /// Cause.
        fault: AccountsFault,
    },
    /// The command cannot be run, or failed.
    #[error("{command}: {detail}")]
    Command {
        /// The command line.
        command: String,
        /// Cause, and what to do.
        detail: String,
        /// Whether trying again may help.
        may_pass: bool,
    },
}
