//! What Prometheus may scrape. Names carry units; labels are pools, hours, routes and statuses, nothing that grows with
//! the clients.

use crate::drift::{Drifts, PoolReport};
use crate::published::PublishedPool;
use crate::retrain::Ended;
use metrics::{Counter, counter, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use placement::pool::Pool;
use placement::staleness::stage;
use std::time::Duration;
use vocab::{PoolId, UnixSeconds};

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

/// How the nodes of a pool stand whose tasks are placed here. Where it is not known what its GPUs draw there are no watts.
pub fn describe_nodes(id: &PoolId, pool: &Pool) {
    let names = || [("cluster", id.cluster.to_string()), ("gpu_model", id.gpu_model.to_string())];
    gauge!("headroom_fragmentation_gpus", &names()).set(pool.fragmentation_milli() as f64 / 1_000.0);
    if let Some(watts) = pool.watts() {
        gauge!("headroom_power_watts", &names()).set(watts as f64);
    }
}

/// How the forecasts of the last seven days fared, as of the last hour that was scored.
pub fn describe_drift(drifts: &Drifts) {
    for report in drifts.values().flat_map(|cluster| cluster.pools.values()) {
        describe_pool_drift(report);
    }
}

fn describe_pool_drift(report: &PoolReport) {
    let drift = &report.drift;
    let names = || [("cluster", drift.pool.cluster.to_string()), ("gpu_model", drift.pool.gpu_model.to_string())];
    let level = || {
        let [cluster, gpu_model] = names();
        [cluster, gpu_model, ("level", "0.9".to_owned())]
    };
    // Prometheus knows no value that is not there: NaN is what it has for one.
    let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
    gauge!("headroom_forecast_mae_gpus", &names()).set(known(drift.all.mae_gpus()));
    gauge!("headroom_forecast_last_value_mae_gpus", &names()).set(known(drift.all.last_value_mae_gpus()));
    gauge!("headroom_forecast_coverage_ratio", &level()).set(known(drift.all.coverage()));
    gauge!("headroom_bound_coverage_ratio", &names()).set(known(drift.bound.coverage()));
    gauge!("headroom_forecast_scored_hours", &names()).set(f64::from(drift.all.hours));
    gauge!("headroom_forecast_unmeasured_hours", &names()).set(f64::from(drift.all.unmeasured));
    gauge!("headroom_forecast_drifts", &names()).set(f64::from(u8::from(report.is_outside())));
}

/// The forecasts of an issue hour that were scored.
pub fn scored(cluster: &str) {
    counter!("headroom_issue_hours_scored_total", "cluster" => cluster.to_owned()).increment(1);
}

/// A ledger that could not be kept.
pub fn ledger_failed() {
    counter!("headroom_ledger_failures_total").increment(1);
}

/// A training that was started.
pub fn retrain_began(cluster: &str) {
    gauge!("headroom_retrain_running", "cluster" => cluster.to_owned()).set(1.0);
}

/// A training that has ended by itself, or took too long. `code` is −1 where it has no exit code.
pub fn retrain_ended(cluster: &str, ended: Ended, code: i32, now: UnixSeconds) {
    let label = || [("cluster", cluster.to_owned())];
    let [cluster] = label();
    let outcome = ("outcome", ended.as_str().to_owned());
    counter!("headroom_retrain_attempts_total", &[cluster, outcome]).increment(1);
    gauge!("headroom_retrain_running", &label()).set(0.0);
    gauge!("headroom_retrain_last_exit_code", &label()).set(f64::from(code));
    if ended != Ended::Failed {
        gauge!("headroom_retrain_last_success_timestamp_seconds", &label()).set(now.get() as f64);
    }
}

/// A renewal that went through all clusters.
pub fn refreshed(took: Duration) {
    histogram!("headroom_refresh_seconds").record(took.as_secs_f64());
}

/// A renewal that failed for a cluster, or for all.
pub fn audit_failed() {
    counter!("headroom_audit_failures_total").increment(1);
}

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
