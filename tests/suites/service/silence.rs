//! Silence makes no quota larger: of schedulers, pools, models, settings that changed meanwhile.

use super::*;
use axum::http::Method;
use tests::{on_both_databases, promote_bytes};

on_both_databases![
    after_a_scheduler_fell_silent_its_pool_ages_until_the_state_is_deleted,
    a_pool_that_fell_silent_ages_beside_one_that_reports,
    while_nothing_is_renewed_admitted_gpus_are_not_available_again,
    new_bounds_of_eta_hold_at_once,
    outcomes_from_the_future_are_refused,
    a_rollback_from_a_refused_run_ends_the_matter,
    a_promise_that_ends_after_forecasts_is_marked,
];

async fn after_a_scheduler_fell_silent_its_pool_ages_until_the_state_is_deleted(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let drained = state(90, 10, &json!({ "1": 20 }), end().plus_s(60));
    let _ = service.put("/v1/pools/demo:A100/state", &drained).await.expect(200);
    service.renew().await;
    let reported = number(&quota(&service, 1).await["quota_gpus"]);
    service.pass_s(660);
    service.renew().await;
    let aged = quota(&service, 1).await;
    assert_eq!((number(&aged["quota_gpus"]), &aged["stage"]), (reported, &"stale".into()), "500 GPUs are not guessed");
    assert!(aged["reasons"].to_string().contains("its state was last reported for 2024-03-14T16:01:00Z"), "{aged}");
    let path = "/v1/pools/demo:A100/state";
    assert_eq!(service.send(Method::DELETE, path, &[], None).await.status, 204);
    service.renew().await;
    let estimated = quota(&service, 1).await;
    assert_eq!((number(&estimated["capacity_gpus"]), &estimated["stage"]), (500.0, &"fresh".into()));
}

async fn a_pool_that_fell_silent_ages_beside_one_that_reports(database: TestDatabase) {
    let store = with_usage(&database, 500).await;
    let other = |hour: i64| {
        json!({ "hour": end().plus_s(3_600 * hour).to_string(), "cluster": "demo", "gpu_model": "V100",
            "organization": "a", "demand_gpus": 3 })
    };
    let capacity = CapacityRow { pool: pool("demo:V100"), from: first_hour(), capacity: MilliGpus::from_gpus(100) };
    let empty = CapacityRow { pool: pool("demo:H100"), ..capacity.clone() };
    store.append(&[], &[capacity, empty]).await.unwrap();
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    let service = TestService::start(store, end().plus_s(60)).await;
    let _ = service.post("/v1/usage", &json!({ "rows": (-24..0).map(other).collect::<Vec<_>>() })).await.expect(200);
    service.renew().await;
    assert_eq!(quota(&service, 4).await["stage"], "fresh");
    let nobodys = service.get(&quota_path(4).replace("A100", "H100")).await.expect(503);
    assert!(nobodys["detail"].as_str().unwrap().contains("no hour of usage is measured"), "{nobodys}");
    service.pass_s(3 * 3_600);
    let _ = service.post("/v1/usage", &json!({ "rows": (0..3).map(other).collect::<Vec<_>>() })).await.expect(200);
    service.renew().await;
    assert_eq!(quota(&service, 4).await["stage"], "conservative", "its own usage is three hours old");
    let reports = service.get(&quota_path(4).replace("A100", "V100")).await.expect(200);
    assert_eq!(reports["stage"], "fresh");
}

async fn while_nothing_is_renewed_admitted_gpus_are_not_available_again(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let report = async |idle: u32, spot: Value| {
        let body = state(500, idle, &spot, service.service.core.clock.now());
        let _ = service.put("/v1/pools/demo:A100/state", &body).await.expect(200);
        service.renew().await;
        quota(&service, 4).await
    };
    let fresh = report(300, json!({ "4": 20 })).await;
    service.pass_s(2 * 3_600 - 60);
    let renewed = report(300, json!({ "4": 20 })).await;
    assert_eq!(renewed["stage"], "fresh");
    service.pass_s(700);
    let stale = report(300, json!({ "4": 50 })).await;
    assert_eq!((&stale["stage"], number(&stale["quota_gpus"])), (&"stale".into(), number(&renewed["quota_gpus"])));
    assert_eq!(number(&stale["used_gpus"]), 50.0);
    assert_eq!(number(&stale["available_gpus"]), number(&renewed["available_gpus"]) - 30.0, "{fresh}");
    let shorter = report(0, json!({ "1": 450, "4": 50 })).await;
    assert_eq!(number(&shorter["available_gpus"]), 0.0, "a task of 4 h counts among those of 1 h, which are full");
}

