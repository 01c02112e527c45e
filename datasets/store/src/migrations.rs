//! The files of `migrations/`, embedded when the crate is compiled (`build.rs` lists them).

use crate::StoreError;
use sqlx::SqlSafeStr;
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use std::sync::LazyLock;

/// Version, description and text of each file, of both databases: `POSTGRES_FILES`, `SQLITE_FILES`.
mod files {
    include!(concat!(env!("OUT_DIR"), "/migrations.rs"));
}

pub(crate) static POSTGRES: LazyLock<Migrator> = LazyLock::new(|| migrator(files::POSTGRES));
pub(crate) static SQLITE: LazyLock<Migrator> = LazyLock::new(|| migrator(files::SQLITE));

fn migrator(files: &[(i64, &'static str, &'static str)]) -> Migrator {
    let migration = |&(version, description, sql): &(i64, &'static str, &'static str)| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    Migrator::with_migrations(files.iter().map(migration).collect())
}

/// The error of a statement of a migration. While a program that does not take the lock of migrations makes the same tables, such as
/// `pg_restore`, Postgres reports a duplicate in its own catalog, also to `CREATE TABLE IF NOT EXISTS`.
pub(crate) fn fault(error: sqlx::Error) -> StoreError {
    let is_race = |fault: &dyn DatabaseError| {
        fault.kind() == ErrorKind::UniqueViolation && fault.constraint().is_some_and(|name| name.starts_with("pg_"))
    };
    if error.as_database_error().is_some_and(is_race) {
        let reason = "another program makes the same tables at this moment, as a restore does".to_owned();
        return StoreError::Busy { reason };
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_have_the_names_and_checksums_that_databases_store() {
        for migrator in [&POSTGRES, &SQLITE] {
            let versions: Vec<i64> = migrator.iter().map(|migration| migration.version).collect();
            assert!(versions.is_sorted() && versions.starts_with(&[1, 2, 3]), "{versions:?}");
            let first = migrator.iter().next().unwrap();
            assert_eq!(first.description, "start");
            assert_eq!(first.checksum.len(), 48, "SHA-384");
        }
        assert_eq!(POSTGRES.iter().count(), SQLITE.iter().count());
    }
}
