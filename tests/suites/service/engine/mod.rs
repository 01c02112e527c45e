//! Tasks over HTTP: decided, written, announced.

mod clocks;
mod downtime;
mod elastic;
mod eviction;
mod faults;
mod hangups;
mod held_back;
mod killed;
mod lifecycle;
mod listed;
mod loop_closes;
mod one_cycle;
mod placed_by;
mod poison;
mod replicas;
mod reservations;
mod same;
mod scores;
mod shadow;
mod shares;
pub(super) mod starts;
mod timing;
mod topology;

use super::*;
use axum::http::Method;
use tests::Answer;

/// The pool of every test, as queries name it.
const OF_POOL: &str = "cluster=demo&gpu_model=A100";

/// A body that a route of tasks or reservations would take.
pub(super) fn body_of(path: &str) -> Option<Value> {
    match path {
        "/v1/tasks/eta" | "/v1/tasks/prices" => Some(starts::asked(path)),
        "/v1/reservations" => Some(reservations::asked(1.0, end(), end().plus_s(7_200))),
        _ => None,
    }
}

/// A service with quotas, and so many nodes of eight GPUs.
pub(super) async fn placing(database: &TestDatabase, nodes: u32) -> TestService {
    let service = serving(database, 500).await;
    for number in 0..nodes {
        put_node(&service, &format!("n{number}"), false).await;
    }
    service.renew().await;
    service
}

pub(super) async fn put_node(service: &TestService, id: &str, drain: bool) {
    let body = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8, "drain": drain });
    let _ = service.put(&format!("/v1/nodes/{id}"), &body).await.expect(200);
}

pub(super) fn hp(id: &str, gpus: f64, pods: u32) -> Value {
    json!({
        "cluster": "demo", "gpu_model": "A100", "id": id, "organization": "org-000", "class": "hp",
        "gpus_per_pod": gpus, "pods": pods,
    })
}

pub(super) fn spot(id: &str, gpus: f64, pods: u32, guarantee_hours: Option<u64>) -> Value {
    let mut body = hp(id, gpus, pods);
    body["class"] = "spot".into();
    if let Some(hours) = guarantee_hours {
        body["guarantee_hours"] = hours.into();
    }
    body
}

pub(super) async fn submit(service: &TestService, body: &Value) -> Value {
    service.post("/v1/tasks", body).await.expect(200)
}

async fn task(service: &TestService, id: &str) -> Value {
    service.get(&format!("/v1/tasks/{id}?{OF_POOL}")).await.expect(200)
}

pub(super) async fn tell(service: &TestService, id: &str, what: &str) -> Answer {
    service.send(Method::POST, &format!("/v1/tasks/{id}/{what}?{OF_POOL}"), &[], None).await
}

async fn delete(service: &TestService, id: &str) -> Answer {
    service.send(Method::DELETE, &format!("/v1/tasks/{id}?{OF_POOL}"), &[], None).await
}

async fn snapshot(service: &TestService) -> Value {
    service.get("/v1/pools/demo:A100/snapshot").await.expect(200)
}

/// The names of the nodes of a task's places, one for each pod.
fn nodes(task: &Value) -> Vec<&str> {
    let places = task["detail"]["run"]["places"].as_array();
    places.into_iter().flatten().map(|place| place["node"].as_str().unwrap()).collect()
}
