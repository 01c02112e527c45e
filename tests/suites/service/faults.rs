//! When things go wrong (DESIGN §7): each fault with the answer that it gets.

use super::*;
use axum::http::Method;
use forecaster::checkpoint;
use tests::{on_both_databases, promote_bytes};

on_both_databases![
    without_a_run_there_is_no_quota_and_the_answer_has_a_remedy,
    without_a_known_capacity_there_is_no_quota_yet,
    pools_whose_first_renewal_fails_may_exist_and_later_ones_are_known,
    the_lease_of_a_connector_of_an_unknown_cluster_is_refused_with_what_to_do,
    a_capacity_of_zero_is_a_quota_of_zero_with_its_reason,
    demand_above_capacity_is_a_quota_of_zero_with_its_reason,
    demand_above_all_amounts_together_is_a_quota_of_zero_with_what_to_correct,
    an_organization_that_the_model_never_saw_is_forecast_by_its_peak,
    a_quota_ages_from_fresh_over_stale_to_conservative,
    usage_older_than_two_hours_is_a_missing_input,
    a_model_of_another_version_is_refused_and_the_one_before_goes_on_serving,
    a_checkpoint_that_was_damaged_is_refused_and_the_one_before_goes_on_serving,
    a_database_that_is_gone_stops_writes_and_renewals_but_no_reads,
    a_body_that_is_too_large_or_no_json_is_refused,
    numbers_that_are_no_amounts_are_refused,
];

fn reason_texts(answer: &Value) -> String {
    answer["reasons"].to_string()
}

async fn without_a_run_there_is_no_quota_and_the_answer_has_a_remedy(database: TestDatabase) {
    let service = TestService::start(with_usage(&database, 100).await, end().plus_s(60)).await;
    assert_eq!(
        service.get(&quota_path(4)).await.status,
        503,
        "which pools there are is not known before the first renewal"
    );
    service.renew().await;
    let answer = service.get(&quota_path(4)).await;
    assert_eq!(answer.headers["retry-after"], "10");
    assert_eq!(answer.expect(503)["detail"], "the cluster has no promoted run: train --cluster NAME");
    assert_eq!(service.get("/readyz").await.status, 503);
    assert_eq!(service.get("/healthz").await.status, 200);
    let listed = service.get("/v1/pools").await.expect(200)["pools"][0].clone();
    assert_eq!((&listed["capacity_gpus"], &listed["computed_at"]), (&json!(100.0), &Value::Null), "{listed}");
}

async fn the_lease_of_a_connector_of_an_unknown_cluster_is_refused_with_what_to_do(database: TestDatabase) {
    let store = with_usage(&database, 100).await;
    let service = TestService::start(store.clone(), end().plus_s(60)).await;
    let body = json!({ "holder": "slurm-1", "agent": "test", "lease_s": 30, "holds_s": 0 });
    let ask = async |cluster: &str| service.put(&format!("/v1/connectors/lease?cluster={cluster}"), &body).await;
    let mirrored = json!({ "holder": "slurm\u{202e}1", "agent": "test", "lease_s": 30, "holds_s": 0 });
    let refused = service.put("/v1/connectors/lease?cluster=demo", &mirrored).await.expect(400);
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("U+202E"), "{refused}");
    let refused = ask("mars").await.expect(404);
    assert_eq!((&refused["code"], &refused["known"]), (&json!("unknown-cluster"), &json!(["demo"])));
    assert!(refused["detail"].as_str().unwrap().starts_with("mars: correct the name"), "{refused}");
    assert_eq!(ask("demo").await.expect(200)["granted"], false, "another may hold it still");
    let mars = Cluster { name: cluster("mars"), time_zone: "UTC".to_owned(), calendar: "none".to_owned() };
    store.put_cluster(&mars).await.unwrap();
    assert_eq!(ask("mars").await.expect(503)["code"], "not-the-writer", "until the next beat");
    service.service.renewals.update_leases().await.unwrap();
    assert_eq!(ask("mars").await.expect(200)["granted"], false);
}

