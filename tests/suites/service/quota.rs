//! Answers, and that they can be computed again by hand.

use super::*;
use axum::http::Method;
use forecaster::gaussian;
use std::time::Duration;
use tests::on_both_databases;

on_both_databases![
    a_quota_can_be_computed_again_from_its_explanation,
    the_same_answer_has_the_same_tag_and_is_not_sent_twice,
    a_poller_that_waits_gets_the_next_answer,
    a_reported_state_limits_the_quota_to_idle_and_spot_gpus,
    a_report_that_leaves_less_lowers_the_quota_at_once_and_one_that_leaves_more_waits,
    nodes_win_over_the_table_and_a_state_over_nodes,
    settings_change_the_promise_and_two_writers_notice_each_other,
    a_rate_beyond_the_measurements_has_its_reason,
    unknown_names_are_answered_with_known_ones,
    the_forecast_shows_each_organization,
    late_usage_moves_the_covered_steps_on,
    an_hour_that_is_reported_in_part_has_its_reason_until_the_rest_comes,
];

async fn a_quota_can_be_computed_again_from_its_explanation(database: TestDatabase) {
    let service = serving(&database, 120).await;
    for hours in [1, 2, 4] {
        let explained = service.get(&quota_path(hours).replace("/quota", "/v1/quota/explain")).await.expect(200);
        let (bound, answer) = (&explained["bound"], &explained["quota"]);
        let conformal = &bound["conformal"];
        let experts = bound["experts"].as_array().unwrap();
        let weighed = |one: &Value| number(&one["weight"]) * one["bound_gpus"].as_f64().unwrap_or(0.0);
        let by_hand: f64 = match bound["multiplier"].as_f64() {
            None if !experts.is_empty() => experts.iter().map(weighed).sum(),
            Some(z) if conformal.is_object() => {
                number(&conformal["centre_gpus"]) + z * number(&conformal["deviation_gpus"])
            }
            Some(z) => {
                let total = |step: &Value| number(&step["mean_gpus"]) + z * number(&step["stddev_gpus"]);
                bound["totals"].as_array().unwrap().iter().map(total).fold(0.0, f64::max)
            }
            None => bound["organizations"].as_array().unwrap().iter().map(|one| number(&one["bound_gpus"])).sum(),
        };
        let by_hand =
            by_hand.max(bound["raised_from_gpus"].as_f64().map_or(0.0, |_| number(&bound["demand_bound_gpus"])));
        assert!(
            (number(&answer["demand_bound_gpus"]) - by_hand).abs() < 0.002,
            "{hours} h: {by_hand} against {answer}"
        );
        let inventory = (number(&answer["capacity_gpus"]) - number(&answer["demand_bound_gpus"])).max(0.0);
        assert!((number(&answer["inventory_gpus"]) - inventory).abs() < 1e-9);
        let ceiling = number(&explained["supply"]["ceiling_gpus"]);
        let quota = (inventory * number(&answer["eta"])).min(ceiling);
        assert!((number(&answer["quota_gpus"]) - quota).abs() < 0.002);
        assert_eq!(explained["steps"].as_array().unwrap().len(), 6);
        assert_eq!(answer, &quota_of(&service, hours).await);
    }
}

async fn quota_of(service: &TestService, hours: u8) -> Value {
    quota(service, hours).await
}

async fn the_same_answer_has_the_same_tag_and_is_not_sent_twice(database: TestDatabase) {
    let service = serving(&database, 120).await;
    let first = service.get(&quota_path(4)).await;
    let etag = first.headers["etag"].to_str().unwrap().to_owned();
    let again = service.send(Method::GET, &quota_path(4), &[("if-none-match", &etag)], None).await;
    assert_eq!((again.status, again.body), (304, Value::String(String::new())));
    assert_eq!(again.headers["etag"].to_str().unwrap(), etag);
    assert_eq!(service.get(&quota_path(4).replace("/quota", "/v1/quota")).await.body, first.body);
    service.pass_s(600);
    let stale = service.send(Method::GET, &quota_path(4), &[("if-none-match", &etag)], None).await;
    assert_eq!(stale.status, 200, "another stage is another answer");
}

