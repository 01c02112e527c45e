//! Values and settings: what is written is known to the programs, what is wrong is refused, what comes out fits Kubernetes.

use super::{REQUIRED, each, file, list, name, of_kind, ran, rendered, renderer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use tests::{program, program_names};

/// A Python that has the packages of tests/chart/requirements.txt.
const PYTHON: &str = "HEADROOM_CHART_PYTHON";
/// The settings of `headroom-kubernetes` that the chart writes, for a workspace in which the program is not built.
const KUBERNETES_SETTINGS: &str = "cluster headroom_url headroom_token_file headroom_ca_file listen lease_namespace lease_name \
    extender kueue admission_check priority_boost resource_quota evict extender_listen tls_certificate_file tls_key_file \
    tls_client_ca_file flavors capacity_provider cluster_queue admission_check_name resource_quota_shares publish_s \
    least_change_ratio at_will_priority_classes at_will_flavors device_classes gangs events notice_webhook_url \
    notice_secret_file notice_ca_file notice_checkpoint_hooks notice_ray_url";

/// The settings of a ConfigMap in a file of their own.
fn settings_file(map: &Value) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headroom.toml");
    std::fs::write(&path, map["data"]["headroom.toml"].as_str().unwrap()).unwrap();
    (folder, path.to_str().unwrap().to_owned())
}

/// Key and value of what a program takes out of a file.
fn taken(program_name: &str, path: &str) -> BTreeSet<(String, String)> {
    let shown = program(program_name, &["config", "show", "--origin", "--json", "--config", path]).json();
    let from_file = list(&shown).filter(|one| one["origin"].as_str().unwrap().ends_with("headroom.toml"));
    let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    from_file.map(|one| (text(one, "key"), text(one, "value"))).collect()
}

#[test]
fn the_settings_that_the_chart_writes_are_those_of_the_programs() {
    let is_built = program_names().iter().any(|name| name == "headroom-kubernetes");
    each(|values, manifests| {
        for map in of_kind(manifests, "ConfigMap") {
            let (_folder, path) = settings_file(map);
            let text = map["data"]["headroom.toml"].as_str().unwrap();
            if !name(map).ends_with("-connector") {
                let keys = taken("quota-service", &path);
                assert!(
                    keys.iter().any(|(key, value)| key == "listen" && value == "0.0.0.0:8080"),
                    "{values}: {keys:?}"
                );
                let _ = taken("train", &path);
                continue;
            }
            let written = text.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
            for key in written {
                assert!(KUBERNETES_SETTINGS.split(' ').any(|known| known == key), "{values}: {key} is no setting");
            }
            if is_built {
                let keys = taken("headroom-kubernetes", &path);
                assert!(keys.iter().any(|(key, value)| key == "cluster" && value == "earth"), "{values}: {keys:?}");
            }
        }
    });
}

#[test]
fn no_secret_is_written_into_settings_or_arguments() {
    each(|values, manifests| {
        for manifest in manifests {
            let text = manifest.to_string();
            assert!(!text.contains("postgres://") && !text.contains("BEGIN "), "{values}: {}", name(manifest));
        }
    });
}

#[test]
fn missing_or_contradictory_values_are_refused_with_the_value_to_set() {
    let Some(renderer) = renderer() else { return };
    for (values, set, expected) in [
        ("least", "connector.cluster=null", "connector.cluster"),
        ("least", "connector.tokenSecret.name=null", "connector.tokenSecret.name"),
        ("least", "database.secretName=null", "database.secretName"),
        ("least", "modes.extender=true", "extender.tls.secretName"),
        ("least", "modes.kueue=cluster-queue", "kueue.flavors"),
        ("least", "modes.resourceQuota=true", "resourceQuota.shares"),
        ("least", "quotaService.shards=2", "name at least as many clusters"),
        ("least", "quotaService.enabled=false", "connector.headroomUrl"),
        ("least", "quotaService.settings.listen=[::]:1", "quotaService.settings.listen"),
        ("least", "connector.settings.evict=true", "connector.settings.evict"),
        ("everything", "connector.cluster=pluto", "connector.cluster: pluto is not in clusters"),
        ("everything", "modes.kueue=auto", "atWill.flavors"),
        ("everything", "atWill.flavors=null modes.kueue=auto", "kueue.createObjects"),
        ("everything", "notice.secret.name=null", "notice.secret.name"),
        ("everything", "atWill.priorityClasses=null", "atWill.priorityClasses"),
    ] {
        let sets: Vec<&str> = set.split(' ').flat_map(|set| ["--set", set]).collect();
        let output = ran(renderer, values, &sets);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && printed.contains(expected), "{set}: {printed}");
    }
}

#[test]
fn the_connector_may_own_the_quotas_of_its_cluster_queue() {
    let Some(renderer) = renderer() else { return };
    let manifests = rendered(renderer, "kueue", &[]);
    let queues = of_kind(&manifests, "ClusterQueue");
    assert_eq!(queues.len(), 1);
    assert_eq!(queues[0]["metadata"]["labels"]["app.kubernetes.io/managed-by"], "headroom");
    assert!(queues[0]["spec"]["resourceGroups"].is_null(), "a list with one owner, which is the connector");
    // Helm would put its own label over it.
    let installed = rendered(renderer, "kueue", &["kueue.printClusterQueue=false"]);
    assert!(of_kind(&installed, "ClusterQueue").is_empty());
    assert_eq!(of_kind(&installed, "ResourceFlavor").len(), 1);
    let shared = of_kind(&rendered(renderer, "everything", &[]), "ClusterQueue")[0].clone();
    assert_eq!(
        shared["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"], 64,
        "an orchestrator's"
    );
}

/// A lower quota evicts nobody only where no spot Workload of a higher class preempts down to it.
#[test]
fn spot_preempts_nobody_in_its_cluster_queue_unless_an_operator_says_so() {
    let Some(renderer) = renderer() else { return };
    let preemption = |values: &str, sets: &[&str]| {
        let manifests = rendered(renderer, values, sets);
        of_kind(&manifests, "ClusterQueue")[0]["spec"]["preemption"]["withinClusterQueue"].clone()
    };
    assert_eq!([preemption("kueue", &[]), preemption("everything", &[])], ["Never", "Never"]);
    assert_eq!(preemption("kueue", &["kueue.withinClusterQueue=LowerPriority"]), "LowerPriority");
}

/// Whether the check of schemas is content, and what it says.
fn checked(python: &str, mutant: &[&str]) -> (bool, String) {
    let mut command = Command::new(file("tests/chart/validate.sh"));
    let output = command.env(PYTHON, python).args(mutant).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

#[test]
fn manifests_fit_the_schemas_of_kubernetes_and_a_wrong_field_is_found() {
    if renderer().is_none() {
        return;
    }
    let Some(python) = std::env::var(PYTHON).ok().filter(|path| !path.is_empty()) else {
        assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and {PYTHON} is not");
        println!("not run, since {PYTHON} is not set: the schemas of Kubernetes");
        return;
    };
    let (content, printed) = checked(&python, &[]);
    assert!(content, "{printed}");
    for (kind, path, value) in [
        ("Deployment", "spec.replica", "2"),
        ("NetworkPolicy", "spec.policyTypes", "Ingress"),
        ("Service", "spec.port", "1"),
    ] {
        let (content, printed) = checked(&python, &["--mutant", kind, path, value]);
        assert!(!content && printed.contains(kind), "{kind} {path}: {printed}");
    }
}
