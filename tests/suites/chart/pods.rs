//! Pods, the objects that lead to them, and the ones that they name.

use super::{each, has_labels, list, name, of_kind, pod};
use serde_json::{Value, json};

/// Objects outside of the chart: Secrets that operators make or cert-manager does.
const EXTERNAL_SECRETS: [&str; 8] = [
    "headroom-database",
    "headroom-token",
    "headroom-tls",
    "headroom-ca",
    "headroom-extender-tls",
    "headroom-notice",
    "headroom-notice-ca",
    "prometheus-token",
];

fn check_container(container: &Value, whose: &str) {
    let security = &container["securityContext"];
    let expected = json!({ "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
        "capabilities": { "drop": ["ALL"] } });
    assert_eq!(*security, expected, "{whose}");
    for bound in [&container["resources"]["requests"]["cpu"], &container["resources"]["limits"]["memory"]] {
        assert!(bound.is_string(), "{whose} has no bounds: {}", container["resources"]);
    }
}

#[test]
fn every_pod_is_restricted_bounded_and_probed() {
    each(|values, manifests| {
        let mut pods = 0;
        for (owner, pod) in manifests.iter().filter_map(|one| pod(one).map(|pod| (one, pod))) {
            let whose = format!("{values}: {}", name(owner));
            let spec = &pod["spec"];
            pods += 1;
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{whose}");
            assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{whose}");
            for of_host in ["hostNetwork", "hostPID", "hostIPC"] {
                assert!(spec[of_host].is_null(), "{whose}: {of_host}");
            }
            for container in list(&spec["containers"]) {
                check_container(container, &whose);
                let stays = ["Deployment", "StatefulSet"].iter().any(|kind| owner["kind"] == *kind);
                for probe in ["startupProbe", "livenessProbe", "readinessProbe"].iter().filter(|_| stays) {
                    assert!(container[*probe].is_object(), "{whose} has no {probe}");
                }
                let ready = container["readinessProbe"]["httpGet"]["path"].as_str();
                let is_service = owner["kind"] == "StatefulSet" && ready.is_some();
                assert!(
                    !is_service || ready == Some("/readyz?for=reads"),
                    "{whose}: quotas go on without the database"
                );
            }
            let is_for_api = ["-connector", "-watchdog"].iter().any(|end| name(owner).ends_with(end));
            assert_eq!(spec["automountServiceAccountToken"], is_for_api, "{whose}");
        }
        assert!(pods > 1, "{values} has {pods} kinds of pods");
    });
}

#[test]
fn policies_budgets_and_services_select_pods_that_there_are() {
    each(|values, manifests| {
        let pods: Vec<&Value> = manifests.iter().filter_map(pod).collect();
        let check = |whose: &Value, selector: &Value| {
            let selected = selector.as_object().is_some_and(|labels| !labels.is_empty());
            let some = pods.iter().any(|pod| has_labels(pod, selector));
            assert!(selected && some, "{values}: {} selects no pod: {selector}", name(whose));
        };
        for policy in of_kind(manifests, "NetworkPolicy") {
            check(policy, &policy["spec"]["podSelector"]["matchLabels"]);
        }
        for budget in of_kind(manifests, "PodDisruptionBudget") {
            check(budget, &budget["spec"]["selector"]["matchLabels"]);
        }
        for service in of_kind(manifests, "Service") {
            check(service, &service["spec"]["selector"]);
            let behind = pods.iter().filter(|pod| has_labels(pod, &service["spec"]["selector"]));
            let ports: Vec<&Value> = behind.flat_map(|pod| list(&pod["spec"]["containers"][0]["ports"])).collect();
            for port in list(&service["spec"]["ports"]) {
                assert!(
                    ports.iter().any(|one| one["name"] == port["targetPort"]),
                    "{values}: {} {port}",
                    name(service)
                );
            }
        }
        let policies = of_kind(manifests, "NetworkPolicy");
        for pod in &pods {
            let heeds = |policy: &&&Value| has_labels(pod, &policy["spec"]["podSelector"]["matchLabels"]);
            assert_eq!(policies.iter().filter(heeds).count(), 2, "{values}: what is closed for all, and its own");
        }
    });
}

#[test]
fn named_objects_are_in_the_chart_or_known_outside() {
    each(|values, manifests| {
        let has =
            |kind: &str, wanted: &Value| of_kind(manifests, kind).iter().any(|one| one["metadata"]["name"] == *wanted);
        let is_outside = |secret: &Value| EXTERNAL_SECRETS.iter().any(|name| *secret == **name);
        for (owner, pod) in manifests.iter().filter_map(|one| pod(one).map(|pod| (one, pod))) {
            let whose = format!("{values}: {}", name(owner));
            let account = &pod["spec"]["serviceAccountName"];
            // A hook runs before there are accounts.
            assert!(
                account.is_null() == (owner["kind"] == "Job") && (account.is_null() || has("ServiceAccount", account))
            );
            for volume in list(&pod["spec"]["volumes"]) {
                let (settings, secret) = (&volume["configMap"]["name"], &volume["secret"]["secretName"]);
                assert!(settings.is_null() || has("ConfigMap", settings), "{whose}: {settings}");
                assert!(secret.is_null() || is_outside(secret), "{whose}: {secret}");
            }
            let claims = list(&owner["spec"]["volumeClaimTemplates"]).map(|one| &one["metadata"]["name"]);
            let volumes: Vec<&Value> = list(&pod["spec"]["volumes"]).map(|one| &one["name"]).chain(claims).collect();
            for container in list(&pod["spec"]["containers"]) {
                for mount in list(&container["volumeMounts"]) {
                    assert!(volumes.contains(&&mount["name"]), "{whose}: {mount}");
                }
                for variable in list(&container["env"]).filter(|one| one["name"] == "HEADROOM_DATABASE") {
                    assert!(is_outside(&variable["valueFrom"]["secretKeyRef"]["name"]), "{whose}: {variable}");
                }
            }
        }
        assert!(of_kind(manifests, "Secret").is_empty(), "{values}: secrets are made beforehand");
    });
}
