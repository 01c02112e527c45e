//! Inspection leaves a database as it is.

use super::upgrade::at_version;
use std::cmp::Ordering;
use store::{Backend, Inspected, StoreError};
use tests::fixture::put_clusters;
use tests::{TestDatabase, on_both_databases};

on_both_databases![
    an_empty_database_stays_empty,
    a_database_of_every_version_is_named_and_left_as_it_is,
    inspected_data_can_be_read_and_not_written,
    an_edited_or_unfinished_migration_is_named,
];

async fn inspected(database: &TestDatabase) -> Inspected {
    store::inspect(&database.url).await.expect("the database answers")
}

async fn an_empty_database_stays_empty(database: TestDatabase) {
    for _ in 0..2 {
        match (database.backend, store::inspect(&database.url).await) {
            (Backend::Postgres, Ok(found)) => {
                assert_eq!((found.schema.found, found.schema.age()), (None, Ordering::Less));
            }
            (Backend::Sqlite, Err(fault)) => {
                assert!(fault.to_string().contains("there is no database file"), "{fault}");
                let file = store::sqlite_file(&database.url).unwrap().unwrap();
                assert!(!file.exists(), "it was made");
            }
            (_, found) => panic!("{:?}", found.map(|found| found.schema)),
        }
    }
}

async fn a_database_of_every_version_is_named_and_left_as_it_is(database: TestDatabase) {
    let expected = {
        let _ = database.store().await;
        inspected(&database).await.schema.expected
    };
    for version in 1..=expected {
        let old = tests::fresh_database(database.backend).await;
        at_version(&old, version).await;
        let newest = "SELECT max(version) FROM _sqlx_migrations";
        // Not every number has a migration.
        let before = old.numbers(newest).await;
        let found = inspected(&old).await;
        assert_eq!((found.schema.found, found.schema.fits()), (Some(before[0]), version == expected));
        found.store.close().await;
        assert_eq!(old.numbers(newest).await, before);
    }
}

async fn inspected_data_can_be_read_and_not_written(database: TestDatabase) {
    put_clusters(&*database.store().await, &["earth"]).await;
    let found = inspected(&database).await;
    assert!(found.schema.fits() && !found.server_version.is_empty(), "{:?}", found.schema);
    assert!(found.takes_writes);
    let cluster = found.store.clusters().await.unwrap().remove(0);
    let refused = found.store.put_cluster(&cluster).await.unwrap_err();
    assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
    let own = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    assert!(found.clock_unix_ms.unsigned_abs().abs_diff(own as u64) < 60_000, "one machine has one clock");
}

#[tokio::test]
async fn a_postgres_that_is_read_only_or_has_no_schema_is_named_as_such() {
    let database = tests::fresh_database(Backend::Postgres).await;
    database.store().await.close().await;
    let (_, name) = database.url.rsplit_once('/').unwrap();
    database.execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
    assert!(!inspected(&database).await.takes_writes);
    database.execute(&format!("BEGIN READ WRITE; ALTER DATABASE {name} SET search_path = missing; COMMIT")).await;
    let fault = store::inspect(&database.url).await.err().expect("no schema").to_string();
    assert!(fault.contains("no schema of search_path is there"), "{fault}");
    let fault = store::connect(&database.url).await.err().expect("no schema").to_string();
    assert!(fault.contains("correct search_path"), "{fault}");
}

async fn an_edited_or_unfinished_migration_is_named(database: TestDatabase) {
    database.store().await.close().await;
    let bytes = if database.backend == Backend::Postgres { "'\\x00'" } else { "x'00'" };
    database.execute("UPDATE _sqlx_migrations SET success = false WHERE version = 5").await;
    assert_eq!(inspected(&database).await.schema.broken, Some(5));
    database.execute(&format!("UPDATE _sqlx_migrations SET checksum = {bytes} WHERE version = 2")).await;
    let schema = inspected(&database).await.schema;
    assert_eq!((schema.broken, schema.fits(), schema.age()), (Some(2), false, Ordering::Equal));
}