async fn a_poller_that_waits_gets_the_next_answer(database: TestDatabase) {
    let service = serving(&database, 120).await;
    let etag = service.get(&quota_path(4)).await.headers["etag"].to_str().unwrap().to_owned();
    let path = format!("{}&wait=30s", quota_path(4));
    let headers = [("if-none-match", etag.as_str())];
    let waiting = service.send(Method::GET, &path, &headers, None);
    let renewing = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        service.pass_s(300);
        service.renew().await;
    };
    let (answer, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(20), waiting), renewing);
    assert_eq!(answer.expect("it is answered at once").status, 200);
    let etag = service.get(&quota_path(4)).await.headers["etag"].to_str().unwrap().to_owned();
    let path = format!("{}&wait=0s", quota_path(4));
    assert_eq!(service.send(Method::GET, &path, &[("if-none-match", &etag)], None).await.status, 304);
    let path = format!("{}&wait=soon", quota_path(4));
    assert_eq!(service.send(Method::GET, &path, &[("if-none-match", &etag)], None).await.status, 400);
}

async fn a_reported_state_limits_the_quota_to_idle_and_spot_gpus(database: TestDatabase) {
    let service = serving(&database, 500).await;
    assert_eq!(codes(&quota(&service, 2).await), ["inventory", "estimated"]);
    let path = "/v1/pools/demo:A100/state";
    let body = state(500, 3, &json!({ "1": 5, "4": 8 }), end().plus_s(60));
    assert_eq!(service.put(path, &body).await.expect(200)["taken"], true);
    service.renew().await;
    let four = quota(&service, 4).await;
    assert_eq!((number(&four["quota_gpus"]), number(&four["available_gpus"])), (11.0, 3.0));
    assert_eq!(codes(&four)[0], "held_by_idle");
    assert_eq!(number(&quota(&service, 1).await["quota_gpus"]), 16.0);
    let older = state(900, 800, &json!({}), end().plus_s(30));
    assert_eq!(service.put(path, &older).await.expect(200)["taken"], false, "reports may overtake each other");
    assert_eq!(service.get(path).await.expect(200)["idle_gpus"], 3.0);
}

async fn a_report_that_leaves_less_lowers_the_quota_at_once_and_one_that_leaves_more_waits(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let path = "/v1/pools/demo:A100/state";
    let before = number(&quota(&service, 4).await["quota_gpus"]);
    assert!(before > 11.0, "{before}");
    let etag = service.get(&quota_path(4)).await.headers["etag"].to_str().unwrap().to_owned();
    let less = state(500, 3, &json!({ "1": 5, "4": 8 }), end().plus_s(60));
    let _ = service.put(path, &less).await.expect(200);
    // Nothing was renewed.
    let four = service.send(Method::GET, &quota_path(4), &[("if-none-match", &etag)], None).await.expect(200);
    assert_eq!((number(&four["quota_gpus"]), number(&four["available_gpus"])), (11.0, 3.0), "{four}");
    assert_eq!(codes(&four).last().unwrap(), "lowered_by_report");
    assert_eq!(number(&quota(&service, 1).await["quota_gpus"]), 16.0);
    service.pass_s(1);
    let more = state(500, 400, &json!({}), end().plus_s(61));
    let _ = service.put(path, &more).await.expect(200);
    assert_eq!(number(&quota(&service, 4).await["quota_gpus"]), 11.0, "a raise waits for the renewal");
    service.renew().await;
    let renewed = quota(&service, 4).await;
    assert!(number(&renewed["quota_gpus"]) > 11.0 && codes(&renewed).iter().all(|code| code != "lowered_by_report"));
}

