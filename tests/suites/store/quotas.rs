use store::{NewLearned, RunId, StoreError, StoredLearned, StoredQuota, StoredUnder};
use tests::fixture::{at, cluster, gpus, hours, pool, put_clusters};
use tests::{TestDatabase, on_both_databases};

on_both_databases![
    the_last_quota_stored_is_the_latest_even_when_the_clock_jumps_back,
    the_history_comes_newest_first_and_ends_at_the_limit,
    retention_keeps_the_first_quota_and_the_one_that_a_service_falls_back_on,
    a_quota_of_an_unknown_run_keeps_the_others_out,
    learned_state_is_written_with_the_quotas_or_not_at_all,
    the_history_keeps_every_amount_and_the_explanations_that_are_new,
    a_basis_has_the_lease_and_the_settings_that_the_newest_quotas_were_stored_under,
];

fn quota(pool_text: &str, h: u64, computed_at: i64, amount: &str) -> StoredQuota {
    StoredQuota {
        pool: pool(pool_text),
        hours: hours(h),
        computed_at: at(computed_at),
        quota: gpus(amount),
        run_id: None,
        settings_version: None,
        answer_json: format!("{{\"quota_gpus\": {amount}}}"),
        explanation_json: "{}".to_owned(),
        is_explained: true,
    }
}

async fn the_last_quota_stored_is_the_latest_even_when_the_clock_jumps_back(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth", "mars"]).await;
    let first = [quota("mars:A100", 1, 300, "9"), quota("earth:A100", 4, 300, "2"), quota("earth:A100", 1, 300, "3")];
    store.insert_quotas(&first, &[]).await.unwrap();
    let jumped = quota("earth:A100", 4, 200, "1");
    store.insert_quotas(std::slice::from_ref(&jumped), &[]).await.unwrap();
    let latest = store.latest_quotas(None).await.unwrap();
    assert_eq!(latest, [first[2].clone(), jumped.clone(), first[0].clone()]);
    assert_eq!(store.latest_quotas(Some(&cluster("earth"))).await.unwrap(), [first[2].clone(), jumped]);
    assert!(store.latest_quotas(Some(&cluster("pluto"))).await.unwrap().is_empty());
}

async fn the_history_comes_newest_first_and_ends_at_the_limit(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let all: Vec<_> = (0..10).map(|number| quota("earth:A100", 4, number * 300, &number.to_string())).collect();
    store.insert_quotas(&all, &[]).await.unwrap();
    store.insert_quotas(&[quota("earth:A100", 1, 300, "7")], &[]).await.unwrap();
    let history = store.quota_history(&pool("earth:A100"), hours(4), at(300), at(1_500), 3).await.unwrap();
    assert_eq!(history, [all[4].clone(), all[3].clone(), all[2].clone()], "1,500 s is excluded");
    let history = store.quota_history(&pool("earth:A100"), hours(4), at(300), at(1_500), 100).await.unwrap();
    assert_eq!(history.len(), 4, "300 s is included");
}

async fn retention_keeps_the_first_quota_and_the_one_that_a_service_falls_back_on(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let of = |at, amount| quota("earth:A100", 4, at, amount);
    let all = [of(100, "1"), of(200, "2"), of(300, "3"), quota("earth:H800", 4, 150, "4")];
    store.insert_quotas(&all, &[]).await.unwrap();
    let first = async |h| store.first_quota_at(&pool("earth:A100"), hours(h)).await.unwrap();
    assert_eq!((first(4).await, first(1).await), (Some(at(100)), None));
    assert_eq!(store.delete_quotas_before(at(1_000)).await.unwrap(), 1);
    assert_eq!(first(4).await, Some(at(100)), "before the first move of eta its wait begins there");
    assert_eq!(store.delete_quotas_before(at(1_000)).await.unwrap(), 0);
    assert_eq!(store.latest_quotas(None).await.unwrap(), all[2..]);
}

async fn a_quota_of_an_unknown_run_keeps_the_others_out(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let orphan = StoredQuota { run_id: Some(RunId::new(12)), ..quota("earth:H800", 4, 100, "3") };
    let fault = store.insert_quotas(&[quota("earth:A100", 4, 100, "1"), orphan], &[]).await.unwrap_err();
    assert!(matches!(&fault, StoreError::NotFound { .. }) && fault.to_string().contains("run-12"), "{fault}");
    assert!(store.latest_quotas(None).await.unwrap().is_empty());
    store.insert_quotas(&[], &[]).await.unwrap();
}

