//! Logs and journals that SQLite keeps beside a database, left behind without it.

use super::{BUSY_PAUSE, BUSY_WITHIN};
use crate::StoreError;
use crate::file::beside;
use crate::log_owner::{self, Checked};
use std::path::Path;
use std::time::Instant;

/// Refuses a place where a write-ahead log or a journal with content lies beside no file, or beside an empty one: the file that
/// it belongs to was moved away, and SQLite would delete what lies there as soon as a new one is made. Refuses a log that was
/// written beside another file, too, and one that lacks what the own log of the database held: SQLite would write it to this one. Waits,
/// at most 5 s, for another program that makes the database at this moment.
///
/// # Errors
/// [`StoreError::Leftover`], [`StoreError::OtherLog`].
pub(crate) async fn check(path: &str) -> Result<(), StoreError> {
    let deadline = Instant::now() + BUSY_WITHIN;
    loop {
        // Before the file: one that is being made has content by the time at which its log has.
        let leftovers = ["-wal", "-journal"].map(|suffix| (suffix, beside(Path::new(path), suffix)));
        let leftover = leftovers.into_iter().find(|(_, place)| size(place) > Some(0));
        let (Some((suffix, place)), file) = (leftover, size(Path::new(path))) else { return Ok(()) };
        let fault = |file, or_else| {
            let (path, beside) = (path.to_owned(), place.display().to_string());
            StoreError::Leftover { path, file, beside, or_else }
        };
        if file > Some(0) {
            return match log_owner::check(Path::new(path)) {
                _ if suffix != "-wal" => Ok(()),
                Checked::OtherFile => Err(fault("is another one than before", of_one_moment(Path::new(path)))),
                Checked::OtherLog => Err(other_log(Path::new(path))),
                Checked::Fits => Ok(()),
            };
        }
        let is_being_made = suffix == "-journal" && file.is_some();
        if !is_being_made || Instant::now() >= deadline {
            return Err(fault(if file.is_some() { "is empty" } else { "is missing" }, String::new()));
        }
        tokio::time::sleep(BUSY_PAUSE).await;
    }
}

/// The way on for an operator who knows what no program can: an older file with this log would be destroyed.
fn of_one_moment(database: &Path) -> String {
    let note = log_owner::place(database);
    format!(
        "; only if the file and its log are copies of one moment, move {} away instead, and lose nothing",
        note.display()
    )
}

fn other_log(database: &Path) -> StoreError {
    let [log, index] = ["-wal", "-shm"].map(|suffix| beside(database, suffix).display().to_string());
    StoreError::OtherLog { log, index }
}

/// Bytes of a file; `None` where there is none.
fn size(path: &Path) -> Option<u64> {
    path.metadata().ok().map(|known| known.len())
}
