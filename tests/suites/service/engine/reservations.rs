//! Windows that are sold ahead.

use super::*;
use tests::on_both_databases;

on_both_databases![
    no_promise_reaches_into_a_window_and_spot_at_will_leaves_before_it,
    a_reservation_is_there_after_a_restart_and_in_the_calendar,
    windows_that_do_not_fit_are_refused_with_what_to_do,
    a_rule_does_not_meet_one_that_begins_in_half_a_year,
    a_trial_answers_the_probability_and_stores_nothing,
    in_random_histories_no_promise_of_the_engine_reaches_into_a_window,
    where_another_scheduler_places_its_quotas_count_beside_what_was_sold_since_their_renewal,
    a_pool_that_nobody_has_measured_is_refused_with_the_remedy_and_not_until_later,
];

pub(super) fn asked(gpus: f64, from: UnixSeconds, to: UnixSeconds) -> Value {
    json!({
        "cluster": "demo", "gpu_model": "A100", "organization": "org-001", "gpus": gpus,
        "from": from.to_string(), "to": to.to_string(),
    })
}

const NODES: u32 = 60;
const GPUS: f64 = 480.0;

/// So many GPUs that Headroom places, with a quota for each guarantee.
async fn ours(database: &TestDatabase) -> TestService {
    let service = placing(database, NODES).await;
    let _ = submit(&service, &hp("first", 1.0, 1)).await;
    assert_eq!(tell(&service, "first", "finish").await.status, 200);
    service.renew().await;
    service
}

async fn sold(service: &TestService, body: &Value) -> Value {
    service.post("/v1/reservations", body).await.expect(201)
}

fn now(service: &TestService) -> UnixSeconds {
    service.service.core.clock.now()
}

async fn no_promise_reaches_into_a_window_and_spot_at_will_leaves_before_it(database: TestDatabase) {
    let service = ours(&database).await;
    let begin = now(&service).plus_s(5_400);
    let made = sold(&service, &asked(GPUS - 8.0, begin, begin.plus_s(3_600))).await;
    assert_eq!((&made["id"], &made["windows"][0]["source"]), (&json!(1), &json!("forecast")), "{made}");
    assert_eq!(submit(&service, &spot("will", 8.0, 2, None)).await["status"], "running");
    assert_eq!(submit(&service, &spot("one", 4.0, 1, Some(1))).await["status"], "running", "it ends before");
    let four = submit(&service, &spot("four", 8.0, 2, Some(4))).await;
    assert_eq!(
        (&four["status"], &four["detail"]["waits"]["code"]),
        (&json!("waiting"), &json!("reaches_reservation")),
        "{four}"
    );
    let eta = service.get(&format!("/v1/tasks/four/eta?{OF_POOL}")).await.expect(200);
    assert!(eta["doubts"].to_string().contains("\"reservations\""), "futures keep no windows: {eta}");
    service.renew().await;
    let answer = quota(&service, 4).await;
    assert!(codes(&answer).contains(&"reserved_ahead".to_owned()), "{answer}");
    service.pass_s(5_400);
    service.renew().await;
    let cut = task(&service, "will").await;
    assert_eq!((&cut["status"], &cut["detail"]["cut"]["code"]), (&json!("waiting"), &json!("reserved")), "{cut}");
    let other = submit(&service, &hp("other", 8.0, 1)).await;
    assert_eq!(other["status"], "running", "eight GPUs are beside the window: {other}");
    let more = submit(&service, &hp("more", 1.0, 1)).await;
    assert_eq!(more["detail"]["waits"]["code"], "kept_for_reservation", "{more}");
    let mut theirs = hp("theirs", 8.0, 1);
    theirs["organization"] = "org-001".into();
    assert_eq!(submit(&service, &theirs).await["status"], "running");
}

