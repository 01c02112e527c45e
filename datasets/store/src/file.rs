//! The file of an SQLite database: whether it is still the one that was opened.

use crate::StoreError;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// What every SQLite database begins with.
const HEADER: &[u8; 16] = b"SQLite format 3\0";

/// The header of an SQLite database, <https://www.sqlite.org/fileformat2.html>.
const HEADER_BYTES: usize = 100;

/// The length of a database by its header; 0 where an old program has written it, and left that out.
fn stated_bytes(header: &[u8; HEADER_BYTES]) -> u64 {
    let number =
        |at: usize| u64::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    let page = u64::from(u16::from_be_bytes([header[16], header[17]]));
    let page = if page == 1 { 65_536 } else { page };
    let (changes, pages, valid_for) = (number(24), number(28), number(92));
    if changes == valid_for { page * pages } else { 0 }
}

/// A database file as it was opened.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// Whether it had fewer pages than its header says when it was looked at last.
    was_short: AtomicBool,
}

impl DatabaseFile {
    /// The file that was just opened.
    pub fn opened(path: &str) -> Result<Self, StoreError> {
        let path = PathBuf::from(path);
        match path.metadata() {
            Ok(known) => Ok(Self { path, device: known.dev(), inode: known.ino(), was_short: AtomicBool::new(false) }),
            Err(fault) => Err(StoreError::Lost { path: path.display().to_string(), reason: fault.to_string() }),
        }
    }

    /// Whether the path still leads to it, and it is not empty: one call to the file system.
    pub fn check(&self) -> Result<(), StoreError> {
        let known = self.path.metadata().map_err(|_| self.lost("it was deleted or moved"))?;
        self.compare(&known)
    }

    /// As [`check`](Self::check); also reads its header, and whether the file is as long as that says. A checkpoint writes the
    /// header before the pages behind it, so that a file is cut off only where it is too short twice in a row.
    pub fn check_header(&self) -> Result<(), StoreError> {
        self.check()?;
        let mut header = [0; HEADER_BYTES];
        let read = File::open(&self.path).and_then(|mut file| {
            file.read_exact(&mut header)?;
            Ok(file.metadata()?.len())
        });
        let bytes = read.map_err(|fault| self.lost(&format!("it cannot be read: {fault}")))?;
        if header[..HEADER.len()] != *HEADER {
            return Err(self.lost("its header is not that of an SQLite database"));
        }
        let is_short = bytes < stated_bytes(&header);
        if self.was_short.swap(is_short, Ordering::Relaxed) && is_short {
            return Err(self.lost("it was cut off: it is shorter than its header says"));
        }
        Ok(())
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
