//! What can go wrong, and the one place that maps the errors of the databases.

use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;
use vocab::{HourStart, MilliGpus};

/// Why the store did not do what it was asked. Unless a variant says otherwise, nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{url:?} names no database: {reason}; write sqlite://PATH or postgres://USER@HOST/NAME")]
    BadUrl { url: String, reason: String },
    /// Refused, gone, or out of connections. A commit whose answer was lost may have happened: repeating an operation
    /// of this crate is safe, or answers [`StoreError::Conflict`].
    #[error("the database cannot be reached: {reason}; check that it runs, and try again")]
    Unavailable { reason: String },
    /// Another writer was in the way for too long.
    #[error("the database is busy: {reason}; try again")]
    Busy { reason: String },
    #[error("the database refuses access: {reason}; check the user, the password, the name and the permissions")]
    Denied { reason: String },
    /// No connection by TLS that could be trusted: trying again does not help.
    #[error(
        "the database server is not trusted, or speaks no TLS: {reason}; check sslmode, sslrootcert and the host in its URL"
    )]
    Tls { reason: String },
    #[error("the database takes no more data: {reason}; free space on its disk, or make it writable")]
    Full { reason: String },
    /// The SQLite file was deleted, emptied or replaced while it was open: what is written now would be nowhere.
    #[error(
        "the database file {path} is not the one that was opened: {reason}; stop every program that uses it, restore it from a \
         backup, and start them again"
    )]
    Lost { path: String, reason: String },
    #[error("the schema of the database is not the one of this program: {reason}")]
    Schema { reason: String },
    #[error("what is stored as {what} is damaged: {reason}; restore it from a backup")]
    Corrupt { what: String, reason: String },
    #[error("there is no {what} {id}")]
    NotFound { what: &'static str, id: String },
    #[error("{what} {id}: {reason}")]
    Conflict { what: &'static str, id: String, reason: String },
    /// Who writes has lost its lease: somebody else writes for the cluster since.
    #[error("another service writes for cluster {cluster} since: the lease of epoch {epoch} is lost; try again")]
    Fenced { cluster: String, epoch: u64 },
    #[error("the audit takes no entry: {reason}; nothing was written")]
    NotAudited { reason: String },
    #[error("{what} at {hour}: one append holds both {first} and {second} GPUs; keep one of them")]
    Contradiction { what: String, hour: HourStart, first: MilliGpus, second: MilliGpus },
    #[error("{what} {value} is out of the range that the database holds")]
    OutOfRange { what: &'static str, value: String },
    #[error("the database answered what this program does not expect: {0}; please report this")]
    Unexpected(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Busy { .. })
    }

    /// Whether what was to be written is at fault, and not the database: the same again is refused again.
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
            // How rustls wraps what it refuses, such as a certificate of another authority or name.
            E::Io(fault) if fault.kind() == std::io::ErrorKind::InvalidData => {
                Some(Self::Tls { reason: fault.to_string() })
            }
            E::Io(_) | E::Protocol(_) | E::PoolTimedOut | E::PoolClosed | E::WorkerCrashed | E::BeginFailed => {
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

/// Codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn from_sqlstate(code: &str, message: &str) -> Option<StoreError> {
    let reason = format!("{message} ({code})");
    match (code, code.get(..2)?) {
        // 53100 disk full; 25006 the server, or a replica, is read-only.
        ("53100" | "25006", _) => Some(StoreError::Full { reason }),
        // Serialization failure, deadlock, lock not available, statement cancelled.
        ("40001" | "40P01" | "55P03" | "57014", _) => Some(StoreError::Busy { reason }),
        // 23514: a check of the table; class 22: numbers, times and texts that the column does not hold.
        ("23514", _) | (_, "22") => Some(StoreError::OutOfRange { what: "a value", value: reason }),
        // No such database; missing privilege; class 28: wrong user or password.
        ("3D000" | "42501", _) | (_, "28") => Some(StoreError::Denied { reason }),
        // 25P03 idle in transaction; classes: connection, resources, shutdown, I/O.
        ("25P03", _) | (_, "08" | "53" | "57" | "58") => Some(StoreError::Unavailable { reason }),
        ("XX001" | "XX002", _) => Some(StoreError::Corrupt { what: "a table or index".to_owned(), reason }),
        _ => None,
    }
}

/// Codes: <https://www.sqlite.org/rescode.html>; the low byte of an extended code is the primary one.
fn from_sqlite_code(code: &str, message: &str) -> Option<StoreError> {
    let reason = format!("{message} ({code})");
    let code = code.parse::<u32>().ok()?;
    // 275: a check of the table.
    match if code == 275 { 20 } else { code & 0xff } {
        // Too big; of another type than the column.
        18 | 20 => Some(StoreError::OutOfRange { what: "a value", value: reason }),
        5 | 6 => Some(StoreError::Busy { reason }),
        8 | 13 => Some(StoreError::Full { reason }),
        10 => Some(StoreError::Unavailable { reason }),
        26 => Some(StoreError::Corrupt {
            what: "the database file".to_owned(),
            reason: format!("no SQLite database: {reason}"),
        }),
        14 => {
            let reason = format!("{reason}; does the folder of the file exist, and may this user write to it?");
            Some(StoreError::Denied { reason })
        }
        11 => Some(StoreError::Corrupt { what: "the database file".to_owned(), reason }),
        3 | 23 => Some(StoreError::Denied { reason }),
        _ => None,
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        let reason = match error {
            MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => return source.into(),
            MigrateError::VersionMissing(version) => {
                format!("it holds migration {version}, which a newer program has applied; update this program")
            }
            MigrateError::VersionMismatch(version) => {
                format!("migration {version} was applied with another text; use the program that applied it")
            }
            other => other.to_string(),
        };
        Self::Schema { reason }
    }
}

/// For a statement whose only foreign key is the one named: its violation says that the owner is missing.
pub(crate) fn unless_missing(what: &'static str, id: impl ToString) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |error| match error.as_database_error().map(DatabaseError::kind) {
        Some(ErrorKind::ForeignKeyViolation) => StoreError::not_found(what, &id),
        _ => error.into(),
    }
}
