//! When tasks start: what is answered before and after a submission, and what is kept of it.

use super::eviction::events;
use super::*;
use tests::on_both_databases;

on_both_databases![
    a_task_that_waits_has_a_start_with_the_reasons_for_which_it_may_be_off,
    a_task_that_is_not_submitted_has_a_start_and_nothing_is_changed,
    a_bad_question_is_refused_by_its_field,
    a_price_list_has_the_wait_of_each_guarantee_and_what_ends_in_time,
    knowledge_of_starts_survives_a_restart_and_is_learned_again_where_it_cannot_be_read,
    a_waiting_task_is_listed_with_its_expected_start_and_announced_when_that_moves,
    the_explanation_of_a_quota_says_how_forecasts_of_starts_fared,
];

async fn eta(service: &TestService, id: &str) -> Answer {
    service.get(&format!("/v1/tasks/{id}/eta?{OF_POOL}")).await
}

/// A body that the route takes.
pub fn asked(path: &str) -> Value {
    let mut body = question("hp", 1.0, 1);
    if path.ends_with("prices") {
        body.as_object_mut().unwrap().remove("class");
    }
    body
}

/// A task that is not submitted.
fn question(class: &str, gpus: f64, pods: u32) -> Value {
    json!({
        "cluster": "demo", "gpu_model": "A100", "organization": "org-000", "class": class, "gpus_per_pod": gpus, "pods": pods,
    })
}

/// Each hour another HP task comes to one node and the one before it ends: 40 of them.
async fn taught(service: &TestService) {
    for number in 0..40 {
        let _ = submit(service, &hp(&format!("past-{number}"), 8.0, 1)).await;
        for _ in 0..6 {
            service.pass_s(600);
            let _ = service.post("/v1/tasks/eta", &question("hp", 8.0, 1)).await.expect(200);
        }
        let _ = tell(service, &format!("past-{number}"), "finish").await.expect(200);
    }
}

fn codes(reasons: &Value) -> Vec<&str> {
    reasons.as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect()
}

async fn a_task_that_waits_has_a_start_with_the_reasons_for_which_it_may_be_off(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    let _ = submit(&service, &hp("second", 8.0, 1)).await;
    let blind = eta(&service, "second").await.expect(200);
    assert_eq!((&blind["status"], &blind["waits"]["code"]), (&"waiting".into(), &"held_by_hp".into()), "{blind}");
    for code in ["few_jobs", "unknown_arrivals", "not_calibrated"] {
        assert!(codes(&blind["doubts"]).contains(&code), "{blind}");
    }
    let running = eta(&service, "first").await.expect(200);
    assert_eq!((&running["status"], &running["start"]["p50"]["wait_s"]), (&"running".into(), &0.into()), "{running}");
    assert_eq!((&running["doubts"], &running["calibration"]), (&json!([]), &Value::Null), "{running}");
    let _ = tell(&service, "first", "finish").await.expect(200);
    let _ = tell(&service, "second", "finish").await.expect(200);

    taught(&service).await;
    let _ = submit(&service, &hp("third", 8.0, 1)).await;
    let _ = submit(&service, &hp("fourth", 8.0, 1)).await;
    let known = eta(&service, "fourth").await.expect(200);
    assert!(!codes(&known["doubts"]).contains(&"few_jobs"), "{known}");
    let (p50, p90) = (number(&known["start"]["p50"]["wait_s"]), number(&known["start"]["p90"]["wait_s"]));
    assert!((1_200.0..7_200.0).contains(&p50) && p90 >= p50, "tasks of an hour: {known}");
    let by: Vec<f64> =
        known["start"]["started_by"].as_array().unwrap().iter().map(|one| number(&one["probability"])).collect();
    assert!(by.is_sorted() && by[0] < 1.0 && by[5] > 0.9, "{by:?}");
    assert_eq!(eta(&service, "fourth").await.expect(200)["start"], known["start"], "asked again, answered alike");
    assert_eq!(task(&service, "fourth").await["start"]["p90"], known["start"]["p90"]["at"], "and listed");

    let _ = submit(&service, &hp("never", 8.0, 2)).await;
    let never = eta(&service, "never").await.expect(200);
    assert_eq!((&never["start"]["p50"], &never["waits"]["code"]), (&Value::Null, &"fits_never".into()), "{never}");
    assert!(codes(&never["doubts"]).contains(&"beyond_horizon"), "{never}");
    assert_eq!(eta(&service, "unknown").await.expect(404)["code"], "unknown-task");
    assert_eq!(eta(&service, "first").await.expect(409)["detail"], "task first is finished");
}

