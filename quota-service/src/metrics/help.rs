//! Help texts of the metrics. Names have units, counters end in `_total`.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

const GAUGES: [(&str, &str); 57] = [
    ("headroom_build_info", "1, with the version of the program"),
    (
        "headroom_database_up",
        "1 if the database took the last renewal of the leases, every fifth of lease_s, else 0: an outage shows some \
         seconds later than in headroom_database_takes_writes",
    ),
    (
        "headroom_database_takes_writes",
        "0 from when /readyz answers no-writes, else 1: a test write failed, writes of clients are refused, or the \
         server is gone",
    ),
    ("headroom_leads", "1 if this service is the leader of the cluster, 0 if another service is"),
    (
        "headroom_quota_gpus",
        "Q_H: GPUs that spot tasks with a guarantee of at least so many hours may hold, as answered now",
    ),
    ("headroom_used_gpus", "S_a(H): GPUs of spot tasks inside a guarantee of at least so many hours"),
    ("headroom_available_gpus", "GPUs that may still be admitted with this guarantee, as answered now"),
    ("headroom_demand_bound_gpus", "B_H: upper bound of HP demand over the next hours, at the guarantee rate"),
    ("headroom_inventory_gpus", "GPUs that stay free of HP demand with the guarantee rate"),
    ("headroom_capacity_gpus", "GPUs of the pool"),
    ("headroom_idle_gpus", "S0: idle GPUs"),
    (
        "headroom_hp_demand_gpus",
        "HP GPUs, running and waiting: now where tasks are placed here or all HP jobs are reported, else in the newest measured hour",
    ),
    ("headroom_spot_share_gpus", "GPUs that spot tasks of an organization hold, where the pool keeps fair shares"),
    (
        "headroom_spot_share_level_gpu_hours",
        "Decayed GPU hours of an organization's spot per unit of weight, with an hour of what it holds: the lowest is served first",
    ),
    ("headroom_guarantee_rate", "p: probability with which a promise is to be kept"),
    ("headroom_eta", "Safety coefficient"),
    ("headroom_quota_computed_timestamp_seconds", "Time of the computation of the quota"),
    ("headroom_quota_age_seconds", "Age of the quota"),
    ("headroom_quota_stage", "0 fresh, 1 stale, 2 conservative"),
    ("headroom_pool_without_new_quota", "1 if the last renewal gave the pool no quota, else 0"),
    ("headroom_usage_newest_timestamp_seconds", "End of the newest measured hour of usage"),
    ("headroom_run_age_seconds", "Age of the newest hour that the serving run has learned from"),
    ("headroom_forecast_mean_gpus", "Mean of the pool's HP demand so many hours ahead"),
    ("headroom_forecast_stddev_gpus", "Standard deviation of the pool's HP demand so many hours ahead"),
    ("headroom_forecast_mae_gpus", "Mean absolute error of the median over the last seven days"),
    ("headroom_forecast_last_value_mae_gpus", "Mean absolute error of the last value as a forecast, on the same hours"),
    (
        "headroom_forecast_coverage_ratio",
        "Share of hours at or below the quantile of this level over the last seven days",
    ),
    (
        "headroom_bound_coverage_ratio",
        "Share of issue hours at which the bound at the guarantee rate held, over the last seven days",
    ),
    ("headroom_forecasts_scored", "Forecasts of an hour that were scored over the last seven days"),
    ("headroom_forecasts_unmeasured", "Forecasts without a measurement over the last seven days"),
    ("headroom_forecast_drifts", "1 if coverage has left its band, else 0"),
    ("headroom_guarantees_kept_24h", "Promises kept, ended in the last 24 hours"),
    ("headroom_guarantees_broken_24h", "Promises broken, ended in the last 24 hours"),
    (
        "headroom_kept_rate",
        "K_H: share of promised GPUs that HP left where they were for so many hours, of promises that ended within the window",
    ),
    (
        "headroom_start_coverage_ratio",
        "Share of starts inside of the interval that was forecast with this probability, by class of the task",
    ),
    ("headroom_start_pinball_loss_seconds", "Mean pinball loss of forecasts of starts, by class of the task"),
    ("headroom_starts_scored", "Forecasts of starts that were compared with the start, by class of the task"),
    ("headroom_kept_rate_periods", "Number of promises in the kept rate"),
    (
        "headroom_promise_e_value",
        "Evidence of 28 days that the promise fails; 20 or more by chance in at most one of twenty months",
    ),
    (
        "headroom_served_bound_coverage_ratio",
        "Share of times at which HP demand stayed at or below the bound that was served, over the last seven days",
    ),
    (
        "headroom_served_broken_share",
        "Share of GPUs that HP would have taken back, had all been sold at those times, over the last seven days",
    ),
    (
        "headroom_served_bounds_judged",
        "Bounds that were served in the last seven days, every quarter of an hour, and are judged",
    ),
    ("headroom_bound_lambda", "Factor that moves the bound to what keeps the promise: 1 is the bound of the peak"),
    (
        "headroom_reserved_gpus",
        "GPUs that reservations sell ahead within the hours of the longest guarantee, the most at one instant",
    ),
    ("headroom_override_gpus", "GPUs of the valid overrides"),
    ("headroom_tasks", "Tasks that wait or run"),
    ("headroom_fragmentation_gpus", "Free GPUs that usual requests cannot use"),
    ("headroom_power_watts", "Power of the nodes, by a table of GPU models"),
    ("headroom_retrain_running", "1 while a training runs, else 0"),
    ("headroom_retrain_last_exit_code", "Exit code of the last training; -1 without one"),
    (
        "headroom_retrain_last_success_timestamp_seconds",
        "Time of the last successful training that the service started",
    ),
    ("headroom_prometheus_last_success_timestamp_seconds", "Time of the last usage read from Prometheus"),
    ("headroom_tls_certificate_end_timestamp_seconds", "End of the certificate that this service shows"),
    ("headroom_eta_least", "The lowest eta that the settings allow"),
    ("headroom_eta_most", "The highest eta that the settings allow"),
    ("headroom_organizations", "Organizations that are forecast"),
    ("headroom_cold_organizations", "Forecast organizations that are new to the model"),
];

