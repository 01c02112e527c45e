//! Metrics of sources.

use ::metrics::{counter, gauge};
use prometheus::Outcome;
use vocab::UnixSeconds;

/// A counter that is there from the start: one that appears with its first count has none for `increase`.
pub fn begin(cluster: &str) {
    for outcome in [Outcome::Answered, Outcome::Warned, Outcome::Failed] {
        queries(cluster, outcome, 0);
    }
    counter!("headroom_prometheus_gaps_total", "cluster" => cluster.to_owned()).increment(0);
}

/// How a query ended.
pub fn asked(cluster: &str, outcome: Outcome) {
    queries(cluster, outcome, 1);
}

fn queries(cluster: &str, outcome: Outcome, count: u64) {
    let labels = [("cluster", cluster.to_owned()), ("outcome", outcome.as_str().to_owned())];
    counter!("headroom_prometheus_queries_total", &labels).increment(count);
}

/// A source that was read, and the hours that it misses.
pub fn read(cluster: &str, missing_hours: u64, now: UnixSeconds) {
    let label = || [("cluster", cluster.to_owned())];
    counter!("headroom_prometheus_gaps_total", &label()).increment(missing_hours);
    gauge!("headroom_prometheus_last_success_timestamp_seconds", &label()).set(now.get() as f64);
}
