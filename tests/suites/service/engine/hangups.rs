//! Clients that hang up while they are answered: what they asked for is done whole, and is in the audit.

use super::*;
use std::time::Instant;
use tests::on_both_databases;
use tokio::time::timeout;

on_both_databases![
    a_client_that_hangs_up_cuts_no_write_in_half,
    a_node_removed_by_a_client_that_hangs_up_leaves_the_pool,
    the_audit_keeps_requests,
    a_write_that_the_audit_does_not_take_is_not_done,
];

/// Hang-ups, each a little later than the one before: from before the first statement to after the answer.
const HANG_UPS: u32 = 60;
const LATER_EACH: Duration = Duration::from_micros(150);

/// Sends a request and drops it after a while, as the server does when its client hangs up.
async fn hung_up(service: &TestService, after: Duration, method: Method, path: &str, body: Option<&Value>) {
    let _ = timeout(after, service.send(method, path, &[], body.map(Value::to_string))).await;
}

/// Waits until both counts agree, and answers them.
async fn agreed(database: &TestDatabase, one: &str, other: &str) -> (Vec<i64>, Vec<i64>) {
    let begun = Instant::now();
    loop {
        let counts = (database.numbers(one).await, database.numbers(other).await);
        if counts.0 == counts.1 || begun.elapsed() > Duration::from_secs(3) {
            return counts;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn a_client_that_hangs_up_cuts_no_write_in_half(database: TestDatabase) {
    let service = placing(&database, 8).await;
    for number in 0..HANG_UPS {
        let task = hp(&format!("t{number}"), 1.0, 1);
        hung_up(&service, LATER_EACH * number, Method::POST, "/v1/tasks", Some(&task)).await;
    }
    service.service.access.writes.ended().await;
    // The first task decides the side of the pool, which is an entry of its own.
    let audited = "SELECT count(*) FROM audit WHERE action = 'POST /v1/tasks' AND detail_json NOT LIKE '%placed_by%'";
    let (written, audited) = agreed(&database, "SELECT count(*) FROM tasks", audited).await;
    assert_eq!(written, audited, "tasks that were written, and those in the audit");
    assert!(written[0] > 0, "some came that far");
}

async fn a_node_removed_by_a_client_that_hangs_up_leaves_the_pool(database: TestDatabase) {
    let service = placing(&database, HANG_UPS).await;
    let _ = submit(&service, &hp("first", 8.0, 1)).await;
    for number in 0..HANG_UPS {
        let path = format!("/v1/nodes/n{number}?cluster=demo");
        hung_up(&service, LATER_EACH * number, Method::DELETE, &path, None).await;
    }
    service.service.access.writes.ended().await;
    let stored = database.numbers("SELECT count(*) FROM nodes").await[0];
    let snapshot = snapshot(&service).await;
    let there = snapshot["nodes"].as_array().unwrap().iter().filter(|node| node["is_gone"] == false).count();
    assert_eq!(i64::try_from(there).unwrap(), stored, "nodes that are stored, and those that tasks are placed on");
    let audited = "SELECT count(*) FROM audit WHERE action = 'DELETE /v1/nodes/{id}'";
    assert_eq!(database.numbers(audited).await, [i64::from(HANG_UPS) - stored]);
}

/// The newest entry of the audit.
async fn newest(service: &TestService) -> Value {
    service.get("/v1/audit?limit=1").await.expect(200)["entries"][0].clone()
}

async fn the_audit_keeps_requests(database: TestDatabase) {
    let service = placing(&database, 1).await;
    put_node(&service, "n0", true).await;
    let detail = &newest(&service).await["detail"];
    assert_eq!((&detail["before"]["drain"], &detail["after"]["drain"]), (&false.into(), &true.into()), "{detail}");
    put_node(&service, "n0", false).await;
    let _ = submit(&service, &hp("t", 2.0, 1)).await;
    let entry = newest(&service).await;
    let detail = &entry["detail"];
    let of_task = ["task", "organization", "class", "status"].map(|name| detail[name].as_str().unwrap());
    assert_eq!(of_task, ["t", "org-000", "hp", "running"], "{entry}");
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["guarantee_rate"] = 0.8.into();
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    let detail = &newest(&service).await["detail"];
    let rates = ["before", "after"].map(|side| detail[side]["guarantee_rate"].as_f64().unwrap());
    assert_eq!(rates, [0.9, 0.8], "{detail}");
    let hour = end().plus_s(-3_600).to_string();
    let row =
        json!({ "hour": hour, "cluster": "demo", "gpu_model": "A100", "organization": "org-000", "demand_gpus": 4.0 });
    let _ = service.post("/v1/usage", &json!({ "rows": [row] })).await.expect(200);
    assert_eq!(newest(&service).await["detail"], json!({ "rows": [row], "total": 1 }));
    let reported = outcomes(0, 2, "kept", end().get());
    let _ = service.post("/v1/outcomes", &reported).await.expect(200);
    let detail = &newest(&service).await["detail"];
    assert_eq!((&detail["outcomes"][1]["event_id"], &detail["total"]), (&"event-1".into(), &2.into()), "{detail}");
    let _ = service.send(Method::DELETE, "/v1/nodes/n0?cluster=demo&cause=failed", &[], None).await;
    let detail = &newest(&service).await["detail"];
    assert_eq!((&detail["before"]["gpus"], &detail["cause"]), (&8.into(), &"failed".into()), "{detail}");
}

/// Nodes, tasks, outcomes and settings.
async fn counts(database: &TestDatabase) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in ["nodes", "tasks", "outcomes", "pool_settings"] {
        counts.extend(database.numbers(&format!("SELECT count(*) FROM {table}")).await);
    }
    counts
}

async fn a_write_that_the_audit_does_not_take_is_not_done(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let _ = submit(&service, &hp("before", 1.0, 1)).await;
    let before = counts(&database).await;
    database.execute("ALTER TABLE audit RENAME TO audit_gone").await;
    let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
    assert_eq!(service.put("/v1/nodes/n1", &node).await.expect(503)["code"], "not-audited");
    let removed = service.send(Method::DELETE, "/v1/nodes/n0?cluster=demo", &[], None).await;
    assert_eq!(removed.expect(503)["code"], "not-audited");
    assert_eq!(service.post("/v1/tasks", &hp("t", 1.0, 1)).await.status, 503);
    let _ = service.post("/v1/outcomes", &outcomes(0, 1, "kept", end().get())).await.expect(503);
    let settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(503);
    let after = counts(&database).await;
    assert_eq!(after, before, "nodes, tasks, outcomes and settings");
    database.execute("ALTER TABLE audit_gone RENAME TO audit").await;
    assert_eq!(submit(&service, &hp("t", 1.0, 1)).await["status"], "running", "and goes on");
}
