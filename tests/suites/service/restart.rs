//! State that survives a restart, and how the running program follows changes of its database by others.

use super::*;
use tests::{Backend, Listening, on_both_databases, program};

on_both_databases![
    after_a_restart_the_last_quotas_are_answered_at_their_age,
    after_a_restart_it_is_ready_once_it_forecasts_again_or_says_why_it_does_not,
    after_a_restart_it_is_not_ready_while_no_renewal_succeeds,
    learned_state_of_a_pool_survives_a_restart,
    learned_state_that_can_no_longer_be_read_is_learned_again,
    under_a_virtual_clock_nothing_is_stored_and_every_answer_is_marked,
    under_a_virtual_clock_a_state_of_another_time_is_no_capacity_of_a_pool_without_a_quota,
    the_running_service_follows_a_promotion,
    a_model_that_cannot_forecast_is_one_line_of_the_log_until_it_can,
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

/// The codes of readiness, of readiness for reads, and of the forecast; `ok` where they answer 200.
async fn ready_and_forecast(service: &TestService) -> [String; 3] {
    let mut codes = [const { String::new() }; 3];
    for (code, path) in
        codes.iter_mut().zip(["/readyz", "/readyz?for=reads", "/v1/forecast?cluster=demo&gpu_model=A100"])
    {
        let answer = service.get(path).await;
        *code = if answer.status == 200 {
            "ok".to_owned()
        } else {
            answer.expect(503)["code"].as_str().unwrap().to_owned()
        };
    }
    codes
}

async fn after_a_restart_it_is_ready_once_it_forecasts_again_or_says_why_it_does_not(database: TestDatabase) {
    let before = serving(&database, 500).await;
    assert_eq!(ready_and_forecast(&before).await, ["ok"; 3]);
    before.leave().await;
    let again = TestService::start(database.store().await, end().plus_s(120)).await;
    assert_eq!(ready_and_forecast(&again).await, ["no-quota-yet", "ok", "no-quota-yet"], "before any renewal");
    again.renew().await;
    assert_eq!(ready_and_forecast(&again).await, ["ok"; 3]);
    again.leave().await;
    // Usage ended three hours ago: the last quotas age, and reports of usage are wanted.
    let late = TestService::start(database.store().await, end().plus_s(3 * 3_600)).await;
    late.renew().await;
    assert_eq!(ready_and_forecast(&late).await, ["ok", "ok", "no-quota-yet"]);
    let why = late.get("/v1/forecast?cluster=demo&gpu_model=A100").await.expect(503)["detail"].to_string();
    assert!(why.contains("the newest usage ends at"), "{why}");
}

async fn after_a_restart_it_is_not_ready_while_no_renewal_succeeds(database: TestDatabase) {
    serving(&database, 500).await.leave().await;
    // Without the ledger the calibration of the training would serve, as if nothing had been learned since.
    for table in ["pool_settings", "calibrations", "issued_forecasts"] {
        let again = TestService::start(database.store().await, end().plus_s(120)).await;
        let last = quota(&again, 4).await["computed_at"].clone();
        database.execute(&format!("ALTER TABLE {table} RENAME TO away")).await;
        again.renew().await;
        assert_eq!(ready_and_forecast(&again).await, ["no-quota-yet", "ok", "no-quota-yet"], "{table}");
        let why = again.get("/readyz").await.expect(503)["detail"].to_string();
        assert!(why.contains("demo:A100: no renewal since the start has succeeded") && !why.contains(table), "{why}");
        assert_eq!(quota(&again, 4).await["computed_at"], last, "{table}");
        database.execute(&format!("ALTER TABLE away RENAME TO {table}")).await;
        again.renew().await;
        assert_eq!(ready_and_forecast(&again).await, ["ok"; 3], "{table}");
        // One that has renewed answers on.
        database.execute(&format!("ALTER TABLE {table} RENAME TO away")).await;
        again.renew().await;
        assert_eq!(ready_and_forecast(&again).await, ["ok"; 3], "{table}");
        database.execute(&format!("ALTER TABLE away RENAME TO {table}")).await;
        again.leave().await;
    }
}

/// A pool of six nodes that was watched for 30 hours.
async fn watched(database: &TestDatabase) -> TestService {
    let service = serving(database, 48).await;
    for number in 0..6 {
        let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
        let _ = service.put(&format!("/v1/nodes/n{number}"), &node).await.expect(200);
    }
    let hp = json!({
        "cluster": "demo", "gpu_model": "A100", "id": "hp", "organization": "org-000", "class": "hp", "gpus_per_pod": 8,
        "pods": 2,
    });
    let _ = service.post("/v1/tasks", &hp).await.expect(200);
    for _ in 0..30 * 12 {
        service.pass_s(300);
        service.renew().await;
    }
    service
}

async fn bound(service: &TestService) -> Value {
    let path = "/v1/quota/explain?cluster=demo&gpu_model=A100&hours=1";
    service.get(path).await.expect(200)["bound"].clone()
}

async fn learned_state_of_a_pool_survives_a_restart(database: TestDatabase) {
    let service = watched(&database).await;
    let before = bound(&service).await;
    assert!(number(&before["kept"]["lambda"]) < 0.7, "nothing broke: {before}");
    assert_eq!(number(&before["live"]["live_bound_gpus"]), 16.0, "{before}");
    let now = service.service.core.clock.now();
    service.leave().await;
    let again = TestService::start(database.store().await, now.plus_s(120)).await;
    again.renew().await;
    let after = bound(&again).await;
    assert!((number(&after["kept"]["lambda"]) - number(&before["kept"]["lambda"])).abs() < 0.01, "{before} {after}");
    for part in ["live_bound_gpus", "share"] {
        assert_eq!(after["live"][part], before["live"][part], "{after}");
    }
}

async fn learned_state_that_can_no_longer_be_read_is_learned_again(database: TestDatabase) {
    let service = watched(&database).await;
    let now = service.service.core.clock.now();
    service.leave().await;
    let bytes = if database.backend == Backend::Postgres { "'\\x0102'" } else { "x'0102'" };
    database.execute(&format!("UPDATE learned SET risk = {bytes}")).await;
    let again = TestService::start(database.store().await, now.plus_s(120)).await;
    again.renew().await;
    let after = bound(&again).await;
    assert_eq!(
        (&after["kept"], &after["live"]["live_bound_gpus"]),
        (&Value::Null, &Value::Null),
        "as on its first day"
    );
    assert!(again.service.core.store.learned(&pool(POOL)).await.unwrap().unwrap().risk.len() > 20, "written again");
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
    assert_eq!(store.newest_issue(&cluster("demo")).await.unwrap(), None, "nor are its forecasts");
}

async fn under_a_virtual_clock_a_state_of_another_time_is_no_capacity_of_a_pool_without_a_quota(
    database: TestDatabase,
) {
    let now = end().plus_s(30 * 86_400);
    let today = TestService::start(with_usage(&database, 500).await, now).await;
    today.renew().await;
    let _ = today.put("/v1/pools/demo:A100/state", &state(7, 5, &json!({}), now)).await.expect(200);
    today.leave().await;
    let service = Listening::start(&["--database", &database.url, "--as-of", "latest"]);
    let capacity = |answer: &Value| answer["pools"][0]["capacity_gpus"].clone();
    let pools = service.get_until("/v1/pools", |_, answer| capacity(answer).is_number());
    assert_eq!(capacity(&pools), json!(500.0), "as a quota would have it");
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

async fn a_model_that_cannot_forecast_is_one_line_of_the_log_until_it_can(database: TestDatabase) {
    let store = with_usage(&database, 500).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    // As an earlier program stored it: the forecast is no number below a billion GPUs.
    let last = "WHERE hour = (SELECT max(hour) FROM usage)";
    database.execute(&format!("UPDATE usage SET demand_milli = 1000000000000 {last}")).await;
    let service = Listening::start(&["--database", &database.url, "--as-of", "latest", "--refresh-s", "1"]);
    let why = |answer: &Value| answer["pools"][0]["no_quota"].as_str().unwrap_or_default().to_owned();
    let _ = service.get_until("/v1/pools", |_, answer| why(answer).contains("the model was rejected"));
    database.execute(&format!("UPDATE usage SET demand_milli = 1000 {last}")).await;
    database.execute("UPDATE clusters SET usage_version = usage_version + 1").await;
    let _ = service.get_until(&quota_path(4), |status, _| status == 200);
    let log = service.stop().stderr;
    let lines: Vec<_> = log.lines().filter(|line| line.contains("the model cannot forecast")).collect();
    let [line] = lines[..] else { panic!("{log}") };
    for part in ["WARN", "demo:A100", "run-1", "train runs promote"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert_eq!(log.matches("the model forecasts again").count(), 1, "{log}");
}
