//! Reports for people: what-if, measurements, promises, allocations.

use super::*;
use tests::on_both_databases;

on_both_databases![
    a_what_if_moves_the_quota_as_a_plan_does,
    impossible_queries_are_refused,
    measured_demand_has_gaps_where_nothing_was_reported,
    promises_are_counted_by_day_and_hours_and_the_broken_ones_listed,
    waiting_tasks_are_listed_with_reasons_and_nodes_with_held_gpus,
    runs_are_listed_with_their_scores_and_promoters,
];

const OF_POOL: &str = "cluster=demo&gpu_model=A100";

async fn what_if(service: &TestService, what: &str) -> Value {
    service.get(&format!("/v1/quota/what-if?{OF_POOL}&hours=4{what}")).await.expect(200)
}

async fn a_what_if_moves_the_quota_as_a_plan_does(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let now = quota(&service, 4).await;
    let same = what_if(&service, "").await;
    assert_eq!(same["now"], same["then"], "nothing changes where nothing is changed");
    for field in ["quota_gpus", "demand_bound_gpus", "capacity_gpus", "idle_gpus", "eta", "guarantee_rate"] {
        assert_eq!(same["now"][field], now[field], "{field}");
    }
    let less = what_if(&service, "&capacity_change_gpus=-100").await;
    assert_eq!(less["then"]["capacity_gpus"], 400.0);
    assert_eq!(number(&less["then"]["idle_gpus"]), number(&now["idle_gpus"]) - 100.0);
    // The same, for real.
    let known = with_capacity(&service, 400).await;
    assert_eq!(
        (&less["then"]["quota_gpus"], &less["then"]["inventory_gpus"]),
        (&known["quota_gpus"], &known["inventory_gpus"])
    );
    let other = tests::fresh_database(database.backend).await;
    let service = serving(&other, 500).await;
    let surer = what_if(&service, "&guarantee_rate=0.99").await;
    assert!(number(&surer["then"]["demand_bound_gpus"]) > number(&surer["now"]["demand_bound_gpus"]), "{surer}");
    let mut settings = service.get("/v1/pools/demo:A100/settings").await.expect(200);
    settings["guarantee_rate"] = 0.99.into();
    let _ = service.put("/v1/pools/demo:A100/settings", &settings).await.expect(200);
    service.renew().await;
    assert_eq!(quota(&service, 4).await["demand_bound_gpus"], surer["then"]["demand_bound_gpus"]);
    let halved = what_if(&service, "&eta=0.5&demand_change_gpus=10").await;
    assert_eq!(halved["then"]["eta"], 0.5);
    assert_eq!(number(&halved["then"]["demand_bound_gpus"]), number(&halved["now"]["demand_bound_gpus"]) + 10.0);
    assert!(halved["steps"].as_array().unwrap().iter().any(|step| step.as_str().unwrap().starts_with("η · f = 0.5 ×")));
}

/// The quota of 4 h with another capacity.
async fn with_capacity(service: &TestService, gpus: u32) -> Value {
    let hour = service.service.core.clock.now().hour().unwrap();
    let row = CapacityRow { pool: pool(POOL), from: hour, capacity: MilliGpus::from_gpus(gpus) };
    service.service.core.store.append(&[], &[row]).await.unwrap();
    service.renew().await;
    quota(service, 4).await
}

async fn impossible_queries_are_refused(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for (what, named) in [
        ("guarantee_rate=1", "guarantee_rate"),
        ("guarantee_rate=x", "guarantee_rate"),
        ("eta=-1", "eta"),
        ("capacity_change_gpus=1e300", "capacity_change_gpus"),
        ("capacity_change_gpus=NaN", "capacity_change_gpus"),
        ("capacity_change=5", "capacity_change"),
    ] {
        let refused = service.get(&format!("/v1/quota/what-if?{OF_POOL}&hours=4&{what}")).await.expect(400);
        assert!(refused["detail"].as_str().unwrap().contains(named), "{what}: {refused}");
    }
    for path in [
        format!("/v1/demand?{OF_POOL}&hours=0"),
        format!("/v1/promises?{OF_POOL}&days=401"),
        format!("/v1/tasks?{OF_POOL}&status=finished"),
        format!("/v1/tasks?{OF_POOL}&status=waiting&limit=1001"),
        "/v1/pools/demo:A100/nodes?hours=169".to_owned(),
    ] {
        assert_eq!(service.get(&path).await.status, 400, "{path}");
    }
    for path in [
        "/v1/quota/what-if?cluster=demo&gpu_model=A100&hours=3".to_owned(),
        "/v1/demand?cluster=mars&gpu_model=A100".to_owned(),
        "/v1/promises?cluster=mars&gpu_model=A100".to_owned(),
        "/v1/runs?cluster=mars".to_owned(),
        "/v1/pools/demo:A100/nodes".to_owned(),
        format!("/v1/tasks?{OF_POOL}&status=waiting"),
    ] {
        assert_eq!(service.get(&path).await.status, 404, "{path}: there are no nodes, hours or clusters of this name");
    }
}

