//! Transactions: the one place that begins and ends them. A connection whose transaction did not end cleanly never returns to
//! its pool, since its state is unknown: a COMMIT that a full disk refuses may or may not have ended the transaction.

use crate::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::{Database, PgConnection, Pool, Postgres, Sqlite, SqliteConnection, raw_sql};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A longer rollback waits for a server that is gone.
const ROLLS_BACK_WITHIN: Duration = Duration::from_secs(10);

/// A database whose transactions begin and end here.
pub(crate) trait Transactional: Database {
    /// Runs a statement without parameters, in one round trip.
    fn run(
        connection: &mut Self::Connection,
        sql: &'static str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

impl Transactional for Postgres {
    async fn run(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
        raw_sql(sql).execute(connection).await.map(drop)
    }
}

impl Transactional for Sqlite {
    async fn run(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
        raw_sql(sql).execute(connection).await.map(drop)
    }
}

/// A transaction. Dropped before its commit, it is rolled back.
pub(crate) struct Transaction<DB: Transactional> {
    /// `None` once it has ended.
    connection: Option<PoolConnection<DB>>,
    /// Whether the connection is closed with it: during a commit, and after a commit that failed.
    closes: bool,
    /// The check before its commit.
    check: Option<Check>,
}

/// A check of the database.
pub(crate) type Check = Box<dyn Fn() -> Result<(), StoreError> + Send + Sync>;

impl<DB: Transactional> Transaction<DB> {
    /// Begins a transaction with the statement `begin`.
    pub async fn begin(pool: &Pool<DB>, begin: &'static str) -> Result<Self, StoreError> {
        let connection = Some(pool.acquire().await?);
        // Created before BEGIN, so that it is rolled back if the caller gives up half-way.
        let mut transaction = Self { connection, closes: false, check: None };
        DB::run(&mut transaction, begin).await?;
        Ok(transaction)
    }

    /// Checks the database before the commit, too.
    pub fn checked(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Closes the connection, too, unless the transaction is committed.
    pub fn closes_unless_committed(&mut self) {
        self.closes = true;
    }

    /// Commits.
    ///
    /// # Errors
    /// The commit failed, or its answer was lost; the connection is closed. Or the check failed, and nothing was committed.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        self.check.as_ref().map_or(Ok(()), |check| check())?;
        self.closes = true;
        DB::run(&mut self, "COMMIT").await?;
        self.connection = None;
        Ok(())
    }
}

impl<DB: Transactional> Deref for Transaction<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        self.connection.as_ref().expect("it has a connection until it ends")
    }
}

impl<DB: Transactional> DerefMut for Transaction<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.connection.as_mut().expect("it has a connection until it ends")
    }
}

impl<DB: Transactional> Drop for Transaction<DB> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.closes {
            connection.close_on_drop();
            return;
        }
        tokio::spawn(async move {
            let rolled_back = tokio::time::timeout(ROLLS_BACK_WITHIN, DB::run(&mut connection, "ROLLBACK")).await;
            if !matches!(rolled_back, Ok(Ok(()))) {
                connection.close_on_drop();
            }
        });
    }
}
