use std::sync::Arc;
use store::{EtaMove, OutcomeId, Store, StoreError};
use tests::fixture::{at, outcomes, pool, put_clusters, unspent_ids};
use tests::{TestDatabase, on_both_databases};

on_both_databases![
    a_move_spends_its_outcomes,
    two_moves_at_once_from_the_same_value_apply_once,
    a_move_from_another_value_changes_nothing,
    an_outcome_moves_eta_once,
    an_outcome_of_another_pool_moves_nothing,
    outcomes_before_those_of_a_move_are_spent_with_them,
];

fn step(second: i64, from_micro: u32, to_micro: u32) -> EtaMove {
    let reason = "3 % of 100 guarantees were broken".to_owned();
    EtaMove { pool: pool("earth:A100"), at: at(second), from_micro, to_micro, reason, kept: 2, broken: 1 }
}

async fn with_outcomes(database: &TestDatabase) -> (Arc<dyn Store>, Vec<OutcomeId>) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let text = "a earth:A100 kept\nb earth:A100 broken\nc earth:A100 kept\nd earth:H800 kept";
    store.record_outcomes(&outcomes(text, 100), at(200)).await.unwrap();
    let ids = unspent_ids(&*store, "earth:A100").await;
    (store, ids)
}

async fn a_move_spends_its_outcomes(database: TestDatabase) {
    let (store, ids) = with_outcomes(&database).await;
    assert_eq!(store.eta(&pool("earth:A100")).await.unwrap(), None);
    store.apply_eta_move(&step(1, 1_000_000, 750_000), &ids[..2]).await.unwrap();
    store.apply_eta_move(&step(2, 750_000, 800_000), &ids[2..]).await.unwrap();
    let eta = store.eta(&pool("earth:A100")).await.unwrap().unwrap();
    assert_eq!((eta.eta_micro, eta.moved_at), (800_000, at(2)));
    assert!(unspent_ids(&*store, "earth:A100").await.is_empty());
    assert_eq!(unspent_ids(&*store, "earth:H800").await.len(), 1);
    assert_eq!(
        store.eta_outcomes(&pool("earth:A100"), at(0), 0).await.unwrap().newest_ended_at,
        Some(at(102)),
        "spent ones too"
    );
    let moves = store.eta_moves(&pool("earth:A100"), 10).await.unwrap();
    assert_eq!(moves, [step(2, 750_000, 800_000), step(1, 1_000_000, 750_000)]);
    assert_eq!(store.eta_moves(&pool("earth:A100"), 1).await.unwrap().len(), 1);
}

async fn two_moves_at_once_from_the_same_value_apply_once(database: TestDatabase) {
    let (store, ids) = with_outcomes(&database).await;
    let other = database.store().await;
    let (up, down) = (step(1, 1_000_000, 1_500_000), step(1, 1_000_000, 500_000));
    let (first, second) = tokio::join!(store.apply_eta_move(&up, &ids), other.apply_eta_move(&down, &ids));
    let winner = if first.is_ok() { 1_500_000 } else { 500_000 };
    let loser = first.err().or(second.err()).expect("one of them came second");
    assert!(matches!(loser, StoreError::Conflict { .. }), "{loser}");
    assert_eq!(store.eta(&pool("earth:A100")).await.unwrap().map(|eta| eta.eta_micro), Some(winner));
    assert_eq!(store.eta_moves(&pool("earth:A100"), 10).await.unwrap().len(), 1);
}

async fn a_move_from_another_value_changes_nothing(database: TestDatabase) {
    let (store, ids) = with_outcomes(&database).await;
    store.apply_eta_move(&step(1, 1_000_000, 900_000), &ids[..1]).await.unwrap();
    let fault = store.apply_eta_move(&step(2, 1_000_000, 800_000), &ids[1..]).await.unwrap_err();
    assert_eq!(fault.to_string(), "eta of earth:A100: it is 900000 millionths, expected 1000000");
    assert_eq!(unspent_ids(&*store, "earth:A100").await, ids[1..]);
    assert_eq!(store.eta_moves(&pool("earth:A100"), 10).await.unwrap().len(), 1);
}

async fn an_outcome_moves_eta_once(database: TestDatabase) {
    let (store, ids) = with_outcomes(&database).await;
    store.apply_eta_move(&step(1, 1_000_000, 900_000), &ids[..2]).await.unwrap();
    let fault = store.apply_eta_move(&step(2, 900_000, 800_000), &ids).await.unwrap_err();
    assert!(fault.to_string().ends_with("only 1 of 3 outcomes of this pool are unspent"), "{fault}");
    assert_eq!(store.eta(&pool("earth:A100")).await.unwrap().map(|eta| eta.eta_micro), Some(900_000));
    assert_eq!(unspent_ids(&*store, "earth:A100").await, ids[2..]);
    let without_outcomes = store.apply_eta_move(&step(3, 900_000, 910_000), &[]).await;
    assert!(without_outcomes.is_ok(), "eta also moves toward 1 where nothing happened");
}

async fn an_outcome_of_another_pool_moves_nothing(database: TestDatabase) {
    let (store, _) = with_outcomes(&database).await;
    let foreign = unspent_ids(&*store, "earth:H800").await;
    let fault = store.apply_eta_move(&step(1, 1_000_000, 900_000), &foreign).await.unwrap_err();
    assert!(matches!(fault, StoreError::Conflict { .. }), "{fault}");
    assert_eq!(store.eta(&pool("earth:A100")).await.unwrap(), None, "the whole transaction is gone");
    let unknown = EtaMove { pool: pool("mars:A100"), ..step(1, 1_000_000, 900_000) };
    let fault = store.apply_eta_move(&unknown, &[]).await.unwrap_err();
    assert_eq!(fault.to_string(), "there is no cluster mars");
}

async fn outcomes_before_those_of_a_move_are_spent_with_them(database: TestDatabase) {
    let (store, ids) = with_outcomes(&database).await;
    store.apply_eta_move(&step(1, 1_000_000, 750_000), &ids[1..2]).await.unwrap();
    assert_eq!(unspent_ids(&*store, "earth:A100").await, ids[2..], "the older one is spent, the newer one not");
    assert_eq!(unspent_ids(&*store, "earth:H800").await.len(), 1, "nor that of another pool");
}
