//! Rights: each mode adds the ones that it needs, and nothing else is granted.

use super::{each, list, name, rendered, renderer};
use serde_json::Value;
use std::collections::BTreeSet;

/// The rights of an account: `resource verb`, with the names that it is restricted to.
fn grants(manifests: &[Value], account: &str) -> BTreeSet<String> {
    let bindings = manifests.iter().filter(|one| one["kind"].as_str().unwrap().ends_with("RoleBinding"));
    let own = bindings.filter(|one| list(&one["subjects"]).any(|subject| subject["name"] == account));
    let mut found = BTreeSet::new();
    for binding in own {
        let namespace = &binding["metadata"]["namespace"];
        let is_bound = |one: &&Value| {
            one["kind"] == binding["roleRef"]["kind"]
                && one["metadata"]["name"] == binding["roleRef"]["name"]
                && one["metadata"]["namespace"] == *namespace
        };
        let role = manifests.iter().find(is_bound).unwrap_or_else(|| panic!("{} binds nothing", name(binding)));
        for rule in list(&role["rules"]) {
            let names: Vec<&str> = list(&rule["resourceNames"]).map(|one| one.as_str().unwrap()).collect();
            let at = namespace.as_str().map(|name| format!(" in {name}")).unwrap_or_default();
            let only = if names.is_empty() { String::new() } else { format!(" {}", names.join(" ")) };
            for resource in list(&rule["resources"]) {
                for verb in list(&rule["verbs"]) {
                    found.insert(format!("{} {}{only}{at}", resource.as_str().unwrap(), verb.as_str().unwrap()));
                }
            }
        }
    }
    found
}

fn reads(resource: &str) -> Vec<String> {
    READS.iter().map(|verb| format!("{resource} {verb}")).collect()
}

const READS: [&str; 3] = ["get", "list", "watch"];
const LEASE: [&str; 4] = [
    "events create",
    "leases create in gpu",
    "leases get headroom-connector headroom-connector-heartbeat in gpu",
    "leases update headroom-connector headroom-connector-heartbeat in gpu",
];
const SHAPES: &str = "customresourcedefinitions get capacityproviders.kueue.x-k8s.io clusterqueues.kueue.x-k8s.io \
    dynamicquotaorchestrators.kueue.x-k8s.io";
const FLAVORS: &str = "resourceflavors get";
const PROVIDER: [&str; 2] = ["capacityproviders patch headroom-spot", "capacityproviders/status patch headroom-spot"];
const CHECKS: [&str; 2] = ["admissionchecks/status patch headroom-guarantee", "workloads/status patch"];
const QUOTAS: [&str; 5] = [
    "resourcequotas create in team-a",
    "resourcequotas get in team-a",
    "resourcequotas list in team-a",
    "resourcequotas patch headroom-spot in team-a",
    "resourcequotas watch in team-a",
];
const EVICTS: [&str; 5] =
    ["pods patch", "pods/status patch", "pods/eviction create", "evictionrequests create", "evictionrequests patch"];
const NO_OBJECTS: [&str; 2] = ["kueue.createObjects=false", "kueue.printClusterQueue=false"];

