//! Which side places a pool: decided once, shown, and never changed by a stray request.

use super::*;
use tests::fixture::loaded;
use tests::on_both_databases;

on_both_databases![
    a_stray_task_does_not_take_over_a_pool_that_an_external_scheduler_reports,
    a_pool_of_an_external_scheduler_without_nodes_is_not_asked_for_nodes,
    the_first_use_decides_the_side_of_a_pool_and_an_admin_changes_it,
    a_pool_with_open_tasks_does_not_change_sides,
    demand_that_an_external_scheduler_places_is_not_measured_as_none,
    no_bound_lies_below_the_newest_measured_demand,
    usage_that_headroom_measures_has_no_other_source,
    hp_demand_that_is_withdrawn_within_seconds_is_no_usage,
    hp_demand_that_fits_never_is_neither_demand_nor_usage,
    a_task_far_beyond_the_pool_is_refused_and_decides_nothing,
    a_state_from_a_fast_clock_does_not_block_correct_reports,
    a_clock_that_jumps_back_makes_no_quota_larger,
];

const STATE: &str = "/v1/pools/demo:A100/state";
const SETTINGS: &str = "/v1/pools/demo:A100/settings";

async fn report(service: &TestService, idle: u32, spot: Value) -> Answer {
    let now = service.service.core.clock.now();
    service.put(STATE, &state(128, idle, &spot, now)).await
}

/// Usage of the hours from `first` on, so many GPUs in each: what a reporter of the pool sends.
async fn measured(service: &TestService, first: i64, gpus: &[f64]) {
    let row = |(hour, gpus): (usize, &f64)| {
        json!({ "hour": end().plus_s(3_600 * (first + hour as i64)).to_string(), "cluster": "demo", "gpu_model": "A100",
            "organization": "org-000", "demand_gpus": gpus })
    };
    let rows: Vec<Value> = gpus.iter().enumerate().map(row).collect();
    let _ = service.post("/v1/usage", &json!({ "rows": rows })).await.expect(200);
}

async fn settings_of(service: &TestService) -> Value {
    service.get(SETTINGS).await.expect(200)
}

async fn set_side(service: &TestService, side: &str) -> Answer {
    let mut settings = settings_of(service).await;
    settings["placed_by"] = side.into();
    service.put(SETTINGS, &settings).await
}

async fn a_stray_task_does_not_take_over_a_pool_that_an_external_scheduler_reports(database: TestDatabase) {
    let service = placing(&database, 16).await;
    let _ = report(&service, 5, json!({ "4": 80 })).await.expect(200);
    service.renew().await;
    let before = quota(&service, 4).await;
    assert_eq!((number(&before["used_gpus"]), number(&before["idle_gpus"])), (80.0, 5.0));
    for path in ["/v1/tasks", "/v1/tasks/dry-run"] {
        let refused = service.post(path, &hp("stray", 8.0, 1)).await.expect(409);
        assert_eq!(refused["code"], "placed-outside", "{path}");
        assert!(refused["detail"].as_str().unwrap().contains("placed_by"), "{refused}");
    }
    service.pass_s(60);
    assert_eq!(report(&service, 4, json!({ "4": 81 })).await.expect(200)["taken"], true);
    service.renew().await;
    let after = quota(&service, 4).await;
    assert_eq!((number(&after["used_gpus"]), number(&after["idle_gpus"])), (81.0, 4.0), "reports are its state");
    assert!(!codes(&after).contains(&"estimated".to_owned()), "{after}");
}

async fn a_pool_of_an_external_scheduler_without_nodes_is_not_asked_for_nodes(database: TestDatabase) {
    let service = serving(&database, 128).await;
    let _ = report(&service, 5, json!({})).await.expect(200);
    // Before a renewal.
    let explain = service.get(&quota_path(4).replace("/quota", "/v1/quota/explain")).await.expect(200);
    let pools = service.get("/v1/pools").await.expect(200);
    assert_eq!((&explain["placed_by"], &pools["pools"][0]["placed_by"]), (&"external".into(), &"external".into()));
    let mut price = hp("stray", 8.0, 1);
    for field in ["id", "class"] {
        price.as_object_mut().unwrap().remove(field);
    }
    let mut eta = price.clone();
    eta["class"] = "hp".into();
    let tasks = ["/v1/tasks", "/v1/tasks/dry-run"].map(|path| (path, hp("stray", 8.0, 1)));
    for (path, body) in tasks.into_iter().chain([("/v1/tasks/eta", eta), ("/v1/tasks/prices", price)]) {
        let refused = service.post(path, &body).await.expect(409);
        assert_eq!(refused["code"], "placed-outside", "{path}: {refused}");
    }
}

