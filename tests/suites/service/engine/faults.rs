//! An unwritten request is not acknowledged, and an acknowledged one is there.

use super::*;
use tests::{Backend, fresh_database, on_both_databases};

on_both_databases![
    unwritten_requests_are_not_acknowledged_and_do_not_stay_in_memory,
    a_restart_finds_the_same_state_from_snapshot_and_journal,
    two_services_on_one_database_notice_each_other_and_agree,
    when_quotas_are_too_old_to_promise_by_nothing_new_is_promised,
    a_quota_becomes_too_old_between_two_renewals,
    between_renewals_the_answer_falls_with_what_is_admitted,
    nothing_is_promised_by_a_quota_that_a_change_has_outdated,
    the_policy_of_a_pool_is_a_setting,
];

async fn unwritten_requests_are_not_acknowledged_and_do_not_stay_in_memory(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &hp("before", 2.0, 1)).await;
    let before = snapshot(&service).await;
    database.execute("ALTER TABLE journal RENAME TO journal_away").await;
    let refused = service.post("/v1/tasks", &hp("lost", 2.0, 1)).await;
    assert_eq!(refused.headers["retry-after"], "10");
    let refused = refused.expect(503);
    assert_eq!(refused["code"], "store-unavailable");
    assert!(!refused.to_string().contains("journal"), "names of tables are for the log: {refused}");
    assert_eq!(service.get("/readyz").await.expect(503)["code"], "no-writes", "other tables take writes");
    assert_eq!(tell(&service, "before", "finish").await.status, 503);
    database.execute("ALTER TABLE journal_away RENAME TO journal").await;
    assert_eq!(snapshot(&service).await, before, "as if nothing had been asked");
    assert_eq!(service.get(&format!("/v1/tasks/lost?{OF_POOL}")).await.status, 404);
    assert_eq!(submit(&service, &hp("lost", 2.0, 1)).await["status"], "running", "the same request again is safe");
    let _ = tell(&service, "before", "finish").await.expect(200);
    assert_eq!(snapshot(&service).await["running"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_task_that_a_full_disk_refuses_is_answered_as_such() {
    let database = fresh_database(Backend::Postgres).await;
    let service = placing(&database, 1).await;
    let _ = submit(&service, &hp("before", 2.0, 1)).await;
    database
        .execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RAISE EXCEPTION 'as a test' USING ERRCODE = '53100';
             END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON journal FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    assert_eq!(service.post("/v1/tasks", &hp("lost", 2.0, 1)).await.expect(507)["code"], "store-full");
    // A node is stored elsewhere; placement takes it in when it can write again.
    let late = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
    let _ = service.put("/v1/nodes/late", &late).await.expect(200);
    database.execute("DROP TRIGGER refuse ON journal").await;
    assert_eq!(submit(&service, &hp("lost", 2.0, 1)).await["status"], "running", "the same request again is safe");
    service.renew().await;
    assert_eq!(submit(&service, &hp("whole", 8.0, 1)).await["status"], "running");
}

/// Tasks of both classes come, save, wait, are evicted and end.
async fn busy(service: &TestService) {
    for number in 0..12 {
        let hours = (number % 3 == 0).then_some(1);
        let _ = submit(service, &spot(&format!("spot-{number}"), 0.5 + f64::from(number % 2) * 0.5, 2, hours)).await;
        let _ = submit(service, &hp(&format!("hp-{number}"), f64::from(number % 4 + 1), 2)).await;
        service.pass_s(40);
        let _ = tell(service, &format!("spot-{number}"), "checkpoint").await;
        if number % 2 == 1 {
            let _ = tell(service, &format!("hp-{}", number - 1), "finish").await;
            let _ = delete(service, &format!("spot-{}", number - 1)).await;
        }
    }
}

async fn a_restart_finds_the_same_state_from_snapshot_and_journal(database: TestDatabase) {
    let store = placing(&database, 4).await.service.core.store.clone();
    let service = TestService::start_with(store.clone(), end().plus_s(60), 10, None).await;
    service.renew().await;
    busy(&service).await;
    let before = snapshot(&service).await;
    assert!(before["running"].as_array().unwrap().len() > 3 && before["waiting"].as_array().unwrap().len() > 3);
    let cut = store.open_journal(&pool(POOL)).await.unwrap();
    assert!(cut.snapshot.is_some_and(|snapshot| snapshot.seq > 10) && cut.entries.len() < 20, "it was cut on the way");
    let restarted = TestService::start_with(database.store().await, service.service.core.clock.now(), 10, None).await;
    assert_eq!(snapshot(&restarted).await, before);
    busy_again(&restarted).await;
}

/// The state that was rebuilt can be worked with.
async fn busy_again(service: &TestService) {
    let running = snapshot(service).await["running"].clone();
    for run in running.as_array().unwrap() {
        let id = run["request"]["task"].as_str().unwrap();
        assert_eq!(task(service, id).await["status"], "running", "{id}");
    }
    for run in running.as_array().unwrap() {
        let _ = delete(service, run["request"]["task"].as_str().unwrap()).await.expect(200);
    }
    assert_ne!(snapshot(service).await["running"], running);
}

async fn two_services_on_one_database_notice_each_other_and_agree(database: TestDatabase) {
    let one = placing(&database, 2).await;
    let _ = submit(&one, &hp("first", 8.0, 1)).await;
    let other = TestService::start(database.store().await, end().plus_s(60)).await;
    assert_eq!(snapshot(&other).await["running"], snapshot(&one).await["running"]);
    let _ = submit(&other, &hp("second", 8.0, 1)).await;
    let refused = one.post("/v1/tasks", &hp("third", 8.0, 1)).await.expect(503);
    assert!(refused["detail"].as_str().unwrap().contains("another service writes for cluster demo"), "{refused}");
    other.leave().await;
    one.service.renewals.update_leases().await.unwrap();
    one.service.renewals.update_leases().await.unwrap();
    let third = submit(&one, &hp("third", 8.0, 1)).await;
    assert_eq!(third["status"], "waiting", "both nodes are taken: {third}");
    assert_eq!(snapshot(&one).await["running"].as_array().unwrap().len(), 2);
}

async fn when_quotas_are_too_old_to_promise_by_nothing_new_is_promised(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let _ = submit(&service, &spot("early", 8.0, 1, Some(4))).await;
    drop(service);
    let service = TestService::start(database.store().await, end().plus_s(60 + 3 * 3_600)).await;
    service.renew().await;
    assert_eq!(quota(&service, 4).await["stage"], "conservative", "nothing was measured for three hours");
    let late = submit(&service, &spot("late", 1.0, 1, Some(4))).await;
    assert_eq!(late["detail"]["waits"]["code"], "over_quota");
    assert!(late["detail"]["waits"]["detail"].as_str().unwrap().contains("the quota of 0.000"), "{late}");
    assert_eq!(task(&service, "early").await["status"], "running", "nobody is evicted");
    let _ = tell(&service, "early", "finish").await.expect(200);
    assert_eq!(task(&service, "late").await["status"], "waiting", "no promise takes the place of one that has ended");
}

async fn a_quota_becomes_too_old_between_two_renewals(database: TestDatabase) {
    let service = placing(&database, 60).await;
    assert_eq!(submit(&service, &spot("early", 1.0, 1, Some(4))).await["status"], "running");
    service.pass_s(2_300);
    assert_eq!(submit(&service, &spot("in-time", 1.0, 1, Some(4))).await["status"], "running");
    service.pass_s(200);
    assert_eq!(quota(&service, 4).await["stage"], "conservative", "no renewal was tried");
    let late = submit(&service, &spot("late", 1.0, 1, Some(4))).await;
    assert_eq!(late["detail"]["waits"]["code"], "over_quota", "{late}");
    assert_eq!(task(&service, "early").await["status"], "running", "nobody is evicted");
    service.renew().await;
    assert_eq!(quota(&service, 4).await["stage"], "fresh");
    assert_eq!(task(&service, "late").await["status"], "running");
}

async fn between_renewals_the_answer_falls_with_what_is_admitted(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let before = quota(&service, 4).await;
    for name in ["one", "two"] {
        assert_eq!(submit(&service, &spot(name, 8.0, 1, Some(4))).await["status"], "running");
    }
    let after = quota(&service, 4).await;
    assert_eq!(after["quota_gpus"], before["quota_gpus"]);
    assert_eq!((number(&before["used_gpus"]), number(&after["used_gpus"])), (0.0, 16.0));
    let available = |answer: &Value| number(&answer["available_gpus"]);
    assert!((available(&before) - available(&after) - 16.0).abs() < 1e-6, "{before} {after}");
    let _ = tell(&service, "one", "finish").await.expect(200);
    let ended = quota(&service, 4).await;
    assert_eq!((number(&ended["used_gpus"]), available(&ended)), (8.0, available(&after)), "a raise waits");
    service.renew().await;
    assert!(available(&quota(&service, 4).await) > available(&after));
}

/// Each change is stored and answered, and the next promise waits for the quotas that know it.
async fn nothing_is_promised_by_a_quota_that_a_change_has_outdated(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let now = service.service.core.clock.now();
    let reserve = json!({
        "cluster": "demo", "gpu_model": "A100", "kind": "reserve", "gpus": 470.0, "from": now.to_string(),
        "to": now.plus_s(36_000).to_string(), "reason": "the launch of the new model",
    });
    let id = service.post("/v1/overrides", &reserve).await.expect(201)["id"].to_string();
    let large = submit(&service, &spot("large", 8.0, 2, Some(4))).await;
    assert_eq!(large["detail"]["waits"]["code"], "over_quota", "{large}");
    service.renew().await;
    assert_eq!(task(&service, "large").await["status"], "waiting", "the GPUs are reserved");
    assert_eq!(service.send(axum::http::Method::DELETE, &format!("/v1/overrides/{id}"), &[], None).await.status, 204);
    service.renew().await;
    assert_eq!(task(&service, "large").await["status"], "running");
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = service.get(path).await.expect(200);
    settings["offered_hours"] = json!([1]);
    let _ = service.put(path, &settings).await.expect(200);
    let long = submit(&service, &spot("long", 1.0, 1, Some(1))).await;
    assert_eq!(long["status"], "waiting", "{long}");
    service.renew().await;
    assert_eq!(task(&service, "long").await["status"], "running");
}

async fn the_policy_of_a_pool_is_a_setting(database: TestDatabase) {
    let service = placing(&database, 2).await;
    let _ = submit(&service, &hp("first", 1.0, 1)).await;
    let over = submit(&service, &spot("over", 1.0, 12, Some(4))).await;
    assert_eq!(over["status"], "waiting");
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = service.get(path).await.expect(200);
    assert_eq!(
        (&settings["policy"], &settings["shadow"], &settings["grace_s"]),
        (&"gfs".into(), &false.into(), &30.into())
    );
    settings["policy"] = "best".into();
    assert_eq!(service.put(path, &settings).await.expect(400)["errors"][0]["pointer"], "/policy");
    (settings["policy"], settings["grace_s"]) = ("fgd".into(), 5.into());
    let _ = service.put(path, &settings).await.expect(200);
    let explained = service.get(&format!("/v1/tasks/over/explain?{OF_POOL}")).await.expect(200);
    assert_eq!(explained["policy"], "fgd");
    let _ = tell(&service, "first", "finish").await.expect(200);
    assert_eq!(task(&service, "over").await["status"], "running", "this policy asks for no quota");
    let urgent = submit(&service, &hp("urgent", 8.0, 1)).await;
    assert_eq!(urgent["detail"]["run"]["starts"], service.service.core.clock.now().plus_s(5).to_string());
    let mut settings = service.get(path).await.expect(200);
    settings.as_object_mut().unwrap().remove("policy");
    settings["policy_parts"] = json!({"name": "mine", "like": "lyra", "order": "fifo"});
    let refused = service.put(path, &settings).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/policy_parts/order", "{refused}");
    settings["policy_parts"]["order"] = "arrival".into();
    let set = service.put(path, &settings).await.expect(200);
    assert_eq!((&set["policy"], &set["policy_parts"]["like"]), (&"mine".into(), &"lyra".into()));
    let service = TestService::start(database.store().await, service.service.core.clock.now()).await;
    let explained = service.get(&format!("/v1/tasks/over/explain?{OF_POOL}")).await.expect(200);
    assert_eq!(explained["policy"], "mine", "it is kept with the settings");
}
