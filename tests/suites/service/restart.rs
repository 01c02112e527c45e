//! What survives a restart, and how the running program follows what others do to its database.

use super::*;
use tests::{Listening, on_both_databases, program};

on_both_databases![
    after_a_restart_the_last_quotas_are_answered_at_their_age,
    under_a_virtual_clock_nothing_is_stored_and_every_answer_is_marked,
    the_running_service_follows_a_promotion,
];

async fn after_a_restart_the_last_quotas_are_answered_at_their_age(database: TestDatabase) {
    let before = serving(&database, 500).await;
    let (answer, explained_path) = (quota(&before, 4).await, quota_path(4).replace("/quota", "/v1/quota/explain"));
    let explained = before.get(&explained_path).await.expect(200);
    let fresh = TestService::start(database.store().await, end().plus_s(120)).await;
    assert_eq!(quota(&fresh, 4).await, answer, "before any renewal");
    let restored = fresh.get(&explained_path).await.expect(200);
    assert_eq!((&restored["steps"], &restored["bound"]), (&explained["steps"], &explained["bound"]));
    let late = TestService::start(database.store().await, end().plus_s(60 + 2_400)).await;
    assert_eq!(quota(&late, 4).await["stage"], "conservative");
    let history = late.get("/v1/quota/history?cluster=demo&gpu_model=A100&hours=4").await.expect(200);
    assert_eq!(history["quotas"][0]["quota_gpus"], answer["quota_gpus"]);
}

async fn under_a_virtual_clock_nothing_is_stored_and_every_answer_is_marked(database: TestDatabase) {
    let store = with_usage(&database, 500).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    for (as_of, hour) in [("latest", end()), ("2024-03-10T06:30:00Z", at(1_710_052_200))] {
        let service = Listening::start(&["--database", &database.url, "--as-of", as_of]);
        let answer = service.get_until(&quota_path(4), |status, _| status == 200);
        assert_eq!(answer["as_of"], answer["computed_at"]);
        assert!(answer["as_of"].as_str().unwrap()[..13] == hour.to_string()[..13], "{answer}");
        let (_, forecast) = service.get("/v1/forecast?cluster=demo&gpu_model=A100");
        assert!(
            forecast["issue_time"].as_str().unwrap()[..13] == hour.to_string()[..13],
            "hours after it are not seen"
        );
        assert_eq!(service.stop().code, 0);
    }
    assert!(store.latest_quotas(None).await.unwrap().is_empty());
    assert_eq!(store.newest_issue(&cluster("demo")).await.unwrap(), None, "nor is what was said");
}

async fn the_running_service_follows_a_promotion(database: TestDatabase) {
    let store = with_usage(&database, 500).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "[quota-service]\npromotion_check_s = 1\n").unwrap();
    let file = config.path().to_str().unwrap();
    let service = Listening::start(&["--database", &database.url, "--as-of", "latest", "--config", file]);
    let serves = |id: &'static str| move |status: u16, answer: &Value| status == 200 && answer["run_id"] == id;
    let _ = service.get_until(&quota_path(4), serves("run-1"));
    let arguments = ["--horizon", "4h", "--model", "seasonal-24h", "--promote", "--max-mae", "1000", "--database"];
    let _ = program("train", &[&arguments[..], &[&database.url]].concat()).ok();
    let _ = service.get_until(&quota_path(4), serves("run-2"));
    let (status, metrics) = service.get("/metrics");
    assert_eq!(status, 200);
    for name in
        ["headroom_quota_gpus{", "headroom_eta{", "headroom_refresh_seconds_bucket{", "headroom_http_answers_total{"]
    {
        assert!(metrics.as_str().unwrap().contains(name), "{name} is missing");
    }
}