const COUNTERS: [(&str, &str); 18] = [
    ("headroom_outcomes_total", "Guarantee periods that ended and were recorded by this service, by outcome"),
    ("headroom_evictions_total", "Runs of spot tasks that were cut, by cause: hp, reservation, node_failure, drain"),
    ("headroom_decisions_total", "Tasks that were submitted, and tasks that were started"),
    ("headroom_webhook_refused_total", "Events that the webhook refused for good and that were set aside, by status"),
    ("headroom_preemption_cycles_total", "Tasks sent to rest after repeated evictions"),
    ("headroom_eta_moves_total", "Moves of eta, up and down"),
    ("headroom_http_answers_total", "Answers by route and status"),
    ("headroom_refresh_failures_total", "Renewals that failed for a cluster, or for all"),
    ("headroom_issues_scored_total", "Issue times whose forecasts were scored"),
    ("headroom_ledger_failures_total", "Failed writes or reads of the ledger of forecasts"),
    ("headroom_audit_failures_total", "Writes refused because their audit entry failed"),
    ("headroom_retrain_attempts_total", "Trainings by outcome: promoted, kept, failed"),
    (
        "headroom_gpu_seconds_total",
        "GPU time of a pool that Headroom places, by use: hp, guaranteed, at_will, handover, idle_offered, idle_reserved, drained",
    ),
    (
        "headroom_promised_gpu_seconds_total",
        "GPU time that ended guarantees had promised, by outcome: kept, broken, voided",
    ),
    ("headroom_lost_gpu_seconds_total", "Work since the last checkpoint that was lost, by cause: eviction, node"),
    (
        "headroom_over_reserved_gpu_seconds_total",
        "GPU time that the quota kept for HP beyond its demand at that moment",
    ),
    ("headroom_prometheus_queries_total", "Queries to Prometheus by outcome"),
    ("headroom_prometheus_gaps_total", "Hours without a complete answer of Prometheus"),
];

const HISTOGRAMS: [(&str, &str); 4] = [
    ("headroom_refresh_seconds", "Duration of a renewal of all quotas"),
    ("headroom_turn_seconds", "Duration of a turn of a pool's writer"),
    ("headroom_task_wait_seconds", "Wait of tasks until their start"),
    ("headroom_http_request_seconds", "Duration of requests by route; quotas, streams and long polls apart"),
];

/// Registers the help texts.
pub fn describe() {
    for (name, help) in GAUGES {
        describe_gauge!(name, help);
    }
    for (name, help) in COUNTERS {
        describe_counter!(name, help);
    }
    for (name, help) in HISTOGRAMS {
        describe_histogram!(name, Unit::Seconds, help);
    }
}
