//! With a day on offer peaks over an hour teach once that hour is over.

use super::*;
use forecaster::calibration::Online;
use forecaster::predict::forecast;
use tests::{fresh_database, on_both_databases, promote_over};
use vocab::GuaranteeRate;

on_both_databases![peaks_of_an_hour_teach_while_the_day_goes_on_and_after_each_restart];

const HORIZON_HOURS: u64 = 26;
/// The first forecasts are scored within them.
const PLAYED_HOURS: i64 = 30;

async fn serving_a_day(database: &TestDatabase) -> TestService {
    let store = with_usage(database, 500).await;
    let until = end().hour().unwrap();
    promote_over(store.as_ref(), &cluster("demo"), ModelKind::LastValue, until, HORIZON_HOURS).await;
    let service = TestService::start(store, end().plus_s(60)).await;
    service.renew().await;
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["aggregation"] = "mixture".into();
    settings["offered_hours"] = json!([1, 4, 24]);
    settings["promise"] = "peak".into();
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    service
}

async fn pass_hour(service: &TestService, hour: i64) {
    service.pass_s(3_600);
    let at = end().plus_s(hour * 3_600).to_string();
    let row = |number: i64| {
        let demand_gpus = 30 + (17 * hour * (number + 1)) % 23;
        json!({ "hour": at, "cluster": "demo", "gpu_model": "A100", "organization": format!("org-{number:03}"), "demand_gpus": demand_gpus })
    };
    let _ = service.post("/v1/usage", &json!({ "rows": (0..3).map(row).collect::<Vec<_>>() })).await.expect(200);
}

/// Weights of the experts on the peak over so many hours.
async fn weights(service: &TestService, hours: u8) -> Vec<f64> {
    let path = format!("/v1/quota/explain?cluster=demo&gpu_model=A100&hours={hours}");
    let explained = service.get(&path).await.expect(200);
    explained["bound"]["experts"].as_array().unwrap().iter().map(|one| number(&one["weight"])).collect()
}

async fn peaks_of_an_hour_teach_while_the_day_goes_on_and_after_each_restart(database: TestDatabase) {
    let elsewhere = fresh_database(database.backend).await;
    let steady = serving_a_day(&database).await;
    drop(serving_a_day(&elsewhere).await);
    let mut by_hour = Vec::new();
    for hour in 0..PLAYED_HOURS {
        pass_hour(&steady, hour).await;
        steady.renew().await;
        let fresh = TestService::start(elsewhere.store().await, end().plus_s(60 + 3_600 * hour)).await;
        pass_hour(&fresh, hour).await;
        fresh.renew().await;
        for hours in [1, 4, 24] {
            assert_eq!(weights(&fresh, hours).await, weights(&steady, hours).await, "{hours} h after hour {hour}");
            assert_eq!(quota(&fresh, hours).await["bound"], quota(&steady, hours).await["bound"]);
        }
        by_hour.push([weights(&steady, 1).await, weights(&steady, 24).await]);
    }
    // The first forecast was issued at hour 0, and four hours after it the first peaks are learned.
    let moves = |place: usize| by_hour.windows(2).map(|pair| pair[0][place] != pair[1][place]).collect::<Vec<_>>();
    let from_hour = |first: i64| (1..PLAYED_HOURS).map(|hour| hour >= first).collect::<Vec<_>>();
    assert_eq!((moves(0), moves(1)), (from_hour(3), from_hour(25)));
    let store = steady.service.core.store.clone();
    let learned = store.calibration(store::RunId::new(1)).await.unwrap();
    let by_restarted = elsewhere.store().await.calibration(store::RunId::new(1)).await.unwrap();
    assert!(learned.is_some() && learned == by_restarted, "the same bytes, however often it was started");

    // A backtest learns the same.
    let trained = tests::promoted(store.as_ref(), &cluster("demo")).await;
    let from = end().hour().unwrap();
    let panel = tests::panel(store.as_ref(), &cluster("demo"), from.plus_hours(PLAYED_HOURS)).await;
    let mut online = Online::new(trained.calibrator.clone());
    // An hour that begins within an hour ends in the next.
    let over_two_hours = 1;
    let mut played = Vec::new();
    for issue in (0..=PLAYED_HOURS).map(|hour| from.plus_hours(hour)) {
        let raw = forecast(&trained, &panel, issue).unwrap();
        let issued = online.issue(&panel, issue, raw, GuaranteeRate::GFS);
        played.push(issued.conformal[&pool(POOL)].hours[over_two_hours].experts.map(|one| one.weight));
    }
    for (ours, [theirs, _]) in played[1..].iter().zip(&by_hour) {
        assert!(theirs.iter().zip(ours).all(|(one, other)| (one - other).abs() < 1e-9), "{theirs:?} {ours:?}");
    }
}
