//! The service on both databases, with a clock that the test sets.

mod access;
mod backups;
mod calendar;
mod calibration;
mod contract;
mod doctor;
mod drift;
mod engine;
mod faults;
mod feed;
mod gone;
mod harness;
mod kept;
mod load;
mod look;
mod observed;
mod operations;
mod origin;
mod overrides;
mod quota;
mod reported_jobs;
mod restart;
mod restores;
mod retrain;
mod silence;
mod statement;
mod tiers;
mod tokens;
mod transit;
mod zeros;

use axum::body::Body;
use datasets::synthetic::SmallCluster;
use forecaster::ModelKind;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::{Cluster, Store};
use tests::fixture::{at, cluster, pool};
use tests::{TestDatabase, TestService, promote};
use vocab::{CapacityRow, GpuModel, HourStart, MilliGpus, UnixSeconds};

const POOL: &str = "demo:A100";
const DAYS: u32 = 14;

fn first_hour() -> HourStart {
    HourStart::from_unix_s(1_709_222_400).unwrap()
}

/// The first instant after the synthetic usage.
fn end() -> UnixSeconds {
    first_hour().plus_hours(i64::from(DAYS) * 24).instant()
}

/// The next so many server-sent events of a body, as pairs of id and data.
async fn stream_events(body: &mut Body, count: usize) -> Vec<(String, Value)> {
    let (mut text, mut found) = (String::new(), Vec::new());
    while found.len() < count {
        let frame = tokio::time::timeout(Duration::from_secs(10), body.frame()).await.expect("an event comes");
        text += std::str::from_utf8(&frame.unwrap().unwrap().into_data().unwrap()).unwrap();
        let event = |block: &str| {
            let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            Some((line("id: ")?, serde_json::from_str(&line("data: ")?).ok()?))
        };
        found = text.split_inclusive("\n\n").filter(|block| block.ends_with("\n\n")).filter_map(event).collect();
    }
    found
}

/// Synthetic usage of three organizations and a capacity; no run.
async fn with_usage(database: &TestDatabase, capacity_gpus: u32) -> Arc<dyn Store> {
    let store = database.store().await;
    let calendar = datasets::Calendar::WEEKDAYS.to_owned();
    let demo = Cluster { name: cluster("demo"), time_zone: "Asia/Shanghai".to_owned(), calendar };
    store.put_cluster(&demo).await.unwrap();
    let made_up = SmallCluster {
        cluster: cluster("demo"),
        gpu_model: GpuModel::parse("A100").unwrap(),
        start: first_hour(),
        days: DAYS,
        organizations: 3,
        seed: 7,
    };
    let capacity = CapacityRow { pool: pool(POOL), from: first_hour(), capacity: MilliGpus::from_gpus(capacity_gpus) };
    store.append(&made_up.usage(), &[capacity]).await.unwrap();
    store
}

/// A service with a promoted model and renewed quotas, a minute after the newest usage.
async fn serving(database: &TestDatabase, capacity_gpus: u32) -> TestService {
    let store = with_usage(database, capacity_gpus).await;
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    let service = TestService::start(store, end().plus_s(60)).await;
    service.renew().await;
    service
}

fn quota_path(hours: u8) -> String {
    format!("/quota?cluster=demo&gpu_model=A100&hours={hours}")
}

async fn quota(service: &TestService, hours: u8) -> Value {
    service.get(&quota_path(hours)).await.expect(200)
}

/// A reported state at `now`.
fn state(capacity: u32, idle: u32, spot: &Value, now: UnixSeconds) -> Value {
    json!({
        "capacity_gpus": capacity,
        "idle_gpus": idle,
        "spot_gpus_by_guarantee_hours": spot,
        "as_of": now.to_string(),
    })
}

fn codes(answer: &Value) -> Vec<String> {
    answer["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap().to_owned()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Outcomes `first..first + count` of a kind, ended at `ended_at`.
fn outcomes(first: u32, count: u32, kind: &str, ended_at: i64) -> Value {
    let one = |number: u32| {
        json!({
            "event_id": format!("event-{number}"),
            "cluster": "demo",
            "gpu_model": "A100",
            "guarantee_hours": 1,
            "kind": kind,
            "ended_at": at(ended_at).to_string(),
        })
    };
    json!({ "outcomes": (first..first + count).map(one).collect::<Vec<_>>() })
}
