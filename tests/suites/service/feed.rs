//! Reports to the service: usage and outcomes.

use super::*;
use tests::on_both_databases;

on_both_databases![
    a_pool_is_known_as_soon_as_its_first_node_or_usage_is_stored,
    usage_that_is_reported_moves_the_forecast_on,
    a_repeated_batch_of_usage_changes_nothing,
    bad_usage_is_refused_whole_and_every_row_named,
    an_outcome_counts_once_however_often_it_arrives,
    broken_promises_lower_eta_and_the_quota_once,
    eta_moves_although_every_service_runs_for_less_than_the_longest_guarantee,
    long_waits_raise_eta_only_where_that_gives_more_quota,
    outcomes_without_a_fault_do_not_move_eta,
    a_corrected_end_of_an_hour_is_in_the_answer_and_in_the_audit_with_the_end_before,
];

const NO_MARS: &str = "there is no cluster mars: create it with `datasets ingest`, or with the time_zone of a source";

fn usage(hours: std::ops::Range<i64>, demand_gpus: f64) -> Value {
    let hour = |hour: i64| end().plus_s(hour * 3_600).to_string();
    let row = |at: i64, organization: &str| json!({ "hour": hour(at), "cluster": "demo", "gpu_model": "A100", "organization": organization, "demand_gpus": demand_gpus });
    let organizations = ["org-000", "org-001", "org-002"];
    let rows: Vec<_> = hours.flat_map(|at| organizations.map(|organization| row(at, organization))).collect();
    json!({ "rows": rows })
}

async fn a_pool_is_known_as_soon_as_its_first_node_or_usage_is_stored(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let before = quota(&service, 4).await;
    service.pass_s(3_600);
    let node = json!({ "cluster": "demo", "gpu_model": "H100", "gpus": 8 });
    let _ = service.put("/v1/nodes/n0", &node).await.expect(200);
    let mut batch = usage(0..1, 40.0);
    for row in batch["rows"].as_array_mut().unwrap() {
        row["gpu_model"] = "V100".into();
    }
    let _ = service.post("/v1/usage", &batch).await.expect(200);
    let why = async |model: &str| {
        let _ = service.get(&format!("/v1/pools/demo:{model}/settings")).await.expect(200);
        let none = service.get(&format!("/quota?cluster=demo&gpu_model={model}&hours=4")).await.expect(503);
        let pools = service.get("/v1/pools").await.expect(200);
        let listed = pools["pools"].as_array().unwrap().iter().find(|pool| pool["gpu_model"] == model).unwrap().clone();
        assert_eq!(listed["no_quota"], none["detail"], "{listed}");
        none["detail"].as_str().unwrap().to_owned()
    };
    for model in ["H100", "V100"] {
        assert_eq!(why(model).await, "its first computation runs: retry");
    }
    assert_eq!(quota(&service, 4).await["computed_at"], before["computed_at"], "other pools stay");
    service.renew().await;
    assert_eq!(why("H100").await, "no hour of usage is measured: ingest it or report it");
    assert!(why("V100").await.starts_with("its capacity is not known"));
}

async fn usage_that_is_reported_moves_the_forecast_on(database: TestDatabase) {
    let service = serving(&database, 500).await;
    service.pass_s(3_600);
    let receipt = service.post("/v1/usage", &usage(0..1, 40.0)).await.expect(200);
    assert_eq!(receipt, json!({ "inserted": 3, "changed": 0, "unchanged": 0 }));
    service.renew().await;
    let forecast = service.get("/v1/forecast?cluster=demo&gpu_model=A100").await.expect(200);
    assert_eq!(forecast["issue_time"], end().plus_s(3_600).to_string());
    assert_eq!(forecast["organizations"][0]["steps"][0]["q50_gpus"], 40.0, "the last value stays");
    assert_eq!(number(&quota(&service, 1).await["idle_gpus"]), 380.0, "500 less 3 × 40");
}

