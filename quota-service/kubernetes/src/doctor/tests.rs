//! All checks against an API server for tests. Headroom does not run: its line is checked apart.

mod settings;

use super::*;
use crate::config::KueueMode;
use crate::names::{GUARANTEE_CONTROLLER, QUOTA_CONTROLLER};
use fake_kubernetes::{FakeKubernetes, Rule, Size};
use serde_json::{Value, json};
use tempfile::TempDir;

const MODEL: &str = "NVIDIA-H800";

struct Patient {
    fake: FakeKubernetes,
    config: Config,
    _folder: TempDir,
}

/// Objects of Kueue that the modes need.
fn put_objects(fake: &FakeKubernetes) {
    let spot = json!({ "preemptionPolicy": "Never" });
    fake.patch("priorityclasses", "", "spot", &spot).unwrap();
    let put = |version: &str, kind: &str, name: &str, rest: Value| {
        let mut object = json!({
            "apiVersion": format!("kueue.x-k8s.io/{version}"), "kind": kind,
            "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "headroom" } },
        });
        extend(&mut object, rest);
        fake.put(object);
    };
    let is = |kind: &str| json!([{ "type": kind, "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "" }]);
    put("v1beta2", "ResourceFlavor", "h800-spot", json!({}));
    put(
        "v1beta2",
        "AdmissionCheck",
        "headroom-guarantee",
        json!({
            "spec": { "controllerName": GUARANTEE_CONTROLLER }, "status": { "conditions": is("Active") },
        }),
    );
    put(
        "v1beta2",
        "ClusterQueue",
        "headroom-spot",
        json!({
            "spec": { "admissionChecksStrategy": { "admissionChecks": [{ "name": "headroom-guarantee" }] } },
        }),
    );
    put(
        "v1alpha1",
        "CapacityProvider",
        "headroom-spot",
        json!({
            "spec": { "controllerName": QUOTA_CONTROLLER, "orchestratedFlavors": [{ "name": "h800-spot" }] },
            "status": { "conditions": is("CapacitySynchronized") },
        }),
    );
    put(
        "v1alpha1",
        "DynamicQuotaOrchestrator",
        "spot",
        json!({
            "spec": { "capacityDiscovery": { "providers": [{ "name": "headroom-spot" }] } },
        }),
    );
}

impl Patient {
    /// A cluster in which everything is as the modes want it.
    async fn new() -> Self {
        let fake = FakeKubernetes::start().await;
        fake.load(&Size { nodes: 4, pods: 8, ..Size::default() });
        fake.install_kueue();
        fake.install_dynamic_quota("orchestratedFlavors");
        put_objects(&fake);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, fake.kubeconfig()).unwrap();
        let config = Config {
            kubeconfig: file.to_str().unwrap().parse().unwrap(),
            cluster: "earth".parse().unwrap(),
            headroom_url: "http://127.0.0.1:1".parse().unwrap(),
            kueue: KueueMode::CapacityProvider,
            flavors: format!("h800-spot={MODEL}").parse().unwrap(),
            admission_check: true,
            evict: true,
            resource_quota: true,
            resource_quota_shares: "team-000=0.5".parse().unwrap(),
            ..Config::default()
        };
        Self { fake, config, _folder: folder }
    }

    async fn examined(&self) -> Vec<Check> {
        examine(&self.config, &[]).await
    }

    /// Name, what was found and what to do of each failure, Headroom's own line apart.
    async fn failures(&self) -> Vec<String> {
        let failed = self.examined().await.into_iter().filter(|check| check.status == Status::Fail);
        failed.filter(|check| check.name != "headroom").map(|check| line(&check)).collect()
    }

    async fn warnings(&self) -> Vec<String> {
        self.examined().await.iter().filter(|check| check.status == Status::Warn).map(line).collect()
    }
}

fn extend(object: &mut Value, rest: Value) {
    let Value::Object(rest) = rest else { return };
    object.as_object_mut().unwrap().extend(rest);
}

fn line(check: &Check) -> String {
    format!("{}: {} -> {}", check.name, check.found, check.fix.as_deref().unwrap_or_default())
}

#[track_caller]
fn has(lines: &[String], wanted: &str) {
    assert!(lines.iter().any(|line| line.contains(wanted)), "{wanted:?} is not in {lines:#?}");
}

#[tokio::test]
async fn where_all_is_as_it_should_be_headroom_alone_is_missing_and_nothing_is_written() {
    let patient = Patient::new().await;
    patient.fake.forget_requests();
    let checks = patient.examined().await;
    let failed: Vec<&Check> = checks.iter().filter(|check| check.status == Status::Fail).collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert_eq!(failed[0].name, "headroom");
    assert!(failed[0].fix.as_deref().unwrap().contains("headroom_url"), "{failed:?}");
    let has_found = |name: &str| checks.iter().find(|check| check.name == name).unwrap().found.clone();
    assert_eq!(has_found("nodes"), "16 NVIDIA-A100-SXM4-80GB on 2 nodes, 16 NVIDIA-H800 on 2 nodes");
    assert_eq!(has_found("pods"), "HP: 6 run, 0 wait; spot: 2 run, 0 wait");
    assert!(has_found("permissions").starts_with("all "), "{}", has_found("permissions"));
    for write in patient.fake.writes() {
        assert_eq!(write.resource, "selfsubjectaccessreviews", "{} {}", write.method, write.path);
    }
}

#[tokio::test]
async fn each_verb_that_is_denied_is_a_line_with_the_rule_to_add() {
    let patient = Patient::new().await;
    for (verb, group, resource, rule) in [
        ("watch", "", "pods", r#"{apiGroups: [""], resources: [pods], verbs: [watch]}"#),
        ("create", "", "pods/eviction", r#"{apiGroups: [""], resources: [pods/eviction], verbs: [create]}"#),
        (
            "patch",
            "kueue.x-k8s.io",
            "capacityproviders/status",
            r#"{apiGroups: ["kueue.x-k8s.io"], resources: [capacityproviders/status], resourceNames: [headroom-spot], verbs: [patch]}"#,
        ),
        (
            "update",
            "coordination.k8s.io",
            "leases",
            r#"a Role in headroom-system: {apiGroups: ["coordination.k8s.io"], resources: [leases], resourceNames: [headroom-kubernetes], verbs: [update]}"#,
        ),
        (
            "create",
            "",
            "resourcequotas",
            r#"a Role in team-000: {apiGroups: [""], resources: [resourcequotas], verbs: [create]}"#,
        ),
    ] {
        patient.fake.deny(Rule::new(verb, group, resource));
        let failures = patient.failures().await;
        has(&failures, rule);
        assert!(failures.iter().all(|line| line.contains(resource)), "{failures:#?}");
        patient.fake.deny_nothing();
    }
}

#[tokio::test]
async fn all_permissions_are_warned_of_and_the_needed_ones_are_not() {
    let patient = Patient::new().await;
    has(&patient.warnings().await, "this identity may do everything");
    let mut rules: Vec<Rule> =
        permissions::needs(&patient.config, Some(true)).iter().map(permissions::Need::rule).collect();
    rules.push(Rule::new("create", "authorization.k8s.io", "selfsubjectaccessreviews"));
    rules.push(Rule::new("get,list", "kueue.x-k8s.io,apiextensions.k8s.io", "*"));
    patient.fake.allow_only(rules.clone());
    assert_eq!(patient.failures().await, Vec::<String>::new());
    let warnings = patient.warnings().await;
    assert!(!warnings.iter().any(|line| line.starts_with("permissions beyond")), "{warnings:#?}");
    rules.push(Rule::new("get", "", "secrets"));
    patient.fake.allow_only(rules);
    has(&patient.warnings().await, "this identity may also read secrets");
}

#[tokio::test]
async fn kueue_that_is_missing_or_old_fails_with_what_to_do() {
    let patient = Patient::new().await;
    let (crds, name) = ("customresourcedefinitions", "clusterqueues.kueue.x-k8s.io");
    let mut old = patient.fake.get(crds, "", name).unwrap();
    old["spec"]["versions"][0]["name"] = "v1beta1".into();
    patient.fake.put(old);
    has(&patient.failures().await, "served as v1beta1 alone, and v1beta2 is needed -> upgrade Kueue");
    assert!(patient.fake.delete(crds, "", name));
    has(&patient.failures().await, "definition clusterqueues: there is none: Kueue is not installed");
    assert!(patient.fake.delete(crds, "", "capacityproviders.kueue.x-k8s.io"));
    has(&patient.failures().await, "DynamicQuotaOrchestration, or set kueue = \"cluster-queue\"");
}

#[tokio::test]
async fn objects_of_others_are_not_taken_for_ours() {
    let mut patient = Patient::new().await;
    patient.config.kueue = KueueMode::ClusterQueue;
    assert_eq!(patient.failures().await, Vec::<String>::new());
    let foreign = json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "Helm" } } });
    patient.fake.patch("clusterqueues", "", "headroom-spot", &foreign).unwrap();
    has(&patient.failures().await, "it has no label app.kubernetes.io/managed-by=headroom");
    let ours = json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "headroom" } } });
    patient.fake.patch("clusterqueues", "", "headroom-spot", &ours).unwrap();
    let theirs = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": { "name": "headroom-spot" },
        "spec": { "resourceGroups": [{ "coveredResources": ["nvidia.com/gpu"], "flavors": [] }] },
    });
    patient.fake.apply_as("argocd", &theirs);
    has(&patient.failures().await, "argocd owns resourceGroups as well, and they are not written");
    let other = json!({ "spec": { "controllerName": "example.com/other" } });
    patient.fake.patch("admissionchecks", "", "headroom-guarantee", &other).unwrap();
    has(&patient.failures().await, "its controllerName is \"example.com/other\"");
    assert!(patient.fake.delete("resourceflavors", "", "h800-spot"));
    has(&patient.failures().await, "flavor h800-spot: there is no such ResourceFlavor");
}

