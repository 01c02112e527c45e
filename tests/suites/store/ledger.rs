use std::sync::Arc;
use store::{Calibration, IssuedForecasts, NewRun, RunFacts, RunId, Store, StoreError, UnscoredIssue};
use tests::fixture::{at, cluster, hour, hours, put_clusters};
use tests::{TestDatabase, on_both_databases};

on_both_databases![
    the_first_forecasts_of_an_hour_stay,
    forecasts_are_scored_once,
    scores_come_by_hour_from_an_hour_on,
    retention_forgets_the_issue_hours_of_one_cluster,
    forecasts_of_an_unknown_run_are_refused,
];

async fn run(store: &dyn Store, name: &str) -> RunId {
    let facts = RunFacts {
        cluster: cluster(name),
        model: "last-value".to_owned(),
        horizon: hours(4),
        lookback_hours: 168,
        seed: 1,
        data_from: hour("2024-01-01T00"),
        data_until: hour("2024-02-01T00"),
        data_sha256: [0; 32],
        series: 1,
        aggregation: String::new(),
        parameters_json: "{}".to_owned(),
        scores_json: "{}".to_owned(),
        code_version: "test".to_owned(),
        created_at: at(100),
        train_ms: 1,
    };
    store.insert_run(&NewRun { facts, checkpoint: vec![1] }).await.unwrap()
}

async fn with_runs(database: &TestDatabase) -> (Arc<dyn Store>, RunId, RunId) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    let (earth, mars) = (run(&*store, "earth").await, run(&*store, "mars").await);
    (store, earth, mars)
}

fn issued(name: &str, run_id: RunId, issue: &str, byte: u8) -> IssuedForecasts {
    let (cluster, issue) = (cluster(name), hour(issue));
    IssuedForecasts { cluster, issue, run_id, issued_at: at(i64::from(byte)), forecasts: vec![0, byte, 255] }
}

fn not_scored(run_id: RunId, at: &str) -> UnscoredIssue {
    UnscoredIssue { issue: hour(at), run_id, horizon: hours(4) }
}

async fn the_first_forecasts_of_an_hour_stay(database: TestDatabase) {
    let (store, earth, mars) = with_runs(&database).await;
    let first = issued("earth", earth, "2024-03-01T05", 1);
    assert_eq!(store.newest_issue(&cluster("earth")).await.unwrap(), None);
    assert!(store.record_forecasts(&first).await.unwrap());
    assert!(!store.record_forecasts(&issued("earth", earth, "2024-03-01T05", 2)).await.unwrap());
    assert!(store.record_forecasts(&issued("mars", mars, "2024-03-01T05", 3)).await.unwrap(), "another cluster's");
    let again = database.store().await;
    assert_eq!(again.issued_forecasts(&cluster("earth"), first.issue).await.unwrap(), Some(first.clone()));
    assert_eq!(again.issued_forecasts(&cluster("earth"), hour("2024-03-01T06")).await.unwrap(), None);
    assert_eq!(again.newest_issue(&cluster("earth")).await.unwrap(), Some(first.issue));
}

async fn forecasts_are_scored_once(database: TestDatabase) {
    let (store, earth, _) = with_runs(&database).await;
    let name = cluster("earth");
    for issue in ["2024-03-01T06", "2024-03-01T05"] {
        assert!(store.record_forecasts(&issued("earth", earth, issue, 1)).await.unwrap());
    }
    let unscored = ["2024-03-01T05", "2024-03-01T06"].map(|at| not_scored(earth, at));
    assert_eq!(store.unscored_issues(&name).await.unwrap(), unscored);
    let other = database.store().await;
    let issue = hour("2024-03-01T05");
    let taught = |byte| Calibration { run_id: earth, state: vec![byte, 7] };
    let (by_one, by_two) = (taught(1), taught(2));
    assert_eq!(store.calibration(earth).await.unwrap(), None);
    let (one, two) = tokio::join!(
        store.record_scores(&name, issue, &[1], Some(&by_one)),
        other.record_scores(&name, issue, &[2], Some(&by_two))
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one, two, "one of two writers is first");
    assert!(!store.record_scores(&name, issue, &[3], Some(&taught(3))).await.unwrap());
    let never_issued = store.record_scores(&name, hour("2024-03-01T09"), &[3], Some(&taught(3))).await;
    assert!(!never_issued.unwrap(), "nothing was issued then");
    let expected = if one { 1 } else { 2 };
    assert_eq!(store.calibration(earth).await.unwrap(), Some(vec![expected, 7]), "it teaches once, with its score");
    assert_eq!(store.scored_forecasts(&name, issue).await.unwrap()[0].scores, [expected]);
    assert_eq!(store.unscored_issues(&name).await.unwrap(), unscored[1..]);
    assert_eq!(store.scored_forecasts(&name, issue).await.unwrap().len(), 1);
}

