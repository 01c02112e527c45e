//! `/livez`, `/readyz` and `/metrics`, by the crate that connectors share.

use crate::cluster::watch::Shared;
use crate::headroom::PROGRAM;
use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;
use std::sync::Arc;

pub use connectors::health::listen;

/// Buckets of the time from the notice of an eviction to the eviction.
const NOTICE_SECONDS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0];

/// Installs the recorder of metrics. Once in a process: a second recorder would get nothing.
#[must_use]
pub fn install() -> Arc<PrometheusHandle> {
    let of_notices = ("headroom_kubernetes_notice_to_eviction_seconds", &NOTICE_SECONDS[..]);
    let handle = connectors::health::install(PROGRAM, env!("CARGO_PKG_VERSION"), &[of_notices]);
    crate::help::describe();
    handle
}

/// The routes. Without watches the program is ready at once.
pub fn router(metrics: Arc<PrometheusHandle>, shared: Option<Arc<Shared>>) -> Router {
    connectors::health::router(metrics, Arc::new(move || shared.as_deref().map_or(Ok(()), ready)))
}

/// Ready once all nodes and pods are known, and while they are watched: by half a view or an old one quotas would be too large.
fn ready(shared: &Shared) -> Result<(), String> {
    if !shared.synced().borrow().is_whole() {
        return Err("not all nodes and pods are known yet".to_owned());
    }
    match shared.blind_for().filter(|_| shared.is_stale()) {
        Some((resource, lasts)) => {
            Err(format!("{resource} have not been watched for {} s: the view is stale", lasts.as_secs()))
        }
        None => Ok(()),
    }
}
