//! The error type of this crate, and the one place that maps the errors of the databases.

mod codes;

use codes::{from_sqlite_code, from_sqlstate};
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;
use vocab::{HourDemand, HourStart};

/// A failed operation of the store. Unless a variant states otherwise, nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The URL does not name a database.
    #[error("invalid database URL {url:?}: {reason}; write sqlite://PATH or postgres://USER@HOST/NAME")]
    BadUrl {
        /// The URL, without its password.
        url: String,
        /// The cause.
        reason: String,
    },
    /// The server refuses connections, is gone, or has no connection left. A commit whose answer was lost may have
    /// happened: to repeat an operation of this crate is safe, or returns [`StoreError::Conflict`].
    #[error("the database cannot be reached: {reason}; check that it runs, and try again")]
    Unavailable {
        /// The cause.
        reason: String,
    },
    /// Another writer held a lock for too long, or a statement ran into its time limit.
    #[error("the database is busy: {reason}; try again")]
    Busy {
        /// The cause.
        reason: String,
    },
    /// Wrong user, password, database name or permissions.
    #[error("the database refuses access: {reason}")]
    Denied {
        /// The cause.
        reason: String,
    },
    /// No trusted TLS connection: trying again does not help.
    #[error(
        "the database server is not trusted, or speaks no TLS: {reason}; check sslmode, sslrootcert and the host in its URL"
    )]
    Tls {
        /// The cause.
        reason: String,
    },
    /// The disk is full, or the database is read-only.
    #[error("the database takes no more data: {reason}")]
    Full {
        /// The cause, and what to do.
        reason: String,
    },
    /// The SQLite file does not exist.
    #[error("there is no database file {path}: name the right one with --database; datasets ingest makes a new one")]
    NoFile {
        /// Path of the file.
        path: String,
    },
    /// The database exists and is empty.
    #[error(
        "{place} is no database of Headroom: {reason}; name the right one with --database; datasets ingest makes a new one"
    )]
    NoDatabase {
        /// Path of the SQLite file, or URL without its password.
        place: String,
        /// The fault of the database.
        reason: &'static str,
    },
    /// The file is the database of another program, or no SQLite database.
    #[error("{path} is no database of Headroom: {reason}, and was not changed; name another file with --database")]
    OtherDatabase {
        /// Path of the file.
        path: String,
        /// The fault of the file.
        reason: &'static str,
    },
    /// A write-ahead log or journal lies beside no SQLite file, beside an empty one, or beside another one than it was written for: it
    /// belongs to a file that was moved away.
    #[error(
        "the database file {path} {file}, and {beside} lies there with what was not yet written to it: put the file back beside \
         it, or, to do without that, move {beside} away first{or_else}; nothing was changed"
    )]
    Leftover {
        /// Path of the file.
        path: String,
        /// How the file is: missing, empty or another one.
        file: &'static str,
        /// Path of the log or journal.
        beside: String,
        /// Another remedy; empty where there is none.
        or_else: String,
    },
    /// The write-ahead log that lies beside an SQLite database lacks what its own one held.
    #[error(
        "{log} is not the write-ahead log with which the database was last open, or was cut off: put that one back, or, to do without \
         what it held, move {log} away; if you restored the database and this log together, move {index} away instead; nothing was \
         changed"
    )]
    OtherLog {
        /// Path of the log.
        log: String,
        /// Path of the index of the database's own log.
        index: String,
    },
    /// The SQLite file or its write-ahead log was deleted, emptied, cut off or replaced while it was open: a write now would be lost.
    #[error(
        "the database file {path} is not the one that was opened: {reason}; stop every program that uses it, {remedy}, \
         and start them again"
    )]
    Lost {
        /// Path of the file.
        path: String,
        /// The cause.
        reason: String,
        /// The act between the stop and the new start.
        remedy: String,
    },
    /// The schema of a Postgres database holds the tables of another program.
    #[error(
        "database {database} is no database of Headroom: it has the tables of another program, and was not changed (in its schema \
         {schema}); name another database with --database"
    )]
    OtherTables {
        /// Name of the database.
        database: String,
        /// The schema in which this program would make its tables.
        schema: String,
    },
    /// The schema is newer than this program, or was edited.
    #[error("the database schema does not fit this program: {reason}")]
    Schema {
        /// The cause.
        reason: String,
    },
    /// A stored value that this program would not have written.
    #[error("damaged data: {what}: {reason}; restore the database from a backup")]
    Corrupt {
        /// The value, such as `column "at"` or `the checkpoint of run-12`.
        what: String,
        /// The cause.
        reason: String,
    },
    /// The named thing does not exist.
    #[error("there is no {what} {id}")]
    NotFound {
        /// Kind of the missing thing, such as `cluster`.
        what: &'static str,
        /// Its name or number.
        id: String,
    },
    /// Another write came first, or the state does not allow the operation.
    #[error("{what} {id}: {reason}")]
    Conflict {
        /// Kind of the thing, such as `token`.
        what: &'static str,
        /// Its name or number.
        id: String,
        /// The cause.
        reason: String,
    },
    /// The writer has lost its lease: another service writes for the cluster.
    #[error("another service writes for cluster {cluster}: the lease of epoch {epoch} is lost; try again")]
    Fenced {
        /// The cluster.
        cluster: String,
        /// The fencing token of the lost lease.
        epoch: u64,
    },
    /// The audit log refuses the entry of a write, so the write was not done.
    #[error("the audit log refuses the entry: {reason}; nothing was written")]
    NotAudited {
        /// The cause.
        reason: String,
    },
    /// One append holds two values for the same series, or pool, and hour.
    #[error("{what} at {hour}: one append holds both {first} and {second}; keep one of them")]
    Contradiction {
        /// The series or pool.
        what: String,
        /// The hour.
        hour: HourStart,
        /// The value of the first row.
        first: HourDemand,
        /// The value of a later row.
        second: HourDemand,
    },
    /// The rows of an append cannot be read.
    #[error("the rows to append cannot be read: {reason}")]
    NoBatch {
        /// The cause.
        reason: String,
    },
    /// A value that the database cannot hold.
    #[error("{what} {value} is out of the range of the database")]
    OutOfRange {
        /// The quantity, such as `CPUs of a pod`.
        what: &'static str,
        /// The value.
        value: String,
    },
    /// An error of the database that this crate does not know.
    #[error("unexpected answer of the database: {0}; please report this")]
    Unexpected(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether the same call may succeed later although nothing was changed.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Busy { .. })
    }

    /// Whether the server is there, and the database is not: it may be restored at this moment.
    #[must_use]
    pub fn is_missing_database(&self) -> bool {
        matches!(self, Self::Denied { reason } if reason.contains("(3D000)"))
    }

    /// Whether the place holds no database of Headroom: there is nothing to read.
    #[must_use]
    pub const fn is_no_database(&self) -> bool {
        self.may_be_made()
            || matches!(self, Self::OtherDatabase { .. } | Self::OtherTables { .. })
            || self.is_leftover()
    }

    /// The same fault for one more caller; as unavailable, where its kind cannot be stated twice.
    #[must_use]
    pub fn again(&self) -> Self {
        let of = String::clone;
        match self {
            Self::Full { reason } => Self::Full { reason: of(reason) },
            Self::Busy { reason } => Self::Busy { reason: of(reason) },
            Self::Denied { reason } => Self::Denied { reason: of(reason) },
            Self::Schema { reason } => Self::Schema { reason: of(reason) },
            Self::Unavailable { reason } => Self::Unavailable { reason: of(reason) },
            other => Self::Unavailable { reason: other.to_string() },
        }
    }

    /// Whether the place or its content is at fault, for a person to correct: to try again does not help.
    #[must_use]
    pub const fn is_bad_data(&self) -> bool {
        self.is_no_database() || matches!(self, Self::Corrupt { .. })
    }

    /// Whether what lies beside an SQLite database, or beside its place, belongs to another file.
    #[must_use]
    pub const fn is_leftover(&self) -> bool {
        matches!(self, Self::Leftover { .. } | Self::OtherLog { .. })
    }

    /// Whether a program that writes may make the database: its place is missing or empty.
    #[must_use]
    pub const fn may_be_made(&self) -> bool {
        matches!(self, Self::NoFile { .. } | Self::NoDatabase { .. })
    }

    /// Whether the content of the write is at fault, and not the database: the same write fails again.
    #[must_use]
    pub const fn is_of_content(&self) -> bool {
        matches!(self, Self::OutOfRange { .. } | Self::Contradiction { .. })
    }

    pub(crate) fn corrupt(what: impl Into<String>, reason: &impl ToString) -> Self {
        Self::Corrupt { what: what.into(), reason: reason.to_string() }
    }

    pub(crate) fn not_found(what: &'static str, id: &impl ToString) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    pub(crate) fn conflict(what: &'static str, id: &impl ToString, reason: impl Into<String>) -> Self {
        Self::Conflict { what, id: id.to_string(), reason: reason.into() }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        let reason = error.to_string();
        match &error {
            E::Database(fault) => match fault.try_downcast_ref::<PgDatabaseError>() {
                Some(postgres) => from_sqlstate(postgres.code(), postgres.message()),
                None => fault.code().and_then(|code| from_sqlite_code(&code, fault.message())),
            },
            // rustls wraps refusals so, such as a certificate of another authority or name.
            E::Io(fault) if fault.kind() == std::io::ErrorKind::InvalidData => {
                Some(Self::Tls { reason: fault.to_string() })
            }
            // Refusals for want of connections, and of a server that starts, are tried again until the time limit.
            E::PoolTimedOut => Some(Self::Unavailable {
                reason: "no connection within the time limit: all are taken (max_connections), or the server is starting or too busy"
                    .to_owned(),
            }),
            E::Io(_) | E::Protocol(_) | E::PoolClosed | E::WorkerCrashed | E::BeginFailed => {
                Some(Self::Unavailable { reason })
            }
            E::Tls(fault) => Some(Self::Tls { reason: fault.to_string() }),
            E::ColumnDecode { index, source } => Some(Self::corrupt(format!("column {index}"), source)),
            E::Decode(source) => Some(Self::corrupt("a value", source)),
            E::Encode(source) => Some(Self::OutOfRange { what: "a value", value: source.to_string() }),
            _ => None,
        }
        .unwrap_or(Self::Unexpected(error))
    }
}

/// Whether a connection refuses a write since it is read-only.
pub(crate) fn is_read_only(error: &sqlx::Error) -> bool {
    let Some(code) = error.as_database_error().and_then(DatabaseError::code) else { return false };
    // Codes of Postgres have five characters, those of SQLite fewer.
    code == "25006" || (code.len() < 5 && code.parse::<u32>().is_ok_and(|code| code & 0xff == 8))
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        use MigrateError as E;
        let reason = match error {
            E::Execute(source) | E::ExecuteMigration(source, _) => return crate::migrations::fault(source),
            E::VersionMissing(version) => {
                format!("a newer program has applied migration {version}; update this program")
            }
            E::VersionMismatch(version) => {
                format!("migration {version} was applied with another text; use the program that applied it")
            }
            other => other.to_string(),
        };
        Self::Schema { reason }
    }
}

/// Maps the error of a statement that has one foreign key: its violation means that the owner is missing.
pub(crate) fn unless_missing(what: &'static str, id: impl ToString) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |error| match error.as_database_error().map(DatabaseError::kind) {
        Some(ErrorKind::ForeignKeyViolation) => StoreError::not_found(what, &id),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests;
