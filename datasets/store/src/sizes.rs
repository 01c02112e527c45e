//! Size of the database, now and hour by hour, and checks of its integrity.

use crate::StoreError;
use crate::stored::{Stamp, whole};
use async_trait::async_trait;
use vocab::UnixSeconds;

/// Size of the database at an instant: tables and indexes, without the free pages of an SQLite file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The instant.
    pub at: UnixSeconds,
    /// The size in bytes.
    pub bytes: u64,
}

/// Result of an integrity check of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrity {
    /// Name of the check: `integrity_check`, `amcheck` or `data checksums`.
    pub check: String,
    /// The faults found, at most 20 lines; empty if there are none.
    pub faults: Vec<String>,
    /// The reason why the check did not run, if it did not.
    pub unchecked: Option<String>,
}

/// Size and integrity of the database.
#[async_trait]
pub trait SizeStore {
    /// Bytes that the database holds now.
    async fn size_bytes(&self) -> Result<u64, StoreError>;

    /// Stores the size at an instant, and deletes sizes from before `forget`.
    async fn note_size(&self, size: Size, forget: UnixSeconds) -> Result<(), StoreError>;

    /// Every stored size, oldest first.
    async fn sizes(&self) -> Result<Vec<Size>, StoreError>;

    /// Runs the integrity checks of the database: `PRAGMA integrity_check` on SQLite, `amcheck` and the state of data checksums
    /// on Postgres. They read the whole database.
    async fn integrity(&self) -> Result<Vec<Integrity>, StoreError>;
}

row! {
    pub(crate) struct SizeRow {
        pub at: Stamp,
        pub bytes: i64,
    }
}

impl TryFrom<SizeRow> for Size {
    type Error = StoreError;

    fn try_from(row: SizeRow) -> Result<Self, StoreError> {
        Ok(Self { at: row.at.0, bytes: whole("size of the database", row.bytes)? })
    }
}
