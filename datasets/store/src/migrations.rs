//! The files of `migrations/`, embedded when the crate is compiled (`build.rs` lists them).

use sqlx::SqlSafeStr;
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
