//! The write-ahead log of an open SQLite database: a check that it lies where SQLite would look for it after a crash, whole.

use crate::StoreError;
use crate::file::{beside, is_missing, unreadable};
use crate::log_owner;
use crate::sqlite::wal_index::WalIndex;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The open files of this process, one entry each.
const OPEN_FILES: &str = "/dev/fd";

/// Reads in a row of a log to which another program writes meanwhile.
const READS: u32 = 5;

/// Device and inode.
type Identity = (u64, u64);

/// The log of a database file.
#[derive(Debug)]
pub(crate) struct Log {
    database: PathBuf,
    path: PathBuf,
    index: WalIndex,
    /// The log as it was found last; `None` where the database has none: a file system that shares no memory allows none.
    known: Mutex<Option<Identity>>,
    /// Set once it is lost.
    lost: OnceLock<Loss>,
}

/// How a log was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It was taken away, and what it held is in the database.
    Saved,
    /// It was taken away.
    Away,
    /// It is shorter than what was written to it.
    Cut,
}

impl Log {
    /// The log of a database that was just opened.
    pub fn of(database: &Path) -> Self {
        let path = beside(database, "-wal");
        let known = Mutex::new(path.metadata().ok().as_ref().map(identity));
        log_owner::note(database);
        Self { database: database.to_owned(), path, index: WalIndex::of(database), known, lost: OnceLock::new() }
    }

    /// Checks that no check has found it lost.
    pub fn check_noted(&self) -> Result<(), StoreError> {
        self.lost.get().map_or(Ok(()), |loss| Err(self.fault(*loss)))
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
            (Some(_), None) => return Err(self.fault(Loss::Away)),
            (Some(before), Some(now)) if before != now && is_open(before) => return Err(self.fault(Loss::Away)),
            (_, Some(now)) => *known = Some(now),
            (None, None) => {}
        }
        Ok(())
    }

    /// Whether it is shorter than what was written to it, or has lost its beginning: what was read from it then would be zeros.
    pub fn is_cut(&self) -> bool {
        for _ in 0..READS {
            let before = self.index.header();
            let is_whole = before.is_none_or(|index| {
                let Some((head, bytes)) = self.head() else { return true };
                !index.has_frames() || (bytes >= index.log_bytes() && &head[16..24] == index.salts())
            });
            if is_whole {
                return false;
            }
            // SQLite changes the index before it empties the log, and after it has written to it.
            if self.index.header() == before {
                return true;
            }
        }
        false
    }

    /// Whether a check has found it cut.
    pub fn was_cut(&self) -> bool {
        self.lost.get() == Some(&Loss::Cut)
    }

    /// Whether it lies where it was found last.
    pub fn is_in_place(&self) -> bool {
        self.path.metadata().is_ok_and(|found| self.is_known(&found))
    }

    /// Whether nobody has written to a log in its place: then what this process has open is the whole log.
    pub fn has_no_successor(&self) -> bool {
        self.path.metadata().map_or(true, |found| found.len() == 0)
    }

    /// Notes that it is lost.
    pub fn lose(&self, loss: Loss) -> StoreError {
        self.fault(*self.lost.get_or_init(|| loss))
    }

    /// Takes away the note of the file that it belongs to, if nothing is in it any more.
    pub fn forget_owner(&self) {
        log_owner::forget(&self.database);
    }

    /// The first bytes of the log and its size in bytes; `None` if it lies elsewhere.
    fn head(&self) -> Option<([u8; 32], u64)> {
        let mut file = File::open(&self.path).ok()?;
        let found = file.metadata().ok().filter(|found| self.is_known(found))?;
        let mut head = [0; 32];
        // The part that is missing stays zero.
        let _ = file.read(&mut head);
        Some((head, found.len()))
    }

    fn is_known(&self, found: &Metadata) -> bool {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) == Some(identity(found))
    }

    fn fault(&self, loss: Loss) -> StoreError {
        let if_missing = "restore the database from a backup if what was written lately is missing";
        let (reason, remedy) = match loss {
            Loss::Saved => {
                ("it was deleted or moved, and what it held is in the database now", "leave the rest as it is")
            }
            Loss::Away => ("it was deleted or moved", if_missing),
            Loss::Cut => {
                ("it was cut off, and what was written since the last checkpoint is lost in part or whole", if_missing)
            }
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
