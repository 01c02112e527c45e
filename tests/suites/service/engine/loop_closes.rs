//! Placement → usage and outcomes → forecast and eta → quota → placement.

use super::*;
use tests::fixture::loaded;
use tests::on_both_databases;
use vocab::OutcomeKind;

on_both_databases![
    the_quota_is_cut_from_the_gpus_of_the_pool,
    hours_that_are_over_become_usage_once_they_were_seen_whole,
    broken_promises_of_its_own_lower_eta_and_the_limits,
    the_bound_follows_hp_demand_between_two_forecasts,
    a_pool_without_tasks_takes_the_scheduler_s_reports,
];

async fn the_quota_is_cut_from_the_gpus_of_the_pool(database: TestDatabase) {
    let service = placing(&database, 60).await;
    assert!(codes(&quota(&service, 4).await).contains(&"estimated".to_owned()), "before there were tasks");
    let _ = submit(&service, &hp("hp", 8.0, 2)).await;
    let _ = submit(&service, &spot("spot", 8.0, 1, Some(2))).await;
    service.renew().await;
    let of = async |hours| {
        let answer = quota(&service, hours).await;
        (number(&answer["capacity_gpus"]), number(&answer["idle_gpus"]), number(&answer["used_gpus"]))
    };
    assert_eq!(
        (of(1).await, of(2).await, of(4).await),
        ((480.0, 456.0, 8.0), (480.0, 456.0, 8.0), (480.0, 456.0, 0.0))
    );
    assert!(!codes(&quota(&service, 4).await).contains(&"estimated".to_owned()));
    let explained = service.get(&quota_path(4).replace("/quota", "/v1/quota/explain")).await.expect(200);
    assert_eq!(
        (&explained["capacity"]["source"], &explained["steps"][0]),
        (&json!("nodes"), &json!("C = 480.000 GPUs, from nodes"))
    );
    put_node(&service, "n59", true).await;
    service.renew().await;
    assert_eq!(of(4).await, (472.0, 448.0, 0.0), "a node that drains offers nothing");
    let limits = snapshot(&service).await["limits"].clone();
    for (place, hours) in [1, 2, 4].into_iter().enumerate() {
        let answer = quota(&service, hours).await;
        let scaled = number(&answer["inventory_gpus"]) * number(&answer["eta"]);
        assert!((number(&limits[place]["quota_milli"]) - scaled * 1_000.0).abs() < 2.0, "{limits} {answer}");
    }
}

async fn the_bound_follows_hp_demand_between_two_forecasts(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let _ = submit(&service, &hp("base", 8.0, 3)).await;
    let explained = async || {
        let path = "/v1/quota/explain?cluster=demo&gpu_model=A100&hours=1";
        service.get(path).await.expect(200)["bound"].clone()
    };
    service.renew().await;
    let first = explained().await;
    assert_eq!((number(&first["live"]["hp_demand_gpus"]), &first["live"]["live_bound_gpus"]), (24.0, &Value::Null));
    // Two hours and a half go by, five minutes at a time: demand stands still, so it is its own bound.
    for _ in 0..31 {
        service.pass_s(300);
        service.renew().await;
    }
    let known = explained().await;
    assert_eq!(number(&known["live"]["live_bound_gpus"]), 24.0, "{known}");
    let (share, forecast) = (number(&known["live"]["share"]), number(&known["live"]["forecast_bound_gpus"]));
    let mixed = (share * 24.0 + (1.0 - share) * forecast).max(24.0);
    assert!((number(&known["demand_bound_gpus"]) - mixed).abs() < 0.002, "{known}");
    // HP needs more: what it needs is the least that it is bounded by, in the next minute and not in the next hour.
    let _ = submit(&service, &hp("burst", 8.0, 40)).await;
    service.pass_s(60);
    service.renew().await;
    let burst = explained().await;
    assert!(number(&burst["demand_bound_gpus"]) >= 344.0, "{burst}");
    let answer = quota(&service, 1).await;
    assert!(number(&answer["inventory_gpus"]) <= 480.0 - 344.0, "{answer}");
}

