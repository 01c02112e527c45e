//! Results of earlier forecasts correct the next ones, and survive a restart.

use super::*;
use forecaster::checkpoint;
use forecaster::drift::Issued;
use store::RunId;
use tests::{Backend, fresh_database, on_both_databases, promote_bytes};

on_both_databases![
    forecasts_that_were_too_low_are_corrected_and_the_explanation_shows_how,
    the_experts_of_a_mixture_are_shown_with_their_weights,
    a_restarted_service_has_learned_the_same_bytes_as_one_that_never_stopped,
    a_damaged_calibration_is_logged_and_that_of_the_training_serves,
    after_a_rollback_a_run_goes_on_with_its_learned_state,
];

const EXPLAIN: &str = "/v1/quota/explain?cluster=demo&gpu_model=A100&hours=4";
const FORECAST: &str = "/v1/forecast?cluster=demo&gpu_model=A100";

/// A service whose run corrects the forecasts of organizations, against any choice of validation.
async fn correcting(database: &TestDatabase) -> TestService {
    let store = with_usage(database, 500).await;
    let until = end().hour().unwrap();
    let plain = promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, until).await;
    let mut trained = checkpoint::load(&store.checkpoint(plain).await.unwrap()).unwrap();
    trained.calibrator = trained.calibrator.correcting(true);
    let bytes = checkpoint::save(&trained, "test").unwrap();
    promote_bytes(store.as_ref(), &cluster("demo"), ModelKind::LastValue, until, bytes).await;
    let service = TestService::start(store, end().plus_s(60)).await;
    service.renew().await;
    service
}

const RUN: RunId = RunId::new(2);

/// Lets an hour pass in which demand has grown, and reports it; organizations differ.
async fn pass_hour(service: &TestService, hour: i64) {
    service.pass_s(3_600);
    let at = end().plus_s(hour * 3_600).to_string();
    let row = |number: i64| {
        let demand_gpus = (30 + 5 * hour + (7 * hour * (number + 1)) % 11) as f64;
        json!({ "hour": at, "cluster": "demo", "gpu_model": "A100", "organization": format!("org-{number:03}"), "demand_gpus": demand_gpus })
    };
    let _ = service.post("/v1/usage", &json!({ "rows": (0..3).map(row).collect::<Vec<_>>() })).await.expect(200);
}

async fn forecasts_that_were_too_low_are_corrected_and_the_explanation_shows_how(database: TestDatabase) {
    let service = correcting(&database).await;
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["aggregation"] = "conformal".into();
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    for hour in 0..40 {
        pass_hour(&service, hour).await;
        service.renew().await;
    }
    let explained = service.get(EXPLAIN).await.expect(200);
    let calibration = &explained["forecast"]["calibration"];
    assert_eq!(calibration["correcting"], true);
    assert_eq!(calibration["newest_issue_time"], end().plus_s(36 * 3_600).to_string(), "the last whose hours are over");
    let corrections = calibration["organizations"].as_array().unwrap();
    assert_eq!(corrections.len(), 3);
    assert!(corrections.iter().all(|one| number(&one["q90_gpus"]) > 0.0 && number(&one["residuals"]) > 24.0));
    let issue = end().plus_s(40 * 3_600).hour().unwrap();
    let stored = service.service.core.store.issued_forecasts(&cluster("demo"), issue).await.unwrap().unwrap();
    let printed = Issued::from_bytes(&stored.forecasts).unwrap();
    for (place, organization) in explained["forecast"]["organizations"].as_array().unwrap().iter().enumerate() {
        let (issued, raw) = (number(&organization["steps"][3]["q90_gpus"]), printed.forecasts[place].steps()[3]);
        assert!(issued > raw.quantiles_gpus[1], "{issued} was issued where the model forecast {raw:?}");
        assert!((printed.corrected_gpus[place][3][1] - issued).abs() < 1e-3, "what was issued is kept beside it");
    }
    let conformal = &explained["bound"]["conformal"];
    assert!(number(&conformal["residuals"]) > 24.0, "{conformal}");
    let (share, [sum, total]) =
        (number(&conformal["total_share"]), ["sum_gpus", "total_gpus"].map(|name| number(&conformal[name])));
    let centre = (1.0 - share) * sum + share * total;
    assert!((0.0..=1.0).contains(&share) && (number(&conformal["centre_gpus"]) - centre).abs() < 1e-6, "{conformal}");
    let expected = number(&conformal["centre_gpus"])
        + number(&explained["bound"]["multiplier"]) * number(&conformal["deviation_gpus"]);
    let kept = &explained["bound"]["kept"];
    assert!((number(&kept["peak_bound_gpus"]) - expected).abs() < 2e-3, "{explained}");
    // A day has passed: the bound goes a part of the way there.
    let (needed, lambda) = (number(&explained["supply"]["latest_demand_gpus"]), number(&kept["lambda"]));
    let moved = needed + lambda * (number(&kept["peak_bound_gpus"]) - needed);
    assert!((number(&explained["bound"]["demand_bound_gpus"]) - moved).abs() < 2e-3, "{explained}");
    assert_eq!(explained["bound"]["promise"], "kept");
    assert!(
        explained["steps"][1].as_str().unwrap().contains("measured peaks of the last week"),
        "{}",
        explained["steps"]
    );
}

