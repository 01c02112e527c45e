//! A database opened read-only, as it is: without creating, migrating or writing anything.

use crate::{Backend, Store};
use sqlx::migrate::Migrator;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Properties of a database that was opened read-only.
pub struct Inspected {
    /// The kind of database.
    pub backend: Backend,
    /// Version of the server, or of the SQLite library.
    pub server_version: String,
    /// One round trip on an open connection.
    pub latency: Duration,
    /// Reading of the database clock, in milliseconds since 1970.
    pub clock_unix_ms: i64,
    /// Instant of that reading: the middle of the round trip.
    pub clock_at: Instant,
    /// Whether it takes writes of other connections: no standby, and not set to be read-only.
    pub takes_writes: bool,
    /// The state of its schema.
    pub schema: Schema,
    /// For reads only: it refuses each write. Check that the schema [fits](Schema::fits) before you use it.
    pub store: Arc<dyn Store>,
}

/// The schema of a database, and the schema that this program needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The newest migration that was applied; `None` for an empty database.
    pub found: Option<i64>,
    /// The newest migration of this program.
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

    /// Compares the schema with this program: `Less` means that the schema is older.
    #[must_use]
    pub fn age(&self) -> Ordering {
        self.found.unwrap_or(0).cmp(&self.expected)
    }

    /// Whether this program can read the database without a migration.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.age() == Ordering::Equal && self.broken.is_none()
    }
}

pub(crate) const APPLIED: &str = "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version";
