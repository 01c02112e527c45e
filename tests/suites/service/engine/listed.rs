//! `/v1/pools` of a service that follows, or has just started: what another one has computed.

use super::replicas::{replica, two_with_quotas};
use super::*;
use tests::on_both_databases;

on_both_databases![a_service_that_follows_or_starts_lists_pools_as_the_one_that_leads];

/// The one pool, without its tasks: those of the last renewal, and at a service that follows those of the last beat.
async fn listed(service: &TestService) -> Value {
    let mut pool = service.get("/v1/pools").await.expect(200)["pools"][0].take();
    pool.as_object_mut().unwrap().remove("tasks");
    pool
}

async fn a_service_that_follows_or_starts_lists_pools_as_the_one_that_leads(database: TestDatabase) {
    let (one, other) = two_with_quotas(&database).await;
    assert_eq!(submit(&one, &spot("kept", 1.0, 1, Some(1))).await["status"], "running");
    let _ = one.post(&format!("/v1/tasks/kept/finish?{OF_POOL}"), &json!({})).await.expect(200);
    let now = one.service.core.clock.now();
    for (from_s, to_s) in [(-60, 36_000), (0, 7_200), (7_200, 36_000)] {
        let reserve = json!({
            "cluster": "demo", "gpu_model": "A100", "kind": "reserve", "gpus": 8.0, "from": now.plus_s(from_s).to_string(),
            "to": now.plus_s(to_s).to_string(), "reason": "the launch of the new model",
        });
        let _ = one.post("/v1/overrides", &reserve).await.expect(201);
    }
    one.pass_s(30);
    other.pass_s(30);
    one.renew().await;
    other.follow().await;
    let of_leader = listed(&one).await;
    assert!(number(&of_leader["organizations"]) > 0.0 && number(&of_leader["latest_demand_gpus"]) > 0.0, "{of_leader}");
    assert_eq!(
        (of_leader["overrides"].as_u64(), of_leader["outcomes_24h"].is_object()),
        (Some(2), true),
        "{of_leader}"
    );
    assert!(number(&of_leader["hp_demand_gpus"]) > 0.0, "{of_leader}");
    assert!(of_leader["forecast"].as_array().is_some_and(|steps| steps.len() >= 4), "{of_leader}");
    assert_eq!(listed(&other).await, of_leader);
    let started = replica(&database, "started").await;
    started.pass_s(30);
    started.follow().await;
    assert_eq!(listed(&started).await, of_leader);
}
