use store::{Lease, LeaseRecord, Store, StoreError, Turn};
use tests::fixture::{at, cluster, pool, put_clusters};
use tests::{Backend, TestDatabase, on_both_databases};

on_both_databases![
    a_lease_is_taken_once_and_again_as_it_was_seen,
    a_beat_counts_for_the_holder_of_the_epoch,
    a_lease_given_back_is_free,
    a_service_that_has_lost_a_lease_writes_nothing_any_more,
    a_lease_waits_for_the_write_that_is_under_way,
    a_lease_hangs_on_its_cluster,
];

async fn take(store: &dyn Store, seen: Option<&LeaseRecord>, holder: &str) -> Option<Lease> {
    store.take_lease(&cluster("earth"), seen, holder, "http://h").await.unwrap()
}

async fn stored(store: &dyn Store) -> LeaseRecord {
    let mut all = store.leases().await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

async fn a_lease_is_taken_once_and_again_as_it_was_seen(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth"]).await;
    let both = tokio::join!(take(&*one, None, "a"), take(&*other, None, "b"));
    assert_eq!(usize::from(both.0.is_some()) + usize::from(both.1.is_some()), 1, "{both:?}");
    let seen = stored(&*one).await;
    assert_eq!((seen.lease.epoch, seen.beat, seen.released, seen.address.as_str()), (1, 0, false, "http://h"));
    let both = tokio::join!(take(&*one, Some(&seen), "c"), take(&*other, Some(&seen), "d"));
    assert_eq!(usize::from(both.0.is_some()) + usize::from(both.1.is_some()), 1, "{both:?}");
    assert_eq!(stored(&*one).await.lease.epoch, 2);
    assert_eq!(take(&*one, Some(&seen), "e").await, None, "it is not any more as it was seen");
}

async fn a_beat_counts_for_the_holder_of_the_epoch(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let first = take(&*store, None, "a").await.unwrap();
    assert_eq!(store.beat(std::slice::from_ref(&first)).await.unwrap(), std::slice::from_ref(&first));
    let seen = stored(&*store).await;
    assert_eq!(seen.beat, 1);
    assert_eq!(store.beat(std::slice::from_ref(&first)).await.unwrap().len(), 1);
    assert_eq!(take(&*store, Some(&seen), "b").await, None, "it has beaten since");
    let second = take(&*store, Some(&stored(&*store).await), "b").await.unwrap();
    assert_eq!(store.beat(&[first, second.clone()]).await.unwrap(), [second]);
    assert_eq!(store.beat(&[]).await.unwrap(), []);
}

async fn a_lease_given_back_is_free(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let lease = take(&*store, None, "a").await.unwrap();
    store.release_lease(&lease).await.unwrap();
    assert!(stored(&*store).await.released);
    assert_eq!(store.beat(std::slice::from_ref(&lease)).await.unwrap(), []);
    let fault = store.held(lease).open_journal(&pool("earth:A100")).await.unwrap_err();
    assert!(matches!(fault, StoreError::Fenced { epoch: 1, .. }), "{fault}");
}

async fn a_service_that_has_lost_a_lease_writes_nothing_any_more(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let lease = take(&*store, None, "a").await.unwrap();
    let held = store.held(lease);
    let placed = held.open_journal(&pool("earth:A100")).await.unwrap().placed;
    held.put_announced(placed.id, 3).await.unwrap();
    let _ = take(&*store, Some(&stored(&*store).await), "b").await.unwrap();
    let refused = [
        held.append_turn(&placed, 0, &Turn::default(), at(1)).await,
        held.put_announced(placed.id, 4).await,
        held.insert_quotas(&[], &[]).await,
        held.put_pool_snapshot(
            placed.id,
            &store::PoolSnapshot { seq: 0, snapshot_json: String::new(), accounts_json: None },
            0,
        )
        .await,
    ];
    for fault in refused.map(Result::unwrap_err) {
        assert!(matches!(&fault, StoreError::Fenced { cluster, epoch: 1 } if cluster == "earth"), "{fault}");
    }
    assert_eq!(store.placed_pools().await.unwrap()[0].announced_seq, 3);
}

/// On SQLite nothing is ever under way beside: the one lock of the database is held.
async fn a_lease_waits_for_the_write_that_is_under_way(database: TestDatabase) {
    if database.backend == Backend::Sqlite {
        return;
    }
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let _ = take(&*store, None, "a").await.unwrap();
    let seen = stored(&*store).await;
    let proving = "BEGIN; SELECT 1 FROM leases WHERE epoch = 1 FOR KEY SHARE; SELECT pg_sleep(1.6); COMMIT";
    let (proven, (beat, early)) = tokio::join!(database.try_execute(proving), async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        (
            store.beat(std::slice::from_ref(&seen.lease)).await,
            store.take_lease(&cluster("earth"), Some(&seen), "b", "").await,
        )
    });
    proven.unwrap();
    assert_eq!(beat.unwrap().len(), 1, "its holder beats on meanwhile");
    assert!(matches!(early, Err(StoreError::Busy { .. })), "{early:?}");
    assert!(take(&*store, Some(&stored(&*store).await), "b").await.is_some());
}

async fn a_lease_hangs_on_its_cluster(database: TestDatabase) {
    let store = database.store().await;
    let fault = store.take_lease(&cluster("earth"), None, "a", "").await.unwrap_err();
    assert_eq!(fault.to_string(), "there is no cluster earth");
    assert_eq!(store.leases().await.unwrap(), []);
}
