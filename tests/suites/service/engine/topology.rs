//! Tasks whose GPUs are to lie together, on nodes that say how theirs lie.

use super::*;
use tests::on_both_databases;

on_both_databases![
    an_hp_task_evicts_holders_of_adjacent_gpus_and_a_restart_changes_nothing,
    a_policy_blind_to_topology_is_named_and_no_topology_is_refused,
];

/// Two nodes with two sockets of four GPUs, a NUMA node each, under a policy that looks at topology.
async fn placing_by_topology(database: &TestDatabase) -> TestService {
    let service = serving(database, 500).await;
    for number in 0..2 {
        put_laid_out(&service, &format!("n{number}"), &json!({ "preset": "rtx4090-8" })).await;
    }
    service.renew().await;
    set_policy(&service, "gfs-topology").await;
    service
}

async fn put_laid_out(service: &TestService, id: &str, topology: &Value) {
    let body = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8, "cpu_milli": 64_000, "topology": topology });
    let answer = service.put(&format!("/v1/nodes/{id}"), &body).await.expect(200);
    assert_eq!(
        answer["topology"]["numa_nodes"][3],
        json!({ "numa_node": 3, "socket": 0, "gpus": [3], "cores": "24-31" })
    );
}

async fn set_policy(service: &TestService, policy: &str) {
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["policy"] = policy.into();
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
}

fn with(mut body: Value, affinity: &str, strictness: &str) -> Value {
    body["affinity"] = json!({ "domain": affinity, "strictness": strictness });
    body
}

async fn an_hp_task_evicts_holders_of_adjacent_gpus_and_a_restart_changes_nothing(database: TestDatabase) {
    let service = placing_by_topology(&database).await;
    // They fill the nodes one after the other, and of each node one socket after the other; all run at will.
    for (number, gpus) in [1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1].into_iter().enumerate() {
        let run = submit(&service, &spot(&format!("spot-{number:02}"), f64::from(gpus), 1, None)).await;
        assert_eq!(run["status"], "running", "{run}");
    }
    let four = submit(&service, &with(hp("four", 4.0, 1), "numa", "guaranteed")).await;
    assert_eq!(four["detail"]["victims"], json!(["spot-04", "spot-05"]), "the fewest that leave a socket: {four}");
    assert_eq!(four["affinity"], json!({ "domain": "numa", "strictness": "guaranteed" }));
    let place = &four["detail"]["run"]["places"][0];
    assert_eq!((&place["gpus"], &place["numa_nodes"]), (&json!([4, 5, 6, 7]), &json!([4, 5, 6, 7])), "{place}");
    assert_eq!((&place["sockets"], &place["aligned"], &place["cores"]), (&json!([1]), &json!(true), &json!("32-63")));
    let three = submit(&service, &with(hp("three", 3.0, 1), "socket", "guaranteed")).await;
    assert_eq!((&three["status"], &three["detail"]["run"]["places"][0]["aligned"]), (&json!("running"), &json!(true)));
    let linked = submit(&service, &with(hp("linked", 2.0, 1), "nvlink-island", "guaranteed")).await;
    assert_eq!(linked["detail"]["waits"]["code"], "not_aligned", "there is no NVLink: {linked}");
    let explained = service.get(&format!("/v1/tasks/linked/explain?{OF_POOL}")).await.expect(200);
    assert!(explained["reason"]["detail"].as_str().unwrap().contains("share an NVLink island"), "{explained}");
    let before = (snapshot(&service).await, task(&service, "four").await);
    assert_eq!(before.0["nodes"][0]["topology"]["numa_nodes"].as_array().unwrap().len(), 8);
    let service = TestService::start(database.store().await, service.service.core.clock.now()).await;
    assert_eq!((snapshot(&service).await, task(&service, "four").await), before, "after the restart");
    let again = submit(&service, &with(hp("four", 4.0, 1), "numa", "guaranteed")).await;
    assert_eq!(again["detail"]["run"], four["detail"]["run"], "the same task again");
    let _ = service.post("/v1/tasks", &with(hp("four", 4.0, 1), "socket", "guaranteed")).await.expect(422);
}

async fn a_policy_blind_to_topology_is_named_and_no_topology_is_refused(database: TestDatabase) {
    let service = placing_by_topology(&database).await;
    set_policy(&service, "gfs").await;
    let waits = submit(&service, &with(hp("two", 2.0, 1), "socket", "guaranteed")).await;
    assert_eq!(waits["detail"]["waits"]["code"], "not_aligned", "{waits}");
    assert!(waits["detail"]["waits"]["detail"].as_str().unwrap().contains("does not look at topology"), "{waits}");
    let starts = submit(&service, &with(hp("best", 2.0, 1), "socket", "best_effort")).await;
    assert_eq!(starts["status"], "running", "{starts}");
    let wrong = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 4, "topology": { "preset": "a100-8" } });
    let refused = service.put("/v1/nodes/n9", &wrong).await.expect(400);
    assert!(refused.to_string().contains("the topology has 8 GPUs, the node 4"), "{refused}");
    let refused = service.post("/v1/tasks", &with(hp("rack", 2.0, 1), "rack", "guaranteed")).await.expect(400);
    assert!(refused.to_string().contains("/affinity/domain"), "{refused}");
    set_policy(&service, "gfs-topology").await;
    let _ = tell(&service, "best", "finish").await;
    assert_eq!(task(&service, "two").await["status"], "running", "under a policy that looks, it starts");
}
