//! Help texts of the metrics. Names have units, counters end in `_total`.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

const GAUGES: [(&str, &str); 18] = [
    ("headroom_kubernetes_build_info", "1, with the version of the program"),
    ("headroom_kubernetes_nodes", "Nodes with GPUs"),
    ("headroom_kubernetes_pods", "Pods with GPUs that wait or run"),
    ("headroom_kubernetes_pods_without_model", "Pods that belong to no pool, since they select no GPU model"),
    ("headroom_kubernetes_capacity_gpus", "GPUs that could be used"),
    ("headroom_kubernetes_spot_gpus", "GPUs that spot pods hold, promised or at will"),
    ("headroom_kubernetes_hp_demand_gpus", "GPUs that HP pods hold or wait for"),
    ("headroom_kubernetes_view_blind_seconds", "Time since a watch of the cluster broke off; 0 while all work"),
    ("headroom_kubernetes_headroom_up", "1 if Headroom answered the last request for quotas, else 0"),
    ("headroom_kubernetes_untold", "Reports that Headroom has not accepted yet"),
    ("headroom_leader", "1 if this replica writes, else 0"),
    ("headroom_lease_epoch", "Epoch of this replica when it led last"),
    (
        "headroom_heartbeat_age_seconds",
        "Time since the heartbeat of the published quotas last changed, as the watchdog sees it",
    ),
    ("headroom_published_gpus", "GPUs that spot may hold in all, as published"),
    ("headroom_publish_conflict", "1 while another manager owns what is to be published, else 0"),
    ("headroom_admission_held_workloads", "Workloads whose reservation stands after their eviction"),
    ("headroom_extender_assumed", "Spot pods that passed the filter and are not bound to a node yet"),
    ("headroom_extender_breaker_open", "1 while neutral answers go out at once, since those before were late"),
];

const COUNTERS: [(&str, &str); 12] = [
    ("headroom_kubernetes_watch_faults_total", "Faults of watches by resource"),
    ("headroom_kubernetes_unread_total", "Objects that could not be read, whole or in part, by resource"),
    ("headroom_kubernetes_lost_total", "Reports that were dropped"),
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

const SECONDS: [(&str, &str); 2] = [
    ("headroom_extender_request_seconds", "Time from a request of the scheduler to its answer, by verb"),
    ("headroom_kubernetes_notice_to_eviction_seconds", "Time from the notice of an eviction to the eviction"),
];

/// Registers the help of all metrics.
pub fn describe() {
    for (name, help) in GAUGES {
        describe_gauge!(name, help);
    }
    for (name, help) in COUNTERS {
        describe_counter!(name, help);
    }
    for (name, help) in SECONDS {
        describe_histogram!(name, Unit::Seconds, help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn sources(folder: &Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                sources(&entry, all);
            } else if !entry.ends_with("help.rs") {
                all.push_str(&std::fs::read_to_string(&entry).unwrap());
            }
        }
    }

    /// Names that follow a macro in the sources.
    fn used(macro_name: &str, sources: &str) -> BTreeSet<String> {
        let opening = format!("{macro_name}!(");
        let after = sources.split(opening.as_str()).skip(1);
        let name = |rest: &str| {
            let quoted = rest.trim_start().strip_prefix('"')?;
            quoted.split('"').next().filter(|name| name.starts_with("headroom_")).map(str::to_owned)
        };
        after.filter_map(name).collect()
    }

    #[test]
    fn every_metric_has_a_help_text_and_every_text_a_metric() {
        let mut all = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        // Set by a closure that takes the name.
        let by_name = all.split("gauge(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let mut gauges = used("gauge", &all);
        gauges.extend(by_name.filter(|name| name.starts_with("headroom_")).map(str::to_owned));
        // Of the crate of connectors, which takes the name of the program: `format!("{program}_untold")`.
        let mut shared = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../connectors/src"), &mut shared);
        let of_connectors = shared.split("format!(\"{").skip(1).filter_map(|rest| {
            let name = rest.split('"').next()?.split_once('}')?.1;
            name.starts_with('_').then(|| format!("headroom_kubernetes{name}"))
        });
        let (of_connectors, total): (BTreeSet<String>, _) = of_connectors.partition(|name| !name.ends_with("_total"));
        gauges.extend(of_connectors);
        let counters: BTreeSet<String> = used("counter", &all).union(&total).cloned().collect();
        let names = |texts: &[(&str, &str)]| texts.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(gauges, names(&GAUGES));
        assert_eq!(counters, names(&COUNTERS));
        assert_eq!(used("histogram", &all), names(&SECONDS));
        for (name, help) in GAUGES.iter().chain(&COUNTERS).chain(&SECONDS) {
            assert!(!help.ends_with('.') && help.len() > 10, "{name}: {help}");
        }
    }
}
