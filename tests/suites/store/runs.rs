use std::sync::Arc;
use store::{NewRun, RunFacts, RunId, Store, StoreError};
use tests::fixture::{at, cluster, hour, hours, put_clusters};
use tests::{TestDatabase, on_both_databases};

on_both_databases![
    a_run_comes_back_as_it_was_stored,
    a_checkpoint_with_one_wrong_byte_is_not_handed_out,
    a_rollback_goes_back_step_by_step,
    promoting_again_changes_nothing,
    of_two_first_runs_at_the_same_time_one_serves,
    a_run_needs_its_cluster,
];

fn run(cluster_name: &str, checkpoint: &[u8]) -> NewRun {
    let facts = RunFacts {
        cluster: cluster(cluster_name),
        model: "orglinear".to_owned(),
        horizon: hours(4),
        lookback_hours: 672,
        seed: u64::MAX,
        data_from: hour("2024-01-01T00"),
        data_until: hour("2024-03-01T00"),
        data_sha256: [0xa5; 32],
        series: 84,
        aggregation: "pooled".to_owned(),
        parameters_json: "{ \"b\": 1,  \"a\": \"é\" }".to_owned(),
        scores_json: "{}".to_owned(),
        code_version: "0.1.0".to_owned(),
        created_at: at(1_709_251_200),
        train_ms: 59_123,
    };
    NewRun { facts, checkpoint: checkpoint.to_vec() }
}

async fn with_runs(database: &TestDatabase, count: u8) -> (Arc<dyn Store>, Vec<RunId>) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(store.insert_run(&run("earth", &[number; 1_000])).await.unwrap());
    }
    (store, ids)
}

async fn a_run_comes_back_as_it_was_stored(database: TestDatabase) {
    let (store, ids) = with_runs(&database, 2).await;
    let other = store.insert_run(&run("mars", b"")).await.unwrap();
    let record = store.run(ids[1]).await.unwrap();
    assert_eq!(record.facts, run("earth", b"").facts);
    assert_eq!((record.id, record.checkpoint_bytes), (ids[1], 1_000));
    assert_eq!(store.checkpoint(ids[1]).await.unwrap(), [1; 1_000]);
    assert_eq!(store.checkpoint(other).await.unwrap(), b"");
    let listed = |runs: Vec<store::RunRecord>| runs.into_iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(listed(store.runs(None).await.unwrap()), [other, ids[1], ids[0]]);
    assert_eq!(listed(store.runs(Some(&cluster("earth"))).await.unwrap()), [ids[1], ids[0]]);
}

async fn a_checkpoint_with_one_wrong_byte_is_not_handed_out(database: TestDatabase) {
    let (store, ids) = with_runs(&database, 2).await;
    let flipped = "01".repeat(999) + "03";
    let literal = match database.backend {
        store::Backend::Postgres => format!("'\\x{flipped}'::bytea"),
        store::Backend::Sqlite => format!("x'{flipped}'"),
    };
    database.execute(&format!("UPDATE checkpoints SET bytes = {literal} WHERE run_id = {}", ids[1].get())).await;
    let fault = store.checkpoint(ids[1]).await.unwrap_err();
    assert!(matches!(fault, StoreError::Corrupt { .. }) && fault.to_string().contains("run-2"), "{fault}");
    assert!(store.checkpoint(ids[0]).await.is_ok());
    let missing = store.checkpoint(RunId::new(99)).await.unwrap_err();
    assert_eq!(missing.to_string(), "there is no run run-99");
}

async fn a_rollback_goes_back_step_by_step(database: TestDatabase) {
    let (store, ids) = with_runs(&database, 3).await;
    let earth = cluster("earth");
    assert_eq!(store.promoted(&earth).await.unwrap(), None);
    for (&id, second) in ids.iter().zip(1..) {
        store.promote(id, at(second), "ann").await.unwrap();
    }
    assert_eq!(store.rollback(&earth, at(4), "bob").await.unwrap().id, ids[1]);
    assert_eq!(store.rollback(&earth, at(5), "bob").await.unwrap().id, ids[0], "not back to the run given up");
    assert_eq!(store.promoted(&earth).await.unwrap().map(|run| run.id), Some(ids[0]));
    let fault = store.rollback(&earth, at(6), "bob").await.unwrap_err();
    assert!(matches!(fault, StoreError::Conflict { .. }), "{fault}");
    let history = store.promotions(&earth).await.unwrap();
    let lines: Vec<_> = history.iter().map(|p| (p.promoted_at.get(), &*p.promoted_by, p.rolled_back)).collect();
    assert_eq!(lines, [(5, "bob", true), (4, "bob", true), (3, "ann", false), (2, "ann", false), (1, "ann", false)]);
}

async fn of_two_first_runs_at_the_same_time_one_serves(database: TestDatabase) {
    let (store, ids) = with_runs(&database, 2).await;
    let first = |id: RunId| store.promote_first(id, at(100), "train");
    let (one, other) = tokio::join!(first(ids[0]), first(ids[1]));
    assert_eq!(i32::from(one.unwrap()) + i32::from(other.unwrap()), 1);
    let cluster = store.run(ids[0]).await.unwrap().facts.cluster;
    assert_eq!(store.promotions(&cluster).await.unwrap().len(), 1);
    assert!(!first(ids[1]).await.unwrap(), "one serves already");
}

async fn promoting_again_changes_nothing(database: TestDatabase) {
    let (store, ids) = with_runs(&database, 2).await;
    let other = database.store().await;
    let (first, second) = tokio::join!(store.promote(ids[0], at(1), "ann"), other.promote(ids[0], at(2), "bob"));
    assert_eq!((first.unwrap().id, second.unwrap().id), (ids[0], ids[0]));
    assert_eq!(store.promotions(&cluster("earth")).await.unwrap().len(), 1);
    let fault = store.rollback(&cluster("earth"), at(3), "ann").await.unwrap_err();
    assert!(matches!(fault, StoreError::Conflict { .. }), "{fault}");
    assert!(store.promotions(&cluster("mars")).await.unwrap().is_empty());
}

async fn a_run_needs_its_cluster(database: TestDatabase) {
    let (store, _) = with_runs(&database, 0).await;
    let fault = store.insert_run(&run("pluto", b"x")).await.unwrap_err();
    assert_eq!(fault.to_string(), "there is no cluster pluto");
    let fault = store.rollback(&cluster("pluto"), at(1), "ann").await.unwrap_err();
    assert!(matches!(fault, StoreError::NotFound { what: "cluster", .. }), "{fault}");
    let fault = store.promote(RunId::new(1), at(1), "ann").await.unwrap_err();
    assert!(matches!(fault, StoreError::NotFound { what: "run", .. }), "{fault}");
}
