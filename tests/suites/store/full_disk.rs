//! A disk that fills and is freed: each write is refused whole, and the next one with room goes through without a restart.

use std::sync::Arc;
use store::{Backend, Store, StoreError};
use tests::fixture::{at, cluster, hour, outcomes, pool, put_clusters, usage};
use tests::{SmallDisk, TestDatabase, database_on, on_both_databases};
use vocab::UsageRow;

on_both_databases![a_commit_that_fails_costs_no_later_write];

/// How often the disk fills and is freed.
const ROUNDS: usize = 10;

/// Hours of a series of its own in each round.
fn rows(round: usize, hours: usize) -> Vec<UsageRow> {
    let first = hour("2020-01-01T00");
    let row = usage(&format!("earth:A100:x{round} 2020-01-01T00 4")).remove(0);
    (0..hours as i64).map(|ahead| UsageRow { hour: first.plus_hours(ahead), ..row.clone() }).collect()
}

async fn stored(store: &Arc<dyn Store>) -> Result<usize, StoreError> {
    let summaries = store.describe_usage(&cluster("earth")).await?;
    Ok(summaries.iter().map(|summary| summary.rows as usize).sum())
}

async fn fills_and_is_freed(backend: Backend, mib: u32, hours: usize) {
    let Some(disk) = SmallDisk::mount(mib) else { return };
    let database = database_on(&disk, backend).await;
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        disk.fill();
        // Free space in existing pages may take some rows.
        let (mut refused, mut tries) = (0, 0);
        while refused < 3 {
            match store.append(&rows(round * 1_000 + tries, hours), &[]).await {
                Ok(report) => acknowledged += report.usage.inserted as usize,
                Err(fault) => {
                    assert!(matches!(fault, StoreError::Full { .. }), "round {round}: {fault}");
                    refused += 1;
                }
            }
            tries += 1;
            assert!(tries < 1_000, "a full disk takes everything");
        }
        // A new connection of Postgres may find no room for its list of tables.
        match stored(&store).await {
            Ok(rows) => assert_eq!(rows, acknowledged, "round {round}: nothing half-written"),
            Err(fault) => assert!(matches!(fault, StoreError::Full { .. }), "round {round}: {fault}"),
        }
        disk.free();
        assert_eq!(stored(&store).await.unwrap(), acknowledged, "round {round}: nothing half-written");
        let report = store.append(&rows(round * 1_000 + 999, 1), &[]).await;
        acknowledged += report.unwrap_or_else(|fault| panic!("round {round}: {fault}")).usage.inserted as usize;
    }
    assert_eq!(stored(&store).await.unwrap(), acknowledged);
    store.close().await;
}

#[tokio::test]
async fn a_full_disk_of_postgres_fails_statements_and_every_write_after_it_goes_through() {
    fills_and_is_freed(Backend::Postgres, 40, 1_000).await;
}

/// Lets the COMMIT of each outcome fail while the table `refusing` has a row, and not before.
async fn refuse_commits(database: &TestDatabase) {
    database
        .execute(match database.backend {
            Backend::Postgres => {
                "CREATE TABLE refusing (id integer);
                 CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                     IF EXISTS (SELECT FROM refusing) THEN RAISE EXCEPTION 'as a test' USING ERRCODE = '53100'; END IF;
                     RETURN NULL;
                 END $$;
                 CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON outcomes DEFERRABLE INITIALLY DEFERRED
                     FOR EACH ROW EXECUTE FUNCTION refuse()"
            }
            Backend::Sqlite => {
                "CREATE TABLE refusing (id integer);
                 CREATE TABLE owners (id integer PRIMARY KEY);
                 CREATE TABLE dangling (id integer REFERENCES owners (id) DEFERRABLE INITIALLY DEFERRED);
                 CREATE TRIGGER refuse AFTER INSERT ON outcomes WHEN EXISTS (SELECT 1 FROM refusing)
                     BEGIN INSERT INTO dangling VALUES (1); END"
            }
        })
        .await;
}

async fn a_commit_that_fails_costs_no_later_write(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    refuse_commits(&database).await;
    let kept = pool("earth:A100");
    for round in 0..ROUNDS {
        database.execute("INSERT INTO refusing VALUES (1)").await;
        for _ in 0..3 {
            let refused = store.record_outcomes(&outcomes(&format!("{round} earth:A100 kept"), 0), at(0)).await;
            assert!(refused.is_err(), "round {round}");
        }
        database.execute("DELETE FROM refusing").await;
        assert!(store.newest_outcome(&kept).await.unwrap().is_none(), "round {round}: nothing was kept");
        let recorded = store.record_outcomes(&outcomes(&format!("{round} earth:A100 kept"), 0), at(0)).await;
        recorded.unwrap_or_else(|fault| panic!("round {round}: {fault}"));
        database.execute("DELETE FROM outcomes").await;
    }
}
