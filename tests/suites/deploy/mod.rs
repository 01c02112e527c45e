//! The files of `deploy` fit the programs.

mod board;
mod clients;
mod kubernetes;
mod prometheus;
pub(crate) mod served;
mod settings;
mod slurm;
mod units;
mod walk;

use std::path::PathBuf;
use tests::workspace_root;

/// A file of `deploy`.
fn file(name: &str) -> PathBuf {
    workspace_root().join("deploy").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|fault| panic!("deploy/{name}: {fault}"))
}

/// The names of the alerts, in their order.
fn alerts() -> Vec<String> {
    let rules = text("prometheus/alerts.yml");
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect()
}
