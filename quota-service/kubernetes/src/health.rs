//! `/livez`, `/readyz` and `/metrics`.

use crate::cluster::watch::Shared;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::net::SocketAddr;
use std::sync::Arc;

/// Buckets of what takes seconds.
const SECONDS: [f64; 12] = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Buckets of the time from the notice of an eviction to the eviction.
const NOTICE_SECONDS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0];

/// State of the routes.
#[derive(Clone)]
pub struct Health {
    shared: Option<Arc<Shared>>,
    metrics: Arc<PrometheusHandle>,
}

/// Installs the recorder of metrics. Once in a process: a second recorder would get nothing.
#[must_use]
pub fn install() -> Arc<PrometheusHandle> {
    let of_notices = Matcher::Full("headroom_kubernetes_notice_to_eviction_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets(&SECONDS).expect("there are buckets");
    let builder = builder.set_buckets_for_metric(of_notices, &NOTICE_SECONDS).expect("there are buckets");
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    let _ = metrics::set_global_recorder(recorder);
    crate::help::describe();
    metrics::gauge!("headroom_kubernetes_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Arc::new(handle)
}

/// The routes. Without watches the program is ready at once.
pub fn router(metrics: Arc<PrometheusHandle>, shared: Option<Arc<Shared>>) -> Router {
    let live = || async { "ok\n" };
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(|State(health): State<Health>| async move { health.metrics.render() }))
        .with_state(Health { shared, metrics })
}

/// Ready once all nodes and pods are known, and while they are watched: by half a view or an old one quotas would be too large.
async fn ready(State(health): State<Health>) -> (StatusCode, String) {
    let Some(shared) = &health.shared else { return (StatusCode::OK, "ok\n".to_owned()) };
    let not_yet = |why: String| (StatusCode::SERVICE_UNAVAILABLE, why);
    if !shared.synced().borrow().is_whole() {
        return not_yet("not all nodes and pods are known yet\n".to_owned());
    }
    match shared.blind_for().filter(|_| shared.is_stale()) {
        Some((resource, lasts)) => {
            not_yet(format!("{resource} have not been watched for {} s: the view is stale\n", lasts.as_secs()))
        }
        None => (StatusCode::OK, "ok\n".to_owned()),
    }
}

/// # Errors
/// The address cannot be listened on.
pub async fn listen(address: SocketAddr) -> Result<tokio::net::TcpListener, String> {
    tokio::net::TcpListener::bind(address).await.map_err(|fault| format!("{address} cannot be listened on: {fault}"))
}