async fn a_task_that_is_not_submitted_has_a_start_and_nothing_is_changed(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let at_once = service.post("/v1/tasks/eta", &question("hp", 8.0, 1)).await.expect(200);
    assert_eq!((&at_once["starts_now"], &at_once["futures"]), (&true.into(), &0.into()), "{at_once}");
    assert_eq!((&at_once["task"], &at_once["waits"]), (&Value::Null, &Value::Null), "{at_once}");
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    let before = snapshot(&service).await;
    let later = service.post("/v1/tasks/eta", &question("hp", 8.0, 1)).await.expect(200);
    assert_eq!((&later["starts_now"], &later["waits"]["code"]), (&false.into(), &"held_by_hp".into()), "{later}");
    assert!(number(&later["futures"]) >= 13.0, "{later}");
    let mut longer = question("spot", 1.0, 1);
    longer["guarantee_hours"] = 8.into();
    let not_offered = service.post("/v1/tasks/eta", &longer).await.expect(200);
    assert!(codes(&not_offered["doubts"]).contains(&"guarantee_not_offered"), "{not_offered}");
    let never = service.post("/v1/tasks/eta", &question("spot", 8.0, 2)).await.expect(200);
    assert_eq!((&never["start"]["p90"], &never["waits"]["code"]), (&Value::Null, &"fits_never".into()), "{never}");
    assert_eq!(snapshot(&service).await, before);
}

async fn a_bad_question_is_refused_by_its_field(database: TestDatabase) {
    let service = placing(&database, 1).await;
    for (field, value) in [
        ("gpus_per_pod", json!(1.5)),
        ("gpus_per_pod", json!(-1)),
        ("pods", json!(0)),
        ("class", json!("best")),
        ("organization", json!("*")),
        ("guarantee_hours", json!(4)),
        ("gpu", json!(1)),
    ] {
        let mut body = question("hp", 1.0, 1);
        body[field] = value;
        let refused = service.post("/v1/tasks/eta", &body).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], format!("/{field}"), "{refused}");
    }
    let too_large = service.post("/v1/tasks/eta", &question("hp", 8.0, 11)).await.expect(422);
    assert_eq!(too_large["code"], "task-too-large");
    let mut elsewhere = question("hp", 1.0, 1);
    elsewhere["gpu_model"] = "H800".into();
    assert_eq!(service.post("/v1/tasks/eta", &elsewhere).await.status, 404, "a pool without nodes");
    for name in ["eta", "prices"] {
        let reserved = service.post("/v1/tasks", &hp(name, 1.0, 1)).await.expect(400);
        assert_eq!(reserved["errors"][0]["pointer"], "/id", "{reserved}");
    }
    let settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    let mut external = settings.clone();
    external["placed_by"] = "external".into();
    let _ = service.put("/v1/pools/demo:A100/settings", &external).await.expect(200);
    let outside = service.post("/v1/tasks/eta", &question("hp", 1.0, 1)).await.expect(409);
    assert_eq!(outside["code"], "placed-outside");
}

async fn a_price_list_has_the_wait_of_each_guarantee_and_what_ends_in_time(database: TestDatabase) {
    let service = placing(&database, 1).await;
    taught(&service).await;
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    let now = service.service.core.clock.now();
    let mut asked = question("spot", 4.0, 1);
    asked.as_object_mut().unwrap().remove("class");
    let plain = service.post("/v1/tasks/prices", &asked).await.expect(200);
    let prices = plain["prices"].as_array().unwrap();
    let kinds: Vec<_> =
        prices.iter().map(|one| (one["class"].as_str().unwrap(), one["guarantee_hours"].as_u64())).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&("spot", None)), Some(&("hp", None))), "{plain}");
    assert!(kinds[1..kinds.len() - 1].iter().all(|(class, hours)| *class == "spot" && hours.is_some()), "{plain}");
    assert_eq!((&prices[0]["ends"], &plain["cheapest_in_time"]), (&Value::Null, &Value::Null), "{plain}");
    let hp = prices.last().unwrap();
    assert!(number(&hp["start"]["p50"]["wait_s"]) < 7_200.0, "after the present one: {plain}");

    asked["runs_s"] = 1_800.into();
    asked["ends_by"] = now.plus_s(20 * 3_600).to_string().into();
    let timely = service.post("/v1/tasks/prices", &asked).await.expect(200);
    let hp = timely["prices"].as_array().unwrap().last().unwrap();
    assert_eq!(hp["ends_in_time"], true, "{timely}");
    assert!(number(&hp["ends"]["wait_s"]) >= 1_800.0 && number(&hp["ends_by_probability"]) >= 0.9, "{timely}");
    let submit_by = hp["submit_by"].as_str().unwrap();
    assert!(submit_by > now.plus_s(3_600).to_string().as_str(), "{timely}");
    assert!(submit_by < now.plus_s(20 * 3_600 - 1_800).to_string().as_str(), "{timely}");
    asked["ends_by"] = now.plus_s(1_900).to_string().into();
    let late = service.post("/v1/tasks/prices", &asked).await.expect(200);
    assert_eq!(late["prices"].as_array().unwrap().last().unwrap()["ends_in_time"], false, "{late}");
    for (field, value) in
        [("runs_s", json!(0)), ("ends_by", json!("tomorrow")), ("probability", json!(2)), ("class", json!("hp"))]
    {
        let mut wrong = asked.clone();
        wrong[field] = value;
        let refused = service.post("/v1/tasks/prices", &wrong).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], format!("/{field}"), "{refused}");
    }
}

