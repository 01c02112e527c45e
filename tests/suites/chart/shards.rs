//! Which service writes for which cluster, which Job trains it, and what stays as it is from version to version.

use super::{list, name, of_kind, rendered, renderer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    list(&container["env"]).find(|one| one["name"] == name).and_then(|one| one["value"].as_str())
}

#[test]
fn each_cluster_belongs_to_one_shard_and_one_shard_to_all_where_none_is_named() {
    let Some(renderer) = renderer() else { return };
    let of_shards = |values: &str, sets: &[&str]| -> Vec<(String, Option<String>)> {
        let manifests = rendered(renderer, values, sets);
        let sets = of_kind(&manifests, "StatefulSet");
        let clusters = |set: &Value| {
            variable(&set["spec"]["template"]["spec"]["containers"][0], "HEADROOM_OWN_CLUSTERS").map(str::to_owned)
        };
        sets.iter().map(|set| (name(set).to_owned(), clusters(set))).collect()
    };
    let shard =
        |number: usize, clusters: Option<&str>| (format!("headroom-shard-{number}"), clusters.map(str::to_owned));
    assert_eq!(of_shards("least", &[]), [shard(0, None)]);
    assert_eq!(of_shards("everything", &[]), [shard(0, Some("earth,venus")), shard(1, Some("mars"))]);
    assert_eq!(of_shards("everything", &["quotaService.shards=1"]), [shard(0, Some("earth,mars,venus"))]);
}

/// The calls of the training Job at an index, and its exit code, where `train` ends with the code in `codes` of a cluster.
fn trained(manifests: &[Value], index: usize, codes: &str) -> (Vec<String>, i32) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("train");
    let stub = format!(
        "#!/bin/sh\necho \"$*\" >>{}/calls\ncase \"$*\" in {codes} *) exit 0;; esac\n",
        folder.path().display()
    );
    std::fs::write(&program, stub).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let container =
        &of_kind(manifests, "CronJob")[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0];
    let words: Vec<&str> = list(&container["command"]).map(|word| word.as_str().unwrap()).collect();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("PATH", path).env("JOB_COMPLETION_INDEX", index.to_string());
    for name in ["TRAIN_HORIZON", "TRAIN_MEMORY", "TRAIN_BORROW", "TRAIN_SHARDS", "TRAIN_USAGE"] {
        command.env(name, variable(container, name).unwrap());
    }
    let code = command.output().unwrap().status.code().unwrap();
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap_or_default();
    (calls.lines().map(str::to_owned).collect(), code)
}

#[test]
fn an_index_of_the_training_job_trains_the_clusters_of_its_shard() {
    let Some(renderer) = renderer() else { return };
    let manifests = rendered(renderer, "everything", &[]);
    let settings = |memory: &str, borrow: &str| {
        format!("--config /etc/headroom/headroom.toml --memory {memory} --borrow {borrow} --promote")
    };
    let call = |cluster: &str| format!("{} --cluster {cluster}", settings("12GiB", "2 --usage s3://history/usage/"));
    assert_eq!(trained(&manifests, 0, ""), (vec![call("earth"), call("venus")], 0));
    assert_eq!(trained(&manifests, 1, ""), (vec![call("mars")], 0));
    // A gate that is missed by one keeps the next from nothing, and an end that is worth another try is reported before it.
    assert_eq!(trained(&manifests, 0, "*earth) exit 7;;"), (vec![call("earth"), call("venus")], 7));
    assert_eq!(trained(&manifests, 0, "*earth) exit 5;; *venus) exit 7;;").1, 5);
    assert_eq!(trained(&manifests, 0, "*earth) exit 7;; *venus) exit 5;;").1, 5);
    let all = rendered(renderer, "least", &[]);
    assert_eq!(trained(&all, 0, "*promote) exit 3;;"), (vec![settings("4GiB", "0")], 3));
    let day = rendered(renderer, "least", &["training.horizon=26h"]);
    assert!(trained(&day, 0, "").0[0].contains(" --horizon 26h --memory "));
    let job = &of_kind(&manifests, "CronJob")[0]["spec"]["jobTemplate"]["spec"];
    let container = &job["template"]["spec"]["containers"][0];
    assert_eq!(variable(container, "AWS_ENDPOINT"), Some("https://minio:9000"));
    assert_eq!(container["envFrom"][0]["secretRef"]["name"], "history");
    assert_eq!((&job["completions"], &job["completionMode"]), (&2.into(), &"Indexed".into()));
}

/// Fields that the API server does not let any client change.
fn fixed(manifests: &[Value]) -> BTreeMap<String, String> {
    let sets = manifests.iter().filter(|one| one["kind"] == "StatefulSet" || one["kind"] == "Deployment");
    let of = |one: &Value| {
        let spec = &one["spec"];
        let parts = ["selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"]
            .map(|part| spec[part].to_string());
        (format!("{} {}", one["kind"], name(one)), parts.concat())
    };
    sets.map(of).collect()
}

#[test]
fn an_upgrade_changes_nothing_that_may_not_be_changed() {
    let Some(renderer) = renderer() else { return };
    let before = fixed(&rendered(renderer, "everything", &[]));
    assert_eq!(before.len(), 4, "{before:?}");
    let sets =
        ["image.tag=9.9.9", "commonLabels.team=other", "quotaService.replicas=5", "quotaService.settings.refresh_s=60"];
    assert_eq!(fixed(&rendered(renderer, "everything", &sets)), before);
    // A shard more or less leaves the others as they are.
    for (name, parts) in fixed(&rendered(renderer, "everything", &["quotaService.shards=3"])) {
        assert!(before.get(&name).is_none_or(|known| *known == parts), "{name}");
    }
}

#[test]
fn pods_start_again_when_their_settings_change_and_only_those() {
    let Some(renderer) = renderer() else { return };
    let sums = |set: &str| -> BTreeMap<String, Value> {
        let manifests = rendered(renderer, "everything", &[set]);
        let pods = manifests.iter().filter(|one| one["kind"] == "StatefulSet" || one["kind"] == "Deployment");
        pods.map(|one| {
            (name(one).to_owned(), one["spec"]["template"]["metadata"]["annotations"]["checksum/config"].clone())
        })
        .collect()
    };
    let (before, after) = (sums("watchdog.replicas=1"), sums("connector.settings.publish_s=33"));
    let changed: Vec<&str> =
        before.iter().filter(|(name, sum)| after[*name] != **sum).map(|(name, _)| name.as_str()).collect();
    assert_eq!(changed, ["headroom-connector", "headroom-watchdog"]);
}