/// The rights that a mode adds for the connector to reading nodes, pods and priority classes: values, the mode, resources that are read,
/// all else.
fn added() -> Vec<(&'static str, &'static str, Vec<&'static str>, Vec<&'static str>)> {
    let kueue = ["clusterqueues", "capacityproviders", "dynamicquotaorchestrators"];
    let with_lease = |own: &[&'static str]| [own, &LEASE].concat();
    vec![
        ("least", "modes.extender=false", vec![], vec![]),
        ("least", "modes.extender=true", vec![], vec![]),
        (
            "least",
            "claims.deviceClasses.gpu=A100",
            vec!["deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"],
            vec![],
        ),
        ("least", "gangs.enabled=true", vec!["podgroups", "workloads", "jobsets", "leaderworkersets"], vec![]),
        (
            "kueue",
            "modes.kueue=capacity-provider",
            kueue.to_vec(),
            with_lease(&[PROVIDER[0], PROVIDER[1], SHAPES, FLAVORS]),
        ),
        (
            "kueue",
            "modes.kueue=cluster-queue",
            vec!["clusterqueues"],
            with_lease(&["clusterqueues patch headroom-spot", SHAPES, FLAVORS]),
        ),
        ("least", "modes.admissionCheck=true", vec!["workloads", "admissionchecks"], with_lease(&CHECKS)),
        ("least", "modes.priorityBoost=true", vec!["workloads"], with_lease(&["workloads patch"])),
        ("plain", "modes.resourceQuota=true", vec![], with_lease(&QUOTAS)),
        ("least", "modes.evict=true", vec![], with_lease(&EVICTS)),
    ]
}

#[test]
fn each_mode_grants_the_verbs_that_it_needs_and_none_grants_reading_alone() {
    let Some(renderer) = renderer() else { return };
    for (values, mode, read, more) in added() {
        let mut sets = vec![mode, "extender.tls.secretName=headroom-tls"];
        sets.extend(NO_OBJECTS);
        let manifests = rendered(renderer, values, &sets);
        let always = ["nodes", "pods", "priorityclasses"];
        let mut expected: BTreeSet<String> = always.iter().chain(&read).flat_map(|resource| reads(resource)).collect();
        expected.extend(more.iter().map(|line| (*line).to_owned()));
        assert_eq!(grants(&manifests, "headroom-connector"), expected, "{mode}");
    }
}

#[test]
fn where_spot_at_will_is_apart_its_quota_is_named_beside_the_other_one() {
    let Some(renderer) = renderer() else { return };
    let manifests = rendered(renderer, "everything", &[]);
    let at_will = "resourcequotas patch headroom-spot headroom-spot-at-will in team-a";
    for account in ["headroom-connector", "headroom-watchdog"] {
        assert!(grants(&manifests, account).contains(at_will), "{account}");
    }
}

#[test]
fn the_watchdog_sees_one_lease_and_writes_quotas_alone() {
    let Some(renderer) = renderer() else { return };
    let heartbeat = "leases get headroom-connector-heartbeat in gpu";
    let provider = [
        "capacityproviders get headroom-spot",
        "customresourcedefinitions get capacityproviders.kueue.x-k8s.io",
        "events create",
        PROVIDER[0],
        PROVIDER[1],
    ];
    let quota = [
        "events create in team-a",
        "resourcequotas get headroom-spot in team-a",
        "resourcequotas patch headroom-spot in team-a",
    ];
    for (values, mode, expected) in [
        ("kueue", "modes.kueue=capacity-provider", provider.to_vec()),
        (
            "kueue",
            "modes.kueue=cluster-queue",
            ["clusterqueues get headroom-spot", "clusterqueues patch headroom-spot", "events create"].to_vec(),
        ),
        ("plain", "modes.resourceQuota=true", quota.to_vec()),
    ] {
        let manifests = rendered(renderer, values, &[&[mode], &NO_OBJECTS[..]].concat());
        let expected = expected.iter().chain([&heartbeat]).map(|line| (*line).to_owned()).collect();
        assert_eq!(grants(&manifests, "headroom-watchdog"), expected, "{mode}");
    }
    let silent = rendered(renderer, "least", &[]);
    assert!(!silent.iter().any(|one| name(one).ends_with("watchdog")), "nothing is published that it could lower");
}

#[test]
fn nobody_may_do_everything_or_read_secrets() {
    each(|values, manifests| {
        for role in manifests.iter().filter(|one| one["rules"].is_array()) {
            let rules = role["rules"].to_string();
            assert!(!rules.contains('*') && !rules.contains("secrets"), "{values}: {}: {rules}", name(role));
        }
        for binding in manifests.iter().filter(|one| one["roleRef"].is_object()) {
            let own = binding["roleRef"]["name"].as_str().unwrap();
            assert!(own.contains("headroom"), "{values}: {} binds {own}, which is not ours", name(binding));
        }
    });
}
