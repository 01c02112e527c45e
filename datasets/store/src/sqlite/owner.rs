//! The program whose tables an SQLite file has, found out without a change of the file and of what lies beside it.

use super::SqliteStore;
use crate::StoreError;
use crate::file::{beside, copy, has_header, is_missing, unreadable};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Files that SQLite keeps beside a database: the write-ahead log and the rollback journal.
const BESIDE: [&str; 2] = ["-wal", "-journal"];

/// First bytes of a log or journal that hold a random number, another one each time that it is written from its beginning.
const HEAD_BYTES: u64 = 32;

/// Reads in a row during which another program begins its log again. By then its tables are in the file, so that the next read
/// needs no log.
const READS: u32 = 5;

/// The program whose tables a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It has no tables.
    Nobody,
    Headroom,
}

/// Reads whose tables a file has. Another program may have it open, or may have left a log or journal behind: all of it stays as it
/// is.
///
/// # Errors
/// [`StoreError::NoFile`]; [`StoreError::OtherDatabase`] for the tables of another program and for what is no SQLite database;
/// [`StoreError::Busy`] if another program writes its log from the beginning again and again; the file cannot be read.
pub(crate) async fn owner(path: &str) -> Result<Owner, StoreError> {
    let known = match Path::new(path).metadata() {
        Ok(known) => known,
        Err(fault) if is_missing(&fault) => return Err(StoreError::NoFile { path: path.to_owned() }),
        Err(fault) => return Err(unreadable(Path::new(path), &fault)),
    };
    if !known.is_file() {
        return Err(other(path, "it is a folder or device"));
    }
    if known.len() == 0 {
        return Ok(Owner::Nobody);
    }
    if !has_header(path)? {
        return Err(other(path, "it is no SQLite database"));
    }
    for _ in 0..READS {
        let before = heads(path);
        let found = owner_of_file(path).await;
        let is_in_log = matches!(found, Ok(Owner::Nobody) | Err(StoreError::Corrupt { .. }));
        if !is_in_log {
            return found;
        }
        let found = if before.iter().any(Option::is_some) { owner_of_copy(path).await } else { found };
        // Otherwise the file and what lies beside it are of different times.
        if heads(path) == before {
            return found;
        }
    }
    Err(StoreError::Busy { reason: format!("another program writes to {path}") })
}

fn other(path: &str, reason: &'static str) -> StoreError {
    StoreError::OtherDatabase { path: path.to_owned(), reason }
}

/// The first bytes of each file beside a database; `None` where it is missing or empty.
fn heads(path: &str) -> [Option<Vec<u8>>; BESIDE.len()] {
    BESIDE.map(|suffix| {
        let mut head = Vec::new();
        let file = File::open(beside(Path::new(path), suffix)).ok()?;
        file.take(HEAD_BYTES).read_to_end(&mut head).ok().filter(|bytes| *bytes > 0)?;
        Some(head)
    })
}

/// As [`owner`], of the file alone. SQLite takes a file that is called immutable as it is: it opens nothing beside it and locks
/// nothing. What another program writes meanwhile may make it look damaged.
async fn owner_of_file(path: &str) -> Result<Owner, StoreError> {
    owner_by(SqliteStore::options(path).read_only(true).immutable(true), path).await
}

/// As [`owner`], of a copy with what lies beside the file: SQLite may change that.
async fn owner_of_copy(path: &str) -> Result<Owner, StoreError> {
    let denied = |fault: io::Error| StoreError::Denied { reason: format!("{path} cannot be copied: {fault}") };
    let folder = tempfile::tempdir().map_err(denied)?;
    let copied = folder.path().join("copy.db");
    // The file comes first: what reaches it afterwards is in the log, too, as long as nobody begins the log again.
    copy(Path::new(path), &copied).map_err(denied)?;
    for suffix in BESIDE {
        match fs::copy(beside(Path::new(path), suffix), beside(&copied, suffix)) {
            // Another program has taken it away meanwhile.
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
            done => drop(done.map_err(denied)?),
        }
    }
    owner_by(SqliteStore::options(&copied.display().to_string()), path).await
}

/// As [`owner`], read through a connection.
async fn owner_by(options: SqliteConnectOptions, path: &str) -> Result<Owner, StoreError> {
    let mut connection = options.connect().await?;
    // Other programs have a history of migrations of this name, too.
    let counts = "SELECT count(*), count(*) FILTER (WHERE name IN ('_sqlx_migrations', 'clusters')) FROM sqlite_master";
    let (all, own): (i64, i64) = sqlx::query_as(counts).fetch_one(&mut connection).await?;
    connection.close().await?;
    match (all, own) {
        (0, _) => Ok(Owner::Nobody),
        (_, 2) => Ok(Owner::Headroom),
        _ => Err(other(path, "it has the tables of another program")),
    }
}