async fn the_first_use_decides_the_side_of_a_pool_and_an_admin_changes_it(database: TestDatabase) {
    let service = placing(&database, 2).await;
    assert_eq!(settings_of(&service).await["placed_by"], Value::Null);
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    assert_eq!(settings_of(&service).await["placed_by"], "headroom");
    let refused = report(&service, 5, json!({})).await.expect(409);
    assert_eq!(refused["code"], "placed-here");
    assert!(refused["detail"].as_str().unwrap().contains("set placed_by to external"), "{refused}");
    let _ = delete(&service, "first").await.expect(200);
    assert_eq!(set_side(&service, "slurm").await.expect(400)["errors"][0]["pointer"], "/placed_by");
    assert_eq!(set_side(&service, "external").await.expect(200)["placed_by"], "external");
    assert_eq!(service.post("/v1/tasks", &hp("second", 8.0, 1)).await.expect(409)["code"], "placed-outside");
    let _ = report(&service, 5, json!({ "4": 80 })).await.expect(200);
    service.renew().await;
    assert_eq!(number(&quota(&service, 4).await["used_gpus"]), 80.0);
    let explain = service.get(&quota_path(4).replace("/quota", "/v1/quota/explain")).await.expect(200);
    let pools = service.get("/v1/pools").await.expect(200);
    assert_eq!((&explain["placed_by"], &pools["pools"][0]["placed_by"]), (&"external".into(), &"external".into()));
    let printed = service.get("/v1/audit").await.expect(200);
    let decisions: Vec<&Value> =
        printed["entries"].as_array().unwrap().iter().map(|entry| &entry["detail"]["placed_by"]).collect();
    let decisions: Vec<&&Value> = decisions.iter().filter(|one| !one.is_null()).collect();
    assert_eq!(
        json!(decisions),
        json!([
            { "before": "headroom", "after": "external", "reason": "setting" },
            { "before": null, "after": "headroom", "reason": "first task" },
        ])
    );
    // Another change of the settings, and a restart, leave it.
    let mut others = settings_of(&service).await;
    (others["placed_by"], others["min_outcomes"]) = (Value::Null, 50.into());
    assert_eq!(service.put(SETTINGS, &others).await.expect(200)["placed_by"], "external");
    let again = TestService::start(database.store().await, service.service.core.clock.now()).await;
    assert_eq!(again.post("/v1/tasks", &hp("third", 8.0, 1)).await.expect(409)["code"], "placed-outside");
}

async fn a_pool_with_open_tasks_does_not_change_sides(database: TestDatabase) {
    let service = placing(&database, 1).await;
    assert_eq!(set_side(&service, "headroom").await.expect(200)["placed_by"], "headroom");
    service.renew().await;
    let answer = quota(&service, 1).await;
    assert!(!codes(&answer).contains(&"estimated".to_owned()), "its state is its own before its first task: {answer}");
    let _ = submit(&service, &hp("open", 8.0, 1)).await;
    let refused = set_side(&service, "external").await.expect(409);
    assert_eq!(refused["code"], "open-tasks");
    assert!(refused["detail"].as_str().unwrap().starts_with("1 task of the pool waits or runs, unknown"), "{refused}");
    assert_eq!(submit(&service, &hp("next", 8.0, 1)).await["status"], "waiting", "it goes on placing");
    let mut stale = settings_of(&service).await;
    let _ = delete(&service, "open").await.expect(200);
    let _ = delete(&service, "next").await.expect(200);
    (stale["placed_by"], stale["version"]) = ("external".into(), 7.into());
    assert_eq!(service.put(SETTINGS, &stale).await.expect(409)["code"], "conflict");
    assert_eq!(submit(&service, &hp("after", 8.0, 1)).await["status"], "running", "what was not stored does not hold");
}

async fn demand_that_an_external_scheduler_places_is_not_measured_as_none(database: TestDatabase) {
    let service = placing(&database, 16).await;
    let _ = submit(&service, &hp("stray", 8.0, 1)).await;
    let _ = delete(&service, "stray").await.expect(200);
    assert_eq!(set_side(&service, "external").await.expect(200)["placed_by"], "external");
    let store = service.service.core.store.clone();
    let (first, last) = (end().to_string(), end().plus_s(6 * 3_600).to_string());
    for _ in 0..4 {
        service.pass_s(3_600);
        service.renew().await;
    }
    assert_eq!(loaded(store.as_ref(), "demo", &first[..13], &last[..13]).await, "", "nobody measured these hours");
    assert_eq!(quota(&service, 1).await["stage"], "conservative", "and they are missing");
    // Placed here again, the hour that runs was not seen whole.
    assert_eq!(set_side(&service, "headroom").await.expect(200)["placed_by"], "headroom");
    service.pass_s(3_600);
    service.renew().await;
    assert_eq!(loaded(store.as_ref(), "demo", &first[..13], &last[..13]).await, "");
    service.pass_s(3_600);
    service.renew().await;
    let rows = loaded(store.as_ref(), "demo", &first[..13], &last[..13]).await;
    assert_eq!(rows.lines().count(), 2, "the organization and the pool: {rows}");
}

