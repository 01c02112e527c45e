//! Fragmentation and power as policies of a placed pool.

use super::*;
use tests::on_both_databases;

on_both_databases![
    fragmentation_and_power_choose_the_node_where_the_policy_asks,
    the_power_of_an_unknown_model_is_refused,
];

const SETTINGS: &str = "/v1/pools/demo:A100/settings";

/// Sets the policy, and says on which node `task` then starts. It is taken back.
async fn tried(service: &TestService, policy: Value, task: Value) -> String {
    let mut settings = service.get(SETTINGS).await.expect(200);
    let field = if policy.is_string() { "policy" } else { "policy_parts" };
    settings.as_object_mut().unwrap().retain(|key, _| !key.starts_with("policy"));
    settings[field] = policy;
    let _ = service.put(SETTINGS, &settings).await.expect(200);
    let started = submit(service, &task).await;
    let id = task["id"].as_str().unwrap();
    let _ = delete(service, id).await.expect(200);
    nodes(&started)[0].to_owned()
}

async fn fragmentation_and_power_choose_the_node_where_the_policy_asks(database: TestDatabase) {
    let service = placing(&database, 2).await;
    // Six GPUs of n0 are taken for good; pairs are what comes.
    let _ = submit(&service, &hp("six", 6.0, 1)).await;
    for number in 0..40 {
        let id = format!("pair-{number}");
        let _ = submit(&service, &hp(&id, 2.0, 1)).await;
        let _ = delete(&service, &id).await.expect(200);
    }
    // A single GPU: GFS takes it from the fuller node and leaves one that no pair can use, FGD does not.
    assert_eq!(tried(&service, "gfs".into(), hp("a", 1.0, 1)).await, "n0");
    assert_eq!(tried(&service, "fgd".into(), hp("b", 1.0, 1)).await, "n1");
    let parts = json!({ "name": "calm", "like": "gfs", "score": { "by": "fgd", "beside_gfs": true } });
    assert_eq!(tried(&service, parts, hp("c", 1.0, 1)).await, "n1");
    // Power: a share costs nothing on a GPU that works already.
    let _ = submit(&service, &hp("quarter", 0.25, 1)).await;
    let shared = nodes(&task(&service, "quarter").await)[0].to_owned();
    assert_eq!(tried(&service, "pwr".into(), hp("d", 0.5, 1)).await, shared);
    // A restarted service decides the same.
    let (chosen, before) = (tried(&service, "fgd".into(), hp("e", 1.0, 1)).await, snapshot(&service).await);
    let again = TestService::start(database.store().await, service.service.core.clock.now()).await;
    assert_eq!(snapshot(&again).await, before);
    assert_eq!(tried(&again, "fgd".into(), hp("f", 1.0, 1)).await, chosen);
}

async fn the_power_of_an_unknown_model_is_refused(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let body = json!({ "cluster": "demo", "gpu_model": "X9", "gpus": 8 });
    let _ = service.put("/v1/nodes/x0", &body).await.expect(200);
    service.renew().await;
    let path = "/v1/pools/demo:X9/settings";
    let mut settings = service.get(path).await.expect(200);
    settings["policy"] = "pwr".into();
    let refused = service.put(path, &settings).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/policy", "{refused}");
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("the GPU model X9 is not known"), "{refused}");
    settings["policy"] = "fgd".into();
    let _ = service.put(path, &settings).await.expect(200);
}
