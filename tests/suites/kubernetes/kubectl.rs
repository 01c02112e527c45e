//! `kubectl-headroom` between a service and an API server, and its krew manifest.

use super::joined::service;
use super::{CLUSTER, MODEL, Site};
use fake_kubernetes::Rule;
use serde_json::json;
use std::process::Command;
use tests::{Ran, program_with, workspace_root};

fn asked(site: &Site, url: &str, arguments: &[&str]) -> Ran {
    let (kubeconfig, cluster) = (site.path("kubeconfig"), ["--cluster", CLUSTER]);
    let all = [arguments, &["--kubeconfig", &kubeconfig, "--headroom-url", url], &cluster].concat();
    program_with("kubectl-headroom", &all, &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn users_ask_about_quota_waiting_pods_and_promises_by_kubectl() {
    let site = Site::new(4).await;
    site.pods(0..6, false);
    site.pods(6..10, true);
    let (service, _database) = service(&site).await;
    let url = format!("http://{}", service.address);
    let _connector = site.connector("run", &url, &[]);
    let of_pool = format!("/quota?cluster={CLUSTER}&gpu_model={MODEL}&hours=1");
    let _ = service.get_until(&of_pool, |_, body| body["capacity_gpus"] == 32.0 && body["used_gpus"] == 4.0);
    // 1. Quotas.
    let text = asked(&site, &url, &["quota"]).ok().stdout;
    assert!(text.starts_with("GPU MODEL") && text.contains(MODEL), "{text}");
    let pools = asked(&site, &url, &["quota", "--json"]).json();
    assert_eq!(pools["pools"][0]["spot_gpus_by_hours"]["1"], 4.0, "{pools}");
    let unknown = asked(&site, &url, &["quota", "--gpu-model", "A1"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains(&format!("GPU models that Headroom knows: {MODEL}")), "{}", unknown.stderr);
    // 2. A pod that asks for more than there is, and one that runs.
    let mut waits = site.pod(50, true);
    waits["metadata"]["name"] = "waits".into();
    waits["spec"]["nodeName"] = json!(null);
    waits["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "64".into();
    let no_room = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes are available" });
    waits["status"] = json!({ "phase": "Pending", "conditions": [no_room] });
    let namespace = waits["metadata"]["namespace"].as_str().unwrap().to_owned();
    site.cluster.put(waits);
    let of = |command: &'static str, pod: &str, more: &[&str]| {
        asked(&site, &url, &[&[command, pod, "--namespace", &namespace], more].concat())
    };
    let why = of("why", "waits", &["--json"]).json();
    assert_eq!(
        (&why["verdict"], &why["scheduler"]),
        (&json!("over_quota"), &json!("0/4 nodes are available")),
        "{why}"
    );
    let text = of("why", "waits", &[]).ok().stdout;
    assert!(text.contains("spot quota is spent: it asks 64 GPUs for 1 h"), "{text}");
    let spot = site
        .cluster
        .list("pods")
        .into_iter()
        .find(|pod| pod["spec"]["priorityClassName"] == "spot" && pod["spec"]["nodeName"].is_string());
    let spot = spot.unwrap();
    let (namespace, name) =
        (spot["metadata"]["namespace"].as_str().unwrap(), spot["metadata"]["name"].as_str().unwrap());
    let promise = asked(&site, &url, &["promise", name, "--namespace", namespace, "--json"]).json();
    assert_eq!((&promise["guarantee_hours"], &promise["is_open"]), (&json!(1), &json!(true)), "{promise}");
    let text = asked(&site, &url, &["promise", name, "--namespace", namespace]).ok().stdout;
    assert!(text.contains("promised until"), "{text}");
    // 3. What if, and what is not there.
    let asks = ["what-if", "--gpu-model", MODEL, "--hours", "1", "--capacity-change=-8", "--json"];
    let answer = asked(&site, &url, &asks).json();
    assert_eq!(answer["then"]["capacity_gpus"], 24.0, "{answer}");
    let missing = of("why", "nobody", &[]);
    assert_eq!((missing.code, missing.stderr.contains("there is no pod nobody")), (1, true), "{}", missing.stderr);
    let away = asked(&site, "http://127.0.0.1:1", &["quota"]);
    assert_eq!(away.code, 5, "{}", away.stderr);
    assert!(site.cluster.writes().is_empty(), "it changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_list_devices_reads_which_right_is_missing() {
    let site = Site::new(1).await;
    for kind in fake_kubernetes::crds::dynamic_resources(&["v1"]) {
        site.cluster.put(kind);
    }
    let mut claims = site.pod(51, false);
    claims["metadata"]["name"] = "claims".into();
    claims["spec"]["containers"] = json!([{ "name": "main" }]);
    claims["spec"]["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimName": "one" }]);
    let namespace = claims["metadata"]["namespace"].as_str().unwrap().to_owned();
    site.cluster.put(claims);
    site.cluster.deny(Rule::new("list", "resource.k8s.io", "resourceslices"));
    let asks =
        ["why", "claims", "--namespace", &namespace, "--kubeconfig", &site.path("kubeconfig"), "--cluster", CLUSTER];
    let classes = [("HEADROOM_DEVICE_CLASSES", "gpu.example.com"), ("HEADROOM_HEADROOM_URL", "http://127.0.0.1:1")];
    let refused = program_with("kubectl-headroom", &asks, &classes);
    let needs = ["GPUs by claims are not counted", "resourceslices", "ClusterRole headroom-user"];
    let tells = |stderr: &str| needs.iter().all(|part| stderr.contains(part));
    assert_eq!((refused.code, tells(&refused.stderr)), (1, true), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_claims_do_not_exist_yet_is_not_taken_for_one_without_gpus() {
    let site = Site::new(1).await;
    for kind in fake_kubernetes::crds::dynamic_resources(&["v1"]) {
        site.cluster.put(kind);
    }
    let mut claims = site.pod(52, false);
    claims["metadata"]["name"] = "claims".into();
    claims["spec"]["containers"] = json!([{ "name": "main" }]);
    claims["spec"]["resourceClaims"] = json!([
        { "name": "gpu", "resourceClaimName": "one" }, { "name": "more", "resourceClaimTemplateName": "two" },
    ]);
    claims["status"] = json!({ "phase": "Pending" });
    let node = claims["spec"].as_object_mut().unwrap().remove("nodeName").unwrap();
    let namespace = claims["metadata"]["namespace"].as_str().unwrap().to_owned();
    site.cluster.put(claims.clone());
    let asks =
        ["why", "claims", "--namespace", &namespace, "--kubeconfig", &site.path("kubeconfig"), "--cluster", CLUSTER];
    let classes = [("HEADROOM_DEVICE_CLASSES", "gpu.example.com"), ("HEADROOM_HEADROOM_URL", "http://127.0.0.1:1")];
    let unknown = program_with("kubectl-headroom", &asks, &classes);
    let names = "GPUs by claims are not known, since ResourceClaimTemplate two and ResourceClaim one do not exist yet";
    assert_eq!((unknown.code, unknown.stderr.contains(names)), (1, true), "{}", unknown.stderr);
    // It has had its claims before it got its node.
    claims["spec"]["nodeName"] = node;
    site.cluster.put(claims);
    let unknown = program_with("kubectl-headroom", &asks, &classes);
    assert!(unknown.stderr.contains("ResourceClaim one no longer exist"), "{}", unknown.stderr);
}

#[test]
fn config_show_says_what_the_kubeconfig_states() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let kubeconfig = |extension: &str| {
        let text = format!(
            "current-context: a\ncontexts:\n- name: a\n  context:\n    cluster: c\n    user: u\n    extensions:\n    - name: headroom.dev\n      \
             extension: {extension}\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    kubeconfig(
        "{url: 'https://headroom.example:8443', cluster: earth, defaultGuaranteeHours: 2, gpuResource: nvidia.com/gpu}",
    );
    let shows = ["config", "show", "--origin", "--kubeconfig", file.to_str().unwrap(), "--cluster", "mars"];
    let shown = program_with("kubectl-headroom", &[&shows[..], &["--json"]].concat(), &[]).json();
    let of = |key: &str| {
        let entry = shown.as_array().unwrap().iter().find(|entry| entry["key"] == key).unwrap();
        (entry["value"].as_str().unwrap().to_owned(), entry["origin"].as_str().unwrap().to_owned())
    };
    let extension = "kubeconfig: extension headroom.dev".to_owned();
    assert_eq!(of("headroom_url"), ("https://headroom.example:8443".to_owned(), extension.clone()));
    assert_eq!(of("default_guarantee_hours"), ("2".to_owned(), extension.clone()));
    assert_eq!(of("cluster"), ("mars".to_owned(), "flag".to_owned()));
    assert_eq!(of("gpu_resource"), ("nvidia.com/gpu".to_owned(), extension), "it states the default");
    assert_eq!(of("gpu_model_label").1, "default");
    kubeconfig("{uri: x}");
    let refused = program_with("kubectl-headroom", &shows, &[]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("kubeconfig: extension headroom.dev: unknown field `uri`"), "{}", refused.stderr);
}

#[test]
fn the_krew_manifest_of_a_release_names_its_archives_with_their_digests() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("kubectl-headroom-linux-amd64.tar.gz");
    std::fs::write(&archive, "abc").unwrap();
    let script = workspace_root().join("deploy/krew/manifest.sh");
    let run = |arguments: &[&str]| Command::new("bash").arg(&script).args(arguments).output().unwrap();
    let of_archive = format!("linux-amd64={}", archive.display());
    let made = run(&["v1.2.3", "https://releases.example/headroom/", &of_archive]);
    let text = String::from_utf8(made.stdout).unwrap();
    for line in [
        "apiVersion: krew.googlecontainertools.github.com/v1alpha2",
        "kind: Plugin",
        "  name: headroom",
        "  version: v1.2.3",
        "        matchLabels: {os: linux, arch: amd64}",
        "      uri: https://releases.example/headroom/v1.2.3/kubectl-headroom-linux-amd64.tar.gz",
        "      sha256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "      bin: kubectl-headroom",
    ] {
        assert_eq!(text.lines().filter(|one| *one == line).count(), 1, "{line}\n{text}");
    }
    let short = text.lines().find_map(|line| line.strip_prefix("  shortDescription: ")).unwrap();
    assert!(short.len() <= 50 && !short.ends_with('.'), "krew's index takes no longer one: {short}");
    assert!(tests::program_names().iter().any(|name| name == "kubectl-headroom"), "the name that bin says");
    assert_eq!(run(&["1.2.3", "https://x", &of_archive]).status.code(), Some(2), "krew wants v1.2.3");
    assert_eq!(run(&["v1.2.3", "https://x", "linux-amd64=/missing"]).status.code(), Some(3));
}