#[tokio::test]
async fn other_queues_with_quota_of_the_spot_flavors_are_named() {
    let mut patient = Patient::new().await;
    patient.config.kueue = KueueMode::ClusterQueue;
    patient.config.admission_check = true;
    let group = |flavor: &str, quota: &str| {
        json!([{ "coveredResources": ["nvidia.com/gpu"], "flavors": [
            { "name": flavor, "resources": [{ "name": "nvidia.com/gpu", "nominalQuota": quota }] }] }])
    };
    let put = |name: &str, quota: &str, flavor: &str| {
        patient.fake.apply_as(
            "kubectl",
            &json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": { "name": name },
                "spec": { "cohortName": "all", "resourceGroups": group(flavor, quota),
                    "admissionChecksStrategy": { "admissionChecks": [{ "name": "headroom-guarantee" }] } },
            }),
        );
    };
    patient.fake.patch("clusterqueues", "", "headroom-spot", &json!({ "spec": { "cohortName": "all" } })).unwrap();
    put("team", "0", "h800-spot");
    assert_eq!(patient.failures().await, Vec::<String>::new(), "it only borrows");
    put("team", "20", "h800-spot");
    has(
        &patient.failures().await,
        "cohort of headroom-spot: team of the cohort all have nominal quota of its flavors, too",
    );
    put("team", "20", "other");
    assert_eq!(patient.failures().await, Vec::<String>::new());
    has(&patient.warnings().await, "the GPU models of their flavors other are not known");
}