async fn the_experts_of_a_mixture_are_shown_with_their_weights(database: TestDatabase) {
    let service = correcting(&database).await;
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["aggregation"] = "mixture".into();
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    for hour in 0..40 {
        pass_hour(&service, hour).await;
        service.renew().await;
    }
    let explained = service.get(EXPLAIN).await.expect(200);
    let experts = explained["bound"]["experts"].as_array().unwrap();
    let weights: f64 = experts.iter().map(|one| number(&one["weight"])).sum();
    assert!(experts.len() == 5 && (weights - 1.0).abs() < 1e-9, "{experts:?}");
    let mixed: f64 = experts.iter().map(|one| number(&one["weight"]) * number(&one["bound_gpus"])).sum();
    assert!((number(&explained["bound"]["kept"]["peak_bound_gpus"]) - mixed).abs() < 2e-3, "{explained}");
    // Each has the rises that it needs, of an hour or of the history, and some have lost less than others.
    assert!(experts.iter().all(|one| one["bound_gpus"].is_number()), "{experts:?}");
    let begun = [0.4, 0.15, 0.15, 0.15, 0.15];
    assert!(experts.iter().zip(begun).any(|(one, begun)| number(&one["weight"]) > 1.05 * begun), "{experts:?}");
    let sentence = explained["steps"][1].as_str().unwrap();
    assert!(sentence.contains("(conformal)") && sentence.contains("weights follow the losses"), "{sentence}");
}

/// Two databases with the same usage: one service goes on for 30 hours, the other is started again each hour.
async fn a_restarted_service_has_learned_the_same_bytes_as_one_that_never_stopped(database: TestDatabase) {
    let elsewhere = fresh_database(database.backend).await;
    let steady = correcting(&database).await;
    drop(correcting(&elsewhere).await);
    let mut learned = Vec::new();
    for hour in 0..30 {
        pass_hour(&steady, hour).await;
        steady.renew().await;
        let fresh = TestService::start(elsewhere.store().await, end().plus_s(60 + 3_600 * hour)).await;
        pass_hour(&fresh, hour).await;
        fresh.renew().await;
        fresh.renew().await;
        let ours = steady.service.core.store.calibration(RUN).await.unwrap();
        assert_eq!(fresh.service.core.store.calibration(RUN).await.unwrap(), ours, "after hour {hour}");
        assert_eq!(fresh.get(FORECAST).await.expect(200), steady.get(FORECAST).await.expect(200));
        learned.push(ours);
    }
    assert_eq!(learned.iter().filter(|state| state.is_none()).count(), 3, "then the first four hours are over");
    learned.dedup();
    assert_eq!(learned.len(), 1 + 27, "each hour teaches");
}

async fn a_damaged_calibration_is_logged_and_that_of_the_training_serves(database: TestDatabase) {
    let service = correcting(&database).await;
    for hour in 0..6 {
        pass_hour(&service, hour).await;
        service.renew().await;
    }
    let state = if database.backend == Backend::Postgres { "'\\x4852'" } else { "x'4852'" };
    database.execute(&format!("UPDATE calibrations SET state = {state}")).await;
    let fresh = TestService::start(database.store().await, end().plus_s(60 + 6 * 3_600)).await;
    fresh.renew().await;
    let trained = checkpoint::load(&fresh.service.core.store.checkpoint(RUN).await.unwrap()).unwrap();
    let newest =
        || async { fresh.get(EXPLAIN).await.expect(200)["forecast"]["calibration"]["newest_issue_time"].clone() };
    assert_eq!(newest().await, trained.calibrator.newest_issue().map_or(Value::Null, |at| at.to_string().into()));
    assert_eq!(quota(&fresh, 4).await["stage"], "fresh");
    pass_hour(&fresh, 6).await;
    fresh.renew().await;
    assert_eq!(newest().await, end().plus_s(3 * 3_600).to_string(), "and learns on");
}

async fn after_a_rollback_a_run_goes_on_with_its_learned_state(database: TestDatabase) {
    let service = correcting(&database).await;
    for hour in 0..6 {
        pass_hour(&service, hour).await;
        service.renew().await;
    }
    let store = service.service.core.store.clone();
    let before = store.calibration(RUN).await.unwrap().unwrap();
    let other = promote(store.as_ref(), &cluster("demo"), ModelKind::Seasonal24h, end().hour().unwrap()).await;
    pass_hour(&service, 6).await;
    service.renew().await;
    assert_eq!(store.calibration(RUN).await.unwrap().unwrap(), before, "it does not serve, so it learns nothing");
    assert_eq!(
        store.calibration(other).await.unwrap(),
        None,
        "nor does another run learn from the forecasts of this one"
    );
    store.rollback(&cluster("demo"), end(), "test").await.unwrap();
    pass_hour(&service, 7).await;
    service.renew().await;
    let newest = service.get(EXPLAIN).await.expect(200)["forecast"]["calibration"]["newest_issue_time"].clone();
    assert_eq!(newest, end().plus_s(4 * 3_600).to_string());
}
