//! HP jobs that an external scheduler reports with the state of its pool.

use super::*;
use tests::on_both_databases;

on_both_databases![
    bounds_follow_reported_hp_jobs_and_what_they_taught_survives_a_restart,
    a_part_of_the_hp_jobs_moves_no_bound_and_the_answer_says_so_until_all_are_reported,
    hp_jobs_that_leave_the_list_together_count_until_usage_tells,
    a_service_that_ends_writes_what_it_has_learned_of_jobs_since_it_was_last_written,
    hp_work_that_waits_lowers_the_quota_at_once_while_gpus_are_idle,
    a_state_with_bad_hp_jobs_is_refused_whole_and_the_audit_has_their_number,
];

const STATE: &str = "/v1/pools/demo:A100/state";

/// A job of 16 GPUs that runs all the time, and one of 8 GPUs of half an hour in each hour. With a third that waits.
fn jobs(now: UnixSeconds) -> Value {
    let since = now.get() - end().get();
    let job = |id: &str, gpus: u32, state: &str, at: i64| json!({ "id": id, "organization": "org-000", "gpus": gpus, "state": state, "since": end().plus_s(at).to_string() });
    let mut jobs = vec![job("base", 16, "running", -7_200), job("next", 4, "waiting", since)];
    if since % 3_600 >= 1_800 {
        jobs.push(job(&format!("hourly-{}", since / 3_600), 8, "running", since - since % 1_800));
    }
    Value::from(jobs)
}

/// Usage of the hour that is over, and the state with its jobs; then a renewal.
async fn report(service: &TestService) {
    report_beside(service, 24).await;
}

/// The same, with so many GPUs of usage.
async fn report_beside(service: &TestService, gpus: u32) {
    report_jobs(service, gpus, jobs).await;
}

/// Usage of so many GPUs, and the jobs of this moment.
async fn report_jobs(service: &TestService, gpus: u32, jobs: impl Fn(UnixSeconds) -> Value) {
    service.pass_s(300);
    let now = service.service.core.clock.now();
    let hour = now.hour().unwrap();
    let row = |organization: &str| json!({ "hour": hour.plus_hours(-1).instant().to_string(), "cluster": "demo", "gpu_model": "A100", "organization": organization, "demand_gpus": f64::from(gpus) / 3.0 });
    let rows: Vec<Value> = ["org-000", "org-001", "org-002"].map(row).into();
    if hour.instant() > end() && now.since_s(hour.instant()) < 300 {
        let _ = service.post("/v1/usage", &json!({ "rows": rows })).await.expect(200);
    }
    let mut body = state(500, 300, &json!({ "1": 5 }), now);
    body["hp_jobs"] = jobs(now);
    let _ = service.put(STATE, &body).await.expect(200);
    service.renew().await;
}

async fn live(service: &TestService) -> Value {
    let path = "/v1/quota/explain?cluster=demo&gpu_model=A100&hours=1";
    let explained = service.get(path).await.expect(200);
    let (bound, live) = (&explained["bound"], &explained["bound"]["live"]);
    if live["jobs"].is_object() {
        let sentence = explained["steps"][1].as_str().unwrap();
        assert!(live["jobs"]["bound_gpus"].is_null() || sentence.contains("waiting HP jobs"), "{sentence}");
        assert!(number(&bound["demand_bound_gpus"]) >= number(&live["hp_demand_gpus"]), "{bound}");
    }
    live.clone()
}

