//! Files of this machine.

use super::Check;
use crate::config::{Config, Mode};
use std::path::Path;

/// Checks of the settings that name files.
pub fn of(config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    if config.cluster.get().is_none() {
        checks.push(Check::fail("cluster", "it is not set", "set cluster to Headroom's name of this cluster"));
    }
    if config.spot_qos.0.is_empty() && config.spot_partitions.0.is_empty() {
        let found = "no QOS and no partition is spot: every job counts as HP demand";
        checks.push(Check::warn("spot", found, "set spot_qos, such as spot1h=1,spot4h=4"));
    }
    if config.mode.publishes() {
        checks.push(writable("heartbeat_file", config.heartbeat_file.get()));
    }
    if config.mode == Mode::PublishAndHook {
        checks.push(writable("quota_file", config.quota_file.get()));
    }
    checks
}

/// Whether a file can be replaced: a file beside it can be made.
fn writable(key: &'static str, path: Option<&Path>) -> Check {
    let Some(path) = path else { return Check::fail(key, "it is not set", format!("set {key}")) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match tempfile::Builder::new().prefix(".headroom-").tempfile_in(folder) {
        Ok(_) => Check::ok(key, path.display()),
        Err(fault) => {
            let fix = format!("create {} and give it to the user of headroom-slurm", folder.display());
            Check::fail(key, format!("{}: {fault}", path.display()), fix)
        }
    }
}