async fn nodes_win_over_the_table_and_a_state_over_nodes(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let capacity = async || {
        service.renew().await;
        number(&quota(&service, 4).await["capacity_gpus"])
    };
    assert_eq!(capacity().await, 500.0);
    for node in ["n1", "n2"] {
        let body = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8, "cpu_milli": 128_000 });
        let _ = service.put(&format!("/v1/nodes/{node}"), &body).await.expect(200);
    }
    assert_eq!(capacity().await, 16.0);
    assert_eq!(service.get("/v1/nodes?cluster=demo").await.expect(200)["nodes"].as_array().unwrap().len(), 2);
    let removed = service.send(Method::DELETE, "/v1/nodes/n2?cluster=demo", &[], None).await;
    assert_eq!(removed.status, 204);
    assert_eq!(service.send(Method::DELETE, "/v1/nodes/n2?cluster=demo", &[], None).await.status, 404);
    assert_eq!(capacity().await, 8.0);
    let body = state(90, 1, &json!({}), end().plus_s(60));
    let _ = service.put("/v1/pools/demo:A100/state", &body).await.expect(200);
    assert_eq!(capacity().await, 90.0);
}

async fn settings_change_the_promise_and_two_writers_notice_each_other(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = service.get(path).await.expect(200);
    assert_eq!((&settings["guarantee_rate"], &settings["version"]), (&0.9.into(), &Value::Null));
    let before = number(&quota(&service, 4).await["demand_bound_gpus"]);
    settings["guarantee_rate"] = 0.99.into();
    settings["offered_hours"] = json!([3, 4]);
    let changed = service.put(path, &settings).await.expect(200);
    assert_eq!(changed["version"], 1);
    service.renew().await;
    assert!(number(&quota(&service, 4).await["demand_bound_gpus"]) > before);
    assert_eq!(service.get(&quota_path(1)).await.expect(404)["known"], json!(["3", "4"]));
    let again = service.put(path, &settings).await.expect(200);
    assert_eq!(again, changed, "its answer may have been lost");
    settings["guarantee_rate"] = 0.98.into();
    assert_eq!(service.put(path, &settings).await.status, 409, "the version it states is none");
    settings["offered_hours"] = json!([8]);
    let refused = service.put(path, &settings).await.expect(400);
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("forecasts reach 4h only"), "{refused}");
}

async fn a_rate_beyond_the_measurements_has_its_reason(database: TestDatabase) {
    let service = serving(&database, 120).await;
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = service.get(path).await.expect(200);
    let mut answer_at = async |rate: f64| {
        settings["guarantee_rate"] = rate.into();
        settings = service.put(path, &settings).await.expect(200);
        service.renew().await;
        quota(&service, 4).await
    };
    let code = "rate_not_supported".to_owned();
    let usual = answer_at(0.5).await;
    assert!(!codes(&usual).contains(&code), "{usual}");
    let bold = answer_at(0.9999).await;
    let reason = bold["reasons"].as_array().unwrap().iter().find(|reason| reason["code"] == code.as_str());
    let detail = reason.unwrap_or_else(|| panic!("{bold}"))["detail"].as_str().unwrap();
    // 10,000 promises of 4 h that follow one another.
    assert!(
        detail.starts_with("0.9999 is asked for") && detail.contains("until 40000 such hours were measured"),
        "{detail}"
    );
    assert!(number(&bold["demand_bound_gpus"]) > number(&usual["demand_bound_gpus"]));
}

async fn unknown_names_are_answered_with_known_ones(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let pool = service.get("/quota?cluster=demo&gpu_model=H800&hours=4").await;
    assert_eq!(pool.headers["content-type"], "application/problem+json");
    let pool = pool.expect(404);
    assert_eq!((&pool["code"], &pool["known"]), (&"unknown-pool".into(), &json!(["demo:A100"])));
    let hours = service.get(&quota_path(3)).await.expect(404);
    assert_eq!((&hours["code"], &hours["known"]), (&"unknown-hours".into(), &json!(["1", "2", "4"])));
    let history = quota_path(3).replace("/quota", "/v1/quota/history");
    assert_eq!(service.get(&history).await.expect(404)["known"], json!(["1", "2", "4"]));
    let nodes = service.get("/v1/nodes?cluster=mars").await.expect(404);
    assert_eq!((&nodes["code"], &nodes["known"]), (&"unknown-cluster".into(), &json!(["demo"])));
    let state = state(10, 1, &json!({}), end());
    assert_eq!(service.put("/v1/pools/demo:H800/state", &state).await.expect(404)["known"], json!(["demo:A100"]));
    assert_eq!(service.get("/v1/pools/demo:A100/state").await.expect(404)["code"], "no-state");
    assert_eq!(service.get(&format!("{}&wait=soon", quota_path(4))).await.expect(400)["code"], "bad-query");
    assert_eq!(service.get("/quota?cluster=demo&hours=4").await.expect(400)["code"], "bad-query");
    assert_eq!(service.get("/quota?cluster=demo&gpu_model=A100&hours=four").await.status, 400);
    assert_eq!(service.get("/missing").await.expect(404)["code"], "no-route");
    assert_eq!(service.post("/quota", &json!({})).await.expect(405)["code"], "no-method");
}