async fn without_a_known_capacity_there_is_no_quota_yet(database: TestDatabase) {
    let service = serving(&database, 100).await;
    database.execute("DELETE FROM capacity").await;
    let fresh = TestService::start(database.store().await, end().plus_s(120)).await;
    fresh.renew().await;
    let kept = quota(&fresh, 4).await;
    assert!(reason_texts(&kept).contains("its capacity is not known"), "{kept}");
    database.execute("DELETE FROM newest_quotas; DELETE FROM quotas").await;
    let empty = TestService::start(database.store().await, end().plus_s(120)).await;
    empty.renew().await;
    let problem = empty.get(&quota_path(4)).await.expect(503);
    assert!(problem["detail"].as_str().unwrap().contains("its capacity is not known"), "{problem}");
    assert_eq!(empty.get("/v1/pools").await.expect(200)["pools"][0]["capacity_gpus"], Value::Null);
    drop(service);
}

/// A client takes 404 for final.
async fn pools_whose_first_renewal_fails_may_exist_and_later_ones_are_known(database: TestDatabase) {
    let before = serving(&database, 100).await;
    database
        .execute("DELETE FROM newest_quotas; DELETE FROM quotas; ALTER TABLE capacity RENAME TO capacity_away")
        .await;
    let service = TestService::start(database.store().await, end().plus_s(120)).await;
    service.renew().await;
    let unread = service.get(&quota_path(4)).await.expect(503);
    assert!(unread["detail"].as_str().unwrap().contains("could not be read since the start"), "{unread}");
    database.execute("ALTER TABLE capacity_away RENAME TO capacity").await;
    service.renew().await;
    let _ = service.get(&quota_path(4)).await.expect(200);
    let unknown = quota_path(4).replace("A100", "B200");
    assert_eq!(service.get(&unknown).await.status, 404);
    drop(before);
}

async fn a_capacity_of_zero_is_a_quota_of_zero_with_its_reason(database: TestDatabase) {
    let service = serving(&database, 0).await;
    let answer = quota(&service, 4).await;
    assert_eq!(number(&answer["quota_gpus"]), 0.0);
    assert_eq!(codes(&answer)[0], "no_capacity");
}

async fn demand_above_capacity_is_a_quota_of_zero_with_its_reason(database: TestDatabase) {
    let service = serving(&database, 2).await;
    let answer = quota(&service, 1).await;
    assert_eq!((number(&answer["quota_gpus"]), number(&answer["idle_gpus"])), (0.0, 0.0));
    assert_eq!(codes(&answer), ["demand_may_fill_pool", "demand_above_capacity", "estimated"]);
}

async fn demand_above_all_amounts_together_is_a_quota_of_zero_with_what_to_correct(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let hour = end().plus_s(-3_600).to_string();
    let row = |number: u32| json!({ "hour": hour, "cluster": "demo", "gpu_model": "A100", "organization": format!("o{number}"), "demand_gpus": 10_000_000 });
    let _ = service.post("/v1/usage", &json!({ "rows": (0..101).map(row).collect::<Vec<_>>() })).await.expect(200);
    service.renew().await;
    let answer = quota(&service, 4).await;
    assert_eq!((number(&answer["quota_gpus"]), number(&answer["demand_bound_gpus"])), (0.0, 1e9), "{answer}");
    let reasons = ["demand_may_fill_pool", "demand_above_capacity", "demand_beyond_amounts"];
    assert_eq!(codes(&answer)[..3], reasons, "{answer}");
    let demand = service.get("/v1/demand?cluster=demo&gpu_model=A100&hours=2").await.expect(200);
    assert_eq!(number(demand["pool"].as_array().unwrap().last().unwrap()), 1e9, "{demand}");
}

async fn an_organization_that_the_model_never_saw_is_forecast_by_its_peak(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let bound = number(&quota(&service, 4).await["demand_bound_gpus"]);
    let row = |hours_ago: i64, demand: u32| {
        let hour = end().plus_s(-3_600 * hours_ago).to_string();
        json!({ "hour": hour, "cluster": "demo", "gpu_model": "A100", "organization": "newcomer", "demand_gpus": demand })
    };
    let batch = json!({ "rows": [row(3, 10), row(2, 64), row(1, 8)] });
    let _ = service.post("/v1/usage", &batch).await.expect(200);
    service.renew().await;
    let forecast = service.get("/v1/forecast?cluster=demo&gpu_model=A100&organization=newcomer").await.expect(200);
    assert_eq!(forecast["organizations"][0]["origin"], "cold_start");
    assert!((number(&forecast["organizations"][0]["steps"][0]["q90_gpus"]) - 64.0).abs() < 1e-6);
    let answer = quota(&service, 4).await;
    assert!(codes(&answer).contains(&"cold_start".to_owned()));
    assert!(number(&answer["demand_bound_gpus"]) > bound + 8.0);
}

