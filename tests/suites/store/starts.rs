use store::StoreError;
use tests::fixture::{pool, put_clusters};
use tests::{TestDatabase, on_both_databases};
use vocab::UnixSeconds;

on_both_databases![knowledge_of_starts_is_replaced_whole];

async fn knowledge_of_starts_is_replaced_whole(database: TestDatabase) {
    let store = database.store().await;
    let (of, at) = (pool("earth:A100"), UnixSeconds::new(1_709_251_200));
    let unknown = store.put_starts(&of, at, b"one").await.unwrap_err();
    assert!(matches!(unknown, StoreError::NotFound { .. }), "{unknown}");
    put_clusters(&*store, &["earth"]).await;
    assert_eq!(store.starts(&of).await.unwrap(), None);
    for learned in [b"one".as_slice(), b"another"] {
        store.put_starts(&of, at, learned).await.unwrap();
        assert_eq!(store.starts(&of).await.unwrap().as_deref(), Some(learned));
    }
    assert_eq!(store.starts(&pool("earth:H800")).await.unwrap(), None);
}
