//! Opens databases by their URL.

use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::sqlite::owner::{Owner, owner};
use crate::{Inspected, ServerObjects, Store, StoreError};
use sqlx::postgres::PgConnectOptions;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Time limit of a statement that reads or writes much: an import, a load of usage, retention, a migration.
pub const LONG_STATEMENT: Duration = Duration::from_mins(10);

/// Opens `sqlite://PATH` (creates the file if it is missing) or `postgres://…`, and migrates its schema. Any number of
/// programs may do so at once.
///
/// # Errors
/// The URL is invalid, the database does not answer within 5 s or refuses access, its disk is full, or its schema is newer
/// than this program or was edited; [`StoreError::OtherDatabase`], [`StoreError::OtherTables`],
/// [`StoreError::Leftover`], [`StoreError::OtherLog`].
pub async fn connect(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    connect_within(url, LONG_STATEMENT).await
}

/// As [`connect`], with a time limit for each ordinary statement. On Postgres the server cancels a longer statement. On SQLite
/// a statement is work of this process: it waits at most that long, and at most 5 s, for another program that writes.
/// Migrations, retention, appends and loads of usage have [`LONG_STATEMENT`].
///
/// # Errors
/// As [`connect`].
pub async fn connect_within(url: &str, statement_limit: Duration) -> Result<Arc<dyn Store>, StoreError> {
    match place(url)? {
        Place::Sqlite(path) => Ok(Arc::new(SqliteStore::connect(path, statement_limit).await?)),
        Place::Postgres(options) => Ok(Arc::new(PostgresStore::connect(*options, statement_limit).await?)),
    }
}

/// As [`connect`], for those who need what others wrote: an SQLite file that is missing is not created, and a database without
/// tables of Headroom stays as it is.
///
/// # Errors
/// As [`connect`]; [`StoreError::NoFile`], [`StoreError::NoDatabase`].
pub async fn connect_existing(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    check_existing(url).await?;
    connect(url).await
}

/// Checks that a database is one of Headroom, without writing to it.
///
/// # Errors
/// [`StoreError::NoFile`], [`StoreError::NoDatabase`], [`StoreError::OtherDatabase`], [`StoreError::Leftover`],
/// [`StoreError::OtherLog`]; the URL is invalid, or the database cannot be read.
pub async fn check_existing(url: &str) -> Result<(), StoreError> {
    check_leftovers(url).await?;
    let none = |place: String, reason| Err(StoreError::NoDatabase { place, reason });
    match place(url)? {
        Place::Sqlite(path) => match owner(path).await? {
            Owner::Headroom => Ok(()),
            Owner::Nobody => none(path.to_owned(), "it is empty"),
        },
        Place::Postgres(options) => {
            let inspected = crate::postgres::inspect::inspect(*options).await?;
            inspected.store.close().await;
            if inspected.schema.found.is_some() { Ok(()) } else { none(shown(url), "it has no tables of Headroom") }
        }
    }
}

/// Opens a database read-only: it creates no SQLite file and does not migrate the schema.
///
/// # Errors
/// As [`connect`], except for the schema; [`StoreError::NoFile`].
pub async fn inspect(url: &str) -> Result<Inspected, StoreError> {
    check_leftovers(url).await?;
    match place(url)? {
        Place::Sqlite(path) => crate::sqlite::inspect::inspect(path).await,
        Place::Postgres(options) => crate::postgres::inspect::inspect(*options).await,
    }
}

/// Checks that no SQLite file would be made or opened beside the write-ahead log or journal of another one; opens nothing.
///
/// # Errors
/// [`StoreError::Leftover`], [`StoreError::OtherLog`], [`StoreError::BadUrl`].
pub async fn check_leftovers(url: &str) -> Result<(), StoreError> {
    match place(url)? {
        Place::Sqlite(path) => crate::sqlite::leftover::check(path).await,
        Place::Postgres(_) => Ok(()),
    }
}

/// Path of an SQLite database; `None` for a database on a server.
///
/// # Errors
/// [`StoreError::BadUrl`].
pub fn sqlite_file(url: &str) -> Result<Option<&Path>, StoreError> {
    place(url).map(|place| match place {
        Place::Sqlite(path) => Some(Path::new(path)),
        Place::Postgres(_) => None,
    })
}

