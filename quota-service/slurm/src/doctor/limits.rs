//! Limits: whether those that carry the quota are there, and whether others defeat them.

use super::{Check, Facts, Qos};
use crate::config::{Config, Mode, Nesting};
use crate::limits::{ALL_GPUS, Tres};
use std::collections::BTreeSet;

/// Checks of what is published.
pub fn of(config: &Config, facts: &Facts) -> Vec<Check> {
    let Ok(qos) = &facts.qos else { return Vec::new() };
    let mut checks = Vec::new();
    for name in config.spot_qos.0.keys().chain(&config.hp_qos.0).filter(|name| !qos.contains_key(*name)) {
        let found = "Slurm does not know it: add it, or correct its name in spot_qos or hp_qos";
        checks.push(Check::fail(format!("qos {name}"), found, format!("sacctmgr -i add qos {name}")));
    }
    if !config.mode.publishes() {
        return checks;
    }
    checks.extend(typed(config, facts));
    checks.extend(at_will(config, facts));
    match config.nesting {
        Nesting::Qos => {
            checks.extend(
                partitions(config, facts).into_iter().chain(clusters(config, facts)).chain(left(config, facts)),
            );
        }
        Nesting::Accounts => checks.extend(chain(config, facts)),
    }
    checks
}

/// With several types, a job that names none is under no typed limit.
fn typed(config: &Config, facts: &Facts) -> Option<Check> {
    let types = facts.tracked.iter().filter(|tres| *tres != ALL_GPUS).count();
    let models = facts.config.lists("JobSubmitPlugins", "lua");
    if types < 2 || (models && config.mode == Mode::PublishAndHook && config.require_type) {
        return None;
    }
    let found = "a spot job that names no GPU type runs on any type, past the limit of that type; the limit of all GPUs alone holds it";
    let fix = "set mode = \"publish+hook\" and JobSubmitPlugins=lua with job_submit.lua, which asks for a type; or make a partition for each type";
    Some(Check::warn("untyped jobs", found, fix))
}

/// The settings that take limits away.
fn cleared(limits: &Tres) -> String {
    let list: Vec<String> = limits.keys().map(|tres| format!("{tres}=-1")).collect();
    format!("GrpTRES={}", list.join(","))
}

/// The last limit of a QOS that is no spot QOS any more holds its jobs, which count as HP. Headroom writes limits of all GPUs and of each
/// type; people mostly limit one of them. Where a part was taken away, it is known by the QOS that may evict it.
fn left(config: &Config, facts: &Facts) -> Vec<Check> {
    let Ok(qos) = &facts.qos else { return Vec::new() };
    let of_partitions: BTreeSet<&String> = facts.partition_qos.values().collect();
    let evictable: BTreeSet<&String> = qos.values().flat_map(|one| &one.preempts).collect();
    let is_other = |name: &String| !config.spot_qos.0.contains_key(name) && !of_partitions.contains(name);
    let types: Vec<&String> = facts.tracked.iter().filter(|tres| *tres != ALL_GPUS).collect();
    let is_ours = |name: &String, limits: &Tres| {
        let is_of_both = limits.contains_key(ALL_GPUS) && limits.len() > 1;
        let is_of_types = !types.is_empty() && types.iter().all(|tres| limits.contains_key(*tres));
        let was_spot = evictable.contains(name) && !config.hp_qos.0.contains(name);
        is_of_both || is_of_types || (was_spot && !limits.is_empty())
    };
    let warn = |(name, one): (&String, &Qos)| {
        let limits: Vec<String> = one.limits.iter().map(|(tres, most)| format!("{tres}={most}")).collect();
        let found = format!(
            "it limits GPUs ({}) and is not in spot_qos: one that was keeps its last limit, which holds its jobs though they count as HP; leave a limit of your own",
            limits.join(",")
        );
        let fix = format!("sacctmgr -i modify qos {name} set {}", cleared(&one.limits));
        Check::warn(format!("qos {name}"), found, fix)
    };
    qos.iter().filter(|(name, one)| is_other(name) && is_ours(name, &one.limits)).map(warn).collect()
}