async fn no_bound_lies_below_the_newest_measured_demand(database: TestDatabase) {
    let service = placing(&database, 16).await;
    let mut settings = settings_of(&service).await;
    (settings["guarantee_rate"], settings["aggregation"]) = (0.05.into(), "independent".into());
    let _ = service.put(SETTINGS, &settings).await.expect(200);
    measured(&service, -1, &[110.0]).await;
    let _ = report(&service, 5, json!({})).await.expect(200);
    service.renew().await;
    for hours in [1, 4] {
        let path = quota_path(hours).replace("/quota", "/v1/quota/explain");
        let explained = service.get(&path).await.expect(200);
        let (bound, latest) =
            (number(&explained["quota"]["demand_bound_gpus"]), number(&explained["supply"]["latest_demand_gpus"]));
        assert!(bound >= latest, "B of {hours} h is {bound}, and {latest} were measured last");
    }
}

async fn usage_that_headroom_measures_has_no_other_source(database: TestDatabase) {
    let service = placing(&database, 16).await;
    let _ = submit(&service, &hp("base", 8.0, 4)).await;
    service.pass_s(2 * 3_600);
    service.renew().await;
    let before = loaded_from_start(&service).await;
    assert_eq!(before.lines().count(), 2, "an hour of the organization, and of the pool: {before}");
    let row = |hour: i64, model: &str| {
        json!({ "hour": end().plus_s(3_600 * hour).to_string(), "cluster": "demo", "gpu_model": model,
            "organization": "org-000", "demand_gpus": 0.0 })
    };
    let zeros = json!({ "rows": [row(-1, "A100"), row(0, "A100"), row(1, "A100"), row(1, "V100")] });
    let refused = service.post("/v1/usage", &zeros).await.expect(409);
    assert_eq!(refused["code"], "placed-here");
    assert!(refused["detail"].as_str().unwrap().contains("POST /v1/usage/corrections"), "{refused}");
    let places: Vec<&Value> = refused["errors"].as_array().unwrap().iter().map(|one| &one["pointer"]).collect();
    assert_eq!(
        places,
        ["/rows/2"],
        "earlier hours, the hour that was not measured whole, and other pools may be reported"
    );
    assert_eq!(loaded_from_start(&service).await, before, "nothing was taken");
    let _ = service.post("/v1/usage", &json!({ "rows": [row(-1, "A100")] })).await.expect(200);
    let event = json!({ "event_id": "e-1", "cluster": "demo", "gpu_model": "A100", "guarantee_hours": 1, "kind": "kept",
        "ended_at": end().plus_s(600).to_string(), "task": "synthetic" });
    let refused = service.post("/v1/outcomes", &json!({ "outcomes": [event] })).await.expect(409);
    assert_eq!((&refused["code"], &refused["errors"][0]["pointer"]), (&"placed-here".into(), &"/outcomes/0".into()));
    assert!(refused["detail"].as_str().unwrap().contains("POST /v1/outcomes/corrections"), "{refused}");
    let correction = json!({ "reason": "a test", "rows": [row(1, "A100")] });
    let corrected = service.post("/v1/usage/corrections", &correction).await.expect(200);
    assert_eq!(corrected["rows"][0]["before_gpus"], 32.0, "{corrected}");
}

/// The usage that is stored since the service began.
async fn loaded_from_start(service: &TestService) -> String {
    let (first, last) = (end().to_string(), end().plus_s(4 * 3_600).to_string());
    loaded(service.service.core.store.as_ref(), "demo", &first[..13], &last[..13]).await
}

