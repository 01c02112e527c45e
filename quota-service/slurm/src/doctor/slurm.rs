//! Slurm's release, accounting and rights.

use super::{Check, Facts, tracking};
use crate::config::{Config, Nesting};

/// The newest release whose JSON was known when this was built.
const NEWEST: (u32, u32) = (26, 5);

/// Checks of the release, the accounting, and the rights of this user.
pub fn of(config: &Config, facts: &Facts) -> Vec<Check> {
    let mut checks = vec![release(facts)];
    let storage = facts.config.get("AccountingStorageType");
    if storage != "accounting_storage/slurmdbd" {
        let found = format!("AccountingStorageType is {storage:?}: there are no QOS, no limits and no history");
        let fix = "set AccountingStorageType=accounting_storage/slurmdbd in slurm.conf, and start slurmdbd";
        checks.push(Check::fail("accounting", found, fix));
        return checks;
    }
    match &facts.qos {
        Ok(_) => checks.push(Check::ok("accounting", "slurmdbd answers")),
        Err(fault) => checks.push(Check::fail("accounting", fault, "start slurmdbd and its database")),
    }
    if facts.qos.is_ok() {
        checks.push(tracking::of(facts));
        checks.extend(rights(config, facts));
    }
    if config.mode.publishes() {
        checks.push(enforced(facts));
    }
    checks.extend(forgotten(config, facts));
    checks
}

/// A job that slurmctld forgets between two looks takes the notice of its eviction with it.
fn forgotten(config: &Config, facts: &Facts) -> Option<Check> {
    let age_s: u64 = facts.config.get("MinJobAge").split(' ').next()?.parse().ok()?;
    let found = format!(
        "slurmctld forgets a job {age_s} s after its end, and it is asked each {} s: evictions with notice may count as kept",
        config.look_s
    );
    let fix = "set MinJobAge=300 in slurm.conf and restart slurmctld, or a shorter look_s";
    (age_s <= 2 * config.look_s).then(|| Check::warn("ended jobs", found, fix))
}

fn release(facts: &Facts) -> Check {
    let (major, minor) = facts.release;
    let found = format!("{major}.{minor:02}");
    if facts.release > NEWEST {
        let newest = format!("{}.{:02}", NEWEST.0, NEWEST.1);
        let found = format!("{found} is newer than {newest}: its JSON is asked for in the form of that release");
        return Check::warn("slurm", found, "install a newer headroom-slurm, and read its notes on this release");
    }
    Check::ok("slurm", found)
}

fn rights(config: &Config, facts: &Facts) -> Option<Check> {
    if !config.mode.publishes() {
        return None;
    }
    let (level, user) = (facts.admin_level.as_str(), &facts.user);
    let (needed, suffices): (&str, &[&str]) = match config.nesting {
        Nesting::Qos => ("Administrator", &["Administrator"]),
        Nesting::Accounts => ("Operator", &["Operator", "Administrator"]),
    };
    // Slurm's own user and root may always.
    let is_owner = user == "root" || facts.config.get("SlurmUser").split('(').next() == Some(user);
    if is_owner || suffices.contains(&level) {
        return Some(Check::ok("rights", format!("{user} is {}", if is_owner { "Slurm's own user" } else { level })));
    }
    let found = format!("{user} is {level}: nesting {} needs {needed}", config.nesting);
    // Adding a user that is known changes no level.
    let fix =
        format!("sacctmgr -i add user {user} account=root; sacctmgr -i modify user {user} set adminlevel={needed}");
    Some(Check::fail("rights", found, fix))
}

fn enforced(facts: &Facts) -> Check {
    let enforces = |word: &str| {
        let list = facts.config.get("AccountingStorageEnforce");
        list.split(',').any(|one| one == "all" || one == word || (one == "safe" && word != "qos"))
    };
    let missing: Vec<&str> = ["associations", "limits", "qos"].into_iter().filter(|word| !enforces(word)).collect();
    if missing.is_empty() {
        return Check::ok("enforcement", facts.config.get("AccountingStorageEnforce"));
    }
    let found = format!("AccountingStorageEnforce lacks {}: limits are not held", missing.join(", "));
    let present = facts.config.get("AccountingStorageEnforce").split(',').map(str::trim);
    let present = present.filter(|one| !one.is_empty() && !one.eq_ignore_ascii_case("none"));
    let all: Vec<&str> = present.chain(missing).collect();
    let fix = format!("set AccountingStorageEnforce={} in slurm.conf and restart slurmctld", all.join(","));
    Check::fail("enforcement", found, fix)
}
