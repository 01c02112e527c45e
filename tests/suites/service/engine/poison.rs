//! Orders that no database holds: each is refused alone, and those beside it are done.

use super::*;
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::Request;
use quota_service::engine::TaskCall;
use tests::on_both_databases;
use vocab::{Organization, TaskClass, TaskId};

on_both_databases![
    numbers_that_no_database_holds_are_refused_where_they_come_in,
    one_bad_order_of_a_turn_is_refused_alone,
];

async fn numbers_that_no_database_holds_are_refused_where_they_come_in(database: TestDatabase) {
    let service = placing(&database, 1).await;
    let most = [i64::MAX as u64 + 1, u64::MAX, i64::MAX as u64, 1_000_000_001];
    for (field, value) in
        most.into_iter().flat_map(|value| [("cpu_milli", value), ("memory_mib", value.saturating_mul(2))])
    {
        let mut task = hp("t", 1.0, 1);
        task[field] = value.into();
        let refused = service.post("/v1/tasks", &task).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], format!("/{field}"), "{value}: {refused}");
        let mut node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
        node[field] = value.into();
        let refused = service.put("/v1/nodes/n1", &node).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], format!("/{field}"), "{value}: {refused}");
    }
    // Pods of a thousandth of a GPU take little of the pool's, but each takes a place.
    for (gpus_per_pod, pods, pointer) in [(0.001, 16_385, "/pods"), (0.0, 1, "/gpus_per_pod")] {
        let refused = service.post("/v1/tasks", &hp("t", gpus_per_pod, pods)).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused}");
    }
    for speeds in [json!([1e308, 1e308]), json!([1, 1e9])] {
        let mut task = spot("t", 1.0, 2, None);
        task["elastic"] = json!({ "min_pods": 1, "speeds": speeds });
        let refused = service.post("/v1/tasks", &task).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], "/elastic/speeds", "{refused}");
    }
    let state =
        json!({ "capacity_gpus": 8, "idle_gpus": 8, "longest_quota_wait_s": u64::MAX, "as_of": end().to_string() });
    let refused = service.put("/v1/pools/demo:A100/state", &state).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/longest_quota_wait_s", "{refused}");
    for field in ["min_outcomes", "max_quota_wait_s"] {
        let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
        settings[field] = u64::MAX.into();
        let refused = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], format!("/{field}"), "{refused}");
    }
    let mut largest = hp("t", 1.0, 1);
    largest["cpu_milli"] = 1_000_000_000.into();
    assert_eq!(submit(&service, &largest).await["status"], "running", "the largest is an order as others are");
    let last = [("last-event-id", "9223372036854775808.0")];
    let events = service.send(Method::GET, &format!("/v1/events?{OF_POOL}"), &last, None).await;
    assert_eq!(events.status, 400, "{events:?}");
}

/// As a client could ask for it, were it not refused at entry.
fn request(id: &str, cpu_milli: u64) -> Request {
    let pod = PodRequest::new(GpuRequest::Whole(1), cpu_milli, 0);
    Request {
        gang: Gang { task: TaskId::parse(id).unwrap(), class: TaskClass::Hp, pod, pods: 1 },
        organization: Organization::parse("org-000").unwrap(),
        submitted: end(),
        hours: None,
        elastic: None,
    }
}

async fn one_bad_order_of_a_turn_is_refused_alone(database: TestDatabase) {
    let service = placing(&database, 8).await;
    let _ = submit(&service, &hp("first", 1.0, 1)).await;
    let bad = [7, 20, 21];
    let order = |number: usize| {
        let request = request(&format!("t{number}"), if bad.contains(&number) { u64::MAX } else { 0 });
        let service = service.service.clone();
        tokio::spawn(async move { service.engine.ask(&pool(POOL), TaskCall::Submit(request)).await })
    };
    let orders: Vec<_> = (0..40).map(order).collect();
    for (number, order) in orders.into_iter().enumerate() {
        match order.await.unwrap() {
            Ok(task) => assert!(!bad.contains(&number), "{task:?}"),
            Err(fault) => {
                let fault = fault.to_string();
                assert!(bad.contains(&number), "order {number}: {fault}");
                assert!(fault.contains("CPUs of a pod 18446744073709551615 is out of the range"), "{fault}");
            }
        }
    }
    assert_eq!(database.numbers("SELECT count(*) FROM tasks").await, [38], "one before, and all but three");
    let state = snapshot(&service).await;
    let restarted = TestService::start(database.store().await, service.service.core.clock.now()).await;
    // But for limits: a service that has started promises nothing before its first renewal.
    let [mut read, mut state] = [snapshot(&restarted).await, state];
    for limit in read["limits"].as_array().unwrap() {
        assert_eq!(limit["quota_milli"], 0, "{limit}");
    }
    for key in ["limits", "limits_demand_milli"] {
        assert!([&mut read, &mut state].map(|of| of.as_object_mut().unwrap().remove(key).is_some()) == [true; 2]);
    }
    assert_eq!(read, state, "what is in memory is what is stored");
}