async fn hp_demand_that_is_withdrawn_within_seconds_is_no_usage(database: TestDatabase) {
    let service = placing(&database, 16).await;
    let _ = submit(&service, &hp("base", 8.0, 2)).await;
    service.pass_s(3_600);
    service.renew().await;
    // One that runs, beside those that wait.
    let _ = submit(&service, &hp("flash-30", 8.0, 14)).await;
    for number in 0..30 {
        let _ = submit(&service, &hp(&format!("flash-{number}"), 8.0, 16)).await;
    }
    service.pass_s(2);
    for number in 0..31 {
        let _ = delete(&service, &format!("flash-{number}")).await.expect(200);
    }
    service.pass_s(3_600);
    service.renew().await;
    let hour = &end().plus_s(3_600).to_string()[..13];
    let expected = format!("demo:A100:* {hour} 16.000\ndemo:A100:org-000 {hour} 16.000\n");
    assert_eq!(loaded_from_start(&service).await, expected);
}

async fn hp_demand_that_fits_never_is_neither_demand_nor_usage(database: TestDatabase) {
    let service = placing(&database, 16).await;
    let _ = submit(&service, &hp("base", 8.0, 2)).await;
    service.pass_s(3_600);
    service.renew().await;
    let before = snapshot(&service).await["limits"].clone();
    let never = submit(&service, &hp("never", 8.0, 100)).await;
    assert_eq!(never["detail"]["waits"]["code"], "fits_never");
    service.renew().await;
    let explained = service.get(&quota_path(1).replace("/quota", "/v1/quota/explain")).await.expect(200);
    assert_eq!(number(&explained["bound"]["live"]["hp_demand_gpus"]), 16.0, "{explained}");
    assert_eq!(snapshot(&service).await["limits"], before);
    let _ = delete(&service, "never").await.expect(200);
    service.pass_s(3_600);
    service.renew().await;
    let rows = loaded_from_start(&service).await;
    let hour = &end().plus_s(3_600).to_string()[..13];
    assert_eq!(rows, format!("demo:A100:* {hour} 16.000\ndemo:A100:org-000 {hour} 16.000\n"));
}

async fn a_task_far_beyond_the_pool_is_refused_and_decides_nothing(database: TestDatabase) {
    let service = placing(&database, 16).await;
    for path in ["/v1/tasks", "/v1/tasks/dry-run"] {
        let refused = service.post(path, &hp("slip", 8.0, 16_000)).await.expect(422);
        assert_eq!((&refused["code"], &refused["errors"][0]["pointer"]), (&"task-too-large".into(), &"/pods".into()));
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("requests 128000 GPUs, and the pool has 128: at most 10 times"), "{detail}");
    }
    assert_eq!(settings_of(&service).await["placed_by"], Value::Null, "what is refused decides nothing");
    let mut settings = settings_of(&service).await;
    settings["max_request_multiple"] = 1.into();
    let _ = service.put(SETTINGS, &settings).await.expect(200);
    assert_eq!(service.post("/v1/tasks", &spot("wide", 8.0, 17, None)).await.expect(422)["code"], "task-too-large");
    assert_eq!(submit(&service, &hp("whole", 8.0, 16)).await["status"], "running");
}

async fn a_state_from_a_fast_clock_does_not_block_correct_reports(database: TestDatabase) {
    let service = placing(&database, 16).await;
    let now = service.service.core.clock.now();
    let refused = service.put(STATE, &state(128, 9, &json!({}), now.plus_s(301))).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/as_of");
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("clock_skew_s"), "{refused}");
    let fast = service.put(STATE, &state(128, 9, &json!({}), now.plus_s(200))).await.expect(200);
    assert_eq!(fast["taken"], true);
    service.pass_s(10);
    assert_eq!(report(&service, 5, json!({ "4": 80 })).await.expect(200)["taken"], true, "a correct one is newer");
    service.renew().await;
    assert_eq!(number(&quota(&service, 4).await["used_gpus"]), 80.0);
}

async fn a_clock_that_jumps_back_makes_no_quota_larger(database: TestDatabase) {
    let service = placing(&database, 16).await;
    let _ = report(&service, 5, json!({ "4": 80 })).await.expect(200);
    service.renew().await;
    let before = quota(&service, 4).await;
    let again = TestService::start(database.store().await, service.service.core.clock.now().plus_s(-1_200)).await;
    again.renew().await;
    let after = quota(&again, 4).await;
    assert!(number(&after["quota_gpus"]) <= number(&before["quota_gpus"]), "{after}");
    assert!(!codes(&after).contains(&"estimated".to_owned()), "a state from the future is no ground to guess: {after}");
    assert_eq!(number(&after["used_gpus"]), 80.0);
    let correct = state(128, 4, &json!({ "4": 81 }), again.service.core.clock.now());
    assert_eq!(again.put(STATE, &correct).await.expect(200)["taken"], true);
    again.renew().await;
    assert_eq!(number(&quota(&again, 4).await["used_gpus"]), 81.0, "the next report is taken at once");
}
