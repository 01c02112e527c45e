use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::{Inspected, Store, StoreError};
use sqlx::postgres::PgConnectOptions;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// What a statement may take that reads or writes much: an import, a load of usage, retention, a migration.
pub const LONG_STATEMENT: Duration = Duration::from_mins(10);

/// Opens `sqlite://PATH` (made if missing) or `postgres://…`, and brings its schema up to date. Any number of programs
/// may do so at once.
///
/// # Errors
/// The URL is not understood, the database does not answer within 5 s or refuses, its disk is full, or its schema is
/// newer than this program or was edited.
pub async fn connect(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    connect_within(url, LONG_STATEMENT).await
}

/// As [`connect`], with a limit for each ordinary statement. On Postgres one that takes longer is cancelled by the server; on
/// SQLite, where a statement is work of this process, one waits at most so long for another program that writes, and at most 5 s.
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

/// Opens a database as it stands, to look at it: an SQLite file that is missing is not made, the schema stays as it is, and
/// nothing can be written.
///
/// # Errors
/// As [`connect`], the schema apart; [`StoreError::NotFound`] where there is no such SQLite file.
pub async fn inspect(url: &str) -> Result<Inspected, StoreError> {
    match place(url)? {
        Place::Sqlite(path) => crate::sqlite::inspect::inspect(path).await,
        Place::Postgres(options) => crate::postgres::inspect::inspect(*options).await,
    }
}

/// Where the file of an SQLite database lies; `None` for one on a server.
///
/// # Errors
/// [`StoreError::BadUrl`].
pub fn sqlite_file(url: &str) -> Result<Option<&Path>, StoreError> {
    place(url).map(|place| match place {
        Place::Sqlite(path) => Some(Path::new(path)),
        Place::Postgres(_) => None,
    })
}

/// Writes an SQLite database of one instant into a new file, while others use it.
///
/// # Errors
/// The URL is none of SQLite, the file is there already, or cannot be written.
pub async fn copy_sqlite(url: &str, file: &str) -> Result<(), StoreError> {
    let Place::Sqlite(path) = place(url)? else {
        return Err(bad_url(url, "it is no file".to_owned()));
    };
    crate::sqlite::copy(path, file).await
}

/// Whether [`connect`] would understand a URL, and finds the folder of an SQLite file; nothing is opened.
///
/// # Errors
/// [`StoreError::BadUrl`].
pub fn check_url(url: &str) -> Result<(), StoreError> {
    let Place::Sqlite(path) = place(url)? else { return Ok(()) };
    match Path::new(path).parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(bad_url(url, format!("the folder {} is missing: make it", folder.display())))
        }
        _ => Ok(()),
    }
}

enum Place<'a> {
    Sqlite(&'a str),
    Postgres(Box<PgConnectOptions>),
}

fn place(url: &str) -> Result<Place<'_>, StoreError> {
    let refused = |reason: String| Err(bad_url(url, reason));
    match url.split_once("://") {
        Some(("sqlite", "" | ":memory:")) => {
            refused("each connection would have a database of its own; name a file".to_owned())
        }
        Some(("sqlite", path)) if path.contains('?') => {
            refused("options after a question mark are not supported".to_owned())
        }
        Some(("sqlite", path)) => Ok(Place::Sqlite(path)),
        Some(("postgres" | "postgresql", _)) => match PgConnectOptions::from_str(url) {
            Ok(options) => Ok(Place::Postgres(Box::new(options))),
            Err(fault) => refused(fault.to_string()),
        },
        Some((scheme, _)) => refused(format!("{scheme} is no database that this program knows")),
        None => refused("it has no scheme".to_owned()),
    }
}

/// The URL goes into logs and onto screens: without its password.
fn bad_url(url: &str, reason: String) -> StoreError {
    let shown = match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (login, place))) => {
            let user = login.split_once(':').map_or(login, |(user, _)| user);
            format!("{scheme}://{user}@{place}")
        }
        None => url.to_owned(),
    };
    StoreError::BadUrl { url: shown, reason }
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
