//! The file of an SQLite database: a check that it is still the one that was opened.

use crate::StoreError;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// First bytes of every SQLite database.
const HEADER: &[u8; 16] = b"SQLite format 3\0";

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
        let mut header = [0; HEADER.len()];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut header));
        read.map_err(|fault| self.lost(&format!("it cannot be read: {fault}")))?;
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