async fn measured_demand_has_gaps_where_nothing_was_reported(database: TestDatabase) {
    let service = serving(&database, 500).await;
    service.pass_s(2 * 3_600);
    let demand = service.get(&format!("/v1/demand?{OF_POOL}&hours=5")).await.expect(200);
    let pool = demand["pool"].as_array().unwrap();
    assert_eq!(pool.len(), 5);
    assert!(pool[..3].iter().all(Value::is_number) && pool[3..].iter().all(Value::is_null), "{demand}");
    let organizations = demand["organizations"].as_array().unwrap();
    assert_eq!(organizations.len(), 3);
    let sum: f64 = organizations.iter().map(|one| number(&one["demand_gpus"][0])).sum();
    assert!((sum - number(&pool[0])).abs() < 1e-9, "the synthetic pool has no peak of its own");
    let first = end().plus_s(-3 * 3_600);
    assert_eq!(demand["from"], first.to_string());
}

async fn promises_are_counted_by_day_and_hours_and_the_broken_ones_listed(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let now = end().get();
    for (first, count, kind, ended_at) in [
        (0, 7, "kept", now - 60),
        (10, 2, "broken", now - 86_400),
        (20, 1, "drain", now - 120),
        (30, 4, "kept", now - 5 * 86_400),
    ] {
        let _ = service.post("/v1/outcomes", &outcomes(first, count, kind, ended_at)).await.expect(200);
    }
    let report = service.get(&format!("/v1/promises?{OF_POOL}&days=3")).await.expect(200);
    assert_eq!((&report["sold"], &report["kept"], &report["broken"]), (&json!(10), &json!(7), &json!(2)), "{report}");
    assert_eq!(number(&report["guarantee_eviction_rate"]), 2.0 / 9.0);
    assert_eq!((&report["target_eviction_rate"], &report["open"]), (&json!(0.1), &json!(null)));
    let hour = &report["by_hours"][0];
    assert_eq!((&hour["hours"], &hour["kept"], &hour["broken"]), (&json!(1), &json!(7), &json!(2)), "{report}");
    // Ten periods were there to be broken, and two of them were; those that say nothing of GPUs have one.
    assert!((number(&hour["kept_rate"]) - 0.8).abs() < 1e-9 && hour["worst_day"].is_null(), "{hour}");
    let days = report["days"].as_array().unwrap();
    let counts: Vec<_> = days
        .iter()
        .map(|day| (day["kept"].as_u64().unwrap(), day["broken"].as_u64().unwrap(), day["other"].as_u64().unwrap()))
        .collect();
    // The synthetic usage ends at midnight in Shanghai, 16:00 UTC.
    assert_eq!(counts, [(0, 0, 0), (0, 2, 0), (7, 0, 1)], "{report}");
    assert_eq!(report["broken_ones"].as_array().unwrap().len(), 2);
    assert_eq!(report["broken_ones"][0]["why"], "HP demand evicted it inside its guarantee");
    let long = service.get(&format!("/v1/promises?{OF_POOL}")).await.expect(200);
    assert_eq!((long["kept"].as_u64(), long["days"].as_array().unwrap().len()), (Some(11), 28));
    let none = service.get(&format!("/v1/promises?{OF_POOL}&days=1")).await.expect(200);
    assert_eq!(none["broken"], 0);
    service.renew().await;
    let pool = &service.get("/v1/pools").await.expect(200)["pools"][0];
    assert_eq!((&pool["outcomes_24h"]["kept"], &pool["outcomes_24h"]["drain"]), (&json!(7), &json!(1)), "{pool}");
}

