//! How much the database holds, now and hour by hour, and whether it is whole.

use crate::StoreError;
use crate::stored::{Stamp, whole};
use async_trait::async_trait;
use vocab::UnixSeconds;

/// Bytes that the database held at an instant: tables and indexes; free pages of an SQLite file apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub at: UnixSeconds,
    pub bytes: u64,
}

/// What an integrity check of the database has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrity {
    /// Which check ran: `integrity_check`, `amcheck` or `data checksums`, say.
    pub check: String,
    /// Empty where all is well; at most 20 lines.
    pub faults: Vec<String>,
    /// What was not checked, and why.
    pub unchecked: Option<String>,
}

#[async_trait]
pub trait SizeStore {
    /// Bytes that the database holds now.
    async fn size_bytes(&self) -> Result<u64, StoreError>;

    /// Notes the size at an instant, and forgets the notes from before `forget`.
    async fn note_size(&self, size: Size, forget: UnixSeconds) -> Result<(), StoreError>;

    /// Every note, oldest first.
    async fn sizes(&self) -> Result<Vec<Size>, StoreError>;

    /// Reads the whole database with its own integrity check: `PRAGMA integrity_check` of SQLite, `amcheck` and the
    /// state of data checksums of Postgres. Takes as long as reading everything does.
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
