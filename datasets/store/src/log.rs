//! The write-ahead log of an open SQLite database: a check that it lies where SQLite would look for it after a crash.

use crate::StoreError;
use crate::file::{beside, is_missing, unreadable};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The open files of this process, one entry each.
const OPEN_FILES: &str = "/dev/fd";

/// Device and inode.
type Identity = (u64, u64);

/// The log of a database file.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    /// The log as it was found last; `None` where the database has none: a file system that shares no memory allows none.
    known: Mutex<Option<Identity>>,
    /// Whether what it held was saved; set once it is lost.
    lost: OnceLock<bool>,
}

impl Log {
    /// The log of a database that was just opened.
    pub fn of(database: &Path) -> Self {
        let path = beside(database, "-wal");
        let known = Mutex::new(path.metadata().ok().as_ref().map(identity));
        Self { path, known, lost: OnceLock::new() }
    }

    /// Checks that no check has found it lost.
    pub fn check_noted(&self) -> Result<(), StoreError> {
        self.lost.get().map_or(Ok(()), |is_saved| Err(self.fault(*is_saved)))
    }

    /// Checks that it lies there, and is not another one while this process writes to the one of before. Within a transaction:
    /// the last connection that closes takes the log away, and the next one makes a new one.
    pub fn check(&self) -> Result<(), StoreError> {
        let found = match self.path.metadata() {
            Ok(found) => Some(identity(&found)),
            Err(fault) if is_missing(&fault) => None,
            Err(fault) => return Err(unreadable(&self.path, &fault)),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match (*known, found) {
            (Some(_), None) => return Err(self.fault(false)),
            (Some(before), Some(now)) if before != now && is_open(before) => return Err(self.fault(false)),
            (_, Some(now)) => *known = Some(now),
            (None, None) => {}
        }
        Ok(())
    }

    /// Whether nobody has written to a log in its place: then what this process has open is the whole log.
    pub fn has_no_successor(&self) -> bool {
        self.path.metadata().map_or(true, |found| found.len() == 0)
    }

    /// Notes that it is lost.
    pub fn lose(&self, is_saved: bool) -> StoreError {
        self.fault(*self.lost.get_or_init(|| is_saved))
    }

    fn fault(&self, is_saved: bool) -> StoreError {
        let (reason, remedy) = if is_saved {
            ("it was deleted or moved, and what it held is in the database now", "leave the rest as it is")
        } else {
            ("it was deleted or moved", "restore the database from a backup if what was written lately is missing")
        };
        StoreError::Lost { path: self.path.display().to_string(), reason: reason.to_owned(), remedy }
    }
}

fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

/// Whether this process has the file open. Its inode goes to no other file until then.
fn is_open(file: Identity) -> bool {
    let Ok(open) = fs::read_dir(OPEN_FILES) else { return false };
    open.flatten().any(|entry| fs::metadata(entry.path()).is_ok_and(|found| identity(&found) == file))
}
