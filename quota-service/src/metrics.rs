//! What Prometheus may scrape. Names carry units; labels are pools, hours, routes and statuses, nothing that grows with
//! the clients.

use crate::published::PublishedPool;
use metrics::{Counter, counter, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use placement::staleness::stage;
use std::time::Duration;
use vocab::UnixSeconds;

/// Upper ends of the buckets of a renewal, in seconds.
const RENEWAL_BUCKETS_S: [f64; 8] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Installs the recorder of this process; a second one is refused, and its numbers are not seen.
#[must_use]
pub fn install() -> PrometheusHandle {
    let recorder: PrometheusRecorder = PrometheusBuilder::new()
        .set_buckets(&RENEWAL_BUCKETS_S)
        .map_or_else(|_| PrometheusBuilder::new().build_recorder(), PrometheusBuilder::build_recorder);
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("metrics are recorded elsewhere already");
    }
    handle
}

/// The numbers of pools as they are answered now: asked for at each scrape, since an answer ages by itself.
pub fn describe<'a>(pools: impl Iterator<Item = &'a PublishedPool>, now: UnixSeconds) {
    for pool in pools {
        let names = || [("cluster", pool.id.cluster.to_string()), ("gpu_model", pool.id.gpu_model.to_string())];
        for answer in &pool.answers {
            let [cluster, gpu_model] = names();
            let labels = [cluster, gpu_model, ("hours", answer.hours().to_string())];
            gauge!("headroom_quota_gpus", &labels).set(answer.quota(now).as_gpus());
            gauge!("headroom_demand_bound_gpus", &labels).set(answer.fresh.demand_bound_gpus);
            gauge!("headroom_inventory_gpus", &labels).set(answer.fresh.inventory_gpus);
        }
        if let Some(first) = pool.answers.first() {
            let labels = names();
            gauge!("headroom_eta", &labels).set(first.fresh.eta);
            gauge!("headroom_capacity_gpus", &labels).set(first.fresh.capacity_gpus);
            gauge!("headroom_quota_computed_at_seconds", &labels).set(first.computed_at.get() as f64);
            // 0 fresh, 1 stale, 2 conservative.
            gauge!("headroom_quota_stage", &labels).set(f64::from(stage(first.computed_at, now).0 as u8));
        }
        gauge!("headroom_pool_without_new_quota", &names()).set(f64::from(u8::from(pool.problem.is_some())));
    }
}

/// A renewal that went through all clusters.
pub fn refreshed(took: Duration) {
    histogram!("headroom_refresh_seconds").record(took.as_secs_f64());
}

/// A renewal that failed for a cluster, or for all.
pub fn refresh_failed() {
    counter!("headroom_refresh_failures_total").increment(1);
}

/// Counts answers by route and status. Those of `/quota` have counters at hand: looking one up by its labels would cost
/// a good part of such an answer.
#[derive(Clone)]
pub struct Answers {
    quota_ok: Counter,
    quota_unchanged: Counter,
}

const QUOTA_ROUTE: &str = "/quota";

impl Answers {
    #[must_use]
    pub fn new() -> Self {
        Self { quota_ok: answers(QUOTA_ROUTE, 200), quota_unchanged: answers(QUOTA_ROUTE, 304) }
    }

    pub fn count(&self, route: &str, status: u16) {
        match (route, status) {
            (QUOTA_ROUTE, 200) => self.quota_ok.increment(1),
            (QUOTA_ROUTE, 304) => self.quota_unchanged.increment(1),
            _ => answers(route, status).increment(1),
        }
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self::new()
    }
}

fn answers(route: &str, status: u16) -> Counter {
    counter!("headroom_http_answers_total", "route" => route.to_owned(), "status" => status.to_string())
}
