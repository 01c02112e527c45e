//! Several services on one database: one of them writes, all of them answer, and another one goes on where one is lost.

use super::*;
use quota_service::leases::Leases;
use std::time::Instant;
use tests::{Backend, Listening, on_both_databases};

on_both_databases![
    one_service_writes_and_the_others_answer_the_same,
    a_service_that_has_lost_its_lease_decides_nothing_and_follows,
    a_pool_without_a_quota_is_listed_by_every_service,
    a_stopped_service_leaves_at_once,
    requests_reach_the_deciding_service,
    a_service_that_is_killed_is_followed_by_another,
    a_service_that_takes_over_promises_nothing_before_it_has_renewed,
    a_service_that_follows_answers_what_tasks_have_taken_and_offers_what_is_offered,
    a_service_that_follows_counts_hp_demand_between_renewals_as_the_one_that_leads_does,
    a_report_that_lowers_a_quota_and_the_side_that_it_decides_show_at_every_service_at_the_next_beat,
    the_capacity_of_a_pool_without_a_quota_and_the_reason_are_read_again_at_services_that_follow,
    a_service_that_cannot_take_its_own_lease_of_before_names_no_leader,
];

/// Short, so that tests need not wait; a beat is a fifth.
const PATIENCE_MS: u64 = 400;

pub(super) async fn replica(database: &TestDatabase, name: &str) -> TestService {
    let now = end().plus_s(60);
    TestService::start_as(database.store().await, now, name, Duration::from_millis(PATIENCE_MS)).await
}

/// A service with a pool of one node, and who else is there.
pub(super) async fn two(database: &TestDatabase) -> (TestService, TestService) {
    let store = with_usage(database, 500).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    let one = replica(database, "one").await;
    let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
    let _ = one.put("/v1/nodes/n0", &node).await.expect(200);
    one.renew().await;
    let other = replica(database, "other").await;
    other.follow().await;
    (one, other)
}

/// As [`two`], with nodes enough for a quota, and a first task.
pub(super) async fn two_with_quotas(database: &TestDatabase) -> (TestService, TestService) {
    let (one, other) = two(database).await;
    for number in 1..60 {
        put_node(&one, &format!("n{number}"), false).await;
    }
    assert_eq!(submit(&one, &hp("first", 1.0, 1)).await["status"], "running");
    one.renew().await;
    other.follow().await;
    (one, other)
}

async fn one_service_writes_and_the_others_answer_the_same(database: TestDatabase) {
    let (one, other) = two(&database).await;
    let (mine, theirs) = (one.get(&quota_path(1)).await, other.get(&quota_path(1)).await);
    assert_eq!((mine.status, theirs.status), (200, 200));
    assert_eq!((&mine.body, &mine.headers["etag"]), (&theirs.body, &theirs.headers["etag"]));
    let _ = one.post("/v1/tasks", &hp("a", 4.0, 1)).await.expect(200);
    let refused = other.post("/v1/tasks", &hp("b", 4.0, 1)).await;
    assert_eq!((refused.status, &refused.headers["retry-after"]), (503, &"1".parse().unwrap()));
    assert_eq!(refused.body["code"], "not-the-writer");
    assert!(refused.body["detail"].as_str().unwrap().starts_with("one leads the cluster"), "{}", refused.body);
    for (path, body) in [
        ("/v1/pools/demo:A100/state", state(8, 1, &json!({}), end())),
        ("/v1/nodes/n1", json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 })),
    ] {
        assert_eq!(other.put(path, &body).await.expect(503)["code"], "not-the-writer", "{path}");
    }
    let forecast = "/v1/forecast?cluster=demo&gpu_model=A100";
    let _ = one.get(forecast).await.expect(200);
    assert_eq!(
        other.get(forecast).await.expect(503)["code"],
        "not-the-writer",
        "where there is an address it is asked"
    );
    assert_eq!(other.send(axum::http::Method::HEAD, "/v1/pools", &[], None).await.status, 200);
    assert_eq!(database.numbers("SELECT count(*) FROM audit WHERE action LIKE 'HEAD%'").await, [0], "it reads");
    // Requests that any service may take reach the one that computes.
    let hour = first_hour().plus_hours(i64::from(DAYS) * 24 - 1).to_string();
    let row = json!({ "cluster": "demo", "gpu_model": "A100", "organization": "o", "hour": hour, "demand_gpus": 7.0 });
    let _ = other.post("/v1/usage", &json!({ "rows": [row] })).await.expect(200);
    assert!(one.sees_news().await && !other.sees_news().await);
    one.pass_s(1);
    one.renew().await;
    assert!(!one.sees_news().await);
    let before = other.get(&quota_path(1)).await.body;
    other.renew().await;
    other.pass_s(1);
    assert_eq!(other.get(&quota_path(1)).await.body, before, "who does not write computes nothing");
    other.follow().await;
    let (mine, theirs) = (one.get(&quota_path(1)).await, other.get(&quota_path(1)).await);
    assert_eq!(mine.body, theirs.body);
    assert_ne!(theirs.body, before);
    assert_eq!(other.get(&format!("/v1/tasks/a?{OF_POOL}")).await.expect(200)["status"], "running");
}