/// Copies an SQLite database, as of one instant, into a new file, while others use it.
///
/// # Errors
/// The URL is not one of SQLite, or the file exists already or cannot be written; [`StoreError::Leftover`],
/// [`StoreError::OtherLog`].
pub async fn copy_sqlite(url: &str, file: &str) -> Result<(), StoreError> {
    let Place::Sqlite(path) = place(url)? else {
        return Err(bad_url(url, "it is not an SQLite file".to_owned()));
    };
    crate::sqlite::copy(path, file).await
}

/// Lists the tables, views, sequences, functions, schemas and extensions of a Postgres database; writes nothing.
///
/// # Errors
/// The URL is not one of Postgres, or the database does not answer or refuses access.
pub async fn server_objects(url: &str) -> Result<ServerObjects, StoreError> {
    crate::postgres::objects::objects(server(url)?).await
}

/// Removes the objects of a Postgres database that are not listed: all of them, or none.
///
/// # Errors
/// As [`server_objects`]; [`StoreError::Busy`] if another program holds a lock of one for more than 30 s.
pub async fn remove_new_objects(url: &str, before: &ServerObjects) -> Result<(), StoreError> {
    crate::postgres::objects::remove_new(server(url)?, before).await
}

fn server(url: &str) -> Result<PgConnectOptions, StoreError> {
    match place(url)? {
        Place::Postgres(options) => Ok(*options),
        Place::Sqlite(_) => Err(bad_url(url, "it is not a database of Postgres".to_owned())),
    }
}

/// Checks that [`connect`] understands a URL, and that the folder of an SQLite file exists; opens nothing.
///
/// # Errors
/// [`StoreError::BadUrl`].
pub fn check_url(url: &str) -> Result<(), StoreError> {
    let Place::Sqlite(path) = place(url)? else { return Ok(()) };
    match Path::new(path).parent() {
        // One that cannot be entered may be there: the opening names it.
        Some(folder) if !folder.as_os_str().is_empty() && is_no_folder(folder) => {
            Err(bad_url(url, format!("the folder {} is missing; create it", folder.display())))
        }
        _ => Ok(()),
    }
}

fn is_no_folder(path: &Path) -> bool {
    path.metadata().map_or_else(|fault| crate::file::is_missing(&fault), |known| !known.is_dir())
}

enum Place<'a> {
    Sqlite(&'a str),
    Postgres(Box<PgConnectOptions>),
}

fn place(url: &str) -> Result<Place<'_>, StoreError> {
    let refused = |reason: String| Err(bad_url(url, reason));
    match url.split_once("://") {
        Some(("sqlite", "" | ":memory:")) => {
            refused("in memory, each connection would have its own database; name a file".to_owned())
        }
        Some(("sqlite", path)) if path.contains('?') => {
            refused("options after a question mark are not supported".to_owned())
        }
        Some(("sqlite", path)) => Ok(Place::Sqlite(path)),
        Some(("postgres" | "postgresql", _)) => match PgConnectOptions::from_str(url) {
            Ok(options) => Ok(Place::Postgres(Box::new(options))),
            Err(fault) => refused(fault.to_string()),
        },
        Some((scheme, _)) => refused(format!("{scheme} is not a supported database")),
        None => refused("it has no scheme".to_owned()),
    }
}

fn bad_url(url: &str, reason: String) -> StoreError {
    StoreError::BadUrl { url: shown(url), reason }
}

/// A URL without its password: it goes into logs and onto screens.
fn shown(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (login, place))) => {
            let user = login.split_once(':').map_or(login, |(user, _)| user);
            format!("{scheme}://{user}@{}", without_parameters(place))
        }
        None if url.contains("://") => without_parameters(url).to_owned(),
        // A text that is no URL may have a password anywhere, as `host=db password=secret` has.
        None if url.contains('@') || url.contains("password") => "***".to_owned(),
        None => url.to_owned(),
    }
}

/// A password may stand among them, also under a name that is misspelt.
fn without_parameters(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_about_a_url_keeps_its_password_to_itself() {
        let fault = bad_url("mysql://anna:geheim:@x@db.example/headroom", "mysql is unknown".to_owned()).to_string();
        assert!(fault.contains("mysql://anna@db.example/headroom"), "{fault}");
        assert!(!fault.contains("geheim"), "{fault}");
    }
}
