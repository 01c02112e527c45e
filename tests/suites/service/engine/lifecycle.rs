//! A task from its submission to its end.

use super::*;
use tests::on_both_databases;

on_both_databases![
    a_task_is_submitted_saves_its_work_and_finishes,
    a_task_that_does_not_fit_waits_with_its_reason_and_starts_when_there_is_room,
    the_same_task_again_is_answered_as_it_is_and_another_under_its_name_refused,
    spot_is_admitted_within_the_quota_and_refused_beyond_it,
    hp_demand_between_renewals_lowers_the_available_gpus,
    the_first_renewal_that_counts_hp_demand_ends_what_was_taken_for_it,
    the_first_task_meets_the_quota_after_reads_of_the_pool,
    a_task_is_taken_back_wherever_it_is,
    bad_bodies_are_refused_by_their_fields,
    unknown_tasks_are_answered_404,
    a_trial_changes_nothing,
    a_task_explains_why_it_waits_and_why_it_runs,
    a_drained_node_gets_no_new_pods_and_keeps_those_it_has,
];

async fn a_task_is_submitted_saves_its_work_and_finishes(database: TestDatabase) {
    let service = placing(&database, 2).await;
    let started = submit(&service, &hp("train-1", 4.0, 3)).await;
    assert_eq!((&started["status"], &started["shadow"]), (&"running".into(), &false.into()), "{started}");
    assert_eq!(nodes(&started).len(), 3, "a gang is whole");
    assert_eq!(started["detail"]["run"]["places"][0]["gpus"].as_array().unwrap().len(), 4);
    assert_eq!(task(&service, "train-1").await, started);
    service.pass_s(600);
    let saved = tell(&service, "train-1", "checkpoint").await.expect(200);
    assert_eq!(saved["detail"]["run"]["saved"], end().plus_s(660).to_string());
    let finished = tell(&service, "train-1", "finish").await.expect(200);
    assert_eq!((&finished["status"], nodes(&finished).len()), (&"finished".into(), 3), "with its last run");
    service.pass_s(60);
    assert_eq!(tell(&service, "train-1", "finish").await.expect(200), finished, "once more, as it was");
    assert_eq!(task(&service, "train-1").await, finished);
    assert_eq!(delete(&service, "train-1").await.expect(409)["code"], "task-state");
    assert_eq!(tell(&service, "train-1", "checkpoint").await.expect(409)["detail"], "task train-1 is finished");
    assert_eq!(snapshot(&service).await["running"], json!([]));
}

async fn a_task_that_does_not_fit_waits_with_its_reason_and_starts_when_there_is_room(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    let second = submit(&service, &hp("second", 8.0, 1)).await;
    assert_eq!((&second["status"], &second["detail"]["waits"]["code"]), (&"waiting".into(), &"held_by_hp".into()));
    let never = submit(&service, &hp("never", 8.0, 2)).await;
    assert_eq!(never["detail"]["waits"]["code"], "fits_never");
    assert_eq!(tell(&service, "second", "finish").await.expect(409)["detail"], "task second does not run");
    let _ = tell(&service, "first", "finish").await.expect(200);
    assert_eq!(task(&service, "second").await["status"], "running");
    put_node(&service, "n1", false).await;
    let _ = tell(&service, "second", "finish").await.expect(200);
    assert_eq!(nodes(&task(&service, "never").await), ["n0", "n1"], "a new node is taken in at once");
}

async fn the_same_task_again_is_answered_as_it_is_and_another_under_its_name_refused(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let started = submit(&service, &hp("once", 2.0, 1)).await;
    service.pass_s(30);
    assert_eq!(submit(&service, &hp("once", 2.0, 1)).await, started);
    let refused = service.post("/v1/tasks", &hp("once", 3.0, 1)).await.expect(422);
    assert_eq!(refused["code"], "task-differs");
    let _ = tell(&service, "once", "finish").await.expect(200);
    let again = submit(&service, &hp("once", 2.0, 1)).await;
    assert_eq!(again["status"], "finished", "a name is used once");
    assert_eq!(service.post("/v1/tasks", &spot("once", 2.0, 1, None)).await.status, 422);
    assert_eq!(snapshot(&service).await["running"], json!([]));
}

