//! A database as it stands: nothing is made, nothing is brought up to date, nothing can be written.

use crate::{Backend, Store};
use sqlx::migrate::Migrator;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What was found.
pub struct Inspected {
    pub backend: Backend,
    /// As the server, or the library of SQLite, names itself.
    pub server_version: String,
    /// One round trip on an open connection.
    pub latency: Duration,
    /// What the clock of the database showed, in milliseconds since 1970, and when it was asked: the middle of the round trip.
    pub clock_unix_ms: i64,
    pub clock_at: Instant,
    pub schema: Schema,
    /// For reading alone: each write is refused. Before it is asked for anything the schema has to be that of this program.
    pub store: Arc<dyn Store>,
}

/// The schema that there is, and the one that this program works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The newest migration that was applied; `None` for an empty database.
    pub found: Option<i64>,
    pub expected: i64,
    /// The first migration that was applied with another text, or not to its end.
    pub broken: Option<i64>,
}

/// One line of the history of migrations: its number, the digest of its text, and whether it was applied to its end.
pub(crate) type Applied = (i64, Vec<u8>, bool);

impl Schema {
    pub(crate) fn of(migrator: &Migrator, applied: &[Applied]) -> Self {
        let same = |version: i64, checksum: &[u8]| {
            migrator.iter().find(|known| known.version == version).is_none_or(|known| known.checksum[..] == *checksum)
        };
        let broken = applied.iter().find(|(version, checksum, is_whole)| !is_whole || !same(*version, checksum));
        Self {
            found: applied.iter().map(|(version, ..)| *version).max(),
            expected: migrator.iter().map(|known| known.version).max().unwrap_or(0),
            broken: broken.map(|(version, ..)| *version),
        }
    }

    /// Whether the schema that there is is older or newer than this program.
    #[must_use]
    pub fn age(&self) -> Ordering {
        self.found.unwrap_or(0).cmp(&self.expected)
    }

    /// Whether this program reads it as it stands.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.age() == Ordering::Equal && self.broken.is_none()
    }
}

pub(crate) const APPLIED: &str = "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version";
