//! The file of an SQLite database: a check that it is still the one that was opened.

use crate::StoreError;
use crate::log::Log;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// First bytes of every SQLite database.
const HEADER: &[u8; 16] = b"SQLite format 3\0";

/// Links in a row that are followed; systems follow no more.
const LINKS: usize = 40;

/// Files whose first bytes were read, by device and inode. They stay open until the process ends: to close any descriptor of a
/// file gives up all locks that the process holds on it (fcntl), those of SQLite, too. Without them another program that
/// closes the database takes its write-ahead log away, with what was acknowledged since.
static OPEN: Mutex<Vec<((u64, u64), &'static File)>> = Mutex::new(Vec::new());

/// Bytes of a file that are copied at once.
const COPY_BYTES: usize = 64 * 1_024;

/// Remedy for a file that is lost.
const FROM_BACKUP: &str = "restore it from a backup";

/// A database file as it was opened.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// Its write-ahead log.
    log: Log,
}

impl DatabaseFile {
    /// The file that was just opened.
    pub fn opened(path: &str) -> Result<Self, StoreError> {
        let path = PathBuf::from(path);
        match path.metadata() {
            Ok(known) => {
                let log = Log::of(&path);
                log.note_owner(&known);
                Ok(Self { path, device: known.dev(), inode: known.ino(), log })
            }
            Err(fault) if !is_missing(&fault) => Err(unreadable(&path, &fault)),
            Err(fault) => {
                let (path, reason) = (path.display().to_string(), fault.to_string());
                Err(StoreError::Lost { path, reason, remedy: FROM_BACKUP.to_owned() })
            }
        }
    }

    /// Checks that the path still leads to it, and that it is not empty: one call to the file system.
    pub fn check(&self) -> Result<(), StoreError> {
        self.log.check_noted()?;
        match self.path.metadata() {
            Ok(known) => self.compare(&known),
            Err(fault) if is_missing(&fault) => Err(self.lost("it was deleted or moved")),
            // It may be there still.
            Err(fault) => Err(unreadable(&self.path, &fault)),
        }
    }

    /// As [`check`](Self::check), and checks its first bytes.
    pub fn check_header(&self) -> Result<(), StoreError> {
        self.check()?;
        let header = first_bytes(&self.path).map_err(|fault| self.lost(&format!("it cannot be read: {fault}")))?;
        if header == *HEADER { Ok(()) } else { Err(self.lost("its header is not that of an SQLite database")) }
    }

    /// Notes it beside itself, with its log, where the note is missing. Another program that closes the file takes the note away.
    pub fn note(&self) {
        if let Some(known) = self.path.metadata().ok().filter(|known| self.compare(known).is_ok()) {
            self.log.note_owner(&known);
        }
    }

    /// Its write-ahead log.
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// Whether its path leads to another file.
    pub fn is_replaced(&self) -> bool {
        self.path.metadata().is_ok_and(|known| (known.dev(), known.ino()) != (self.device, self.inode))
    }

    /// Whether it lies where it was opened, and does not begin as a database any more.
    pub fn is_overwritten(&self) -> bool {
        let is_there = self.path.metadata().is_ok() && !self.is_replaced();
        is_there && self.path.to_str().is_some_and(|path| matches!(has_header(path), Ok(false)))
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
        let (path, reason) = (self.path.display().to_string(), reason.to_owned());
        StoreError::Lost { path, reason, remedy: FROM_BACKUP.to_owned() }
    }
}

/// The place of a file that SQLite keeps beside a database: beside the file that a link leads to.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let mut path = path.into_os_string();
    path.push(suffix);
    path.into()
}

/// Whether a file begins as every SQLite database does.
///
/// # Errors
/// [`StoreError::Denied`]: the file cannot be read.
pub(crate) fn has_header(path: &str) -> Result<bool, StoreError> {
    match first_bytes(Path::new(path)) {
        Ok(header) => Ok(header == *HEADER),
        Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(fault) => Err(unreadable(Path::new(path), &fault)),
    }
}

/// Whether a file is not there, and not merely out of reach.
pub(crate) fn is_missing(fault: &io::Error) -> bool {
    matches!(fault.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The fault of a file that is out of reach.
pub(crate) fn unreadable(path: &Path, fault: &io::Error) -> StoreError {
    let reason = format!("{} cannot be read: {fault}; may this user enter its folder and read it?", path.display());
    StoreError::Denied { reason }
}

/// Copies a database file without giving up the locks of SQLite.
pub(crate) fn copy(path: &Path, to: &Path) -> io::Result<()> {
    let (from, mut to) = (kept(path)?, File::create(to)?);
    let (mut part, mut offset) = (vec![0; COPY_BYTES], 0);
    loop {
        let read = from.read_at(&mut part, offset)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&part[..read])?;
        offset += read as u64;
    }
}

/// The first bytes of a database file, read without giving up the locks of SQLite.
fn first_bytes(path: &Path) -> io::Result<[u8; HEADER.len()]> {
    let mut header = [0; HEADER.len()];
    read_start(path, &mut header)?;
    Ok(header)
}

/// Reads the beginning of a file that SQLite locks, without giving up its locks.
pub(crate) fn read_start(path: &Path, bytes: &mut [u8]) -> io::Result<()> {
    kept(path)?.read_exact_at(bytes, 0)
}

/// A database file to read from, which stays open.
fn kept(path: &Path) -> io::Result<&'static File> {
    let place = |known: Metadata| (known.dev(), known.ino());
    let wanted = place(path.metadata()?);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.iter().all(|(known, _)| *known != wanted) {
        let file = File::open(path)?;
        // Where another file has taken the place just now it is kept, too, and the next check finds it.
        open.push((place(file.metadata()?), Box::leak(Box::new(file))));
    }
    let found = open.iter().find(|(known, _)| *known == wanted).map(|(_, file)| *file);
    found.ok_or_else(|| io::ErrorKind::NotFound.into())
}
