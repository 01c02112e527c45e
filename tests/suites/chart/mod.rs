//! The chart of `deploy/chart`, rendered for several files of values, and asked what an operator would ask of it.

mod pods;
mod roles;
mod settings;
mod shards;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tests::workspace_root;

/// Set where a machine without Go, or without Python's packages, is a fault of the machine.
const REQUIRED: &str = "HEADROOM_CHART_REQUIRED";
/// Where Debian puts the sources of Go packages.
const GO_PACKAGES: [&str; 2] = ["github.com/Masterminds/sprig", "gopkg.in/yaml.v3"];
const VALUES: [&str; 5] = ["airgapped", "everything", "kueue", "least", "plain"];

fn file(name: &str) -> PathBuf {
    workspace_root().join(name)
}

/// The program that renders the chart, built once; `None` where it cannot be, with a line on stderr.
pub fn renderer() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let has_go = Command::new("go").arg("version").output().is_ok_and(|ran| ran.status.success());
        let has_package = |name: &&str| Path::new("/usr/share/gocode/src").join(name).exists();
        if !(has_go && GO_PACKAGES.iter().all(has_package)) {
            assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and there is no go with {GO_PACKAGES:?}");
            println!("not run, since go with sprig and yaml is not installed: what looks at the chart");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let ran = Command::new(file("tests/chart/build-render.sh")).arg(folder.path().join("render")).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        Some(folder)
    });
    built.as_ref().map(|folder| PROGRAM.get_or_init(|| folder.path().join("render")).as_path())
}

fn ran(renderer: &Path, values: &str, more: &[&str]) -> Output {
    let mut command = Command::new(renderer);
    command.arg(file("deploy/chart/headroom")).args(["--release", "headroom", "--namespace", "gpu", "--json"]);
    command.arg("--values").arg(file("tests/chart/values").join(format!("{values}.yaml"))).args(more);
    command.output().unwrap()
}

/// The manifests of a file of values with some of them set otherwise.
pub fn rendered(renderer: &Path, values: &str, sets: &[&str]) -> Vec<Value> {
    let more: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let output = ran(renderer, values, &more);
    assert!(output.status.success(), "{values} {sets:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn of_kind<'a>(manifests: &'a [Value], kind: &str) -> Vec<&'a Value> {
    manifests.iter().filter(|one| one["kind"] == kind).collect()
}

fn name(manifest: &Value) -> &str {
    manifest["metadata"]["name"].as_str().unwrap()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The template of the pods of what makes pods.
fn pod(manifest: &Value) -> Option<&Value> {
    match manifest["kind"].as_str().unwrap() {
        "Deployment" | "StatefulSet" | "Job" => Some(&manifest["spec"]["template"]),
        "CronJob" => Some(&manifest["spec"]["jobTemplate"]["spec"]["template"]),
        _ => None,
    }
}

fn has_labels(pod: &Value, wanted: &Value) -> bool {
    let mut wanted = wanted.as_object().into_iter().flatten();
    wanted.all(|(key, value)| pod["metadata"]["labels"][key] == *value)
}

/// For each file of values, with its name.
fn each(look: impl Fn(&str, &[Value])) {
    let Some(renderer) = renderer() else { return };
    for values in VALUES {
        look(values, &rendered(renderer, values, &[]));
    }
}