async fn a_repeated_batch_of_usage_changes_nothing(database: TestDatabase) {
    let service = serving(&database, 500).await;
    service.pass_s(2 * 3_600);
    let first = service.post("/v1/usage", &usage(0..2, 40.0)).await.expect(200);
    let again = service.post("/v1/usage", &usage(0..2, 40.0)).await.expect(200);
    assert_eq!((&first["inserted"], &again["unchanged"], &again["inserted"]), (&6.into(), &6.into(), &0.into()));
    let corrected = service.post("/v1/usage", &usage(0..1, 41.5)).await.expect(200);
    assert_eq!(corrected["changed"], 3);
}

async fn bad_usage_is_refused_whole_and_every_row_named(database: TestDatabase) {
    let service = serving(&database, 500).await;
    service.pass_s(3_600);
    let mut batch = usage(0..1, 40.0);
    batch["rows"][1]["demand_gpus"] = (-1.0).into();
    batch["rows"][2]["hour"] = "2024-03-15T00:30:00Z".into();
    let refused = service.post("/v1/usage", &batch).await.expect(400);
    let pointers: Vec<_> = refused["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/rows/1/demand_gpus", "/rows/2/hour"]);
    let early = service.post("/v1/usage", &usage(1..2, 40.0)).await.expect(400);
    assert!(early["errors"][0]["detail"].as_str().unwrap().contains("is not over at"), "{early}");
    batch = usage(0..1, 40.0);
    batch["rows"][0]["demand"] = 4.into();
    let unknown = service.post("/v1/usage", &batch).await.expect(400);
    assert_eq!(unknown["errors"][0]["pointer"], "/rows/0/demand");
    batch["rows"][0]["cluster"] = "mars".into();
    batch["rows"][0].as_object_mut().unwrap().remove("demand");
    assert_eq!(service.post("/v1/usage", &batch).await.expect(404)["detail"], NO_MARS);
    let node = json!({ "cluster": "mars", "gpu_model": "A100", "gpus": 8 });
    assert_eq!(service.put("/v1/nodes/n", &node).await.expect(404)["detail"], NO_MARS);
    let receipt = service.post("/v1/usage", &usage(0..1, 40.0)).await.expect(200);
    assert_eq!(receipt["inserted"], 3, "nothing of the refused batches was taken");
}

