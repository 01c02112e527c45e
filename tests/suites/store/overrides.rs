use store::{AuditRecord, NewOverride, OverrideRecord, Store, StoreError};
use tests::fixture::{at, gpus, pool, put_clusters};
use tests::{TestDatabase, on_both_databases};
use vocab::{Override, OverrideId, OverrideKind};

on_both_databases![
    an_override_is_kept_with_actor_and_reason_and_audited,
    the_same_override_again_is_the_one_that_stands,
    of_two_that_come_at_once_one_is_new,
    one_that_is_withdrawn_stays_as_it_was_withdrawn_first,
    those_that_are_over_are_asked_for,
    an_override_of_an_unknown_cluster_leaves_nothing,
];

fn asked(of: &str, from: i64, to: i64) -> NewOverride {
    let what = Override { pool: pool(of), kind: OverrideKind::Reserve, gpus: gpus("12.5"), from: at(from), to: at(to) };
    NewOverride { what, reason: "a launch".to_owned(), by: "anna".to_owned(), at: at(5) }
}

fn audit() -> AuditRecord {
    AuditRecord {
        at: at(5),
        actor: "anna".to_owned(),
        token_id: None,
        action: "POST /v1/overrides".to_owned(),
        target: "/v1/overrides".to_owned(),
        status: 201,
        detail_json: Some("{}".to_owned()),
    }
}

async fn put(store: &dyn Store, asked: &NewOverride) -> (OverrideRecord, bool) {
    store.put_override(asked, &audit()).await.unwrap()
}

async fn an_override_is_kept_with_actor_and_reason_and_audited(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let asked = asked("earth:A100", 100, 200);
    let (record, is_new) = put(&*store, &asked).await;
    assert!(is_new);
    assert_eq!(record, OverrideRecord { id: record.id, asked, withdrawn: None });
    assert_eq!(store.override_record(record.id).await.unwrap(), record);
    assert_eq!(store.overrides(Some(&pool("earth:A100")), at(199), false).await.unwrap(), [record]);
    assert_eq!(store.overrides(Some(&pool("earth:H800")), at(0), true).await.unwrap(), []);
    let entries = store.audit(at(0), at(1_000), 10).await.unwrap();
    assert_eq!(entries.into_iter().map(|entry| entry.record).collect::<Vec<_>>(), [audit()]);
}

async fn the_same_override_again_is_the_one_that_stands(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let (first, _) = put(&*store, &asked("earth:A100", 100, 200)).await;
    let again = NewOverride { at: at(50), ..asked("earth:A100", 100, 200) };
    assert_eq!(put(&*store, &again).await, (first.clone(), false));
    assert_eq!(store.audit(at(0), at(1_000), 10).await.unwrap().len(), 1, "nothing was written the second time");
    let other = NewOverride { by: "bert".to_owned(), ..again.clone() };
    assert!(put(&*store, &other).await.1, "one of another operator is another one");
    store.withdraw_override(first.id, at(60), "anna").await.unwrap();
    let (third, is_new) = put(&*store, &again).await;
    assert!(is_new && third.id != first.id, "one that was withdrawn may be asked for again");
}

async fn of_two_that_come_at_once_one_is_new(database: TestDatabase) {
    let (one, other) = (database.store().await, database.store().await);
    put_clusters(&*one, &["earth"]).await;
    let asked = asked("earth:A100", 100, 200);
    let (first, second) = tokio::join!(put(&*one, &asked), put(&*other, &asked));
    assert_eq!(first.0, second.0);
    assert!(first.1 != second.1, "one of them was there before the other");
}

async fn one_that_is_withdrawn_stays_as_it_was_withdrawn_first(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let (record, _) = put(&*store, &asked("earth:A100", 100, 200)).await;
    let withdrawn = store.withdraw_override(record.id, at(70), "bert").await.unwrap();
    assert_eq!(withdrawn.withdrawn, Some((at(70), "bert".to_owned())));
    assert_eq!(store.withdraw_override(record.id, at(80), "carl").await.unwrap(), withdrawn);
    assert_eq!(store.overrides(Some(&pool("earth:A100")), at(0), false).await.unwrap(), []);
    assert_eq!(store.overrides(None, at(0), true).await.unwrap(), [withdrawn]);
    let nobody = store.withdraw_override(OverrideId(99), at(80), "carl").await.unwrap_err();
    assert_eq!(nobody.to_string(), "there is no override 99");
}

async fn those_that_are_over_are_asked_for(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let (over, _) = put(&*store, &asked("earth:A100", 100, 200)).await;
    let (ahead, _) = put(&*store, &asked("earth:A100", 300, 400)).await;
    let of = pool("earth:A100");
    assert_eq!(store.overrides(Some(&of), at(200), false).await.unwrap(), std::slice::from_ref(&ahead));
    assert_eq!(store.overrides(Some(&of), at(0), false).await.unwrap(), [over, ahead]);
}

async fn an_override_of_an_unknown_cluster_leaves_nothing(database: TestDatabase) {
    let store = database.store().await;
    let fault = store.put_override(&asked("mars:A100", 1, 2), &audit()).await.unwrap_err();
    assert!(matches!(fault, StoreError::NotFound { .. }), "{fault}");
    assert_eq!(store.audit(at(0), at(1_000), 10).await.unwrap(), []);
}