async fn scores_come_by_hour_from_an_hour_on(database: TestDatabase) {
    let (store, earth, mars) = with_runs(&database).await;
    for (name, run, issue, byte) in
        [("earth", earth, "2024-03-01T07", 7), ("earth", earth, "2024-03-01T05", 5), ("mars", mars, "2024-03-01T06", 6)]
    {
        assert!(store.record_forecasts(&issued(name, run, issue, byte)).await.unwrap());
        assert!(store.record_scores(&cluster(name), hour(issue), &[byte], None).await.unwrap());
    }
    let scored = store.scored_forecasts(&cluster("earth"), hour("2024-03-01T05")).await.unwrap();
    let read: Vec<_> = scored.iter().map(|one| (one.issue, one.run_id, one.scores.clone())).collect();
    assert_eq!(read, [(hour("2024-03-01T05"), earth, vec![5]), (hour("2024-03-01T07"), earth, vec![7])]);
    assert_eq!(store.scored_forecasts(&cluster("earth"), hour("2024-03-01T06")).await.unwrap().len(), 1);
}

async fn retention_forgets_the_issue_hours_of_one_cluster(database: TestDatabase) {
    let (store, earth, mars) = with_runs(&database).await;
    for issue in ["2024-03-01T05", "2024-03-01T06", "2024-03-01T07"] {
        assert!(store.record_forecasts(&issued("earth", earth, issue, 1)).await.unwrap());
        assert!(store.record_forecasts(&issued("mars", mars, issue, 1)).await.unwrap());
    }
    let taught = |run_id| Calibration { run_id, state: vec![1] };
    for (name, run) in [("earth", earth), ("mars", mars)] {
        assert!(store.record_scores(&cluster(name), hour("2024-03-01T05"), &[1], Some(&taught(run))).await.unwrap());
    }
    assert_eq!(store.delete_issues_before(&cluster("earth"), hour("2024-03-01T07")).await.unwrap(), 2);
    assert_eq!(store.delete_issues_before(&cluster("earth"), hour("2024-03-01T07")).await.unwrap(), 0);
    assert_eq!(store.unscored_issues(&cluster("earth")).await.unwrap(), [not_scored(earth, "2024-03-01T07")]);
    assert_eq!(store.unscored_issues(&cluster("mars")).await.unwrap().len(), 2);
    assert!(store.calibration(earth).await.unwrap().is_some(), "the run has issued forecasts since");
    assert_eq!(store.delete_issues_before(&cluster("earth"), hour("2024-03-01T08")).await.unwrap(), 1);
    assert_eq!(store.calibration(earth).await.unwrap(), None);
    assert!(store.calibration(mars).await.unwrap().is_some());
}

async fn forecasts_of_an_unknown_run_are_refused(database: TestDatabase) {
    let (store, earth, _) = with_runs(&database).await;
    let fault = store.record_forecasts(&issued("earth", RunId::new(99), "2024-03-01T05", 1)).await.unwrap_err();
    assert!(matches!(&fault, StoreError::NotFound { .. }) && fault.to_string().contains("run-99"), "{fault}");
    let fault = store.record_forecasts(&issued("pluto", earth, "2024-03-01T05", 1)).await.unwrap_err();
    assert!(fault.to_string().contains("pluto"), "{fault}");
}
