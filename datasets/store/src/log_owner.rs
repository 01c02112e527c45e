//! A note beside an SQLite database, `-opened`: its write-ahead log, the file that this log was opened with, and its index. SQLite
//! writes a log to any file that it finds beside it, since the log itself does not name its database.

use crate::file::beside;
use crate::sqlite::wal_index::{IndexHeader, WalIndex};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Names the start of this machine: until the next one, files have what was last written to them.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Longest note, in bytes.
const NOTE_BYTES: u64 = 4_096;

/// The files of a database, compared with the note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    /// Nothing speaks against it.
    Fits,
    /// The log is the one of the note, and the file is another one. A copy of the log is not the one of the note: a backup of both
    /// files belongs together.
    OtherFile,
    /// The file and the index are those of the note, since the machine was started, and the log lacks what the index says.
    OtherLog,
}

/// The place of the note.
pub(crate) fn place(database: &Path) -> PathBuf {
    beside(database, "-opened")
}

/// Notes the log and the file of a database that is open.
///
/// # Errors
/// The note cannot be written.
pub(crate) fn note(database: &Path, file: &Metadata, log: &Metadata) -> io::Result<()> {
    let of_index = boot().zip(index_line(database)).map(|(boot, index)| format!("{index}{boot}"));
    let note = format!("{}{}{}", line("file", file), line("log", log), of_index.unwrap_or_default());
    if read(database).as_ref() == Some(&note) {
        return Ok(());
    }
    // One of another user can be taken away, and not be written to.
    let _ = fs::remove_file(place(database));
    // A folder may be there nevertheless, or a file that another program has just written.
    match File::options().write(true).create_new(true).open(place(database)) {
        Ok(mut place) => place.write_all(note.as_bytes()),
        Err(_) if read(database).is_some() => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Compares what lies beside a database with the note.
pub(crate) fn check(database: &Path) -> Checked {
    let Some(note) = read(database).filter(|note| note.starts_with("file ")) else { return Checked::Fits };
    let path = beside(database, "-wal");
    let (Ok(file), Ok(log)) = (database.metadata(), path.metadata()) else { return Checked::Fits };
    let is_noted = |line: &str| note.split_inclusive('\n').any(|noted| noted == line);
    if !is_noted(&line("file", &file)) {
        return if is_noted(&line("log", &log)) { Checked::OtherFile } else { Checked::Fits };
    }
    let has_index = || [boot(), index_line(database)].iter().flatten().filter(|line| is_noted(line)).count() == 2;
    let fits = |index: &IndexHeader| {
        let Some(log) = File::open(&path).ok().filter(begins_as_log) else { return true };
        // The programs that had it open may have ended meanwhile, and others begun with an index and a log of their own.
        index.is_of(&log) || !has_index()
    };
    let is_other = log.is_file() && has_index() && WalIndex::of(database).is_contradicted(fits);
    if is_other { Checked::OtherLog } else { Checked::Fits }
}

/// Takes the note away where there is no log any more, or where it holds nothing.
pub(crate) fn forget(database: &Path) {
    if beside(database, "-wal").metadata().map_or(true, |log| log.len() == 0) {
        let _ = fs::remove_file(place(database));
    }
}

/// The note, if a file is there: to open a pipe would wait for its other end.
fn read(database: &Path) -> Option<String> {
    let place = place(database);
    place.metadata().ok().filter(Metadata::is_file)?;
    let mut note = String::new();
    File::open(place).ok()?.take(NOTE_BYTES).read_to_string(&mut note).ok()?;
    Some(note)
}

/// Whether SQLite would read a log: it takes one that does not begin so for empty.
fn begins_as_log(log: &File) -> bool {
    let mut found = [0; 4];
    log.read_exact_at(&mut found, 0).is_ok() && matches!(u32::from_be_bytes(found), 0x377f_0682 | 0x377f_0683)
}

fn boot() -> Option<String> {
    fs::read_to_string(BOOT).ok().map(|id| format!("boot {}\n", id.trim()))
}

fn index_line(database: &Path) -> Option<String> {
    beside(database, "-shm").metadata().ok().map(|index| line("index", &index))
}

/// Inode and time of creation in ns. Where the file system does not know the latter, inodes are used again: device and inode.
fn line(what: &str, found: &Metadata) -> String {
    match found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()) {
        Some(since) => format!("{what} {} {}\n", found.ino(), since.as_nanos()),
        None => format!("{what} {} of {}\n", found.ino(), found.dev()),
    }
}