async fn spot_is_admitted_within_the_quota_and_refused_beyond_it(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let _ = submit(&service, &spot("will", 1.0, 1, None)).await;
    let limits = snapshot(&service).await["limits"].clone();
    let quota = limits.as_array().unwrap().iter().find(|limit| limit["hours"] == 4).unwrap()["quota_milli"].clone();
    assert!(quota.as_u64().unwrap() > 8_000, "{limits}");
    let pods = u32::try_from(quota.as_u64().unwrap() / 1_000).unwrap();
    let within = submit(&service, &spot("within", 1.0, pods, Some(4))).await;
    assert_eq!(within["detail"]["run"]["guarantee"]["hours"], 4, "{within}");
    let beyond = submit(&service, &spot("beyond", 1.0, 1, Some(4))).await;
    assert_eq!(beyond["detail"]["waits"]["code"], "over_quota", "{beyond}");
    let longer = submit(&service, &spot("longer", 1.0, 1, Some(8))).await;
    assert_eq!(longer["detail"]["waits"]["code"], "guarantee_not_offered");
    assert_eq!(submit(&service, &spot("at-will", 1.0, 1, None)).await["status"], "running", "it was promised nothing");
    let _ = tell(&service, "within", "finish").await.expect(200);
    assert_eq!(task(&service, "beyond").await["status"], "running");
}

async fn hp_demand_between_renewals_lowers_the_available_gpus(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let _ = submit(&service, &spot("will", 1.0, 1, None)).await;
    let available = |answer: &Value| answer["available_gpus"].as_f64().unwrap();
    let before = quota(&service, 4).await;
    let _ = submit(&service, &hp("hp", 8.0, 2)).await;
    let after = quota(&service, 4).await;
    assert!((available(&before) - available(&after) - 16.0).abs() < 0.01, "{before} {after}");
    assert!(after["reasons"].to_string().contains("tasks_since_renewal"), "{after}");
    let pods = available(&after) as u32;
    let within = submit(&service, &spot("within", 1.0, pods, Some(4))).await;
    assert_eq!(within["status"], "running", "{within}");
}

async fn the_first_renewal_that_counts_hp_demand_ends_what_was_taken_for_it(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    service.pass_s(1);
    service.renew().await;
    let _ = submit(&service, &hp("second", 8.0, 2)).await;
    assert!(quota(&service, 4).await["reasons"].to_string().contains("tasks_since_renewal"));
    service.pass_s(1);
    service.renew().await;
    let renewed = quota(&service, 4).await;
    assert!(!renewed["reasons"].to_string().contains("tasks_since_renewal"), "{renewed}");
}

async fn the_first_task_meets_the_quota_after_reads_of_the_pool(database: TestDatabase) {
    let service = placing(&database, 12).await;
    let answer = quota(&service, 1).await;
    assert!(answer["available_gpus"].as_f64().unwrap() >= 4.0, "{answer}");
    // Its writer begins with this, and no renewal follows.
    let _ = service.get("/v1/pools/demo:A100/shares").await.expect(200);
    let started = submit(&service, &spot("first", 4.0, 1, Some(1))).await;
    assert_eq!(started["status"], "running", "{started}");
}

async fn a_task_is_taken_back_wherever_it_is(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &hp("runs", 8.0, 1)).await;
    let _ = submit(&service, &hp("waits", 8.0, 1)).await;
    for id in ["waits", "runs"] {
        assert_eq!(delete(&service, id).await.expect(200)["status"], "deleted");
        assert_eq!(delete(&service, id).await.expect(200)["status"], "deleted", "once more");
        assert_eq!(tell(&service, id, "finish").await.status, 409);
    }
    let left = snapshot(&service).await;
    assert_eq!((&left["running"], &left["waiting"]), (&json!([]), &json!([])));
}

async fn bad_bodies_are_refused_by_their_fields(database: TestDatabase) {
    let service = placing(&database, 1).await;
    for (field, value, printed) in [
        ("gpus_per_pod", json!(1.5), "ask for 2 or split the pods"),
        ("gpus_per_pod", json!(65), "more than a node may have, 64"),
        ("gpus_per_pod", json!(-1), "-1 GPUs is negative"),
        ("pods", json!(0), "at least one pod"),
        ("pods", json!(-1), "write a whole number"),
        ("class", json!("best"), "write `hp` or `spot`"),
        ("organization", json!("*"), "* is the pool itself"),
        ("guarantee_hours", json!(4), "an hp task is never evicted"),
        ("id", json!(""), "the task is empty"),
        ("gpu", json!(1), "unknown field `gpu`"),
    ] {
        let mut body = hp("bad", 1.0, 1);
        body[field] = value;
        let refused = service.post("/v1/tasks", &body).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], format!("/{field}"), "{refused}");
        assert!(refused["errors"][0]["detail"].as_str().unwrap().contains(printed), "{refused}");
    }
    let mut body = spot("bad", 1.0, 1, Some(169));
    assert_eq!(service.post("/v1/tasks", &body).await.expect(400)["errors"][0]["pointer"], "/guarantee_hours");
    body["cluster"] = "a:b".into();
    assert_eq!(service.post("/v1/tasks/dry-run", &body).await.expect(400)["errors"][0]["pointer"], "/cluster");
    let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 65 });
    assert_eq!(service.put("/v1/nodes/huge", &node).await.expect(400)["errors"][0]["pointer"], "/gpus");
}