async fn knowledge_of_starts_survives_a_restart_and_is_learned_again_where_it_cannot_be_read(database: TestDatabase) {
    let service = placing(&database, 1).await;
    taught(&service).await;
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    let _ = submit(&service, &hp("second", 8.0, 1)).await;
    let before = eta(&service, "second").await.expect(200);
    service.service.start_times.save_all().await;
    let now = service.service.core.clock.now();
    service.leave().await;
    let again = TestService::start(database.store().await, now).await;
    again.renew().await;
    let after = eta(&again, "second").await.expect(200);
    assert_eq!((&after["doubts"], &after["calibration"]), (&before["doubts"], &before["calibration"]));
    let p50 = |answer: &Value| number(&answer["start"]["p50"]["wait_s"]);
    assert!((p50(&after) - p50(&before)).abs() < 60.0, "{before} {after}");
    let now = again.service.core.clock.now();
    again.leave().await;
    let bytes = if database.backend == tests::Backend::Postgres { "'\\x0102'" } else { "x'0102'" };
    database.execute(&format!("UPDATE starts SET learned = {bytes}")).await;
    let damaged = TestService::start(database.store().await, now).await;
    damaged.renew().await;
    let blind = eta(&damaged, "second").await.expect(200);
    assert!(codes(&blind["doubts"]).contains(&"few_jobs"), "{blind}");
}

async fn a_waiting_task_is_listed_with_its_expected_start_and_announced_when_that_moves(database: TestDatabase) {
    let service = placing(&database, 1).await;
    taught(&service).await;
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    let _ = submit(&service, &hp("waits", 8.0, 1)).await;
    assert_eq!(task(&service, "waits").await.get("start"), None, "no forecast yet");
    service.service.start_times.look().await;
    let expected = task(&service, "waits").await["start"].clone();
    assert!(expected["p50"].is_string() && expected["as_of"].is_string(), "{expected}");
    let listed = service.get(&format!("/v1/tasks?{OF_POOL}&status=waiting")).await.expect(200);
    assert_eq!(listed["tasks"][0]["start"], expected);
    let after = service.service.core.store.placed_pools().await.unwrap()[0].seq;
    service.pass_s(300);
    service.service.start_times.look().await;
    put_node(&service, "n0", true).await;
    service.pass_s(300);
    service.service.start_times.look().await;
    let (_, moved) = events(&service, Some(&format!("{after}.0")), 1).await.pop().unwrap();
    assert_eq!((&moved["kind"], &moved["task"]), (&"eta_moved".into(), &"waits".into()), "{moved}");
    assert_eq!((&moved["start"]["p50"], &moved["start"]["before"]), (&Value::Null, &expected["p50"]), "{moved}");
    service.pass_s(3_600);
    service.service.start_times.look().await;
    let number = moved["id"].as_str().unwrap().split('.').next().unwrap().parse::<u64>().unwrap();
    let store = service.service.core.store.as_ref();
    let (placed, later) = (store.placed_pools().await.unwrap()[0].id, quota_service::engine::Cursor::after(number));
    let more = quota_service::engine::events_after(store, placed, later).await.unwrap();
    assert!(more.iter().all(|(_, event)| event.kind.to_string() != "eta_moved"), "{more:?}");
}

async fn the_explanation_of_a_quota_says_how_forecasts_of_starts_fared(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let explained =
        async || service.get(&format!("/v1/quota/explain?{OF_POOL}&hours=4")).await.expect(200)["starts"].clone();
    assert_eq!(explained().await, json!([]), "none was forecast");
    let _ = submit(&service, &hp("next-0", 8.0, 1)).await;
    for number in 1..=28 {
        let _ = submit(&service, &hp(&format!("next-{number}"), 8.0, 1)).await;
        service.service.start_times.look().await;
        service.pass_s(600);
        let _ = tell(&service, &format!("next-{}", number - 1), "finish").await.expect(200);
        service.pass_s(60);
        service.service.start_times.look().await;
    }
    let starts = explained().await;
    let [hp] = starts.as_array().unwrap().as_slice() else { panic!("one class: {starts}") };
    assert_eq!((&hp["class"], &hp["scored"]), (&"hp".into(), &28.into()), "{hp}");
    let shares = ["coverage_50", "coverage_90"].map(|name| number(&hp[name]));
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{hp}");
    assert_eq!(number(&hp["class_mean_pinball_s"]), 0.0, "each waited for ten minutes: {hp}");
    let answered = eta(&service, "next-28").await.expect(200);
    assert_eq!(answered["calibration"], Value::Null, "it runs: {answered}");
}
