use crate::SmallDisk;
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
    Folder { _folder: TempDir },
    /// Goes with the disk.
    Disk,
    Server {
        maintenance_url: String,
        name: String,
        /// Where its files are, if not where the others are.
        tablespace: Option<String>,
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
        Backend::Postgres => fresh_on_server(None).await,
    }
}

/// An empty database whose files are on a small disk.
///
/// # Panics
/// As [`fresh_database`]; the server is on another machine, or this user may give it no folder.
pub async fn database_on(disk: &SmallDisk, backend: Backend) -> TestDatabase {
    match backend {
        Backend::Sqlite => {
            let url = format!("sqlite://{}", disk.path().join("headroom.db").display());
            TestDatabase { backend, url, place: Place::Disk }
        }
        Backend::Postgres => fresh_on_server(Some(disk)).await,
    }
}

async fn fresh_on_server(disk: Option<&SmallDisk>) -> TestDatabase {
    let maintenance_url = std::env::var(SERVER)
        .unwrap_or_else(|_| panic!("{SERVER} is not set, so there is no Postgres to test on: run `make test`"));
    let name = format!("headroom_test_{:016x}", RandomState::new().hash_one(std::process::id()));
    let tablespace = match disk {
        Some(disk) => Some(tablespace(&maintenance_url, disk, &name).await),
        None => None,
    };
    let within = tablespace.as_ref().map_or_else(String::new, |tablespace| format!(" TABLESPACE {tablespace}"));
    run_on_postgres(&maintenance_url, &format!("CREATE DATABASE {name}{within}")).await.expect("CREATE DATABASE");
    let (server, _) = maintenance_url.rsplit_once('/').expect("postgres://USER@HOST/NAME");
    let url = format!("{server}/{name}");
    TestDatabase { backend: Backend::Postgres, url, place: Place::Server { maintenance_url, name, tablespace } }
}

async fn tablespace(maintenance_url: &str, disk: &SmallDisk, name: &str) -> String {
    let mut connection = PgConnection::connect(maintenance_url).await.expect("the server answers");
    let data: String =
        sqlx::query_scalar("SHOW data_directory").fetch_one(&mut connection).await.expect("the folder of the server");
    let folder = disk.folder_of_owner_of("tablespace", data.as_ref());
    let tablespace = format!("space_of_{name}");
    let sql = format!("CREATE TABLESPACE {tablespace} LOCATION '{}'", folder.display());
    run_on_postgres(maintenance_url, &sql).await.expect("CREATE TABLESPACE");
    tablespace
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
        let Place::Server { maintenance_url, name, tablespace } = &self.place else { return };
        let mut statements = vec![format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")];
        statements.extend(tablespace.as_ref().map(|tablespace| format!("DROP TABLESPACE {tablespace}")));
        let url = maintenance_url.clone();
        // On a thread of its own: the runtime of the test, which may be unwinding, cannot be waited for from here.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                for sql in &statements {
                    run_on_postgres(&url, sql).await?;
                }
                Ok::<_, sqlx::Error>(())
            })
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
