use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::{
    CalendarStore, CapacityStore, ClusterStore, EtaStore, NodeStore, OutcomeStore, PoolStateStore, QuotaStore,
    RunStore, SettingsStore, StoreError, UsageStore,
};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;

/// The kind of database behind a [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    Postgres,
    Sqlite,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        })
    }
}

/// Everything that Headroom keeps. Shared as `Arc<dyn Store>`; its methods may be called concurrently.
#[async_trait]
pub trait Store:
    ClusterStore
    + CalendarStore
    + UsageStore
    + CapacityStore
    + RunStore
    + QuotaStore
    + EtaStore
    + NodeStore
    + PoolStateStore
    + SettingsStore
    + OutcomeStore
    + Send
    + Sync
{
    fn backend(&self) -> Backend;

    /// Asks the database for an answer.
    ///
    /// # Errors
    /// There is none within the time limit of a connection, 5 s.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Waits for what is under way and closes the connections; later calls answer [`StoreError::Unavailable`].
    async fn close(&self);
}

/// Opens `sqlite://PATH` (made if missing) or `postgres://…`, and brings its schema up to date. Any number of programs
/// may do so at once.
///
/// # Errors
/// The URL is not understood, the database does not answer within 5 s or refuses, its disk is full, or its schema is
/// newer than this program or was edited.
pub async fn connect(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    match url.split_once("://") {
        Some(("sqlite", path)) => Ok(Arc::new(SqliteStore::connect(path).await?)),
        Some(("postgres" | "postgresql", _)) => Ok(Arc::new(PostgresStore::connect(url).await?)),
        Some((scheme, _)) => Err(bad_url(url, format!("{scheme} is no database that this program knows"))),
        None => Err(bad_url(url, "it has no scheme".to_owned())),
    }
}

/// The URL goes into logs and onto screens: without its password.
pub(crate) fn bad_url(url: &str, reason: String) -> StoreError {
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
