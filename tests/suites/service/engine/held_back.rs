//! A quota that a change has outdated: nothing is promised by it, every view says so, and it is renewed as soon as that is possible.

use super::replicas::{replica, two, two_with_quotas};
use super::*;
use quota_service::refresh;
use std::time::Duration;
use tests::{Backend, on_both_databases};

on_both_databases![
    outdated_quotas_are_offered_by_no_view_and_the_reason_names_the_change,
    a_renewal_that_a_change_asked_for_is_tried_again_until_it_succeeds,
    the_first_renewal_of_a_pool_is_tried_again_until_it_succeeds,
    a_service_that_follows_offers_nothing_by_a_quota_that_a_change_has_outdated,
    a_service_that_follows_offers_nothing_before_the_one_that_took_over_has_renewed,
    a_service_that_takes_over_a_pool_whose_first_task_came_meanwhile_says_that_it_has_not_renewed,
    a_promise_that_ends_while_nobody_leads_is_not_renewed_by_the_limits_of_before,
];

async fn reserve(service: &TestService, gpus: f64) {
    let now = service.service.core.clock.now();
    let body = json!({
        "cluster": "demo", "gpu_model": "A100", "kind": "reserve", "gpus": gpus, "from": now.to_string(),
        "to": now.plus_s(36_000).to_string(), "reason": "the launch of the new model",
    });
    let _ = service.post("/v1/overrides", &body).await.expect(201);
}

/// Available GPUs for four hours, by `/quota`, `/v1/pools` and `/v1/quota/explain`.
async fn available(service: &TestService) -> [f64; 3] {
    let pools = service.get("/v1/pools").await.expect(200);
    let explained = service.get(&format!("/v1/quota/explain?{OF_POOL}&hours=4")).await.expect(200);
    let answers = [
        &quota(service, 4).await["available_gpus"],
        &pools["pools"][0]["available_gpus_by_hours"]["4"],
        &explained["quota"]["available_gpus"],
    ];
    answers.map(number)
}

async fn outdated_quotas_are_offered_by_no_view_and_the_reason_names_the_change(database: TestDatabase) {
    let service = placing(&database, 60).await;
    assert_eq!(submit(&service, &spot("before", 8.0, 1, Some(4))).await["status"], "running");
    reserve(&service, 1.0).await;
    assert_eq!(available(&service).await, [0.0; 3]);
    assert!(codes(&quota(&service, 4).await).contains(&"change_not_in_quota".to_owned()));
    assert_eq!(submit(&service, &spot("after", 8.0, 1, Some(4))).await["status"], "waiting");
    let explained = service.get(&format!("/v1/tasks/after/explain?{OF_POOL}")).await.expect(200);
    let why = explained["reason"]["detail"].as_str().unwrap();
    assert!(why.contains("a change of settings or overrides is not in the quota yet"), "{explained}");
    refuse_quotas(&database).await;
    service.renew().await;
    assert_eq!(available(&service).await, [0.0; 3], "a failed renewal brings nothing back");
    let explained = service.get(&format!("/v1/tasks/after/explain?{OF_POOL}")).await.expect(200);
    assert!(explained["reason"]["detail"].as_str().unwrap().contains("the last one has failed: "), "{explained}");
    accept_quotas(&database).await;
    service.renew().await;
    assert!(available(&service).await.iter().all(|gpus| *gpus > 0.0));
    assert!(!codes(&quota(&service, 4).await).contains(&"change_not_in_quota".to_owned()));
    assert_eq!(task(&service, "after").await["status"], "running");
}

async fn refuse_quotas(database: &TestDatabase) {
    let refuse = match database.backend {
        Backend::Postgres => {
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RAISE EXCEPTION 'as a test' USING ERRCODE = '53100';
             END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON quotas FOR EACH ROW EXECUTE FUNCTION refuse()"
        }
        Backend::Sqlite => "CREATE TRIGGER refuse BEFORE INSERT ON quotas BEGIN SELECT RAISE(ABORT, 'as a test'); END",
    };
    database.execute(refuse).await;
}

async fn accept_quotas(database: &TestDatabase) {
    let accept = match database.backend {
        Backend::Postgres => "DROP TRIGGER refuse ON quotas; DROP FUNCTION refuse",
        Backend::Sqlite => "DROP TRIGGER refuse",
    };
    database.execute(accept).await;
}