#[tokio::test]
async fn nodes_without_a_label_and_spot_classes_that_are_too_high_are_reported() {
    let patient = Patient::new().await;
    let bare = json!({ "metadata": { "labels": { "nvidia.com/gpu.product": null, "nvidia.com/gpu.sharing-strategy": "mps" } } });
    patient.fake.patch("nodes", "", "node-00000", &bare).unwrap();
    let warnings = patient.warnings().await;
    has(&warnings, "1 node with GPUs has no label nvidia.com/gpu.product: node-00000");
    has(&warnings, "1 node has time slicing or MPS");
    patient.fake.patch("priorityclasses", "", "spot", &json!({ "value": 2_000 })).unwrap();
    has(&patient.failures().await, "its value 2000 is not below 0");
    assert!(patient.fake.delete("priorityclasses", "", "spot"));
    has(&patient.failures().await, "create a PriorityClass spot");
}

/// A pod of team-000 that waits; `gpus` as an extended resource.
fn waiting(name: &str, gpus: &str, spec: &Value) -> Value {
    let amount = if gpus.is_empty() { json!({}) } else { json!({ "nvidia.com/gpu": gpus }) };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "team-000" },
        "spec": { "containers": [{ "name": "main", "resources": { "requests": amount, "limits": amount } }] },
        "status": { "phase": "Pending" },
    });
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

#[tokio::test]
async fn pods_that_the_extender_does_not_see_are_counted_where_it_is_on() {
    let mut patient = Patient::new().await;
    let claims = json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "one-gpu" }] });
    patient.fake.put(waiting("claims", "", &claims));
    patient.fake.put(waiting("both", "1", &claims));
    patient.fake.put(waiting("grouped", "2e0", &json!({ "schedulingGroup": { "podGroupName": "g" } })));
    has(&patient.warnings().await, "counts GPUs of all models together (NVIDIA-A100-SXM4-80GB, NVIDIA-H800)");
    let unseen = |lines: &[String]| lines.iter().filter(|line| line.contains("extender")).count();
    assert_eq!(unseen(&patient.warnings().await), 0, "the extender is off");
    patient.config.extender = true;
    let warnings = patient.warnings().await;
    has(&warnings, "1 pod asks by claims alone, unseen by the extender: team-000/claims -> hold them by Kueue");
    has(
        &warnings,
        "1 pod is of a PodGroup: when a group preempts, the extender is not asked for victims: team-000/grouped",
    );
}

