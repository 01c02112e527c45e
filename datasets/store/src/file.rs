//! The file of an SQLite database: a check that it is still the one that was opened.

use crate::StoreError;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// First bytes of every SQLite database.
const HEADER: &[u8; 16] = b"SQLite format 3\0";

/// Files whose first bytes were read, by device and inode. They stay open until the process ends: to close any descriptor of a
/// file gives up all locks that the process holds on it (fcntl), those of SQLite, too. Without them another program that
/// closes the database takes its write-ahead log away, with what was acknowledged since.
static OPEN: Mutex<Vec<((u64, u64), File)>> = Mutex::new(Vec::new());

/// A database file as it was opened.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl DatabaseFile {
    /// The file that was just opened.
    pub fn opened(path: &str) -> Result<Self, StoreError> {
        let path = PathBuf::from(path);
        match path.metadata() {
            Ok(known) => Ok(Self { path, device: known.dev(), inode: known.ino() }),
            Err(fault) => Err(StoreError::Lost { path: path.display().to_string(), reason: fault.to_string() }),
        }
    }

    /// Checks that the path still leads to it, and that it is not empty: one call to the file system.
    pub fn check(&self) -> Result<(), StoreError> {
        let known = self.path.metadata().map_err(|_| self.lost("it was deleted or moved"))?;
        self.compare(&known)
    }

    /// As [`check`](Self::check), and checks its first bytes.
    pub fn check_header(&self) -> Result<(), StoreError> {
        self.check()?;
        let header = first_bytes(&self.path).map_err(|fault| self.lost(&format!("it cannot be read: {fault}")))?;
        if header == *HEADER { Ok(()) } else { Err(self.lost("its header is not that of an SQLite database")) }
    }

    fn compare(&self, known: &Metadata) -> Result<(), StoreError> {
        if (known.dev(), known.ino()) != (self.device, self.inode) {
            return Err(self.lost("another file took its place"));
        }
        if known.len() == 0 {
            return Err(self.lost("it was emptied"));
        }
        Ok(())
    }

    fn lost(&self, reason: &str) -> StoreError {
        StoreError::Lost { path: self.path.display().to_string(), reason: reason.to_owned() }
    }
}

/// The first bytes of a database file, read without giving up the locks of SQLite.
fn first_bytes(path: &Path) -> io::Result<[u8; HEADER.len()]> {
    let place = |known: Metadata| (known.dev(), known.ino());
    let wanted = place(path.metadata()?);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.iter().all(|(known, _)| *known != wanted) {
        let file = File::open(path)?;
        // Where another file has taken the place just now it is kept, too, and the next check finds it.
        open.push((place(file.metadata()?), file));
    }
    let (_, file) = open.iter().find(|(known, _)| *known == wanted).ok_or(io::ErrorKind::NotFound)?;
    let mut header = [0; HEADER.len()];
    file.read_exact_at(&mut header, 0)?;
    Ok(header)
}
