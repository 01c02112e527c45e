//! Arrows between crates (ARCHITECTURE.md), and the crates at the top.

use super::files;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use tests::workspace_root;

/// Crate → crates of the workspace that it may use. `tests` may use all.
const ARROWS: [(&str, &[&str]); 28] = [
    ("vocab", &[]),
    ("datasets", &["vocab"]),
    ("store", &["vocab"]),
    ("command-line", &["vocab"]),
    ("prometheus", &["vocab"]),
    ("slurm-records", &["datasets", "vocab"]),
    ("parquet-source", &["datasets", "vocab"]),
    ("datasets-cli", &["command-line", "datasets", "parquet-source", "prometheus", "slurm-records", "store", "vocab"]),
    ("forecaster", &["datasets", "vocab"]),
    (
        "training",
        &[
            "command-line",
            "cycle",
            "datasets",
            "forecaster",
            "parquet-source",
            "placement",
            "slurm-records",
            "store",
            "vocab",
        ],
    ),
    ("placement", &["vocab"]),
    ("cycle", &["datasets", "forecaster", "placement", "vocab"]),
    ("accounts", &["placement", "vocab"]),
    ("wire", &["accounts", "placement", "vocab"]),
    (
        "quota-service",
        &[
            "accounts",
            "command-line",
            "cycle",
            "datasets",
            "forecaster",
            "placement",
            "prometheus",
            "serving",
            "starts",
            "store",
            "vocab",
            "wire",
        ],
    ),
    ("serving", &["command-line"]),
    ("headroom-client", &["wire"]),
    ("headroom", &["command-line", "headroom-client", "serving", "vocab", "wire"]),
    ("kubernetes", &["command-line", "connectors", "placement", "serving", "vocab", "wire"]),
    ("connectors", &["command-line", "headroom-client", "placement", "serving", "vocab", "wire"]),
    ("slurm", &["command-line", "connectors", "placement", "serving", "slurm-records", "vocab", "wire"]),
    ("fake-kubernetes", &[]),
    ("outside", &[]),
    ("starts", &["forecaster", "placement", "vocab"]),
    (
        "simulator",
        &[
            "accounts",
            "command-line",
            "cycle",
            "datasets",
            "forecaster",
            "pages",
            "placement",
            "starts",
            "vocab",
            "wire",
        ],
    ),
    ("pages", &[]),
    (
        "fuzz-targets",
        &[
            "command-line",
            "datasets",
            "forecaster",
            "parquet-source",
            "placement",
            "quota-service",
            "slurm-records",
            "vocab",
            "wire",
        ],
    ),
    ("notebooks-export", &["command-line", "datasets", "forecaster", "pages", "store", "training", "vocab"]),
];

/// Crate → crates from outside that it must not use, directly.
const FOREIGN: [(&str, &[&str]); 8] = [
    ("vocab", &["serde", "chrono", "tokio", "sqlx", "candle-core"]),
    ("datasets", &["candle-core", "sqlx", "tokio", "serde"]),
    ("forecaster", &["sqlx", "tokio", "axum", "polars", "tracing"]),
    ("placement", &["serde", "tokio", "tracing", "sqlx", "chrono", "rand", "axum"]),
    ("accounts", &["serde", "tokio", "tracing", "sqlx", "chrono", "rand", "axum"]),
    ("cycle", &["serde", "tokio", "tracing", "sqlx", "chrono", "rand", "axum"]),
    ("starts", &["serde", "tokio", "tracing", "sqlx", "chrono", "rand", "axum"]),
    ("quota-service", &["polars", "sqlx", "candle-core"]),
];

const TOP: [&str; 20] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "clippy.toml",
    "datasets",
    "deploy",
    "forecaster",
    "notebooks-export",
    "quota-service",
    "rustfmt.toml",
    "tests",
    "training",
];

/// Name → names of its dependencies, those for tests left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let ran = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace_root())
        .output()
        .expect("cargo knows the workspace");
    let metadata: Value = serde_json::from_slice(&ran.stdout).expect("cargo prints JSON");
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let used = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|one| one["kind"] != "dev").map(name).collect()
    };
    metadata["packages"].as_array().unwrap().iter().map(|package| (name(package), used(package))).collect()
}

#[test]
fn every_arrow_between_crates_is_one_of_the_architecture() {
    let known = dependencies();
    let own: BTreeSet<&String> = known.keys().collect();
    for (name, used) in &known {
        let allowed = ARROWS.iter().find(|(known, _)| known == name).map(|(_, allowed)| *allowed);
        let Some(allowed) = allowed else {
            assert_eq!(name, "tests", "{name} is not in ARROWS");
            continue;
        };
        for target in used.iter().filter(|target| own.contains(target)) {
            assert!(allowed.contains(&target.as_str()), "{name} may not use {target}");
        }
    }
    assert_eq!(known.len(), ARROWS.len() + 1, "a crate of ARROWS is gone");
}

#[test]
fn no_crate_uses_a_forbidden_crate() {
    let known = dependencies();
    for (name, forbidden) in FOREIGN {
        for foreign in forbidden {
            assert!(!known[name].contains(*foreign), "{name} must not use {foreign}");
        }
    }
}

#[test]
fn the_top_level_holds_the_crates_of_the_design_alone() {
    let top: BTreeSet<String> = files(&[""])
        .iter()
        .filter_map(|path| Some(path.components().next()?.as_os_str().to_str()?.to_owned()))
        .collect();
    assert_eq!(top.iter().map(String::as_str).collect::<Vec<_>>(), TOP);
}
