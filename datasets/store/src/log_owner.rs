//! A note beside an SQLite database, `-opened`: its write-ahead log and the file that this log was opened with. SQLite writes a
//! log to any file that it finds beside it, since the log itself does not name its database.

use crate::file::beside;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Notes the log and the file of a database that was just opened. Where the note cannot be written, a start after the file was
/// replaced goes unchecked.
pub(crate) fn note(database: &Path) {
    let (Ok(file), Ok(log)) = (database.metadata(), beside(database, "-wal").metadata()) else { return };
    let (place, note) = (beside(database, "-opened"), format!("{}{}", line("file", &file), line("log", &log)));
    if fs::read_to_string(&place).ok().as_ref() != Some(&note) {
        // One of another user can be taken away, and not be written to.
        let _ = fs::remove_file(&place);
        let _ = fs::write(place, note);
    }
}

/// Whether the log that lies beside a database is the one of the note, and the file is another one. A copy of the log is not the
/// one of the note: a backup of both files belongs together.
pub(crate) fn is_of_another_file(database: &Path) -> bool {
    let Ok(note) = fs::read_to_string(beside(database, "-opened")) else { return false };
    let (Ok(file), Ok(log)) = (database.metadata(), beside(database, "-wal").metadata()) else { return false };
    let is_noted = |line: &str| note.split_inclusive('\n').any(|noted| noted == line);
    note.starts_with("file ") && is_noted(&line("log", &log)) && !is_noted(&line("file", &file))
}

/// Takes the note away where there is no log any more, or where it holds nothing.
pub(crate) fn forget(database: &Path) {
    if beside(database, "-wal").metadata().map_or(true, |log| log.len() == 0) {
        let _ = fs::remove_file(beside(database, "-opened"));
    }
}

/// Inode and time of creation in ns. Where the file system does not know the latter, inodes are used again: device and inode.
fn line(what: &str, found: &Metadata) -> String {
    match found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()) {
        Some(since) => format!("{what} {} {}\n", found.ino(), since.as_nanos()),
        None => format!("{what} {} of {}\n", found.ino(), found.dev()),
    }
}