async fn learned_state_is_written_with_the_quotas_or_not_at_all(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let learned = |saved_at: i64, risk: u8, live: Option<u8>| NewLearned {
        pool: pool("earth:A100"),
        saved_at: at(saved_at),
        risk: vec![risk, 0, 255],
        live: live.map(|live| vec![live; 50_000]),
    };
    let known = async || store.learned(&pool("earth:A100")).await.unwrap();
    assert_eq!(known().await, None);
    let first = [quota("earth:A100", 4, 100, "1")];
    store.insert_quotas(&first, &[learned(100, 1, Some(7))]).await.unwrap();
    assert_eq!(known().await, Some(StoredLearned { saved_at: at(100), risk: vec![1, 0, 255], live: vec![7; 50_000] }));
    // How demand moves is written more seldom.
    store.insert_quotas(&[], &[learned(400, 2, None)]).await.unwrap();
    let second = StoredLearned { saved_at: at(400), risk: vec![2, 0, 255], live: vec![7; 50_000] };
    assert_eq!(known().await, Some(second.clone()));
    let orphan = StoredQuota { run_id: Some(RunId::new(12)), ..quota("earth:A100", 4, 700, "3") };
    let _ = store.insert_quotas(&[orphan], &[learned(700, 3, Some(8))]).await.unwrap_err();
    assert_eq!(known().await, Some(second));
    let unknown = NewLearned { pool: pool("pluto:A100"), ..learned(700, 3, Some(8)) };
    let fault = store.insert_quotas(&[], &[unknown]).await.unwrap_err();
    assert!(matches!(&fault, StoreError::NotFound { .. }) && fault.to_string().contains("pluto"), "{fault}");
}

async fn the_history_keeps_every_amount_and_the_explanations_that_are_new(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let explained = quota("earth:A100", 4, 100, "1");
    let plain = StoredQuota { is_explained: false, ..quota("earth:A100", 4, 200, "2") };
    for one in [&explained, &plain] {
        store.insert_quotas(std::slice::from_ref(one), &[]).await.unwrap();
    }
    let history = store.quota_history(&pool("earth:A100"), hours(4), at(0), at(1_000), 10).await.unwrap();
    let of = |one: &StoredQuota| (one.computed_at, one.quota, one.is_explained, one.explanation_json.clone());
    let shown: Vec<_> = history.iter().map(of).collect();
    assert_eq!(shown, [(at(200), gpus("2"), false, String::new()), (at(100), gpus("1"), true, "{}".to_owned())]);
    let latest = store.latest_quotas(None).await.unwrap();
    assert_eq!(latest[0].answer_json, plain.answer_json, "a restart finds the last one whole");
    assert_eq!(latest[0].explanation_json, "{}");
    assert!(store.size_bytes().await.unwrap() > 10_000);
    let note = |hour: i64| store::Size { at: at(hour * 3_600), bytes: 1_000 };
    store.note_size(note(1), at(0)).await.unwrap();
    store.note_size(note(9), at(2 * 3_600)).await.unwrap();
    assert_eq!(store.sizes().await.unwrap(), [note(9)]);
    for checked in store.integrity().await.unwrap() {
        assert!(checked.faults.is_empty(), "{checked:?}");
    }
}

async fn a_basis_has_the_lease_and_the_settings_that_the_newest_quotas_were_stored_under(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let under = async || store.quota_bases().await.unwrap()[0].stored_under;
    let set = |h, at, settings_version| StoredQuota { settings_version, ..quota("earth:A100", h, at, "1") };
    store.insert_quotas(&[set(1, 100, Some(2)), set(4, 100, Some(2))], &[]).await.unwrap();
    assert_eq!(under().await, None, "there was no lease");
    let lease = store.take_lease(&cluster("earth"), None, "one", "").await.unwrap().unwrap();
    store.insert_quotas(&[set(4, 200, Some(3))], &[]).await.unwrap();
    assert_eq!(under().await, Some(StoredUnder { epoch: lease.epoch, settings_version: Some(3) }));
    assert_eq!(store.latest_quotas(None).await.unwrap(), [set(1, 100, Some(2)), set(4, 200, Some(3))]);
    let seen = store.leases().await.unwrap();
    let next = store.take_lease(&cluster("earth"), seen.first(), "two", "").await.unwrap().unwrap();
    assert_eq!(under().await.unwrap().epoch, lease.epoch, "as they were stored");
    store.insert_quotas(&[set(4, 300, None)], &[]).await.unwrap();
    assert_eq!(under().await, Some(StoredUnder { epoch: next.epoch, settings_version: None }));
}
