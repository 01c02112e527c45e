use store::{NodeHour, StoreError};
use tests::fixture::{hour, pool, put_clusters};
use tests::{TestDatabase, on_both_databases};

on_both_databases![an_hour_is_replaced_and_old_ones_are_forgotten];

async fn an_hour_is_replaced_and_old_ones_are_forgotten(database: TestDatabase) {
    let store = database.store().await;
    let of = pool("earth:A100");
    let at = |text: &str, peaks: &str| NodeHour { hour: hour(text), peaks_json: peaks.to_owned() };
    let long_ago = hour("2024-02-01T00");
    let unknown = store.put_node_hour(&of, &at("2024-03-01T00", "{}"), long_ago).await.unwrap_err();
    assert!(matches!(unknown, StoreError::NotFound { .. }), "{unknown}");
    put_clusters(&*store, &["earth"]).await;
    for (text, peaks) in [("2024-03-01T00", "a"), ("2024-03-01T01", "b"), ("2024-03-01T01", "c")] {
        store.put_node_hour(&of, &at(text, peaks), long_ago).await.unwrap();
    }
    let all = [at("2024-03-01T00", "a"), at("2024-03-01T01", "c")];
    assert_eq!(store.node_hours(&of, long_ago).await.unwrap(), all);
    assert_eq!(store.node_hours(&of, hour("2024-03-01T01")).await.unwrap(), all[1..]);
    assert_eq!(store.node_hours(&pool("earth:H800"), long_ago).await.unwrap(), []);
    store.put_node_hour(&of, &at("2024-03-01T02", "d"), hour("2024-03-01T01")).await.unwrap();
    let kept = store.node_hours(&of, long_ago).await.unwrap();
    assert_eq!(kept, [at("2024-03-01T01", "c"), at("2024-03-01T02", "d")]);
}