#[tokio::test]
async fn objects_that_may_not_be_read_are_not_called_none() {
    let patient = Patient::new().await;
    let claims = |lines: &[String]| lines.iter().find(|line| line.starts_with("claimed devices")).cloned();
    assert_eq!(claims(&patient.warnings().await), None, "there are none");
    patient.fake.deny(Rule::new("list", "resource.k8s.io", "resourceclaims"));
    assert_eq!(claims(&patient.warnings().await), None, "no pod asks by one");
    patient.fake.put(waiting(
        "claims",
        "",
        &json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimName": "c" }] }),
    ));
    let warned = claims(&patient.warnings().await).expect("it may not look");
    assert!(warned.contains("1 pod asks by ResourceClaims (DRA)") && warned.contains("HTTP 403: "), "{warned}");
}

#[tokio::test]
async fn claims_and_gangs_that_may_not_be_listed_are_named_and_nodes_and_pods_are_counted_without_them() {
    let mut patient = Patient::new().await;
    patient.config.device_classes = "gpu.nvidia.com".parse().unwrap();
    patient.config.gangs = true;
    for kind in fake_kubernetes::crds::dynamic_resources(&["v1"]) {
        patient.fake.put(kind);
    }
    let failures = patient.failures().await;
    assert_eq!(failures, [] as [&str; 0]);
    for (group, resource, line) in [
        (
            "resource.k8s.io",
            "deviceclasses",
            "claims: none is counted in the lines below: deviceclasses may not be listed: HTTP 403: ",
        ),
        (
            "kueue.x-k8s.io",
            "workloads",
            "gangs: none is counted in the lines below: workloads may not be listed: HTTP 403: ",
        ),
    ] {
        patient.fake.deny(Rule::new("list", group, resource));
        let checks = patient.examined().await;
        let found = checks.iter().find(|check| check.name == "nodes").map(|check| check.found.clone());
        assert_eq!(found.as_deref(), Some("16 NVIDIA-A100-SXM4-80GB on 2 nodes, 16 NVIDIA-H800 on 2 nodes"));
        let failures = patient.failures().await;
        has(&failures, line);
        has(&failures, &format!("-> let this identity get, list and watch {resource}, or unset"));
        assert!(
            failures.iter().all(|line| !line.contains("Status {") && !line.contains("nodes and pods")),
            "{failures:#?}"
        );
        patient.fake.deny_nothing();
    }
}

#[tokio::test]
async fn objects_that_count_in_part_are_distinguished_from_those_that_do_not_count() {
    let patient = Patient::new().await;
    let noted = json!({ "metadata": { "annotations": { "headroom.dev/checkpointed-at": "yesterday" } } });
    patient.fake.patch("pods", "team-000", "pod-000000", &noted).unwrap();
    patient.fake.put(waiting("broken", "many", &json!({})));
    let warnings = patient.warnings().await;
    has(&warnings, "read in part: 1 object counts, without what cannot be read: pod team-000/pod-000000");
    has(&warnings, "not read: 1 object does not count: pod team-000/broken");
}

#[tokio::test]
async fn reservations_that_stand_after_an_eviction_are_named() {
    let patient = Patient::new().await;
    let workload =
        crate::workloads::tests::with(crate::workloads::tests::workload("stuck", 4, "1", "Pending"), "Evicted", -3_600);
    patient.fake.put(workload);
    patient.fake.put(crate::workloads::tests::workload("retries", 4, "1", "Retry"));
    has(&patient.warnings().await, "2 Workloads do not run and keep their reservation: team-a/retries, team-a/stuck");
}

#[tokio::test]
async fn a_server_that_is_away_or_knows_no_such_token_is_one_clear_line() {
    let patient = Patient::new().await;
    let write = |text: &str| std::fs::write(patient.config.kubeconfig.get().unwrap(), text).unwrap();
    write(&patient.fake.kubeconfig_of("wrong"));
    has(&patient.failures().await, "kubernetes: the token is not known (HTTP 401)");
    write(&patient.fake.kubeconfig().replace(&patient.fake.url, "http://127.0.0.1:1"));
    let failures = patient.failures().await;
    assert_eq!(failures.len(), 1, "{failures:#?}");
    has(&failures, "kubernetes: the API server does not answer");
    write("nonsense: [");
    has(&patient.failures().await, "kubernetes: kubeconfig");
}
