//! Metrics for Prometheus. Names carry units; labels are pools, hours, routes and statuses, nothing that grows with
//! the clients.

mod gpu_time;
mod help;
mod kept;
mod pools;
mod starts;

pub use gpu_time::describe_gpu_time;
pub use kept::describe_kept;
pub use pools::{describe, describe_leads, describe_nodes, describe_tasks};
pub use starts::describe_starts;

use crate::drift::{Drifts, PoolReport};
use crate::retrain::Ended;
use metrics::{Counter, counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use std::time::Duration;
use vocab::{Outcome, PoolId, UnixSeconds};

/// Upper ends of the buckets of what takes a moment, in seconds: turns, requests, renewals.
const MOMENTS_S: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
/// Of what tasks wait: from at once to days.
const WAITS_S: [f64; 10] = [1.0, 10.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0];

/// Installs the recorder of this process; a second one is refused, and its numbers are not seen.
#[must_use]
pub fn install() -> PrometheusHandle {
    let recorder: PrometheusRecorder =
        builder().map_or_else(|_| PrometheusBuilder::new().build_recorder(), PrometheusBuilder::build_recorder);
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("another recorder of metrics is installed already");
    }
    help::describe();
    gauge!("headroom_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    handle
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    let waits = Matcher::Full("headroom_task_wait_seconds".to_owned());
    PrometheusBuilder::new().set_buckets(&MOMENTS_S)?.set_buckets_for_metric(waits, &WAITS_S)
}

/// Labels of a pool.
fn of_pool(id: &PoolId) -> [(&'static str, String); 2] {
    [("cluster", id.cluster.to_string()), ("gpu_model", id.gpu_model.to_string())]
}

/// Labels of a pool, and one more.
fn of_pool_and(id: &PoolId, name: &'static str, value: &impl ToString) -> [(&'static str, String); 3] {
    let [cluster, gpu_model] = of_pool(id);
    [cluster, gpu_model, (name, value.to_string())]
}

/// How the forecasts of the last seven days fared, as of the last hour that was scored.
pub fn describe_drift(drifts: &Drifts) {
    for report in drifts.values().flat_map(|cluster| cluster.pools.values()) {
        describe_pool_drift(report);
    }
}

fn describe_pool_drift(report: &PoolReport) {
    let drift = &report.drift;
    let names = || of_pool(&drift.pool);
    // Prometheus knows no value that is not there: NaN is what it has for one.
    let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
    gauge!("headroom_forecast_mae_gpus", &names()).set(known(drift.all.mae_gpus()));
    gauge!("headroom_forecast_last_value_mae_gpus", &names()).set(known(drift.all.last_value_mae_gpus()));
    gauge!("headroom_forecast_coverage_ratio", &of_pool_and(&drift.pool, "level", &"0.9"))
        .set(known(drift.all.coverage()));
    gauge!("headroom_bound_coverage_ratio", &names()).set(known(drift.bound.coverage()));
    gauge!("headroom_forecasts_scored", &names()).set(f64::from(drift.all.hours));
    gauge!("headroom_forecasts_unmeasured", &names()).set(f64::from(drift.all.unmeasured));
    gauge!("headroom_forecast_drifts", &names()).set(f64::from(u8::from(report.is_outside())));
}

/// The forecasts of an issue hour that were scored.
pub fn scored(cluster: &str) {
    counter!("headroom_issues_scored_total", "cluster" => cluster.to_owned()).increment(1);
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

/// A write that was refused, since the audit took no entry.
pub fn audit_failed() {
    counter!("headroom_audit_failures_total").increment(1);
}

/// A renewal that failed for a cluster, or for all.
pub fn refresh_failed() {
    counter!("headroom_refresh_failures_total").increment(1);
}

/// Whether the database has answered.
pub fn database_is(up: bool) {
    gauge!("headroom_database_up").set(f64::from(u8::from(up)));
}

/// Whether the database takes writes, as far as it is known.
pub fn database_takes_writes(does: bool) {
    gauge!("headroom_database_takes_writes").set(f64::from(u8::from(does)));
}

/// A guarantee period that ended and was recorded.
pub fn outcome(outcome: &Outcome) {
    counter!("headroom_outcomes_total", &of_pool_and(&outcome.pool, "kind", &outcome.kind.as_str())).increment(1);
}

/// A message that the webhook refuses for good.
pub fn webhook_refused(pool: &PoolId, status: u16) {
    counter!("headroom_webhook_refused_total", &of_pool_and(pool, "status", &status)).increment(1);
}

/// Tasks that were submitted, or started.
pub fn decided(pool: &PoolId, outcome: &'static str, count: u64) {
    counter!("headroom_decisions_total", &of_pool_and(pool, "outcome", &outcome)).increment(count);
}

/// Runs that were cut.
pub fn evicted(pool: &PoolId, cause: &'static str, count: u64) {
    counter!("headroom_evictions_total", &of_pool_and(pool, "cause", &cause)).increment(count);
}

/// Tasks that were sent to rest.
pub fn cycles(pool: &PoolId, count: u64) {
    counter!("headroom_preemption_cycles_total", &of_pool(pool)).increment(count);
}

/// How long a task had waited when it started.
pub fn waited(pool: &PoolId, class: &'static str, waited_s: i64) {
    histogram!("headroom_task_wait_seconds", &of_pool_and(pool, "class", &class)).record(waited_s as f64);
}

/// A turn of a pool's writer.
pub fn turned(took: Duration) {
    histogram!("headroom_turn_seconds").record(took.as_secs_f64());
}

/// A move of eta.
pub fn eta_moved(pool: &PoolId, is_up: bool) {
    let direction = if is_up { "up" } else { "down" };
    counter!("headroom_eta_moves_total", &of_pool_and(pool, "direction", &direction)).increment(1);
}

/// A request that was answered.
pub fn requested(route: &str, took: Duration) {
    histogram!("headroom_http_request_seconds", "route" => route.to_owned()).record(took.as_secs_f64());
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
