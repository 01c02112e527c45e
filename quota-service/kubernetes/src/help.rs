//! Help texts of the metrics. Names have units, counters end in `_total`.

use connectors::help::{Help, Text};

const GAUGES: [Text; 16] = [
    ("headroom_kubernetes_nodes", "Nodes with GPUs"),
    ("headroom_kubernetes_pods", "Pods with GPUs that wait or run"),
    ("headroom_kubernetes_pods_without_model", "Pods that belong to no pool, since they select no GPU model"),
    ("headroom_kubernetes_capacity_gpus", "GPUs that could be used"),
    ("headroom_kubernetes_spot_gpus", "GPUs that spot pods hold, promised or at will"),
    ("headroom_kubernetes_hp_demand_gpus", "GPUs that HP pods hold or wait for"),
    ("headroom_kubernetes_view_blind_seconds", "Time since a watch of the cluster broke off; 0 while all work"),
    ("headroom_leader", "1 if this replica writes, else 0"),
    ("headroom_lease_epoch", "Epoch of this replica when it led last"),
    (
        "headroom_heartbeat_age_seconds",
        "Time since the heartbeat of the published quotas last changed, as the watchdog sees it",
    ),
    ("headroom_published_gpus", "GPUs that spot may hold in all, as published"),
    ("headroom_publish_conflict", "1 while another manager owns what is to be published, else 0"),
    ("headroom_admission_held_workloads", "Workloads whose reservation stands though they do not run"),
    ("headroom_extender_assumed", "Spot pods that passed the filter and are not bound to a node yet"),
    ("headroom_extender_breaker_open", "1 while neutral answers go out at once, since those before were late"),
    ("headroom_tls_certificate_end_timestamp_seconds", "End of the certificate that the extender shows"),
];

const COUNTERS: [Text; 11] = [
    ("headroom_kubernetes_watch_faults_total", "Faults of watches by resource"),
    ("headroom_kubernetes_unread_total", "Objects that could not be read, whole or in part, by resource"),
    ("headroom_kubernetes_events_total", "Events by outcome: written, limited, dropped or failed"),
    ("headroom_publish_writes_total", "Writes of quotas by object and outcome"),
    ("headroom_watchdog_lowered_total", "Objects that the watchdog lowered"),
    ("headroom_admission_checks_total", "Answers to admission checks by state"),
    ("headroom_priority_boosts_total", "Priority boosts that were written"),
    ("headroom_kubernetes_evictions_total", "Steps of evictions by outcome"),
    ("headroom_kubernetes_notice_faults_total", "Notices of evictions that could not be given, by way"),
    ("headroom_kubernetes_eviction_cycles_total", "Evictions of pods whose owner had three within the hour"),
    (
        "headroom_extender_requests_total",
        "Requests of the scheduler by verb and outcome: answered, neutral or malformed",
    ),
];

const HISTOGRAMS: [Text; 2] = [
    ("headroom_extender_request_seconds", "Time from a request of the scheduler to its answer, by verb"),
    ("headroom_kubernetes_notice_to_eviction_seconds", "Time from the notice of an eviction to the eviction"),
];

/// All of them.
pub const HELP: Help = Help { gauges: &GAUGES, counters: &COUNTERS, histograms: &HISTOGRAMS };
