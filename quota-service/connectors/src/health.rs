//! `/livez`, `/readyz` and `/metrics`.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::net::SocketAddr;
use std::sync::Arc;

/// Buckets of what takes seconds.
const SECONDS: [f64; 12] = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Whether a program is ready, or why it is not.
pub type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// State of the routes.
#[derive(Clone)]
struct Health {
    ready: Ready,
    metrics: Arc<PrometheusHandle>,
}

/// Installs the recorder of metrics, and the build of a program. `buckets` are of metrics that take longer than others. Once in a
/// process: a second recorder would get nothing.
///
/// # Panics
/// A list of buckets is empty.
#[must_use]
pub fn install(program: &'static str, version: &'static str, buckets: &[(&str, &[f64])]) -> Arc<PrometheusHandle> {
    let mut builder = PrometheusBuilder::new().set_buckets(&SECONDS).expect("there are buckets");
    for (metric, buckets) in buckets {
        let of = Matcher::Full((*metric).to_owned());
        builder = builder.set_buckets_for_metric(of, buckets).expect("there are buckets");
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    let _ = metrics::set_global_recorder(recorder);
    metrics::gauge!(format!("{program}_build_info"), "version" => version).set(1.0);
    Arc::new(handle)
}

/// The routes.
pub fn router(metrics: Arc<PrometheusHandle>, ready: Ready) -> Router {
    let live = || async { "ok\n" };
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(is_ready))
        .route("/metrics", get(|State(health): State<Health>| async move { health.metrics.render() }))
        .with_state(Health { ready, metrics })
}

async fn is_ready(State(health): State<Health>) -> (StatusCode, String) {
    match (health.ready)() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// # Errors
/// The address cannot be listened on.
pub async fn listen(address: SocketAddr) -> Result<tokio::net::TcpListener, String> {
    tokio::net::TcpListener::bind(address).await.map_err(|fault| format!("{address} cannot be listened on: {fault}"))
}
