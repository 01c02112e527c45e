use store::{Recorded, StoreError};
use tests::fixture::{at, outcomes, pool, put_clusters, unspent_ids};
use tests::{TestDatabase, on_both_databases};
use vocab::{NodeId, Outcome, OutcomeKind, TaskId};

on_both_databases![
    an_event_counts_once_and_its_content_stays,
    the_same_batch_reported_twice_at_once_is_recorded_once,
    batches_in_opposite_orders_do_not_wait_for_each_other,
    only_kept_and_broken_guarantees_may_move_eta,
    an_outcome_of_an_unknown_cluster_keeps_the_others_out,
];

async fn an_event_counts_once_and_its_content_stays(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let mut batch = outcomes("e1 earth:A100 kept\ne2 earth:A100 broken\ne1 earth:A100 kept\ne2 earth:H800 broken", 100);
    batch[1].task = Some(TaskId::parse("job-7").unwrap());
    batch[1].node = Some(NodeId::parse("n1").unwrap());
    batch[2] = batch[0].clone();
    let words = store.record_outcomes(&batch, at(200)).await.unwrap();
    assert_eq!(words, [Recorded::New, Recorded::New, Recorded::Repeated, Recorded::Conflicting]);
    let words = store.record_outcomes(&batch, at(300)).await.unwrap();
    assert_eq!(words, [Recorded::Repeated, Recorded::Repeated, Recorded::Repeated, Recorded::Conflicting]);
    assert_eq!(store.newest_outcome(&pool("earth:A100")).await.unwrap().as_ref(), Some(&batch[1]));
    assert_eq!(store.newest_outcome(&pool("earth:H800")).await.unwrap(), None);
    assert_eq!(store.record_outcomes(&[], at(300)).await.unwrap(), []);
}

fn many(count: usize) -> Vec<Outcome> {
    let lines: Vec<_> = (0..count).map(|number| format!("event-{number:04} earth:A100 kept")).collect();
    outcomes(&lines.join("\n"), 1_000)
}

async fn the_same_batch_reported_twice_at_once_is_recorded_once(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth"]).await;
    let batch = many(300);
    let (first, second) = tokio::join!(one.record_outcomes(&batch, at(1)), other.record_outcomes(&batch, at(2)));
    for (first, second) in first.unwrap().into_iter().zip(second.unwrap()) {
        assert!(matches!((first, second), (Recorded::New, Recorded::Repeated) | (Recorded::Repeated, Recorded::New)));
    }
    assert_eq!(unspent_ids(&*one, "earth:A100").await.len(), 300);
}

async fn batches_in_opposite_orders_do_not_wait_for_each_other(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth"]).await;
    let forwards = many(500);
    let backwards: Vec<_> = forwards.iter().rev().cloned().collect();
    let (first, second) = tokio::join!(one.record_outcomes(&forwards, at(1)), other.record_outcomes(&backwards, at(2)));
    let new = |words: Vec<Recorded>| words.iter().filter(|word| **word == Recorded::New).count();
    assert_eq!(new(first.unwrap()) + new(second.unwrap()), 500);
    assert_eq!(unspent_ids(&*one, "earth:A100").await.len(), 500);
}

async fn only_kept_and_broken_guarantees_may_move_eta(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let text =
        "a earth:A100 kept\nb earth:A100 broken\nc earth:A100 kept\nd earth:A100 drain\ne earth:A100 node_failure
                f earth:A100 user_deleted\ng earth:H800 kept";
    store.record_outcomes(&outcomes(text, 100), at(200)).await.unwrap();
    let outcomes = store.eta_outcomes(&pool("earth:A100"), at(0), 0).await.unwrap();
    let newest_first: Vec<_> = outcomes.unspent.iter().map(|one| (one.ended_at, one.broken)).collect();
    assert_eq!(newest_first, [(at(102), false), (at(101), true), (at(100), false)]);
    assert_eq!(outcomes.newest_ended_at, Some(at(102)));
    let ended = async |since, at_least| {
        let read = store.eta_outcomes(&pool("earth:A100"), at(since), at_least).await.unwrap();
        read.unspent.iter().map(|one| one.ended_at.get()).collect::<Vec<_>>()
    };
    assert_eq!(ended(101, 0).await, [102, 101], "lately");
    assert_eq!(ended(200, 2).await, [102, 101], "the newest, where none ended lately");
    assert_eq!(ended(101, 1).await, [102, 101], "each once");
    let counts = store.count_outcomes(&pool("earth:A100"), at(101)).await.unwrap();
    let numbers: Vec<u64> = OutcomeKind::ALL.iter().map(|kind| counts[kind]).collect();
    assert_eq!(numbers, [1, 1, 1, 1, 1], "since 101 s, so without the first one kept");
    assert_eq!(store.eta_outcomes(&pool("earth:T4"), at(0), 9).await.unwrap(), store::EtaOutcomes::default());
}

async fn an_outcome_of_an_unknown_cluster_keeps_the_others_out(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let batch = outcomes("a earth:A100 kept\nb mars:A100 kept", 100);
    let fault = store.record_outcomes(&batch, at(200)).await.unwrap_err();
    assert!(matches!(fault, StoreError::NotFound { what: "cluster", .. }), "{fault}");
    assert_eq!(store.newest_outcome(&pool("earth:A100")).await.unwrap(), None);
}