async fn the_forecast_shows_each_organization(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let all = service.get("/v1/forecast?cluster=demo&gpu_model=A100").await.expect(200);
    assert_eq!((all["organizations"].as_array().unwrap().len(), &all["model"]), (3, &"last-value".into()));
    let one = service.get("/v1/forecast?cluster=demo&gpu_model=A100&organization=org-001").await.expect(200);
    let step = &one["organizations"][0]["steps"][3];
    assert_eq!(step["target_time"], end().plus_s(3 * 3_600).to_string());
    let z = gaussian::quantile(0.9);
    assert!(z > 1.28 && number(&step["q90_gpus"]) >= number(&step["q50_gpus"]));
    let none = service.get("/v1/forecast?cluster=demo&gpu_model=A100&organization=nobody").await.expect(404);
    assert_eq!(none["known"], json!(["org-000", "org-001", "org-002"]));
}

async fn late_usage_moves_the_covered_steps_on(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let explained =
        async |hours| service.get(&quota_path(hours).replace("/quota", "/v1/quota/explain")).await.expect(200);
    let bound = explained(1).await["bound"].clone();
    assert_eq!(bound["steps"], 2, "an hour from a minute past the hour ends in the next one");
    service.pass_s(3_600);
    service.renew().await;
    let late = explained(1).await;
    assert_eq!((&late["forecast"]["hours_late"], &late["bound"]["steps"]), (&1.into(), &3.into()));
    assert!(number(&late["bound"]["demand_bound_gpus"]) >= number(&bound["demand_bound_gpus"]));
    assert_eq!(explained(4).await["bound"]["steps"], 4, "the forecast reaches no further");
}

async fn an_hour_that_is_reported_in_part_has_its_reason_until_the_rest_comes(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let row = |organization: &str| json!({ "hour": end().to_string(), "cluster": "demo", "gpu_model": "A100", "organization": organization, "demand_gpus": 0 });
    let post = async |organizations: &[&str]| {
        let rows: Vec<Value> = organizations.iter().map(|one| row(one)).collect();
        let _ = service.post("/v1/usage", &json!({ "rows": rows })).await.expect(200);
        service.renew().await;
    };
    let explained = async || service.get(&quota_path(4).replace("/quota", "/v1/quota/explain")).await.expect(200);
    let code = "usage_incomplete".to_owned();
    service.pass_s(3_600);
    post(&["org-001"]).await;
    let part = explained().await;
    assert_eq!(part["forecast"]["hours_late"], 0, "the hour counts as known");
    assert_eq!(part["forecast"]["not_reported"], json!(["org-000", "org-002"]));
    let reasons = part["quota"]["reasons"].as_array().unwrap();
    let detail = reasons.iter().find(|one| one["code"] == code.as_str()).unwrap()["detail"].as_str().unwrap();
    let expected = format!("2 of 3 organizations have not reported the hour from {}", end());
    assert!(detail.starts_with(&expected), "{detail}");
    assert!(codes(&quota(&service, 1).await).contains(&code));
    post(&["org-000", "org-002"]).await;
    let whole = explained().await;
    assert_eq!(whole["forecast"]["not_reported"], json!([]));
    assert!(!codes(&whole["quota"]).contains(&code), "{whole}");
}
