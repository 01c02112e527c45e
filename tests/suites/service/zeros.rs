//! Zero as it is answered: no number of a pool without demand, or without organizations, has a minus.

use super::*;
use axum::http::Method;
use tests::on_both_databases;
use vocab::{Organization, SeriesId, UsageRow};

on_both_databases![no_answer_about_a_pool_without_demand_has_a_zero_with_a_minus];

/// Parameters by their name in the document.
fn parameter(name: &str, gpu_model: &str) -> String {
    match name {
        "cluster" => "demo".to_owned(),
        "gpu_model" => gpu_model.to_owned(),
        "hours" => "4".to_owned(),
        "month" => end().to_string()[..7].to_owned(),
        "capacity_change_gpus" | "demand_change_gpus" => "-0.0".to_owned(),
        "status" => "waiting".to_owned(),
        other => panic!("the test has no value for the required parameter {other}: give it one"),
    }
}

/// The paths that are read, with their required parameters, of one pool. Streams have no end and are left out.
fn reads(document: &Value, gpu_model: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let Some(read) = operations.get("get") else { continue };
        if read["responses"]["200"]["content"].get("text/event-stream").is_some() || path.contains("stream") {
            continue;
        }
        let id = if path.contains("/pools/") { format!("demo:{gpu_model}") } else { "t0".to_owned() };
        let asked = |one: &Value| one["in"] == "query" && (one["required"] == true || one["name"] == "gpu_model");
        let parameters = read["parameters"].as_array().into_iter().flatten();
        let mut named: Vec<&str> = parameters.filter(|one| asked(one)).filter_map(|one| one["name"].as_str()).collect();
        if named.contains(&"gpu_model") && !named.contains(&"cluster") {
            named.push("cluster");
        }
        if path.ends_with("what-if") {
            named.extend(["capacity_change_gpus", "demand_change_gpus"]);
        }
        let query: Vec<String> = named.iter().map(|name| format!("{name}={}", parameter(name, gpu_model))).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        all.push(format!("{}{mark}{}", path.replace("{id}", &id), query.join("&")));
    }
    all
}

/// The places of zeros with a minus.
fn minus_zeros(value: &Value, place: &str) -> Vec<String> {
    match value {
        Value::Number(number) => {
            let is_minus = number.as_f64().is_some_and(|number| number == 0.0 && number.is_sign_negative());
            if is_minus { vec![place.to_owned()] } else { Vec::new() }
        }
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(index, item)| minus_zeros(item, &format!("{place}/{index}"))).collect()
        }
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, field)| minus_zeros(field, &format!("{place}/{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

/// A pool without demand, one whose organizations have left, one whose peaks alone are measured, and one with nodes alone.
async fn without_demand(database: &TestDatabase) -> TestService {
    let store = with_usage(database, 500).await;
    let hours = i64::from(DAYS) * 24;
    let row = |model: &str, organization: &str, hour: i64, gpus: u32| UsageRow {
        series: SeriesId {
            pool: pool(&format!("demo:{model}")),
            organization: Organization::parse(organization).unwrap(),
        },
        hour: first_hour().plus_hours(hour),
        demand: MilliGpus::from_gpus(gpus),
        at_end: None,
    };
    let zero = (0..hours).flat_map(|hour| ["anna", "bert"].map(|name| row("ZERO", name, hour, 0)));
    let left = (0..hours / 2).map(|hour| row("LEFT", "anna", hour, 4));
    let peak = (0..hours).map(|hour| row("PEAK", "*", hour, 0));
    let capacity = ["ZERO", "LEFT", "PEAK"].map(|model| CapacityRow {
        pool: pool(&format!("demo:{model}")),
        from: first_hour(),
        capacity: MilliGpus::from_gpus(8),
    });
    store.append(&zero.chain(left).chain(peak).collect::<Vec<_>>(), &capacity).await.unwrap();
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    let service = TestService::start(store, end().plus_s(60)).await;
    let node = json!({ "cluster": "demo", "gpu_model": "NODES", "gpus": 8 });
    let _ = service.put("/v1/nodes/n0", &node).await.expect(200);
    service.renew().await;
    service
}

async fn no_answer_about_a_pool_without_demand_has_a_zero_with_a_minus(database: TestDatabase) {
    let service = without_demand(&database).await;
    let document = service.get("/openapi.json").await.expect(200);
    let (mut found, mut answered) = (Vec::new(), std::collections::BTreeSet::new());
    for model in ["ZERO", "LEFT", "PEAK", "NODES", "A100"] {
        for path in reads(&document, model) {
            let answer = service.send(Method::GET, &path, &[], None).await;
            assert!(answer.status != 400, "{path}: {}", answer.body);
            if answer.status == 200 {
                answered.insert(path.split(['?', ':']).next().unwrap_or_default().to_owned());
            }
            found.extend(minus_zeros(&answer.body, &path));
        }
    }
    assert!(answered.len() >= 20, "{}: {answered:?}", answered.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}