async fn a_quota_ages_from_fresh_over_stale_to_conservative(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let body = state(500, 300, &json!({ "4": 20 }), end().plus_s(60));
    let _ = service.put("/v1/pools/demo:A100/state", &body).await.expect(200);
    service.renew().await;
    let fresh = quota(&service, 4).await;
    let full = number(&fresh["quota_gpus"]);
    assert!(full > 20.0 && fresh["stage"] == "fresh" && fresh["stale"] == false);
    service.pass_s(600);
    let stale = quota(&service, 4).await;
    assert_eq!((&stale["stage"], number(&stale["quota_gpus"])), (&"stale".into(), full));
    assert!(codes(&stale).contains(&"not_renewed".to_owned()));
    service.pass_s(1_800);
    let conservative = quota(&service, 4).await;
    assert_eq!((&conservative["stage"], number(&conservative["quota_gpus"])), (&"conservative".into(), 20.0));
    assert_eq!(number(&conservative["available_gpus"]), 0.0, "nothing new is admitted, nothing evicted");
    let pools = service.get("/v1/pools").await.expect(200);
    let of_four = |name: &str| number(&pools["pools"][0][format!("{name}_gpus_by_hours")]["4"]);
    assert_eq!((of_four("quota"), of_four("available"), of_four("computed_quota")), (20.0, 0.0, full), "{pools}");
    service.set_wall_back_s(3_600);
    assert_eq!(quota(&service, 4).await["stage"], "conservative", "a clock that jumped back makes nothing younger");
}

async fn usage_older_than_two_hours_is_a_missing_input(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let before = quota(&service, 4).await;
    service.pass_s(7_200);
    service.renew().await;
    let old = quota(&service, 4).await;
    assert_eq!(old["computed_at"], before["computed_at"], "no new quota from old usage");
    assert!(reason_texts(&old).contains("the newest usage ends at 2024-03-14T16:00:00Z, more than two hours ago"));
    assert_eq!((&old["stage"], number(&old["quota_gpus"])), (&"conservative".into(), 0.0));
}

async fn a_model_of_another_version_is_refused_and_the_one_before_goes_on_serving(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let serves = quota(&service, 4).await["run_id"].clone();
    let store = service.service.core.store.as_ref();
    let good = store.checkpoint("run-1".parse().unwrap()).await.unwrap();
    let format = br#"\"format\":"#;
    let place = good.windows(format.len()).position(|window| window == format).unwrap() + format.len();
    let mut bytes = good.clone();
    bytes[place] = b'9';
    let newer = promote_bytes(store, &cluster("demo"), ModelKind::LastValue, end().hour().unwrap(), bytes).await;
    service.pass_s(300);
    service.renew().await;
    let answer = quota(&service, 4).await;
    assert_eq!((&answer["run_id"], &answer["stage"]), (&serves, &"fresh".into()));
    let explained = checkpoint::load(&store.checkpoint(newer).await.unwrap()).unwrap_err().to_string();
    assert!(explained.contains("has format 9, and this program reads format 2"), "{explained}");
    let restarted = TestService::start(database.store().await, end().plus_s(400)).await;
    restarted.renew().await;
    let text = reason_texts(&quota(&restarted, 4).await);
    assert!(text.contains("run-2 cannot serve: the checkpoint has format 9"), "{text}");
}