/// No limit is written of a QOS without promises, and what its jobs hold is not idle.
fn at_will(config: &Config, facts: &Facts) -> Vec<Check> {
    let Ok(qos) = &facts.qos else { return Vec::new() };
    let promised = config.spot_qos.promised();
    let gives_way = |name: &String| {
        let of =
            |(_, other): &(vocab::HorizonHours, &str)| qos.get(*other).is_some_and(|one| one.preempts.contains(name));
        promised.iter().all(of)
    };
    let names = config.spot_qos.0.iter().filter(|(_, hours)| hours.is_none()).map(|(name, _)| name);
    let warn = |name: &String| {
        let idle = unlimited(facts, &qos.get(name)?.limits)?;
        let others: Vec<&str> = promised.iter().map(|(_, other)| *other).collect();
        let found = format!(
            "it promises nothing, so that no limit of it is written: its jobs may take every idle GPU{idle}, and those with a promise wait; let those evict them, or set a limit of your own of gres/gpu"
        );
        let fix = format!("sacctmgr -i modify qos {} set preempt+={name}", others.join(","));
        Some(Check::warn(format!("qos {name}"), found, fix))
    };
    names.filter(|name| !promised.is_empty() && !gives_way(name)).filter_map(warn).collect()
}

/// The GPUs that no limit of a QOS holds, as the end of a sentence; none where all are held.
fn unlimited(facts: &Facts, limits: &Tres) -> Option<String> {
    if limits.is_empty() {
        return Some(String::new());
    }
    let is_open = |tres: &&String| *tres != ALL_GPUS && !limits.contains_key(*tres);
    // slurmdbd has types of other clusters, too.
    let known = if facts.on_nodes.is_empty() { &facts.tracked } else { &facts.on_nodes };
    let open: Vec<&str> = known.iter().filter(is_open).map(String::as_str).collect();
    (!limits.contains_key(ALL_GPUS) && !open.is_empty())
        .then(|| format!(" of {}, which its own limit does not hold", open.join(", ")))
}

/// The first limit that is found wins: one of a partition's QOS hides ours.
fn partitions(config: &Config, facts: &Facts) -> Vec<Check> {
    let Ok(qos) = &facts.qos else { return Vec::new() };
    let hides = |(partition, name): (&String, &String)| {
        let limits = &qos.get(name).filter(|_| !config.spot_qos.0.contains_key(name))?.limits;
        (!limits.is_empty()).then(|| {
            let found = format!(
                "its QOS {name} limits GPUs, and Slurm holds a job to the first limit that it finds; clear it, or keep spot jobs out of the partition"
            );
            let fix = format!("sacctmgr -i modify qos {name} set {}", cleared(limits));
            Check::warn(format!("partition {partition}"), found, fix)
        })
    };
    facts.partition_qos.iter().filter_map(hides).collect()
}

/// QOS and their limits are of slurmdbd, and so of all its clusters.
fn clusters(config: &Config, facts: &Facts) -> Vec<Check> {
    let shares = |(cluster, names): (&String, &BTreeSet<String>)| {
        let shared: Vec<&str> =
            names.iter().filter(|name| config.spot_qos.0.contains_key(*name)).map(String::as_str).collect();
        (!shared.is_empty()).then(|| {
            let found = format!(
                "its jobs may use {}: one limit of a QOS holds in all clusters of a slurmdbd, and two connectors overwrite it",
                shared.join(", ")
            );
            let fix = "add QOS of their own for the spot jobs of each cluster, and take those of this one from the associations of the other";
            Check::warn(format!("cluster {cluster}"), found, fix)
        })
    };
    facts.elsewhere.iter().filter_map(shares).collect()
}

/// Accounts one below the other, and no limit on the QOS, which would be found first.
fn chain(config: &Config, facts: &Facts) -> Vec<Check> {
    let Ok(qos) = &facts.qos else { return Vec::new() };
    let mut checks = Vec::new();
    let promised = config.spot_accounts.promised();
    for (hours, name) in promised.iter().filter(|(_, name)| !facts.accounts.contains_key(*name)) {
        let found = "Slurm does not know it: add it, or correct its name in spot_accounts";
        let shorter = promised.iter().rev().find(|(less, _)| less < hours);
        let parent = shorter.map(|(_, outer)| format!(" parent={outer}")).unwrap_or_default();
        checks.push(Check::fail(format!("account {name}"), found, format!("sacctmgr -i add account {name}{parent}")));
    }
    for pair in promised.windows(2) {
        let (outer, inner) = (pair[0].1, pair[1].1);
        if facts.parents.get(inner).is_some_and(|parent| parent != outer) {
            let found = format!("its parent is not {outer}: its jobs are not under the limit of {outer}");
            let fix = format!("sacctmgr -i modify account {inner} set parent={outer}");
            checks.push(Check::fail(format!("account {inner}"), found, fix));
        }
    }
    for name in config.spot_qos.0.keys() {
        if let Some(one) = qos.get(name).filter(|one| !one.limits.is_empty()) {
            let found = "it limits GPUs, and Slurm then ignores the limit of the account";
            let fix = format!("sacctmgr -i modify qos {name} set {}", cleared(&one.limits));
            checks.push(Check::fail(format!("qos {name}"), found, fix));
        }
    }
    checks
}
