//! A quota-service with quotas that a test sets, and reports that it reads. Its leases are those of the real one.

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{any, get, post, put};
use axum::{Json, Router};
use quota_service::connectors::{Asker, Connectors};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vocab::ClusterName;

#[derive(Default)]
struct Known {
    /// Quotas by GPU model and hours.
    quotas: BTreeMap<String, BTreeMap<String, f64>>,
    /// Forecasts of the next hours by GPU model: 0.9 quantiles.
    forecasts: BTreeMap<String, Vec<f64>>,
    states: BTreeMap<String, Value>,
    rows: Vec<Value>,
    outcomes: Vec<Value>,
}

#[derive(Clone, Default)]
struct Shared {
    known: Arc<Mutex<Known>>,
    leases: Arc<Connectors>,
}

/// The service; it ends with this value.
pub struct Stub {
    shared: Shared,
    pub url: String,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Stub {
    pub fn start() -> Self {
        let shared = Shared::default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let router = Router::new()
            .route("/v1/pools", get(pools))
            .route("/v1/pools/{id}/state", put(state))
            .route("/v1/usage", post(usage))
            .route("/v1/outcomes", post(outcomes))
            .route("/v1/connectors/lease", put(take).delete(give_back))
            .fallback(any(|| async { (StatusCode::NOT_FOUND, Json(json!({}))) }))
            .with_state(shared.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { shared, url, runtime: Some(runtime) }
    }

    /// Sets the quotas of a pool, as `hours=GPUs`.
    pub fn offer(&self, model: &str, quotas: &[(u8, f64)]) {
        let quotas = quotas.iter().map(|(hours, gpus)| (hours.to_string(), *gpus)).collect();
        self.shared.known.lock().unwrap().quotas.insert(model.to_owned(), quotas);
    }

    /// Sets the forecast of HP demand of a pool, from the next full hour on.
    pub fn forecast(&self, model: &str, upper_gpus: &[f64]) {
        self.shared.known.lock().unwrap().forecasts.insert(model.to_owned(), upper_gpus.to_vec());
    }

    pub fn state(&self, pool: &str) -> Option<Value> {
        self.shared.known.lock().unwrap().states.get(pool).cloned()
    }

    pub fn rows(&self) -> Vec<Value> {
        self.shared.known.lock().unwrap().rows.clone()
    }

    pub fn outcomes(&self) -> Vec<Value> {
        self.shared.known.lock().unwrap().outcomes.clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn forecast(upper_gpus: Option<&Vec<f64>>) -> Vec<Value> {
    let present = chrono::Utc::now().timestamp() / 3_600 * 3_600;
    let step = |(at, upper): (usize, &f64)| {
        let begins = vocab::UnixSeconds::new(present + 3_600 * (at as i64 + 1));
        json!({ "step": at + 1, "target_time": begins.to_string(), "mean_gpus": upper, "stddev_gpus": 0.0, "q90_gpus": upper })
    };
    upper_gpus.into_iter().flatten().enumerate().map(step).collect()
}

async fn pools(State(shared): State<Shared>) -> Json<Value> {
    let known = shared.known.lock().unwrap();
    let pool = |(model, quotas): (&String, &BTreeMap<String, f64>)| {
        json!({
            "id": format!("earth:{model}"), "cluster": "earth", "gpu_model": model, "organizations": 1,
            "offered_hours": quotas.keys().map(|hours| hours.parse::<u64>().unwrap()).collect::<Vec<_>>(),
            "capacity_gpus": 16.0, "latest_demand_gpus": 0.0, "quota_gpus_by_hours": quotas, "eta": 1.0,
            "computed_at": now(), "stage": "fresh", "no_quota": null, "valid_until": null, "guarantee_rate": 0.9,
            "idle_gpus": 1.0, "spot_gpus_by_hours": {}, "available_gpus_by_hours": {}, "demand_bound_gpus_by_hours": {},
            "hp_demand_gpus": null, "forecast": forecast(known.forecasts.get(model)), "outcomes_24h": {}, "tasks": null, "overrides": 0
        })
    };
    Json(json!({ "pools": known.quotas.iter().map(pool).collect::<Vec<_>>() }))
}

async fn state(
    State(shared): State<Shared>,
    axum::extract::Path(id): axum::extract::Path<String>,
    Json(body): Json<Value>,
) -> Json<Value> {
    shared.known.lock().unwrap().states.insert(id, body);
    Json(json!({}))
}

async fn usage(State(shared): State<Shared>, Json(body): Json<Value>) -> Json<Value> {
    let rows = body["rows"].as_array().unwrap().clone();
    let count = rows.len();
    shared.known.lock().unwrap().rows.extend(rows);
    Json(json!({ "inserted": count, "changed": 0, "unchanged": 0 }))
}

async fn outcomes(State(shared): State<Shared>, Json(body): Json<Value>) -> Json<Value> {
    let all = body["outcomes"].as_array().unwrap().clone();
    let results: Vec<Value> =
        all.iter().map(|one| json!({ "event_id": one["event_id"], "result": "recorded" })).collect();
    shared.known.lock().unwrap().outcomes.extend(all);
    Json(json!({ "outcomes": results }))
}

fn asked(query: &BTreeMap<String, String>, body: &Value) -> (ClusterName, String, u64, u64) {
    let number = |field: &str| body[field].as_u64().unwrap_or(0);
    let holder = body["holder"].as_str().unwrap().to_owned();
    (ClusterName::parse(&query["cluster"]).unwrap(), holder, number("lease_s"), number("holds_s"))
}

async fn take(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
    _: HeaderMap,
    Json(body): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    if body["holder"].is_null() {
        return Err(StatusCode::BAD_REQUEST);
    }
    let (cluster, holder, lease_s, holds_s) = asked(&query, &body);
    let asker = Asker { holder: &holder, lease: Duration::from_secs(lease_s), holds: Duration::from_secs(holds_s) };
    let answer = shared.leases.ask(&cluster, 1, asker, Instant::now());
    let holder = answer.holder.unwrap_or_default();
    Ok(Json(json!({ "granted": answer.granted, "holder": holder, "expires_in_s": answer.left.as_secs() })))
}

async fn give_back(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
    Json(body): Json<Value>,
) -> Json<Value> {
    let (cluster, holder, ..) = asked(&query, &body);
    shared.leases.release(&cluster, 1, &holder, Instant::now());
    Json(json!({ "granted": false, "holder": "", "expires_in_s": 0 }))
}