async fn unknown_tasks_are_answered_404(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let mut elsewhere = hp("lost", 1.0, 1);
    elsewhere["gpu_model"] = "H800".into();
    assert_eq!(service.post("/v1/tasks", &elsewhere).await.expect(404)["code"], "no-nodes");
    for path in ["/v1/tasks/nobody", "/v1/tasks/nobody/explain"] {
        assert_eq!(service.get(&format!("{path}?{OF_POOL}")).await.expect(404)["code"], "unknown-task", "{path}");
    }
    assert_eq!(tell(&service, "nobody", "finish").await.expect(404)["code"], "unknown-task");
    assert_eq!(service.get("/v1/tasks/nobody?cluster=demo").await.expect(400)["code"], "bad-query");
    assert_eq!(service.get("/v1/events?cluster=demo&gpu_model=H800").await.expect(404)["code"], "unknown-pool");
    let path = format!("/v1/events?{OF_POOL}");
    let strange = service.send(Method::GET, &path, &[("last-event-id", "yesterday")], None).await;
    assert_eq!(strange.expect(400)["detail"], "Last-Event-ID: expected the id of an event, such as one of this stream");
    let beyond = service.send(Method::GET, &path, &[("last-event-id", "99999999.0")], None).await;
    let beyond = beyond.expect(400)["detail"].to_string();
    assert!(beyond.contains("this id is of another database, as after a restored backup"), "{beyond}");
}

async fn a_trial_changes_nothing(database: TestDatabase) {
    let service = placing(&database, 2).await;
    let _ = submit(&service, &spot("spot", 8.0, 2, None)).await;
    let before = snapshot(&service).await;
    let tried = service.post("/v1/tasks/dry-run", &hp("hp", 8.0, 1)).await.expect(200);
    assert_eq!((&tried["status"], &tried["shadow"]), (&"running".into(), &true.into()));
    assert_eq!(tried["detail"]["victims"], json!(["spot"]), "{tried}");
    assert_eq!(tried["detail"]["run"]["starts"], end().plus_s(90).to_string(), "after the grace period");
    let tried = service.post("/v1/tasks/dry-run", &spot("more", 1.0, 1, None)).await.expect(200);
    assert_eq!(tried["detail"]["waits"]["code"], "nothing_idle");
    assert_eq!(snapshot(&service).await, before);
    assert_eq!(service.get(&format!("/v1/tasks/hp?{OF_POOL}")).await.status, 404);
}

async fn a_task_explains_why_it_waits_and_why_it_runs(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &hp("runs", 8.0, 1)).await;
    let _ = submit(&service, &spot("waits", 1.0, 1, None)).await;
    let explained = service.get(&format!("/v1/tasks/waits/explain?{OF_POOL}")).await.expect(200);
    assert_eq!(explained["reason"]["code"], "nothing_idle");
    assert_eq!((number(&explained["capacity_gpus"]), number(&explained["idle_gpus"])), (8.0, 0.0));
    assert_eq!((&explained["policy"], explained["promises"].as_array().unwrap().len()), (&"gfs".into(), 3));
    let explained = service.get(&format!("/v1/tasks/runs/explain?{OF_POOL}")).await.expect(200);
    assert_eq!(explained["reason"]["code"], "placed");
    let _ = tell(&service, "runs", "finish").await.expect(200);
    let explained = service.get(&format!("/v1/tasks/runs/explain?{OF_POOL}")).await.expect(200);
    assert_eq!(explained["reason"]["code"], "finished");
}

async fn a_drained_node_gets_no_new_pods_and_keeps_those_it_has(database: TestDatabase) {
    let service = placing(&database, 2).await;
    let first = submit(&service, &hp("first", 4.0, 1)).await;
    let node = nodes(&first)[0].to_owned();
    put_node(&service, &node, true).await;
    assert_ne!(nodes(&submit(&service, &hp("second", 4.0, 1)).await), [node.as_str()]);
    assert_eq!(task(&service, "first").await["status"], "running");
    assert_eq!(submit(&service, &hp("third", 8.0, 1)).await["status"], "waiting");
    put_node(&service, &node, false).await;
    let _ = tell(&service, "first", "finish").await.expect(200);
    assert_eq!(nodes(&task(&service, "third").await), [node.as_str()]);
}