async fn a_checkpoint_that_was_damaged_is_refused_and_the_one_before_goes_on_serving(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let store = service.service.core.store.as_ref();
    let id = promote(store, &cluster("demo"), ModelKind::Seasonal24h, end().hour().unwrap()).await;
    let longer = match database.backend {
        tests::Backend::Postgres => "bytes || '\\x00'::bytea",
        tests::Backend::Sqlite => "CAST(bytes || x'00' AS BLOB)",
    };
    database.execute(&format!("UPDATE checkpoints SET bytes = {longer} WHERE run_id = {}", id.get())).await;
    service.pass_s(300);
    service.renew().await;
    let answer = quota(&service, 4).await;
    assert_eq!((&answer["run_id"], &answer["computed_at"]), (&"run-1".into(), &end().plus_s(360).to_string().into()));
    let repaired = promote(store, &cluster("demo"), ModelKind::Seasonal24h, end().hour().unwrap()).await;
    service.renew().await;
    assert_eq!(quota(&service, 4).await["run_id"], repaired.to_string());
}

async fn a_database_that_is_gone_stops_writes_and_renewals_but_no_reads(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let before = quota(&service, 4).await;
    service.service.core.store.close().await;
    service.renew().await;
    let after = quota(&service, 4).await;
    assert_eq!(after["quota_gpus"], before["quota_gpus"]);
    assert!(reason_texts(&after).contains("the database cannot be reached"), "{after}");
    let refused = service.post("/v1/outcomes", &outcomes(0, 1, "kept", end().get())).await;
    assert_eq!(refused.headers["retry-after"], "10");
    assert_eq!(refused.expect(503)["code"], "store-unavailable");
    service.pass_s(600);
    assert_eq!(quota(&service, 4).await["stage"], "stale");
    assert_eq!(service.get(&quota_path(4).replace("/quota", "/v1/quota/explain")).await.status, 200);
    assert_eq!(service.get("/readyz").await.status, 200);
}

async fn a_body_that_is_too_large_or_no_json_is_refused(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let large = service.post("/v1/outcomes", &outcomes(0, 2_000, "kept", end().get())).await.expect(413);
    assert!(large["detail"].as_str().unwrap().contains("at most 65536 bytes"), "{large}");
    let typed = async |kind: &str, body: &str| {
        service.send(Method::POST, "/v1/outcomes", &[("content-type", kind)], Some(body.to_owned())).await
    };
    assert_eq!(typed("text/plain", "{}").await.expect(415)["code"], "not-json");
    let packed = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let packed = service.send(Method::POST, "/v1/outcomes", &packed, Some("packed".to_owned())).await.expect(415);
    assert_eq!(packed["detail"], "a compressed body is not read: send it without Content-Encoding");
    let torn = typed("application/json", r#"{"outcomes": ["#).await.expect(400);
    assert_eq!(torn["errors"][0]["pointer"], "/outcomes", "{torn}");
    let list = typed("application/json", "[[]]").await.expect(400);
    assert!(list["errors"][0]["detail"].as_str().unwrap().starts_with("found a list, expected an object"), "{list}");
    let row = typed("application/json", r#"{"outcomes": [["e1", "demo", "A100"]]}"#).await.expect(400);
    assert_eq!(row["errors"][0]["pointer"], "/outcomes/0", "{row}");
    let trailing = typed("application/json; charset=utf-8", r#"{"outcomes": []} {"#).await;
    assert_eq!(trailing.status, 400);
}

async fn numbers_that_are_no_amounts_are_refused(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for (idle, printed) in [
        ("999999999", "9.99999999e8 GPUs exceeds the limit of 10000000 GPUs: write GPUs"),
        ("1e308", "1e308 GPUs exceeds the limit of 10000000 GPUs"),
        ("-1", "-1 GPUs is negative"),
        ("\"1k\"", "\"1k\" is text; write a number"),
        ("9223372036854775807", "exceeds the limit of 10000000 GPUs"),
        ("501", "idle and spot GPUs exceed the capacity of 500.000"),
    ] {
        let body = format!(r#"{{"capacity_gpus": 500, "idle_gpus": {idle}, "as_of": "{}"}}"#, end().plus_s(60));
        let refused = service.send(Method::PUT, "/v1/pools/demo:A100/state", &[], Some(body)).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], "/idle_gpus");
        assert!(refused["errors"][0]["detail"].as_str().unwrap().contains(printed), "{refused}");
    }
    let ahead = state(500, 1, &json!({}), end().plus_s(3_600));
    let refused = service.put("/v1/pools/demo:A100/state", &ahead).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/as_of");
}