async fn new_bounds_of_eta_hold_at_once(database: TestDatabase) {
    let service = serving(&database, 500).await;
    service.pass_s(4 * 3_600);
    let rows: Vec<_> = (0..4)
        .map(|hour| {
            json!({ "hour": end().plus_s(3_600 * hour).to_string(), "cluster": "demo", "gpu_model": "A100",
                "organization": "org-000", "demand_gpus": 30 })
        })
        .collect();
    let _ = service.post("/v1/usage", &json!({ "rows": rows })).await.expect(200);
    service.renew().await;
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    (settings["eta_least"], settings["eta_start"], settings["eta_most"]) = (1.6.into(), 2.0.into(), 2.5.into());
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    let ended = end().plus_s(4 * 3_600).get();
    let broken: Vec<_> = (0..100)
        .map(|number| {
            json!({ "event_id": format!("e{number}"), "cluster": "demo", "gpu_model": "A100", "guarantee_hours": 1,
                "kind": "broken", "ended_at": at(ended).to_string() })
        })
        .collect();
    let _ = service.post("/v1/outcomes", &json!({ "outcomes": broken })).await.expect(200);
    service.renew().await;
    assert_eq!(number(&quota(&service, 4).await["eta"]), 1.6, "its least, with any broken promises");
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    (settings["eta_least"], settings["eta_start"], settings["eta_most"]) = (0.5.into(), 1.0.into(), 1.2.into());
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    service.renew().await;
    assert_eq!(number(&quota(&service, 4).await["eta"]), 1.2, "the most that is allowed now");
}

async fn outcomes_from_the_future_are_refused(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let event = |number: u32, ended_at: i64| {
        json!({ "event_id": format!("e{number}"), "cluster": "demo", "gpu_model": "A100", "guarantee_hours": 1,
            "kind": "kept", "ended_at": at(ended_at).to_string() })
    };
    let batch = json!({ "outcomes": [event(0, end().get()), event(1, end().get() + 3_600)] });
    let refused = service.post("/v1/outcomes", &batch).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/outcomes/1/ended_at");
    let mut elsewhere = event(2, end().get());
    elsewhere["gpu_model"] = "H800".into();
    let unknown = service.post("/v1/outcomes", &json!({ "outcomes": [event(0, end().get()), elsewhere] })).await;
    assert_eq!(unknown.expect(404)["known"], json!([POOL]));
    assert!(
        service.service.core.store.eta_outcomes(&pool(POOL), at(0), 0).await.unwrap().unspent.is_empty(),
        "nothing was taken"
    );
}

async fn a_rollback_from_a_refused_run_ends_the_matter(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let store = service.service.core.store.as_ref();
    let until = end().hour().unwrap();
    promote_bytes(store, &cluster("demo"), ModelKind::LastValue, until, b"no checkpoint".to_vec()).await;
    assert!(service.sees_news().await);
    service.renew().await;
    assert!(!service.sees_news().await, "it was tried and refused");
    store.rollback(&cluster("demo"), end(), "test").await.unwrap();
    assert!(service.sees_news().await);
    service.renew().await;
    assert!(!service.sees_news().await, "else every look would renew all quotas");
}

async fn a_promise_that_ends_after_forecasts_is_marked(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let codes_of = async |hours: u8| codes(&quota(&service, hours).await);
    assert!(codes_of(4).await.contains(&"forecast_ends_early".to_owned()), "a minute past the hour it covers 5 steps");
    assert!(!codes_of(2).await.contains(&"forecast_ends_early".to_owned()));
    let explained = service.get(&quota_path(1).replace("/quota", "/v1/quota/explain")).await.expect(200);
    assert_eq!(explained["bound"]["steps"], 2, "an hour from a minute past ends in the next one");
}
