//! GPUs that slurmctld tracks: of others it counts nothing, so that jobs and nodes seem to have none, or none of a type.

use super::{Check, Facts};
use crate::limits::{ALL_GPUS, tres_of};
use std::collections::BTreeSet;
use vocab::GpuModel;

/// The setting.
const KEY: &str = "AccountingStorageTRES";
/// Resources that every Slurm tracks, whether the setting names them or not.
const ALWAYS_TRACKED: [&str; 8] = ["cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"];

/// Whether all GPUs of the nodes are tracked.
pub fn of(facts: &Facts) -> Check {
    let missing = untracked(facts);
    if missing.is_empty() {
        let tracked: Vec<&str> = facts.tracked.iter().map(String::as_str).filter(|tres| is_now(facts, tres)).collect();
        return Check::ok("tracked GPUs", tracked.join(", "));
    }
    let names = missing.iter().copied().collect::<Vec<_>>().join(", ");
    let what = if missing.contains(ALL_GPUS) {
        "records and nodes have no GPUs, and no limit of them can be set"
    } else {
        "its jobs and nodes have no type here, and no limit of the type can be set"
    };
    let found = format!("slurmctld does not track {names}: {what}");
    let fix = format!("set {} in slurm.conf and restart slurmctld", setting(facts, &missing));
    Check::fail("tracked GPUs", found, fix)
}

/// GPUs of nodes that are not tracked. slurmdbd knows what any cluster of it has ever tracked, slurmctld what it tracks now.
pub fn untracked(facts: &Facts) -> BTreeSet<&str> {
    // Without an answer of the accounting it is not known.
    if facts.qos.is_err() {
        return BTreeSet::new();
    }
    let is_known = |tres: &str| facts.tracked.iter().any(|one| one.eq_ignore_ascii_case(tres));
    let all = std::iter::once(ALL_GPUS).chain(facts.on_nodes.iter().map(String::as_str));
    let mut missing: BTreeSet<&str> = all.filter(|tres| !(is_now(facts, tres) && is_known(tres))).collect();
    // Where the nodes cannot be read: one type that is tracked speaks for all that ever were.
    let types = || facts.tracked.iter().map(String::as_str).filter(|tres| *tres != ALL_GPUS);
    if facts.on_nodes.is_empty() && !types().any(|tres| is_now(facts, tres)) {
        missing.extend(types());
    }
    missing
}

/// Whether a pool has a wrong model since types are not tracked: its GPUs count as those without a type.
pub fn misleads(facts: &Facts, untyped: &GpuModel, model: &str) -> bool {
    let missing = untracked(facts);
    let is_of_type = missing.iter().any(|tres| tres.eq_ignore_ascii_case(&tres_of(model)));
    is_of_type || (model == untyped.as_str() && missing.iter().any(|tres| *tres != ALL_GPUS))
}

fn is_now(facts: &Facts, tres: &str) -> bool {
    facts.config.get(KEY).is_empty() || facts.config.lists(KEY, tres)
}

/// The setting that tracks these, too. What Slurm adds by itself is left out.
fn setting(facts: &Facts, missing: &BTreeSet<&str>) -> String {
    let present = facts.config.get(KEY).split(',').map(str::trim);
    let mut all: Vec<&str> = Vec::new();
    for tres in present.filter(|one| !one.is_empty() && !ALWAYS_TRACKED.contains(one)).chain(missing.iter().copied()) {
        if !all.contains(&tres) {
            all.push(tres);
        }
    }
    format!("{KEY}={}", all.join(","))
}
