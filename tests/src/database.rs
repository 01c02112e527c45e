use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use store::{Backend, Store, StoreError};
use tempfile::TempDir;

const SERVER: &str = "HEADROOM_TEST_POSTGRES";

/// An empty database of one test, removed when it goes out of scope.
pub struct TestDatabase {
    pub backend: Backend,
    pub url: String,
    place: Place,
}

enum Place {
    /// Removes itself.
    Folder {
        _folder: TempDir,
    },
    Server {
        maintenance_url: String,
        name: String,
    },
}

/// # Panics
/// There is no Postgres to make a database on, or it refuses.
pub async fn fresh_database(backend: Backend) -> TestDatabase {
    match backend {
        Backend::Sqlite => {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
            TestDatabase { backend, url, place: Place::Folder { _folder: folder } }
        }
        Backend::Postgres => fresh_on_server().await,
    }
}

async fn fresh_on_server() -> TestDatabase {
    let maintenance_url = std::env::var(SERVER)
        .unwrap_or_else(|_| panic!("{SERVER} is not set, so there is no Postgres to test on: run `make test`"));
    let name = format!("headroom_test_{:016x}", RandomState::new().hash_one(std::process::id()));
    run_on_postgres(&maintenance_url, &format!("CREATE DATABASE {name}")).await.expect("CREATE DATABASE");
    let (server, _) = maintenance_url.rsplit_once('/').expect("postgres://USER@HOST/NAME");
    let url = format!("{server}/{name}");
    TestDatabase { backend: Backend::Postgres, url, place: Place::Server { maintenance_url, name } }
}

impl TestDatabase {
    /// Opens it, each time with connections of its own.
    ///
    /// # Panics
    /// It cannot be opened.
    pub async fn store(&self) -> Arc<dyn Store> {
        store::connect(&self.url).await.expect("a fresh database opens")
    }

    /// Runs SQL behind the back of the store.
    ///
    /// # Panics
    /// The SQL fails.
    pub async fn execute(&self, sql: &str) {
        self.try_execute(sql).await.expect("the SQL of a test");
    }

    /// The texts that a query of one column gives.
    ///
    /// # Panics
    /// The SQL fails, or gives something else.
    pub async fn rows(&self, sql: &str) -> Vec<String> {
        let query = AssertSqlSafe(sql.to_owned());
        match self.backend {
            Backend::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.expect("the database answers");
                sqlx::query_scalar(query).fetch_all(&mut connection).await.expect("texts")
            }
            Backend::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.expect("the database answers");
                sqlx::query_scalar(query).fetch_all(&mut connection).await.expect("texts")
            }
        }
    }

    /// The whole numbers that a query of one column gives.
    ///
    /// # Panics
    /// The SQL fails, or gives something else.
    pub async fn numbers(&self, sql: &str) -> Vec<i64> {
        let query = AssertSqlSafe(sql.to_owned());
        match self.backend {
            Backend::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.expect("the database answers");
                sqlx::query_scalar(query).fetch_all(&mut connection).await.expect("whole numbers")
            }
            Backend::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.expect("the database answers");
                sqlx::query_scalar(query).fetch_all(&mut connection).await.expect("whole numbers")
            }
        }
    }

    /// Runs SQL behind the back of the store, and maps its error as the store does.
    ///
    /// # Errors
    /// The SQL fails.
    pub async fn try_execute(&self, sql: &str) -> Result<(), StoreError> {
        match self.backend {
            Backend::Postgres => run_on_postgres(&self.url, sql).await?,
            Backend::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await?;
                sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await?;
                connection.close().await?;
            }
        }
        Ok(())
    }
}

async fn run_on_postgres(url: &str, sql: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await?;
    connection.close().await
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Place::Server { maintenance_url, name } = &self.place else { return };
        let (url, sql) = (maintenance_url.clone(), format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        // On a thread of its own: the runtime of the test, which may be unwinding, cannot be waited for from here.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(run_on_postgres(&url, &sql))
        });
        if let Ok(Err(error)) = dropping.join() {
            eprintln!("{name} was left behind: {error}");
        }
    }
}

/// Makes of each `async fn sentence(database: TestDatabase)` one test for each database.
#[macro_export]
macro_rules! on_both_databases {
    ($($sentence:ident),+ $(,)?) => {
        mod on_postgres {
            $(#[tokio::test]
            async fn $sentence() {
                super::$sentence($crate::fresh_database($crate::Backend::Postgres).await).await;
            })+
        }
        mod on_sqlite {
            $(#[tokio::test]
            async fn $sentence() {
                super::$sentence($crate::fresh_database($crate::Backend::Sqlite).await).await;
            })+
        }
    };
}
