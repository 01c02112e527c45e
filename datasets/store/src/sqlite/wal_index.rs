//! The header of the index that SQLite keeps of a write-ahead log (`-shm`): it tells how long the log is.
//! Its layout is documented: <https://www.sqlite.org/walformat.html>.

use crate::file::{beside, read_start};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of the header. It lies there twice; while it is written the two differ.
const HEADER: usize = 48;
/// Bytes of the header of the log, and of that of each frame in front of its page.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// Looks in a row at a log to which another program writes meanwhile.
const LOOKS: u32 = 5;

/// The index of a log.
#[derive(Debug)]
pub(crate) struct WalIndex(PathBuf);

/// The header of an index at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexHeader([u8; HEADER]);

impl WalIndex {
    /// The index of the log of a database.
    pub fn of(database: &Path) -> Self {
        Self(beside(database, "-shm"))
    }

    /// Its header. `None` where there is none, or while another program writes it.
    pub fn header(&self) -> Option<IndexHeader> {
        let mut found = [0; 2 * HEADER];
        read_start(&self.0, &mut found).ok()?;
        let (first, second) = found.split_at(HEADER);
        let header = IndexHeader(first.try_into().ok()?);
        (first == second && header.is_set()).then_some(header)
    }

    /// Whether a log contradicts it: whether `fits`, a look at the log, fails for a header that is the same before and after. SQLite
    /// changes the index before it shortens the log, and after it has written to it, so that this is proof without a lock.
    pub fn is_contradicted(&self, fits: impl Fn(&IndexHeader) -> bool) -> bool {
        for _ in 0..LOOKS {
            let Some(before) = self.header() else { return false };
            if !before.has_frames() || fits(&before) {
                return false;
            }
            if self.header() == Some(before) {
                return true;
            }
        }
        false
    }
}

impl IndexHeader {
    fn is_set(&self) -> bool {
        self.0[12] == 1
    }

    /// Whether the log holds frames.
    pub fn has_frames(&self) -> bool {
        self.frames() > 0
    }

    /// Least size of the log, in bytes: the frames that were committed.
    pub fn log_bytes(&self) -> u64 {
        self.frame_at(self.frames())
    }

    /// Whether a log holds every frame, none of another log or time. Each checksum counts those before it, so that the last one
    /// stands for all.
    pub fn is_of(&self, log: &File) -> bool {
        let salts = |at: u64| {
            let mut found = [0; 8];
            log.read_exact_at(&mut found, at).is_ok() && found == self.salts()
        };
        let mut sum = [0; 8];
        log.metadata().is_ok_and(|known| known.len() >= self.log_bytes())
            && salts(16)
            && (0..self.frames()).rev().all(|frame| salts(self.frame_at(frame) + 8))
            && log.read_exact_at(&mut sum, self.frame_at(self.frames().saturating_sub(1)) + 16).is_ok()
            && words(sum, u32::from_be_bytes) == words(self.checksum(), u32::from_ne_bytes)
    }

    /// The numbers by which the header of the log, its bytes 16 to 23, belongs to this index.
    pub fn salts(&self) -> &[u8] {
        &self.0[32..40]
    }

    /// The checksum of the last frame.
    fn checksum(&self) -> [u8; 8] {
        std::array::from_fn(|index| self.0[24 + index])
    }

    /// Where a frame begins, counted from 0, in bytes.
    fn frame_at(&self, frame: u32) -> u64 {
        let page = match u64::from(u16::from_ne_bytes([self.0[14], self.0[15]])) {
            1 => 65_536,
            bytes => bytes,
        };
        LOG_HEADER + u64::from(frame) * (FRAME_HEADER + page)
    }

    fn frames(&self) -> u32 {
        u32::from_ne_bytes([self.0[16], self.0[17], self.0[18], self.0[19]])
    }
}

/// Two numbers of four bytes.
fn words(bytes: [u8; 8], of: impl Fn([u8; 4]) -> u32) -> [u32; 2] {
    let (both, _) = bytes.as_chunks::<4>();
    [of(both[0]), of(both[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(page: u16, frames: u32) -> IndexHeader {
        let mut bytes = [0; HEADER];
        bytes[12] = 1;
        bytes[14..16].copy_from_slice(&page.to_ne_bytes());
        bytes[16..20].copy_from_slice(&frames.to_ne_bytes());
        IndexHeader(bytes)
    }

    #[test]
    fn the_size_of_a_log_follows_from_its_frames_and_pages() {
        assert_eq!(header(4_096, 0).log_bytes(), 32);
        assert_eq!(header(4_096, 1_000).log_bytes(), 4_120_032);
        assert_eq!(header(1, 2).log_bytes(), 131_152, "a page of 64 KiB is written as 1");
    }

    #[test]
    fn a_header_that_is_being_written_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let index = WalIndex::of(&database);
        assert_eq!(index.header(), None, "no file");
        let write = |first: IndexHeader, second: IndexHeader| {
            std::fs::write(folder.path().join("a.db-shm"), [first.0, second.0].concat()).unwrap();
        };
        write(header(4_096, 7), header(4_096, 8));
        assert_eq!(index.header(), None);
        write(header(4_096, 8), header(4_096, 8));
        assert_eq!(index.header(), Some(header(4_096, 8)));
    }
}
