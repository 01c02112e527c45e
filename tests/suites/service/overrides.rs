//! Operators' knowledge of the hours ahead moves the quota, with actor and reason.

use super::*;
use axum::http::Method;
use tests::on_both_databases;

on_both_databases![
    a_reservation_lowers_the_quotas_of_promises_that_reach_into_it_and_names_its_owner,
    a_release_raises_the_quota_and_spares_gpus_held_by_hp,
    an_override_is_there_after_a_restart_and_ends_by_itself,
    an_invalid_override_is_refused_with_its_field,
];

fn asked(kind: &str, gpus: f64, from: UnixSeconds, to: UnixSeconds) -> Value {
    json!({
        "cluster": "demo", "gpu_model": "A100", "kind": kind, "gpus": gpus, "from": from.to_string(),
        "to": to.to_string(), "reason": "the launch of the new model",
    })
}

const LIST: &str = "/v1/overrides?cluster=demo&gpu_model=A100";

async fn explained(service: &TestService, hours: u8) -> Value {
    service.get(&format!("/v1/quota/explain?cluster=demo&gpu_model=A100&hours={hours}")).await.expect(200)
}

async fn bound(service: &TestService, hours: u8) -> f64 {
    number(&quota(service, hours).await["demand_bound_gpus"])
}

async fn a_reservation_lowers_the_quotas_of_promises_that_reach_into_it_and_names_its_owner(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let now = service.service.core.clock.now();
    let before = [bound(&service, 1).await, bound(&service, 4).await];
    // In two hours, so that a promise of one hour is over by then.
    let launch = asked("reserve", 30.0, now.plus_s(7_200), now.plus_s(14_400));
    let made = service.post("/v1/overrides", &launch).await.expect(201);
    assert_eq!((made["by"].as_str(), made["in_force"].as_bool()), (Some("anyone"), Some(false)), "{made}");
    service.renew().await;
    let after = [bound(&service, 1).await, bound(&service, 4).await];
    assert_eq!(after, [before[0], before[1] + 30.0]);
    assert!(codes(&quota(&service, 4).await).contains(&"reserved".to_owned()));
    let explanation = explained(&service, 4).await;
    assert_eq!(explanation["overrides"][0]["reason"], "the launch of the new model", "{explanation}");
    let steps = explanation["steps"].to_string();
    assert!(steps.contains("override 1: +30.000 (anyone, the launch of the new model)"), "{steps}");
    assert_eq!(explained(&service, 1).await["overrides"], json!([]));
    let again = service.post("/v1/overrides", &launch).await.expect(200);
    assert_eq!(again["id"], made["id"], "the same again is the one that is there");
    let audit = service.get("/v1/audit").await.expect(200);
    assert_eq!(audit["entries"].as_array().unwrap().len(), 1, "{audit}");
    assert_eq!(audit["entries"][0]["detail"]["reason"], "the launch of the new model", "{audit}");
    let gone = service.send(Method::DELETE, "/v1/overrides/1", &[], None).await;
    assert_eq!(gone.status, 204);
    service.renew().await;
    assert_eq!([bound(&service, 1).await, bound(&service, 4).await], before);
    assert_eq!(service.get(LIST).await.expect(200)["overrides"], json!([]));
    let past = service.get(&format!("{LIST}&past=true")).await.expect(200);
    assert_eq!(past["overrides"][0]["withdrawn_by"], "anyone", "{past}");
}

async fn a_release_raises_the_quota_and_spares_gpus_held_by_hp(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let now = service.service.core.clock.now();
    let (before, explanation) = (bound(&service, 1).await, explained(&service, 1).await);
    let demand = number(&explanation["supply"]["latest_demand_gpus"]);
    // The synthetic pool is so quiet that its bound lies a hair above its demand.
    assert!(before > demand + 0.02, "{before} {demand}");
    let _ = service.post("/v1/overrides", &asked("release", 0.02, now, now.plus_s(7_200))).await.expect(201);
    service.renew().await;
    assert!((bound(&service, 1).await - (before - 0.02)).abs() < 1e-9);
    assert!(codes(&quota(&service, 1).await).contains(&"released".to_owned()));
    assert_eq!(service.get("/v1/pools").await.expect(200)["pools"][0]["overrides"], 1);
    let _ = service.post("/v1/overrides", &asked("release", 400.0, now, now.plus_s(7_200))).await.expect(201);
    service.renew().await;
    assert_eq!(bound(&service, 1).await, demand, "what HP holds is not released");
}

async fn an_override_is_there_after_a_restart_and_ends_by_itself(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let now = service.service.core.clock.now();
    let before = bound(&service, 1).await;
    let _ = service.post("/v1/overrides", &asked("reserve", 30.0, now, now.plus_s(1_800))).await.expect(201);
    let store = service.service.core.store.clone();
    service.leave().await;
    drop(service);
    let service = TestService::start(store, now.plus_s(60)).await;
    service.renew().await;
    assert!((bound(&service, 1).await - before - 30.0).abs() < 1e-9);
    service.pass_s(1_740);
    service.renew().await;
    assert_eq!(bound(&service, 1).await, before);
    let late = service.post("/v1/overrides", &asked("reserve", 30.0, now, now.plus_s(1_800))).await.expect(400);
    assert!(late["detail"].as_str().is_some() && late["errors"][0]["pointer"] == "/to", "{late}");
}

async fn an_invalid_override_is_refused_with_its_field(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let now = service.service.core.clock.now();
    for (field, value) in [("kind", json!("hold")), ("gpus", json!(0)), ("to", json!("soon")), ("reason", json!(" "))] {
        let mut body = asked("reserve", 1.0, now, now.plus_s(60));
        body[field] = value;
        let refused = service.post("/v1/overrides", &body).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], format!("/{field}"), "{refused}");
    }
    let mut elsewhere = asked("reserve", 1.0, now, now.plus_s(60));
    elsewhere["gpu_model"] = "H800".into();
    let unknown = service.post("/v1/overrides", &elsewhere).await.expect(404);
    assert!(unknown["detail"].as_str().unwrap().contains("H800"), "{unknown}");
    for id in ["7", "x", "-1", "99999999999999999999"] {
        let gone = service.send(Method::DELETE, &format!("/v1/overrides/{id}"), &[], None).await;
        assert_eq!(gone.status, 404, "{id}: {gone:?}");
    }
}