async fn bounds_follow_reported_hp_jobs_and_what_they_taught_survives_a_restart(database: TestDatabase) {
    let service = serving(&database, 500).await;
    report(&service).await;
    // The pool used far more: the first list lacks jobs, until it has an hour of its own.
    assert!(codes(&quota(&service, 4).await).contains(&"hp_jobs_missing".to_owned()) && live(&service).await.is_null());
    for _ in 0..2 * 12 {
        report(&service).await;
    }
    let first = live(&service).await;
    assert_eq!((number(&first["hp_demand_gpus"]), &first["jobs"]["running"]), (20.0, &json!(1)), "{first}");
    assert_eq!(first["jobs"]["bound_gpus"], Value::Null, "nothing is drawn before arrivals were watched for hours");
    for _ in 0..36 * 12 {
        report(&service).await;
    }
    let before = live(&service).await;
    assert!(number(&before["jobs"]["ended"]) >= 35.0 && number(&before["jobs"]["share"]) > 0.0, "{before}");
    assert!((20.0..40.0).contains(&number(&before["jobs"]["bound_gpus"])), "{before}");
    assert_eq!(service.get(STATE).await.expect(200)["hp_jobs"].as_array().unwrap().len(), 2);
    let now = service.service.core.clock.now();
    service.leave().await;
    // The learned state was written at the end; the report is of the database.
    let again = TestService::start(database.store().await, now.plus_s(120)).await;
    again.renew().await;
    let after = live(&again).await;
    for part in ["running", "waiting", "ended"] {
        assert_eq!(after["jobs"][part], before["jobs"][part], "{after}");
    }
    assert!(number(&after["jobs"]["share"]) > 0.0, "{after}");
    // A scheduler that reports no jobs any more: bounds follow the hours of usage.
    again.pass_s(60);
    let _ = again.put(STATE, &state(500, 300, &json!({}), now.plus_s(180))).await.expect(200);
    again.renew().await;
    assert_eq!(live(&again).await, Value::Null);
}

async fn a_part_of_the_hp_jobs_moves_no_bound_and_the_answer_says_so_until_all_are_reported(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for _ in 0..5 * 12 {
        report_beside(&service, 84).await;
    }
    let four = quota(&service, 4).await;
    let place = codes(&four).iter().position(|code| code == "hp_jobs_missing").expect("a reason");
    let detail = four["reasons"][place]["detail"].as_str().unwrap();
    // 16, 4, and of the hourly one that ended around the full hour and the next 8 each.
    assert!(detail.contains("are 36.000 GPUs in the last 3 hours, and usage is 84.000: bounds"), "{detail}");
    assert!(live(&service).await.is_null() && number(&four["demand_bound_gpus"]) >= 84.0, "{four}");
    for _ in 0..4 * 12 {
        report_beside(&service, 24).await;
    }
    assert!(!codes(&quota(&service, 4).await).contains(&"hp_jobs_missing".to_owned()));
    assert_eq!(number(&live(&service).await["jobs"]["running"]), 1.0, "all jobs are reported again");
}

async fn a_service_that_ends_writes_what_it_has_learned_of_jobs_since_it_was_last_written(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for _ in 0..2 * 12 {
        report_jobs(&service, 54, steady::<7>).await;
    }
    let now = service.service.core.clock.now();
    service.leave().await;
    // The first renewal writes all. Then one job ends, and the list loses the others.
    let service = TestService::start(database.store().await, now).await;
    service.renew().await;
    report_jobs(&service, 54, steady::<6>).await;
    report_jobs(&service, 54, |_| json!([])).await;
    let dropped = async |service: &TestService| {
        let one = quota(service, 1).await;
        let place = codes(&one).iter().position(|code| code == "hp_jobs_dropped").expect("a reason");
        one["reasons"][place]["detail"].as_str().unwrap().to_owned()
    };
    let before = dropped(&service).await;
    assert!(before.starts_with("6 HP jobs with 48.000 GPUs left"), "{before}");
    let now = service.service.core.clock.now();
    service.leave().await;
    let again = TestService::start(database.store().await, now).await;
    again.renew().await;
    assert_eq!(dropped(&again).await, before);
}

/// So many jobs of 8 GPUs that run all the time.
fn steady<const JOBS: i64>(_: UnixSeconds) -> Value {
    let job = |number: i64| json!({ "id": format!("train-{number}"), "organization": "org-000", "gpus": 8, "state": "running", "since": end().plus_s(-7_200).to_string() });
    Value::from((0..JOBS).map(job).collect::<Vec<_>>())
}