/// Waits for an answer; the next regular renewal is five minutes away.
async fn until(service: &TestService, what: &str, is_wanted: impl Fn(&Value) -> bool) {
    for _ in 0..300 {
        if is_wanted(&quota(service, 4).await) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: {}", quota(service, 4).await);
}

async fn a_renewal_that_a_change_asked_for_is_tried_again_until_it_succeeds(database: TestDatabase) {
    let service = placing(&database, 60).await;
    let before = quota(&service, 4).await["computed_at"].clone();
    service.pass_s(1);
    let renewing = tokio::spawn(refresh::run(service.service.renewals.clone()));
    until(&service, "the first renewal of the loop", |answer| answer["computed_at"] != before).await;
    refuse_quotas(&database).await;
    reserve(&service, 1.0).await;
    until(&service, "a failed renewal", |answer| codes(answer).contains(&"inputs_missing".to_owned())).await;
    assert_eq!(available(&service).await, [0.0; 3]);
    accept_quotas(&database).await;
    until(&service, "a renewal", |answer| number(&answer["available_gpus"]) > 0.0).await;
    assert_eq!(submit(&service, &spot("after", 8.0, 1, Some(4))).await["status"], "running");
    renewing.abort();
}

/// Waits until the quota of four hours is answered with this status and text.
async fn answered(service: &TestService, status: u16, text: &str) {
    let mut seen = service.get(&quota_path(4)).await;
    for _ in 0..300 {
        if seen.status == status && seen.body.to_string().contains(text) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        seen = service.get(&quota_path(4)).await;
    }
    panic!("{} is not {status}: {}", seen.status, seen.body);
}

async fn the_first_renewal_of_a_pool_is_tried_again_until_it_succeeds(database: TestDatabase) {
    let store = with_usage(&database, 500).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    let service = replica(&database, "one").await;
    put_node(&service, "n0", false).await;
    refuse_quotas(&database).await;
    let renewing = tokio::spawn(refresh::run(service.service.renewals.clone()));
    // The next regular renewal is five minutes away.
    answered(&service, 503, "as a test").await;
    accept_quotas(&database).await;
    answered(&service, 200, "quota_gpus").await;
    renewing.abort();
}

async fn a_service_that_follows_offers_nothing_by_a_quota_that_a_change_has_outdated(database: TestDatabase) {
    let (one, other) = two_with_quotas(&database).await;
    refuse_quotas(&database).await;
    one.pass_s(1);
    other.pass_s(1);
    reserve(&one, 1.0).await;
    one.renew().await;
    let late = replica(&database, "late").await;
    for follower in [&other, &late] {
        follower.follow().await;
        assert_eq!(available(follower).await, [0.0; 3]);
        assert!(codes(&quota(follower, 4).await).contains(&"change_not_in_quota".to_owned()));
    }
    accept_quotas(&database).await;
    one.renew().await;
    for follower in [&other, &late] {
        follower.follow().await;
        let (theirs, ours) = (available(&one).await, available(follower).await);
        assert!(ours == theirs && ours[0] > 0.0, "{ours:?}, {theirs:?}");
    }
    // Settings, too, and the withdrawal of an override.
    refuse_quotas(&database).await;
    let path = "/v1/pools/demo:A100/settings";
    let mut settings = one.get(path).await.expect(200);
    settings["offered_hours"] = json!([1, 4]);
    let _ = one.put(path, &settings).await.expect(200);
    let later = replica(&database, "later").await;
    for follower in [&other, &later] {
        follower.follow().await;
        assert_eq!(available(follower).await, [0.0; 3]);
    }
    accept_quotas(&database).await;
    one.renew().await;
    for follower in [&other, &later] {
        follower.follow().await;
        assert!(available(follower).await[0] > 0.0);
    }
    assert_eq!(one.send(axum::http::Method::DELETE, "/v1/overrides/1", &[], None).await.status, 204);
    other.follow().await;
    assert_eq!(available(&other).await, [0.0; 3]);
}

async fn a_service_that_follows_offers_nothing_before_the_one_that_took_over_has_renewed(database: TestDatabase) {
    let (one, other) = two_with_quotas(&database).await;
    let third = replica(&database, "third").await;
    third.follow().await;
    assert!(available(&third).await[0] > 0.0);
    one.leave().await;
    for service in [&other, &third] {
        service.service.renewals.update_leases().await.unwrap();
    }
    // One that begins to follow after the takeover has not seen the lease of before.
    let late = replica(&database, "late").await;
    for follower in [&third, &late] {
        follower.follow().await;
        assert_eq!(available(follower).await, [0.0; 3]);
        let answer = quota(follower, 4).await;
        assert!(codes(&answer).contains(&"not_renewed_since_takeover".to_owned()), "{answer}");
    }
    other.renew().await;
    for follower in [&third, &late] {
        follower.follow().await;
        assert_eq!(available(follower).await, available(&other).await);
        assert!(available(follower).await[0] > 0.0);
    }
}

async fn a_service_that_takes_over_a_pool_whose_first_task_came_meanwhile_says_that_it_has_not_renewed(
    database: TestDatabase,
) {
    let (one, other) = two(&database).await;
    for number in 1..60 {
        put_node(&one, &format!("n{number}"), false).await;
    }
    one.renew().await;
    other.follow().await;
    assert_eq!(submit(&one, &spot("first", 1.0, 1, Some(4))).await["status"], "running");
    one.leave().await;
    other.service.renewals.update_leases().await.unwrap();
    let answer = quota(&other, 4).await;
    assert_eq!(number(&answer["available_gpus"]), 0.0, "{answer}");
    assert!(codes(&answer).contains(&"not_renewed_since_takeover".to_owned()), "{answer}");
    refuse_quotas(&database).await;
    other.renew().await;
    assert_eq!(available(&other).await, [0.0; 3]);
    accept_quotas(&database).await;
    other.renew().await;
    assert!(available(&other).await[0] > 0.0);
}

async fn a_promise_that_ends_while_nobody_leads_is_not_renewed_by_the_limits_of_before(database: TestDatabase) {
    let (one, other) = two_with_quotas(&database).await;
    assert_eq!(submit(&one, &spot("hour", 1.0, 1, Some(1))).await["status"], "running");
    one.leave().await;
    other.pass_s(3_700);
    other.service.renewals.update_leases().await.unwrap();
    assert_eq!(submit(&other, &spot("next", 1.0, 1, Some(1))).await["status"], "waiting");
    let run = task(&other, "hour").await["detail"]["run"].clone();
    assert!(!run.is_null() && run["guarantee"].is_null(), "no quota was renewed that it could be promised by: {run}");
}
