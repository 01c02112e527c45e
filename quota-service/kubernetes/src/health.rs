//! `/livez`, `/readyz` and `/metrics`.

use crate::cluster::watch::Synced;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// Buckets of what takes seconds.
const SECONDS: [f64; 12] = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// State of the routes.
#[derive(Clone)]
pub struct Health {
    synced: Option<watch::Receiver<Synced>>,
    metrics: Arc<PrometheusHandle>,
}

/// Installs the recorder of metrics. Once in a process: a second recorder would get nothing.
#[must_use]
pub fn install() -> Arc<PrometheusHandle> {
    let builder = PrometheusBuilder::new().set_buckets(&SECONDS).expect("there are buckets");
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    let _ = metrics::set_global_recorder(recorder);
    metrics::gauge!("headroom_kubernetes_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Arc::new(handle)
}

/// The routes. Without watches the program is ready at once.
pub fn router(metrics: Arc<PrometheusHandle>, synced: Option<watch::Receiver<Synced>>) -> Router {
    let live = || async { "ok\n" };
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(|State(health): State<Health>| async move { health.metrics.render() }))
        .with_state(Health { synced, metrics })
}

/// Ready once all nodes and pods are known: before, quotas would be too large.
async fn ready(State(health): State<Health>) -> (StatusCode, &'static str) {
    match health.synced.as_ref().map(|synced| *synced.borrow()) {
        None => (StatusCode::OK, "ok\n"),
        Some(synced) if synced.is_whole() => (StatusCode::OK, "ok\n"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "not all nodes and pods are known yet\n"),
    }
}

/// # Errors
/// The address cannot be listened on.
pub async fn listen(address: SocketAddr) -> Result<tokio::net::TcpListener, String> {
    tokio::net::TcpListener::bind(address).await.map_err(|fault| format!("{address} cannot be listened on: {fault}"))
}