async fn hours_that_are_over_become_usage_once_they_were_seen_whole(database: TestDatabase) {
    let service = placing(&database, 10).await;
    let _ = submit(&service, &hp("hp", 8.0, 2)).await;
    service.pass_s(3_600 - 60);
    let _ = submit(&service, &hp("short", 4.0, 1)).await;
    service.pass_s(600);
    let _ = tell(&service, "short", "finish").await.expect(200);
    service.pass_s(3_600 - 600);
    service.renew().await;
    let store = service.service.core.store.as_ref();
    let (first, last) = (end().to_string(), end().plus_s(7_200).to_string());
    let rows = loaded(store, "demo", &first[..13], &last[..13]).await;
    let hour = &end().plus_s(3_600).to_string()[..13];
    let expected = format!("demo:A100:* {hour} 20.000>16.000\ndemo:A100:org-000 {hour} 20.000>16.000\n");
    assert_eq!(rows, expected, "the peak of the second hour; of the first one only a part was seen");
    let forecast = service.get("/v1/forecast?cluster=demo&gpu_model=A100").await.expect(200);
    assert_eq!(forecast["issue_time"], end().plus_s(7_200).to_string());
}

async fn broken_promises_of_its_own_lower_eta_and_the_limits(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = service.get(path).await.expect(200);
    (settings["min_outcomes"], settings["grace_s"]) = (10.into(), 0.into());
    let _ = service.put(path, &settings).await.expect(200);
    service.renew().await;
    for number in 0..10 {
        assert_eq!(submit(&service, &spot(&format!("spot-{number}"), 1.0, 1, Some(1))).await["status"], "running");
    }
    // Four hours go by, an hour at a time: the pool measures its demand, and guarantees of an hour are kept.
    for hour in 0..4 {
        service.pass_s(3_500);
        service.renew().await;
        // Promises are renewed by a quota that is not old.
        service.pass_s(100);
        let _ = submit(&service, &hp(&format!("base-{hour}"), 1.0, 1)).await;
        service.renew().await;
    }
    let kinds = async || service.service.core.store.count_outcomes(&pool(POOL), at(0)).await.unwrap();
    let kept = kinds().await[&OutcomeKind::Kept];
    assert!(kept >= 30, "ten tasks, renewed each hour: {kept}");
    let before = snapshot(&service).await["limits"].clone();
    let inside = task(&service, "spot-0").await;
    assert_eq!(inside["detail"]["run"]["guarantee"]["hours"], 1, "{before} {inside}");
    let eta_before = number(&quota(&service, 4).await["eta"]);
    let _ = submit(&service, &hp("flood", 8.0, 60)).await;
    let full = submit(&service, &hp("rest", 8.0, 59)).await;
    let victims = full["detail"]["victims"].as_array().unwrap().len() as u64;
    assert!(victims > 5, "{full}");
    assert_eq!(kinds().await[&OutcomeKind::Broken], victims, "{before} {inside}");
    service.pass_s(4 * 3_600 - 600);
    service.renew().await;
    service.pass_s(700);
    service.renew().await;
    let after = quota(&service, 4).await;
    assert!(number(&after["eta"]) < eta_before, "{after}");
    assert_ne!(snapshot(&service).await["limits"], before);
}

async fn a_pool_without_tasks_takes_the_scheduler_s_reports(database: TestDatabase) {
    let service = placing(&database, 10).await;
    let now = service.service.core.clock.now();
    let _ = service.put("/v1/pools/demo:A100/state", &state(70, 33, &json!({}), now)).await.expect(200);
    service.renew().await;
    assert_eq!(number(&quota(&service, 4).await["idle_gpus"]), 33.0);
    let refused = service.post("/v1/tasks/dry-run", &hp("hp", 8.0, 1)).await.expect(409);
    assert_eq!(refused["code"], "placed-outside", "what runs there is not known here");
    service.renew().await;
    assert_eq!(number(&quota(&service, 4).await["idle_gpus"]), 33.0, "a trial is no task");
}