async fn hp_jobs_that_leave_the_list_together_count_until_usage_tells(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for _ in 0..2 * 12 + 5 {
        report_jobs(&service, 48, steady::<6>).await;
    }
    let before = quota(&service, 1).await;
    assert!(codes(&before).iter().all(|code| !code.starts_with("hp_jobs")), "{before}");
    report_jobs(&service, 48, |_| json!([])).await;
    let one = quota(&service, 1).await;
    let place = codes(&one).iter().position(|code| code == "hp_jobs_dropped").expect("a reason");
    let detail = one["reasons"][place]["detail"].as_str().unwrap();
    assert!(detail.starts_with("6 HP jobs with 48.000 GPUs left the reported list together, the last at "), "{detail}");
    assert!(detail.contains(": 48.000 of these GPUs count as used until "), "{detail}");
    assert!(number(&one["demand_bound_gpus"]) >= 48.0, "{one}");
    // A restart has the same answer: what the list lacks is stored.
    let now = service.service.core.clock.now();
    service.leave().await;
    let service = TestService::start(database.store().await, now).await;
    report_jobs(&service, 48, |_| json!([])).await;
    let again = quota(&service, 1).await;
    assert!(codes(&again).contains(&"hp_jobs_dropped".to_owned()), "{again}");
    assert!(number(&again["demand_bound_gpus"]) >= 48.0, "{again}");
    // They are listed again.
    report_jobs(&service, 48, steady::<6>).await;
    assert!(codes(&quota(&service, 1).await).iter().all(|code| !code.starts_with("hp_jobs")));
    // They run, and the list never has them again: usage of a whole hour shows it. Then they have ended, and it shows that.
    let mut seen = Vec::new();
    for (usage, reports) in [(48, 2 * 12), (0, 2 * 12)] {
        for _ in 0..reports {
            report_jobs(&service, usage, |_| json!([])).await;
            let one = quota(&service, 1).await;
            seen.extend(codes(&one).into_iter().filter(|code| code.starts_with("hp_jobs")));
            assert!(usage == 0 || number(&one["demand_bound_gpus"]) >= 48.0, "{one}");
        }
    }
    seen.dedup();
    assert_eq!(seen, ["hp_jobs_dropped", "hp_jobs_missing"]);
    let last = quota(&service, 1).await;
    assert!(codes(&last).iter().all(|code| !code.starts_with("hp_jobs")) && live(&service).await.is_object(), "{last}");
}

async fn hp_work_that_waits_lowers_the_quota_at_once_while_gpus_are_idle(database: TestDatabase) {
    let service = serving(&database, 500).await;
    report(&service).await;
    let before = quota(&service, 4).await;
    let bound = number(&before["demand_bound_gpus"]);
    assert!(number(&before["quota_gpus"]) > 100.0 && bound < 400.0, "{before}");
    let now = service.service.core.clock.now();
    let mut body = state(500, 300, &json!({ "1": 5 }), now);
    body["hp_jobs"] = json!([{ "id": "large", "organization": "org-001", "gpus": 430, "state": "waiting", "since": now.to_string() }]);
    let _ = service.put(STATE, &body).await.expect(200);
    // Nothing was renewed.
    let four = quota(&service, 4).await;
    assert_eq!((number(&four["quota_gpus"]), number(&four["inventory_gpus"])), (70.0, 70.0), "{four}");
    assert_eq!(number(&four["demand_bound_gpus"]), 430.0);
    assert_eq!(codes(&four).last().unwrap(), "lowered_by_report");
    service.renew().await;
    let renewed = quota(&service, 4).await;
    assert!(number(&renewed["quota_gpus"]) <= 70.0 && codes(&renewed).iter().all(|code| code != "lowered_by_report"));
}

async fn a_state_with_bad_hp_jobs_is_refused_whole_and_the_audit_has_their_number(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let now = service.service.core.clock.now();
    let mut body = state(500, 300, &json!({}), now);
    body["hp_jobs"] = jobs(now);
    body["hp_jobs"][1]["gpus"] = (-4).into();
    let refused = service.put(STATE, &body).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/hp_jobs/1/gpus", "{refused}");
    let _ = service.get(STATE).await.expect(404);
    body["hp_jobs"][1]["gpus"] = 4.into();
    let _ = service.put(STATE, &body).await.expect(200);
    let entries = database.store().await.audit(at(0), at(i64::from(u32::MAX)), 100).await.unwrap();
    let details: Vec<String> = entries.into_iter().filter_map(|one| one.record.detail_json).collect();
    assert!(details.iter().any(|one| one.contains(r#""hp_jobs":2"#)), "{details:?}");
    assert!(details.iter().all(|one| !one.contains("next")), "{details:?}");
}