async fn a_reservation_is_there_after_a_restart_and_in_the_calendar(database: TestDatabase) {
    let service = ours(&database).await;
    let begin = now(&service).plus_s(7_200);
    let mut weekly = asked(GPUS, begin, begin.plus_s(3_600));
    weekly["repeats"] = json!({ "days": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"] });
    let made = sold(&service, &weekly).await;
    assert_eq!(service.post("/v1/reservations", &weekly).await.expect(200)["id"], made["id"], "the same again");
    let (store, at) = (service.service.core.store.clone(), now(&service));
    service.leave().await;
    drop(service);
    let service = TestService::start(store, at.plus_s(60)).await;
    service.renew().await;
    let spot = submit(&service, &spot("four", 1.0, 1, Some(4))).await;
    assert_eq!(spot["detail"]["waits"]["code"], "reaches_reservation", "{spot}");
    let calendar = service.get(&format!("/v1/reservations.ics?{OF_POOL}")).await;
    let text = calendar.body.as_str().unwrap();
    assert_eq!(text.matches("BEGIN:VEVENT").count(), 84, "{text}");
    let stamp: String = begin.to_string().chars().filter(|one| !matches!(one, '-' | ':')).collect();
    assert!(text.contains(&format!("DTSTART:{stamp}\r\n")), "{text}");
    let gone = service.send(Method::DELETE, "/v1/reservations/1", &[], None).await;
    assert_eq!(gone.status, 204);
    service.renew().await;
    assert_eq!(task(&service, "four").await["status"], "running");
    let past = service.get(&format!("/v1/reservations?{OF_POOL}&past=true")).await.expect(200);
    assert_eq!(past["reservations"][0]["withdrawn_by"], "anyone", "{past}");
    let audit = service.get("/v1/audit").await.expect(200).to_string();
    assert!(audit.contains("POST /v1/reservations") && audit.contains("DELETE /v1/reservations/{id}"), "{audit}");
}

async fn windows_that_do_not_fit_are_refused_with_what_to_do(database: TestDatabase) {
    let service = ours(&database).await;
    let begin = now(&service).plus_s(7_200);
    let end = begin.plus_s(3_600);
    let refused = [
        (asked(8.0, end, begin), 400, "/to"),
        (asked(8.0, begin.plus_s(-20_000), end), 400, "/from"),
        (asked(GPUS + 1.0, begin, end), 400, "/gpus"),
        (asked(0.0, begin, end), 400, "/gpus"),
        (asked(8.0, begin.plus_s(400 * 86_400), end.plus_s(400 * 86_400)), 400, "/from"),
    ];
    for (body, status, pointer) in refused {
        let fault = service.post("/v1/reservations", &body).await.expect(status);
        assert_eq!(fault["errors"][0]["pointer"], pointer, "{fault}");
    }
    let _ = sold(&service, &asked(GPUS - 8.0, begin, end)).await;
    let over = service.post("/v1/reservations", &asked(9.0, begin, end)).await.expect(409);
    assert_eq!(over["code"], "oversold", "{over}");
    assert_eq!(submit(&service, &spot("four", 8.0, 1, Some(4))).await["status"], "running");
    let late = service.post("/v1/reservations", &asked(1.0, begin, end)).await.expect(409);
    assert_eq!(late["code"], "promised", "{late}");
    let far = 200 * 86_400;
    let made = sold(&service, &asked(GPUS, begin.plus_s(far), end.plus_s(far))).await;
    assert_eq!(made["windows"].as_array().unwrap().len(), 1, "{made}");
    let mut ahead = asked(2.0, begin.plus_s(far + 7_200), end.plus_s(far + 7_200));
    ahead["repeats"] = json!({ "days": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"] });
    let made = sold(&service, &ahead).await;
    assert_eq!(made["windows"].as_array().unwrap().len(), 8, "the next eight, however far ahead: {made}");
    assert_eq!(made["windows"][0]["from"], ahead["from"], "{made}");
    let mut daily = asked(2.0, begin, end);
    daily["repeats"] = json!({ "days": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"] });
    daily["from"] = begin.plus_s(86_400).to_string().into();
    daily["to"] = end.plus_s(86_400).to_string().into();
    let over = service.post("/v1/reservations", &daily).await.expect(409);
    assert_eq!(over["code"], "oversold", "a single window comes after {far} s: {over}");
    let unknown = service.get("/v1/reservations/77").await.expect(404);
    assert!(unknown["detail"].as_str().unwrap().contains("77"), "{unknown}");
}

async fn a_rule_does_not_meet_one_that_begins_in_half_a_year(database: TestDatabase) {
    let service = ours(&database).await;
    let daily = |gpus: f64, days_ahead: i64| {
        let begin = now(&service).plus_s(7_200 + days_ahead * 86_400);
        let mut daily = asked(gpus, begin, begin.plus_s(3_600));
        daily["repeats"] = json!({ "days": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"] });
        daily
    };
    let _ = sold(&service, &daily(GPUS - 8.0, 200)).await;
    let over = service.post("/v1/reservations", &daily(9.0, 1)).await.expect(409);
    assert_eq!(over["code"], "oversold", "{over}");
    let _ = sold(&service, &daily(8.0, 1)).await;
}

async fn a_trial_answers_the_probability_and_stores_nothing(database: TestDatabase) {
    let service = ours(&database).await;
    let begin = now(&service).plus_s(3_600);
    let tried =
        service.post("/v1/reservations?dry_run=true", &asked(8.0, begin, begin.plus_s(3_600))).await.expect(200);
    assert_eq!(tried["id"], Value::Null, "{tried}");
    let window = &tried["windows"][0];
    let probability = window["probability"].as_f64().unwrap();
    assert!(window["source"] == "forecast" && (0.0..=0.99).contains(&probability), "{tried}");
    let far = asked(8.0, begin.plus_s(20 * 86_400), begin.plus_s(20 * 86_400 + 3_600));
    let far = service.post("/v1/reservations?dry_run=true", &far).await.expect(200);
    assert_eq!(far["windows"][0]["source"], "history", "{far}");
    let listed = service.get(&format!("/v1/reservations?{OF_POOL}&past=true")).await.expect(200);
    assert_eq!(listed["reservations"], json!([]));
}

async fn where_another_scheduler_places_its_quotas_count_beside_what_was_sold_since_their_renewal(
    database: TestDatabase,
) {
    let service = serving(&database, 500).await;
    let mut left = 500.0_f64;
    for hours in [1, 2, 4] {
        left = left.min(500.0 - quota(&service, hours).await["quota_gpus"].as_f64().unwrap());
    }
    let begin = now(&service).plus_s(1_800);
    let more_than_half = (left / 2.0).floor() + 1.0;
    let first = asked(more_than_half, begin, begin.plus_s(3_600));
    let _ = sold(&service, &first).await;
    let mut second = first.clone();
    second["organization"] = "org-000".into();
    let refused = service.post("/v1/reservations", &second).await.expect(409);
    assert_eq!(refused["code"], "promised", "{left} are left in all: {refused}");
    second["from"] = begin.plus_s(8 * 3_600).to_string().into();
    second["to"] = begin.plus_s(9 * 3_600).to_string().into();
    let _ = sold(&service, &second).await;
}

async fn in_random_histories_no_promise_of_the_engine_reaches_into_a_window(database: TestDatabase) {
    let service = ours(&database).await;
    let mut state = 28_u64;
    let mut draw = move |below: u64| {
        // Of Knuth's MMIX: the same history each time.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut windows: Vec<(UnixSeconds, UnixSeconds, u64)> = Vec::new();
    let (mut refused, mut beside) = (0, 0);
    for number in 0..150 {
        service.pass_s(60 * i64::try_from(draw(20)).unwrap());
        let at = now(&service);
        match draw(6) {
            0 => {
                let from = at.plus_s(60 * i64::try_from(draw(300)).unwrap());
                let (to, gpus) = (from.plus_s(60 + 60 * i64::try_from(draw(120)).unwrap()), 400 + draw(76));
                let answer = service.post("/v1/reservations", &asked(gpus as f64, from, to)).await;
                if answer.status == 201 {
                    windows.push((from, to, gpus));
                }
            }
            1 => service.renew().await,
            _ => {
                let hours = [1, 2, 4][draw(3) as usize];
                let pods = 1 + u32::try_from(draw(6)).unwrap();
                let made = submit(&service, &spot(&format!("t{number}"), 8.0, pods, Some(hours))).await;
                refused += u32::from(made["detail"]["waits"]["code"] == "reaches_reservation");
            }
        }
        beside += u32::from(check(&service, &windows).await);
    }
    assert!(windows.len() > 3 && refused > 3 && beside > 3, "{} {refused} {beside}", windows.len());
}

/// At each instant windows and promises fit into the pool. Returns whether some promise lasts into the time of a window, beside it.
async fn check(service: &TestService, windows: &[(UnixSeconds, UnixSeconds, u64)]) -> bool {
    let (snapshot, at) = (snapshot(service).await, now(service).get());
    let running = snapshot["running"].as_array().unwrap();
    let promises = running.iter().filter_map(|run| {
        let until = run["guarantee"]["until_unix_s"].as_i64()?;
        Some((
            until,
            run["places"].as_array()?.iter().map(|place| place["gpus"].as_array().map_or(0, Vec::len)).sum::<usize>(),
        ))
    });
    let promises: Vec<(i64, usize)> = promises.collect();
    let mut is_beside = false;
    for instant in windows.iter().map(|(from, ..)| from.get().max(at)) {
        let sold: u64 = windows
            .iter()
            .filter(|(from, to, _)| (from.get()..to.get()).contains(&instant))
            .map(|(.., gpus)| gpus)
            .sum();
        let promised: usize = promises.iter().filter(|(until, _)| *until > instant).map(|(_, gpus)| gpus).sum();
        assert!(sold == 0 || sold as usize + promised <= GPUS as usize, "at {instant}: {windows:?} {promises:?}");
        is_beside |= sold > 0 && promised > 0;
    }
    is_beside
}

async fn a_pool_that_nobody_has_measured_is_refused_with_the_remedy_and_not_until_later(database: TestDatabase) {
    let service = ours(&database).await;
    let node = json!({ "cluster": "demo", "gpu_model": "H100", "gpus": 8 });
    let _ = service.put("/v1/nodes/h0", &node).await.expect(200);
    let begin = now(&service).plus_s(7_200);
    let mut body = asked(1.0, begin, begin.plus_s(3_600));
    body["gpu_model"] = "H100".into();
    let early = service.post("/v1/reservations", &body).await;
    assert_eq!((early.status, early.headers.contains_key("retry-after")), (503, true), "{early:?}");
    service.renew().await;
    let answer = service.post("/v1/reservations", &body).await;
    assert_eq!((answer.status, answer.headers.contains_key("retry-after")), (409, false), "{answer:?}");
    assert_eq!(answer.body["code"], "no-quota");
    assert!(answer.body["detail"].as_str().unwrap().contains("ingest it or report it"), "{answer:?}");
}