fn task(id: &str, class: &str, gpus: f64, pods: u32) -> Value {
    json!({
        "cluster": "demo", "gpu_model": "A100", "id": id, "organization": "org-000", "class": class,
        "gpus_per_pod": gpus, "pods": pods,
    })
}

async fn waiting_tasks_are_listed_with_reasons_and_nodes_with_held_gpus(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for node in ["n0", "n1"] {
        let body = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
        let _ = service.put(&format!("/v1/nodes/{node}"), &body).await.expect(200);
    }
    service.renew().await;
    for body in [task("a", "hp", 8.0, 1), task("b", "spot", 2.0, 1), task("c", "hp", 8.0, 2), task("d", "hp", 4.0, 3)] {
        let _ = service.post("/v1/tasks", &body).await.expect(200);
    }
    let waiting = service.get(&format!("/v1/tasks?{OF_POOL}&status=waiting&limit=1")).await.expect(200);
    assert_eq!((waiting["total"].as_u64(), waiting["tasks"][0]["id"].as_str()), (Some(2), Some("c")), "{waiting}");
    assert!(waiting["tasks"][0]["detail"]["waits"]["code"].is_string(), "{waiting}");
    let running = service.get(&format!("/v1/tasks?{OF_POOL}&status=running")).await.expect(200);
    let names: Vec<_> = running["tasks"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"], "{running}");
    service.renew().await;
    let views = service.get("/v1/pools/demo:A100/nodes?hours=3").await.expect(200);
    let nodes = views["nodes"].as_array().unwrap();
    assert_eq!((nodes.len(), views["hours"].as_array().unwrap().len()), (2, 3));
    let held: f64 = nodes.iter().map(|node| number(&node["hp_gpus"])).sum();
    let spot: f64 = nodes.iter().map(|node| number(&node["spot_gpus"])).sum();
    let idle: f64 = nodes.iter().map(|node| number(&node["idle_gpus"])).sum();
    assert_eq!((held, spot, idle), (8.0, 2.0, 6.0), "{views}");
    for node in nodes {
        let peaks = node["peak_gpus"].as_array().unwrap();
        assert!(peaks[0].is_null() && peaks[1].is_null(), "hours before it was there: {node}");
        assert_eq!(number(&peaks[2]), number(&node["hp_gpus"]) + number(&node["spot_gpus"]));
    }
    let _ = service.post(&format!("/v1/tasks/a/finish?{OF_POOL}"), &json!(null)).await;
    service.renew().await;
    let later = service.get("/v1/pools/demo:A100/nodes?hours=1").await.expect(200);
    let peak = |views: &Value| {
        views["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| number(one["peak_gpus"].as_array().unwrap().last().unwrap()))
            .sum::<f64>()
    };
    assert!(peak(&later) >= 10.0, "the hour keeps its most: {later}");
    let pool = &service.get("/v1/pools").await.expect(200)["pools"][0];
    assert_eq!(pool["tasks"]["waiting"].as_u64().map(|count| count <= 2), Some(true), "{pool}");
    assert!(pool["hp_demand_gpus"].is_number(), "{pool}");
}

async fn runs_are_listed_with_their_scores_and_promoters(database: TestDatabase) {
    let service = serving(&database, 500).await;
    let store = service.service.core.store.clone();
    promote(store.as_ref(), &cluster("demo"), ModelKind::PeakWeek, end().hour().unwrap()).await;
    let list = service.get("/v1/runs?cluster=demo").await.expect(200);
    let runs = list["runs"].as_array().unwrap();
    let answer: Vec<_> =
        runs.iter().map(|run| (run["model"].as_str().unwrap(), run["promoted"].as_bool().unwrap())).collect();
    assert_eq!(answer, [("peak-week", true), ("last-value", false)], "newest first");
    assert!(runs[0]["scores"].is_object() && runs[0]["parameters"].is_object());
    assert_eq!(list["promotions"].as_array().unwrap().len(), 2);
    assert_eq!(list["promotions"][0]["promoted_by"], "test");
}