async fn an_outcome_counts_once_however_often_it_arrives(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let now = end().get();
    let results = |receipt: &Value| {
        let all = receipt["outcomes"].as_array().unwrap().iter();
        all.map(|one| one["result"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = service.post("/v1/outcomes", &outcomes(0, 2, "kept", now)).await.expect(200);
    assert_eq!(results(&first), ["recorded", "recorded"]);
    let overlapping = service.post("/v1/outcomes", &outcomes(1, 2, "kept", now)).await.expect(200);
    assert_eq!(results(&overlapping), ["repeated", "recorded"]);
    let contradicting = service.post("/v1/outcomes", &outcomes(0, 1, "broken", now)).await.expect(200);
    assert_eq!(results(&contradicting), ["conflicting"]);
    let unspent = service.service.core.store.eta_outcomes(&pool(POOL), at(0), 0).await.unwrap().unspent;
    assert_eq!((unspent.len(), unspent.iter().any(|one| one.broken)), (3, false));
}

async fn broken_promises_lower_eta_and_the_quota_once(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let before = number(&quota(&service, 4).await["quota_gpus"]);
    service.pass_s(4 * 3_600);
    let _ = service.post("/v1/usage", &usage(0..4, 30.0)).await.expect(200);
    let ended = end().plus_s(4 * 3_600).get();
    let _ = service.post("/v1/outcomes", &outcomes(0, 80, "kept", ended)).await.expect(200);
    let _ = service.post("/v1/outcomes", &outcomes(80, 20, "broken", ended)).await.expect(200);
    service.renew().await;
    let lowered = quota(&service, 4).await;
    assert_eq!(number(&lowered["eta"]), 0.5, "twice the allowed evictions");
    assert!(number(&lowered["quota_gpus"]) < before && codes(&lowered).contains(&"scaled_by_eta".to_owned()));
    for _ in 0..3 {
        service.pass_s(300);
        service.renew().await;
    }
    assert_eq!(number(&quota(&service, 4).await["eta"]), 0.5, "one burst moves it once");
    let explained = service.get(&quota_path(4).replace("/quota", "/v1/quota/explain")).await.expect(200);
    let moved = &explained["eta"]["moves"][0];
    assert_eq!((number(&moved["from"]), number(&moved["to"]), &moved["broken"]), (1.0, 0.5, &20.into()));
}

async fn eta_moves_although_every_service_runs_for_less_than_the_longest_guarantee(database: TestDatabase) {
    let mut service = serving(&database, 500).await;
    let first = end().plus_s(60);
    for (hours, event) in [(2, 0), (4, 50)] {
        service.leave().await;
        service = TestService::start(database.store().await, first.plus_s(hours * 3_600)).await;
        let _ = service.post("/v1/usage", &usage(hours - 2..hours, 30.0)).await.expect(200);
        let ended = end().plus_s(hours * 3_600).get();
        let _ = service.post("/v1/outcomes", &outcomes(event, 50, "broken", ended)).await.expect(200);
        service.renew().await;
        let eta = number(&quota(&service, 4).await["eta"]);
        assert_eq!(eta, if hours < 4 { 1.0 } else { 0.5 }, "after {hours} hours");
    }
}

async fn long_waits_raise_eta_only_where_that_gives_more_quota(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let report = async |idle: u32| {
        let now = service.service.core.clock.now();
        let mut body = state(500, idle, &json!({}), now);
        body["longest_quota_wait_s"] = 4_000.into();
        let _ = service.put("/v1/pools/demo:A100/state", &body).await.expect(200);
        service.renew().await;
        number(&quota(&service, 4).await["eta"])
    };
    service.pass_s(4 * 3_600);
    let _ = service.post("/v1/usage", &usage(0..4, 30.0)).await.expect(200);
    let ended = end().plus_s(4 * 3_600).get();
    let _ = service.post("/v1/outcomes", &outcomes(0, 100, "kept", ended)).await.expect(200);
    assert_eq!(report(2).await, 1.0, "idle GPUs hold the quota: more eta would change nothing");
    service.pass_s(10);
    assert_eq!(report(480).await, 1.5);
}

async fn outcomes_without_a_fault_do_not_move_eta(database: TestDatabase) {
    let service = serving(&database, 500).await;
    service.pass_s(4 * 3_600);
    let _ = service.post("/v1/usage", &usage(0..4, 30.0)).await.expect(200);
    let ended = end().plus_s(4 * 3_600).get();
    for (first, kind) in [(0, "node_failure"), (200, "drain"), (400, "user_deleted")] {
        let _ = service.post("/v1/outcomes", &outcomes(first, 150, kind, ended)).await.expect(200);
    }
    service.renew().await;
    assert_eq!(number(&quota(&service, 4).await["eta"]), 1.0);
    let refused = service.post("/v1/outcomes", &outcomes(900, 1, "evicted", ended)).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/outcomes/0/kind");
}

/// An end is known, stays with the demand that it is of, and is not known of another one.
async fn a_corrected_end_of_an_hour_is_in_the_answer_and_in_the_audit_with_the_end_before(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let hour = end().plus_s(-3_600).to_string();
    let [none, fifty] = [Value::Null, json!(50.0)];
    let steps = [
        (200.0, &fifty, [&none, &fifty]),
        (200.0, &none, [&fifty, &fifty]),
        (100.0, &none, [&fifty, &none]),
        (200.0, &none, [&none, &none]),
    ];
    for (gpus, at_end, [before, after]) in steps {
        let row = json!({ "hour": hour, "cluster": "demo", "gpu_model": "A100", "organization": "org-000",
            "demand_gpus": gpus, "demand_at_end_gpus": at_end });
        let body = json!({ "reason": "the end of the hour", "rows": [row] });
        let corrected = service.post("/v1/usage/corrections", &body).await.expect(200)["rows"][0].clone();
        assert_eq!([&corrected["before_at_end_gpus"], &corrected["after_at_end_gpus"]], [before, after], "{gpus}");
        let audit = service.get("/v1/audit").await.expect(200);
        assert_eq!(audit["entries"][0]["detail"]["rows"][0], corrected);
    }
}
