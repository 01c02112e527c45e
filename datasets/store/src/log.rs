//! The write-ahead log of an open SQLite database: a check that it lies where SQLite would look for it after a crash, whole.

use crate::StoreError;
use crate::file::{beside, is_missing, unreadable};
use crate::log_owner;
use crate::sqlite::wal_index::WalIndex;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

/// The open files of this process, one entry each.
const OPEN_FILES: &str = "/dev/fd";

/// Places that another file is moved to.
const PLACES: u32 = 1_000;

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
    /// How it was lost, once it is.
    lost: Mutex<Option<Loss>>,
    /// The line in the log of the program that the note of its owner cannot be written.
    says_unnoted: Once,
}

/// How a log was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It was taken away, and what it held is in the database.
    Saved,
    /// It was taken away.
    Away,
    /// Another file lies in its place, and what it held is not in the database.
    Replaced,
    /// As [`Replaced`](Self::Replaced), and what it held is in the database. With the place that the other file was moved to, unless
    /// that failed.
    ReplacedSaved(Option<PathBuf>),
    /// It is shorter than what was written to it, or overwritten.
    Cut,
}

impl Log {
    /// The log of a database that was just opened.
    pub fn of(database: &Path) -> Self {
        let path = beside(database, "-wal");
        let known = Mutex::new(path.metadata().ok().as_ref().map(identity));
        let (lost, says_unnoted) = (Mutex::new(None), Once::new());
        Self { database: database.to_owned(), path, index: WalIndex::of(database), known, lost, says_unnoted }
    }

    /// Notes the database that it belongs to, unless another log lies in its place. Where the note cannot be written, a start after file
    /// or log were replaced goes unchecked, and a line of the log of the program says so once.
    pub fn note_owner(&self, file: &Metadata) {
        let Some(log) = self.path.metadata().ok().filter(|found| self.is_known(found)) else { return };
        if let Err(fault) = log_owner::note(&self.database, file, &log) {
            let place = log_owner::place(&self.database);
            self.says_unnoted.call_once(|| {
                let place = place.display();
                tracing::warn!(%place, %fault, "the note beside the database cannot be written: move what lies there away");
            });
        }
    }

    /// Checks that no check has found it lost.
    pub fn check_noted(&self) -> Result<(), StoreError> {
        self.noted().map_or(Ok(()), |loss| Err(self.fault(loss)))
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
            (Some(before), Some(now)) if before != now && is_open(before) => return Err(self.fault(Loss::Replaced)),
            (_, Some(now)) => *known = Some(now),
            (None, None) => {}
        }
        Ok(())
    }

    /// Whether it is shorter than what was written to it, or has lost its beginning: what was read from it then would be zeros.
    pub fn is_cut(&self) -> bool {
        self.index.is_contradicted(|index| {
            let Some((head, bytes)) = self.head() else { return true };
            bytes >= index.log_bytes() && &head[16..24] == index.salts()
        })
    }

    /// Whether a check has found it cut.
    pub fn was_cut(&self) -> bool {
        self.noted() == Some(Loss::Cut)
    }

    /// Whether what this process has open is the whole log: nobody has written to one in its place.
    pub fn is_whole(&self) -> bool {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let open = known.and_then(opened_again);
        open.is_some_and(|open| !self.index.is_contradicted(|index| index.is_of(&open)))
    }

    /// Whether another file with content lies in its place while this process writes to the one of before.
    pub fn is_replaced(&self) -> bool {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.other().is_some() && known.is_some_and(is_open)
    }

    /// Moves another file with content out of its place. SQLite would write what that one holds to the database at the next start.
    /// Returns its new place; `None` if it stays.
    pub fn move_other_aside(&self) -> Option<PathBuf> {
        let other = self.other()?;
        let mut places = (1..=PLACES).map(|number| beside(&self.database, &format!("-wal-of-another-{number}")));
        let place = places.find(|place| place.symlink_metadata().is_err())?;
        fs::rename(&self.path, &place).ok()?;
        if place.metadata().is_ok_and(|moved| identity(&moved) != other) {
            // Another program was faster, and this is the log of a new start.
            let _ = fs::rename(&place, &self.path);
            return None;
        }
        Some(place)
    }

    /// Whether it lies where it was found last.
    pub fn is_in_place(&self) -> bool {
        self.path.metadata().is_ok_and(|found| self.is_known(&found))
    }

    /// Notes that it is lost.
    pub fn lose(&self, loss: Loss) -> StoreError {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(loss.clone());
        self.fault(loss)
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

    /// The file with content in its place, if it is another one.
    fn other(&self) -> Option<Identity> {
        let found = self.path.metadata().ok()?;
        (found.is_file() && found.len() > 0 && !self.is_known(&found)).then(|| identity(&found))
    }

    fn noted(&self) -> Option<Loss> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_known(&self, found: &Metadata) -> bool {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) == Some(identity(found))
    }

    fn fault(&self, loss: Loss) -> StoreError {
        let if_missing = "restore the database from a backup if what was written lately is missing";
        let (gone, other) = ("it was deleted or moved", "another file took its place");
        let saved = "and what it held is in the database now";
        let (reason, remedy) = match loss {
            Loss::Saved => (format!("{gone}, {saved}"), "leave the rest as it is".to_owned()),
            Loss::Away => (gone.to_owned(), if_missing.to_owned()),
            Loss::Replaced => (other.to_owned(), format!("move that file away, {if_missing}")),
            // The reason is for every caller, who learns no path.
            Loss::ReplacedSaved(Some(moved)) => {
                (format!("{other}, {saved}"), format!("leave the rest as it is (that file is {} now)", moved.display()))
            }
            Loss::ReplacedSaved(None) => (format!("{other}, {saved}"), "move that file away".to_owned()),
            Loss::Cut => {
                let lost = "what was written since the last checkpoint is lost in part or whole";
                (format!("it was cut off or overwritten, and {lost}"), format!("move it away, {if_missing}"))
            }
        };
        StoreError::Lost { path: self.path.display().to_string(), reason, remedy }
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

/// An open file of this process, opened once more to read, wherever it lies by now.
fn opened_again(file: Identity) -> Option<File> {
    let mut open = fs::read_dir(OPEN_FILES).ok()?.flatten();
    let open = open.find(|entry| fs::metadata(entry.path()).is_ok_and(|found| identity(&found) == file))?;
    File::open(open.path()).ok()
}
