use store::{Backend, StoreError};
use tests::fixture::{at, cluster, loaded, pool, put_clusters, usage};
use tests::{TestDatabase, on_both_databases};
use vocab::{HorizonHours, TaskId};

on_both_databases![
    opening_again_changes_nothing,
    programs_that_open_a_new_database_at_once_all_succeed,
    a_schema_from_a_newer_program_is_refused,
    an_edited_migration_is_refused,
    columns_that_a_newer_program_adds_disturb_no_running_one,
];

async fn opening_again_changes_nothing(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    store.append(&usage("earth:A100:x 2024-03-01T00 4"), &[]).await.unwrap();
    store.close().await;
    let again = database.store().await;
    assert_eq!(again.backend(), database.backend);
    again.ping().await.unwrap();
    assert_eq!(loaded(&*again, "earth", "2024-01-01T00", "2025-01-01T00").await, "earth:A100:x 2024-03-01T00 4.000\n");
}

async fn programs_that_open_a_new_database_at_once_all_succeed(database: TestDatabase) {
    let open = || store::connect(&database.url);
    let opened = tokio::join!(open(), open(), open(), open(), open(), open());
    let opened = [opened.0, opened.1, opened.2, opened.3, opened.4, opened.5];
    for store in opened {
        let store = store.unwrap();
        put_clusters(&*store, &["earth"]).await;
        assert_eq!(store.clusters().await.unwrap().len(), 1);
    }
}

async fn refusal(database: &TestDatabase) -> StoreError {
    match store::connect(&database.url).await {
        Err(fault) => fault,
        Ok(_) => panic!("this schema must not be opened"),
    }
}

async fn a_schema_from_a_newer_program_is_refused(database: TestDatabase) {
    database.store().await.close().await;
    let (truth, bytes) = match database.backend {
        Backend::Postgres => ("true", "'\\x00'"),
        Backend::Sqlite => ("1", "x'00'"),
    };
    let newer = format!(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'from the future', {truth}, {bytes}, 0)"
    );
    database.execute(&newer).await;
    let fault = refusal(&database).await;
    assert!(matches!(fault, StoreError::Schema { .. }), "{fault}");
    assert!(
        fault.to_string().contains("migration 9999") && fault.to_string().contains("update this program"),
        "{fault}"
    );
}

async fn an_edited_migration_is_refused(database: TestDatabase) {
    database.store().await.close().await;
    let bytes = if database.backend == Backend::Postgres { "'\\x00'" } else { "x'00'" };
    database.execute(&format!("UPDATE _sqlx_migrations SET checksum = {bytes} WHERE version = 1")).await;
    let fault = refusal(&database).await;
    assert!(matches!(fault, StoreError::Schema { .. }), "{fault}");
    assert!(fault.to_string().contains("migration 1 was applied with another text"), "{fault}");
}

/// Reads of every kind, several times over, so that each connection has their statements prepared.
async fn read_all(store: &dyn store::Store) -> Result<(), StoreError> {
    let (pool, name) = (pool("earth:A100"), cluster("earth"));
    for _ in 0..3 {
        store.clusters().await?;
        store.capacities(&name).await?;
        store.nodes(&name).await?;
        store.settings(&pool).await?;
        store.reservations(None, at(0), true).await?;
        store.overrides(None, at(0), true).await?;
        store.newest_outcome(&pool).await?;
        store.placed_pools().await?;
        let _ = store.task_record(&pool, &TaskId::parse("a").unwrap()).await?;
        store.eta(&pool).await?;
        store.eta_moves(&pool, 3).await?;
        store.runs(None).await?;
        store.promoted(&name).await?;
        store.promotions(&name).await?;
        store.audit(at(0), at(9), 3).await?;
        store.tokens().await?;
        store.leases().await?;
        store.latest_quotas(None).await?;
        store.quota_history(&pool, HorizonHours::ONE, at(0), at(9), 3).await?;
        store.quota_bases().await?;
        loaded(store, "earth", "2024-01-01T00", "2025-01-01T00").await;
    }
    Ok(())
}

/// Those that [`read_all`] reads.
const TABLES: &str = "clusters capacity nodes pool_settings reservations overrides outcomes placed_pools etas eta_moves runs promotions \
     audit tokens leases quotas newest_quotas series tasks";

async fn columns_that_a_newer_program_adds_disturb_no_running_one(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    store.append(&usage("earth:A100:x 2024-03-01T00 4"), &[]).await.unwrap();
    read_all(&*store).await.unwrap();
    for table in TABLES.split_ascii_whitespace() {
        database.execute(&format!("ALTER TABLE {table} ADD COLUMN of_a_newer_program INTEGER")).await;
    }
    read_all(&*store).await.unwrap();
}