async fn a_service_that_has_lost_its_lease_decides_nothing_and_follows(database: TestDatabase) {
    let (one, other) = two(&database).await;
    let _ = one.post("/v1/tasks", &hp("a", 4.0, 1)).await.expect(200);
    for _ in 0..10 {
        one.service.renewals.update_leases().await.unwrap();
        other.service.renewals.update_leases().await.unwrap();
        tokio::time::sleep(Duration::from_millis(PATIENCE_MS / 5)).await;
    }
    assert!(other.service.core.leases.led(&cluster("demo")).is_none(), "its beats come");
    // It stands still: beats do not come.
    while other.service.core.leases.led(&cluster("demo")).is_none() {
        other.service.renewals.update_leases().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It goes on, and knows nothing of it.
    let refused = one.post("/v1/tasks", &hp("b", 4.0, 1)).await.expect(503);
    assert!(refused["detail"].as_str().unwrap().contains("another service writes for cluster demo"), "{refused}");
    let kept = quota(&one, 1).await;
    one.pass_s(300);
    one.renew().await;
    assert_eq!(quota(&one, 1).await["computed_at"], kept["computed_at"], "it cannot store what it computes");
    let _ = other.post("/v1/tasks", &hp("b", 4.0, 1)).await.expect(200);
    assert_eq!(other.post("/v1/tasks", &hp("c", 1.0, 1)).await.expect(200)["status"], "waiting", "a holds the rest");
    one.service.renewals.update_leases().await.unwrap();
    assert_eq!(one.post("/v1/tasks", &hp("d", 1.0, 1)).await.expect(503)["code"], "not-the-writer");
    assert_eq!(one.service.core.leases.leader(&cluster("demo")).unwrap().holder, "other");
    // The journal is one line, of rising epochs.
    let epochs = database.numbers("SELECT epoch FROM journal ORDER BY seq").await;
    assert!(epochs.is_sorted() && epochs.first() == Some(&1) && epochs.last() == Some(&2), "{epochs:?}");
}

async fn a_pool_without_a_quota_is_listed_by_every_service(database: TestDatabase) {
    let (one, other) = two(&database).await;
    let node = json!({ "cluster": "demo", "gpu_model": "H100", "gpus": 8 });
    let _ = one.put("/v1/nodes/n1", &node).await.expect(200);
    other.follow().await;
    for service in [&one, &other] {
        let pools = service.get("/v1/pools").await.expect(200);
        let listed: Vec<_> = pools["pools"].as_array().unwrap().iter().map(|pool| &pool["gpu_model"]).collect();
        assert_eq!(listed, ["A100", "H100"], "{pools}");
        let none = service.get("/quota?cluster=demo&gpu_model=H100&hours=1").await.expect(503);
        assert_eq!((&none["code"], &none["detail"]), (&json!("no-quota-yet"), &pools["pools"][1]["no_quota"]));
    }
    let theirs = other.get("/v1/pools").await.expect(200)["pools"][1]["no_quota"].to_string();
    assert!(theirs.contains("one leads the cluster, and has stored no quota of this pool yet"), "{theirs}");
}

async fn a_stopped_service_leaves_at_once(database: TestDatabase) {
    let (one, other) = two(&database).await;
    let _ = one.post("/v1/tasks", &spot("a", 4.0, 1, None)).await.expect(200);
    one.leave().await;
    other.service.renewals.update_leases().await.unwrap();
    assert!(other.service.core.leases.led(&cluster("demo")).is_some());
    let _ = other.post("/v1/tasks/a/finish?cluster=demo&gpu_model=A100", &json!({})).await.expect(200);
}

fn listening(database: &TestDatabase, name: &str) -> (Listening, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("headroom.toml");
    std::fs::write(&config, format!("[quota-service]\nlog = \"error\"\nlease_s = 1\nreplica = {name:?}\n")).unwrap();
    let service = Listening::start(&["--database", &database.url, "--config", config.to_str().unwrap()]);
    (service, folder)
}

async fn requests_reach_the_deciding_service(database: TestDatabase) {
    drop(two(&database).await);
    let (one, _folder) = listening(&database, "one");
    let _ = one.get_until(&quota_path(1), |status, _| status == 200);
    let (two, _other) = listening(&database, "two");
    let asked = two.send("POST", "/v1/tasks", Some(&hp("a", 2.0, 1))).unwrap();
    assert_eq!((asked.0, &asked.1["status"]), (200, &"running".into()), "{asked:?}");
    let again = one.send("POST", "/v1/tasks", Some(&hp("a", 2.0, 1))).unwrap();
    assert_eq!(asked, again, "the same task, wherever it is asked for");
    let (status, refused) = two.send("POST", "/v1/tasks", Some(&json!({ "id": "b" }))).unwrap();
    assert_eq!((status, &refused["code"]), (400, &"bad-body".into()), "who refuses may be either");
    let differs = two.send("POST", "/v1/tasks", Some(&hp("a", 4.0, 1))).unwrap();
    assert_eq!((differs.0, &differs.1["code"]), (422, &"task-differs".into()));
    let (status, explained) = two.get(&format!("/v1/tasks/a/explain?{OF_POOL}"));
    assert_eq!((status, &explained["task"]["id"]), (200, &"a".into()), "{explained}");
    let (status, _) = two.send("DELETE", &format!("/v1/tasks/a?{OF_POOL}"), None).unwrap();
    assert_eq!((status, one.stop().code, two.stop().code), (200, 0, 0));
}

async fn a_service_that_is_killed_is_followed_by_another(database: TestDatabase) {
    drop(two(&database).await);
    let (mut one, _folder) = listening(&database, "one");
    let _ = one.get_until(&quota_path(1), |status, _| status == 200);
    let (two, _other) = listening(&database, "two");
    let _ = two.send("POST", "/v1/tasks", Some(&hp("a", 2.0, 1))).unwrap();
    one.kill();
    // Quotas are answered all the while; decisions wait for seconds.
    let (mut tries, killed) = (0, Instant::now());
    loop {
        assert_eq!(two.get(&quota_path(1)).0, 200);
        let (status, answer) = two.send("POST", "/v1/tasks", Some(&hp("b", 2.0, 1))).unwrap();
        if status == 200 {
            assert_eq!(answer["status"], "running");
            break;
        }
        assert_eq!(status, 503, "{answer}");
        tries += 1;
        assert!(killed.elapsed() < Duration::from_secs(20), "{tries} tries: {answer}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (status, a) = two.get(&format!("/v1/tasks/a?{OF_POOL}"));
    assert_eq!((status, &a["status"]), (200, &"running".into()), "what was acknowledged is there");
    assert_eq!(two.stop().code, 0);
}

async fn a_service_that_takes_over_promises_nothing_before_it_has_renewed(database: TestDatabase) {
    let (one, other) = two_with_quotas(&database).await;
    assert_eq!(submit(&one, &spot("early", 1.0, 1, Some(4))).await["status"], "running");
    let now = one.service.core.clock.now();
    let all = json!({
        "cluster": "demo", "gpu_model": "A100", "kind": "reserve", "gpus": 500.0, "from": now.to_string(),
        "to": now.plus_s(36_000).to_string(), "reason": "the launch of the new model",
    });
    let _ = one.post("/v1/overrides", &all).await.expect(201);
    // It stops before it has renewed the quotas.
    one.leave().await;
    other.service.renewals.update_leases().await.unwrap();
    assert!(other.service.core.leases.led(&cluster("demo")).is_some());
    let late = submit(&other, &spot("late", 1.0, 1, Some(4))).await;
    assert_eq!(late["detail"]["waits"]["code"], "over_quota", "{late}");
    let answer = quota(&other, 4).await;
    assert_eq!(number(&answer["available_gpus"]), 0.0, "{answer}");
    assert!(codes(&answer).contains(&"not_renewed_since_takeover".to_owned()), "{answer}");
    let explained = other.get(&format!("/v1/tasks/late/explain?{OF_POOL}")).await.expect(200);
    assert!(explained["reason"]["detail"].as_str().unwrap().contains("started or taken over"), "{explained}");
    other.renew().await;
    assert_eq!(task(&other, "late").await["status"], "waiting", "the GPUs are reserved");
    assert_eq!(other.send(axum::http::Method::DELETE, "/v1/overrides/1", &[], None).await.status, 204);
    other.renew().await;
    assert_eq!(task(&other, "late").await["status"], "running");
}

async fn a_service_that_follows_answers_what_tasks_have_taken_and_offers_what_is_offered(database: TestDatabase) {
    let (one, other) = two_with_quotas(&database).await;
    let before = quota(&other, 4).await;
    for task in ["a", "b"] {
        assert_eq!(submit(&one, &spot(task, 2.0, 1, Some(4))).await["status"], "running");
        other.follow().await;
        assert_eq!(quota(&one, 4).await, quota(&other, 4).await, "after {task}");
    }
    let after = quota(&other, 4).await;
    assert_eq!((number(&before["used_gpus"]), number(&after["used_gpus"])), (0.0, 4.0));
    let promises = format!("/v1/promises?{OF_POOL}&days=1");
    let report = other.get(&promises).await.expect(200);
    assert_eq!((&report["sold"], &report["open"]), (&json!(2), &json!(2)), "{report}");
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = one.get(path).await.expect(200);
    settings["offered_hours"] = json!([1, 2]);
    let _ = one.put(path, &settings).await.expect(200);
    one.pass_s(1);
    one.renew().await;
    other.follow().await;
    for service in [&one, &other] {
        assert_eq!(service.get(&quota_path(4)).await.expect(404)["known"], json!(["1", "2"]));
    }
    assert_eq!(quota(&one, 2).await, quota(&other, 2).await);
    assert_eq!(number(&quota(&other, 2).await["used_gpus"]), 4.0, "new quotas have them, too");
}

async fn a_service_that_follows_counts_hp_demand_between_renewals_as_the_one_that_leads_does(database: TestDatabase) {
    let (one, other) = two_with_quotas(&database).await;
    let before = number(&quota(&other, 4).await["available_gpus"]);
    assert_eq!(submit(&one, &hp("more", 8.0, 2)).await["status"], "running");
    other.follow().await;
    let after = quota(&other, 4).await;
    assert_eq!(quota(&one, 4).await, after);
    assert!((before - number(&after["available_gpus"]) - 16.0).abs() < 0.01, "{before} {after}");
    assert!(after["reasons"].to_string().contains("tasks_since_renewal"), "{after}");
    one.pass_s(1);
    one.renew().await;
    other.follow().await;
    let renewed = quota(&other, 4).await;
    assert_eq!(quota(&one, 4).await, renewed);
    assert!(!renewed["reasons"].to_string().contains("tasks_since_renewal"), "{renewed}");
}

async fn a_report_that_lowers_a_quota_and_the_side_that_it_decides_show_at_every_service_at_the_next_beat(
    database: TestDatabase,
) {
    let (one, other) = two(&database).await;
    let report = async |idle: u32| {
        let body = state(500, idle, &json!({}), one.service.core.clock.now());
        assert_eq!(one.put("/v1/pools/demo:A100/state", &body).await.expect(200)["taken"], true);
    };
    let side =
        async |service: &TestService| service.get("/v1/pools").await.expect(200)["pools"][0]["placed_by"].clone();
    assert_eq!(side(&other).await, Value::Null);
    report(300).await;
    other.follow().await;
    assert_eq!((side(&one).await, side(&other).await), ("external".into(), "external".into()), "before a renewal");
    one.pass_s(1);
    one.renew().await;
    other.follow().await;
    let before = quota(&other, 4).await;
    assert_eq!(quota(&one, 4).await, before);
    assert!(number(&before["quota_gpus"]) > 5.0, "{before}");
    one.pass_s(1);
    report(5).await;
    other.follow().await;
    let lowered = quota(&other, 4).await;
    assert_eq!(quota(&one, 4).await, lowered);
    assert_eq!(
        (number(&lowered["quota_gpus"]), codes(&lowered).contains(&"lowered_by_report".to_owned())),
        (5.0, true)
    );
    let late = replica(&database, "late").await;
    assert_eq!(number(&quota(&late, 4).await["quota_gpus"]), 5.0, "one that starts has its reports before a renewal");
    late.follow().await;
    assert_eq!(quota(&late, 4).await, lowered, "one that begins to follow lowers the stored quota, too");
    // A report that raises waits for a renewal, everywhere.
    one.pass_s(1);
    report(200).await;
    other.follow().await;
    let answers = async || (quota(&one, 4).await, quota(&other, 4).await);
    assert_eq!(answers().await, (lowered.clone(), lowered));
    one.renew().await;
    other.follow().await;
    let (raised, theirs) = answers().await;
    assert_eq!(theirs, raised);
    assert!(number(&raised["quota_gpus"]) > 100.0, "{raised}");
}

async fn the_capacity_of_a_pool_without_a_quota_and_the_reason_are_read_again_at_services_that_follow(
    database: TestDatabase,
) {
    let store = with_usage(&database, 500).await;
    let one = replica(&database, "one").await;
    one.renew().await;
    let other = replica(&database, "other").await;
    other.follow().await;
    let listed = async |service: &TestService| {
        let pool = service.get("/v1/pools").await.expect(200)["pools"][0].clone();
        (number(&pool["capacity_gpus"]), pool["no_quota"].as_str().unwrap().to_owned())
    };
    let without_run = (500.0, "the cluster has no promoted run: train --cluster NAME".to_owned());
    assert_eq!((listed(&one).await, listed(&other).await), (without_run.clone(), without_run));
    put_node(&one, "n0", false).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    for service in [&one, &other] {
        service.pass_s(3 * 3_600);
    }
    one.renew().await;
    other.follow().await;
    let theirs = listed(&other).await;
    assert_eq!(listed(&one).await, theirs);
    assert!(theirs.0 < 9.0 && theirs.1.contains("more than two hours ago"), "{theirs:?}");
}

async fn a_service_that_cannot_take_its_own_lease_of_before_names_no_leader(database: TestDatabase) {
    let store = with_usage(&database, 500).await;
    let service = || Leases::new("one".to_owned(), Duration::from_hours(1));
    assert_eq!(service().look(&store).await.unwrap().gained, [cluster("demo")]);
    database
        .execute(match database.backend {
            Backend::Postgres => {
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                     RAISE EXCEPTION 'as a test' USING ERRCODE = '53100';
                 END $$;
                 CREATE TRIGGER refuse BEFORE UPDATE ON leases FOR EACH ROW EXECUTE FUNCTION refuse()"
            }
            Backend::Sqlite => {
                "CREATE TRIGGER refuse BEFORE UPDATE ON leases BEGIN SELECT RAISE(ABORT, 'as a test'); END"
            }
        })
        .await;
    let again = service();
    assert_eq!(again.look(&store).await.unwrap().gained, []);
    assert_eq!(again.leader(&cluster("demo")), None, "a client that is sent to the service itself asks for ever");
}
