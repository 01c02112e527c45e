//! Days of GPU time, and accounts beside snapshots.

use store::{AccountedDay, PoolSnapshot, Turn};
use tests::fixture::{pool, put_clusters};
use tests::{TestDatabase, on_both_databases};
use vocab::UnixSeconds;

on_both_databases![
    days_are_written_with_a_turn_replaced_and_forgotten_by_age,
    accounts_are_those_of_their_snapshot_and_of_no_other,
];

const DAY_S: i64 = 86_400;

fn day(number: i64, text: &str) -> AccountedDay {
    AccountedDay { day: UnixSeconds::new(number * DAY_S), accounts_json: text.to_owned() }
}

async fn days_are_written_with_a_turn_replaced_and_forgotten_by_age(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let (first, second) = (pool("earth:A100"), pool("earth:H800"));
    let now = UnixSeconds::new(20_000 * DAY_S);
    for (of, days) in [(&second, vec![day(19_990, "{}")]), (&first, vec![day(19_991, "{\"a\": 1}"), day(19_992, "{}")])]
    {
        let placed = store.open_journal(of).await.unwrap().placed;
        store.append_turn(&placed, 0, &Turn { days, ..Turn::default() }, now).await.unwrap();
    }
    let placed = store.open_journal(&first).await.unwrap().placed;
    let again = Turn { days: vec![day(19_992, "{\"b\": 2}")], ..Turn::default() };
    store.append_turn(&placed, 0, &again, now).await.unwrap();
    let all = |from: i64, to: i64| store.statement_days(UnixSeconds::new(from * DAY_S), UnixSeconds::new(to * DAY_S));
    let expected = [
        (first.clone(), day(19_991, "{\"a\": 1}")),
        (first.clone(), day(19_992, "{\"b\": 2}")),
        (second.clone(), day(19_990, "{}")),
    ];
    assert_eq!(all(0, 30_000).await.unwrap(), expected);
    assert_eq!(all(19_991, 19_992).await.unwrap(), expected[..1]);
    assert_eq!(store.delete_statement_days_before(UnixSeconds::new(19_992 * DAY_S)).await.unwrap(), 2);
    assert_eq!(all(0, 30_000).await.unwrap(), expected[1..2]);
}

async fn accounts_are_those_of_their_snapshot_and_of_no_other(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let placed = store.open_journal(&pool("earth:A100")).await.unwrap().placed;
    let snapshot =
        PoolSnapshot { seq: 0, snapshot_json: "{}".to_owned(), accounts_json: Some("{\"open\": {}}".to_owned()) };
    store.put_pool_snapshot(placed.id, &snapshot, 0).await.unwrap();
    assert_eq!(store.pool_snapshot(placed.id).await.unwrap(), Some(snapshot.clone()));
    assert_eq!(store.open_journal(&pool("earth:A100")).await.unwrap().snapshot, Some(snapshot));
    // A program that knows no accounts writes a later snapshot.
    database.execute("UPDATE pool_snapshots SET seq = 3, snapshot_json = '{\"at\": 3}'").await;
    let later = store.pool_snapshot(placed.id).await.unwrap().unwrap();
    assert_eq!((later.seq, later.accounts_json), (3, None));
}
