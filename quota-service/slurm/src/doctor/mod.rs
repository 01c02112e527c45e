//! `headroom-slurm doctor`: checks the installation, and prints a fix for each problem. It changes nothing.
//!
//! Each part answers a list of [`Check`]s; [`examine`] puts them in order. A new source of checks is one more line there. A fix that is a
//! command is that command alone, to be pasted into a shell: what else there is to say is in the finding.

mod facts;
mod files;
mod limits;
mod preemption;
mod service;
mod slurm;
#[cfg(test)]
mod tests;
mod tracking;

pub use command_line::{Check, Report, Status};
pub use facts::{Facts, Qos};

use crate::args::DoctorFlags;
use crate::config::Config;
use crate::run;
use crate::site::Site;
use command_line::{ConfigError, Entry, Exit, Failure, Settings};
use connectors::doctor::Gpus;

/// Runs all checks, and prints the report.
///
/// # Errors
/// 4 where the settings are invalid, 1 where anything else fails, or if a check warns and `--strict` was given.
pub async fn run(
    settings: Result<Settings<Config>, ConfigError>,
    flags: DoctorFlags,
    json: bool,
) -> Result<(), Failure> {
    let examined =
        async |config: &Config, entries: &[Entry]| (Report::of(examine(config, entries).await), Exit::Failure);
    command_line::doctor("headroom-slurm", settings, (flags.strict, json), examined).await
}

/// Every check, in order.
pub async fn examine(config: &Config, entries: &[Entry]) -> Vec<Check> {
    // 1. This machine.
    let mut checks = vec![Check::settings(entries)];
    checks.extend(files::of(config));
    // 2. Slurm.
    let site = Site::new(config);
    let (mut here, mut known) = (None, None);
    match facts::read(&site).await {
        Err(check) => checks.push(check),
        Ok(facts) => {
            checks.extend(slurm::of(config, &facts));
            checks.extend(limits::of(config, &facts));
            checks.extend(preemption::of(config, &facts));
            let (found, gpus) = cluster(&site, config, &facts).await;
            checks.extend(found);
            (here, known) = (gpus, Some(facts));
        }
    }
    // 3. Headroom, and whether the two fit.
    checks.extend(service::of(config, known.as_ref(), here.as_ref()).await);
    checks
}

/// Whether jobs and nodes can be read; the GPUs of the cluster.
async fn cluster(site: &Site, config: &Config, facts: &Facts) -> (Vec<Check>, Option<Gpus>) {
    let accounts = match run::accounts(site, config).await {
        Ok(accounts) => accounts,
        Err(fault) => {
            return (vec![Check::fail("accounts", fault, "start slurmdbd, or set account_level = 0")], None);
        }
    };
    match run::look(site, config, &accounts).await {
        Err(fault) => (vec![Check::fail("jobs and nodes", fault, "read the message: it names the command")], None),
        Ok((view, ..)) if view.pools.is_empty() => (no_gpus(facts).into_iter().collect(), None),
        Ok((view, ..)) => {
            let pools: Vec<String> =
                view.pools.iter().map(|(model, pool)| format!("{} {model}", pool.capacity_gpus())).collect();
            let mut checks =
                vec![Check::ok("gpus", format!("{} on {}", pools.join(", "), vocab::count(view.nodes, "node")))];
            if let Some(fault) = view.faults.first() {
                let found = format!("{} of them cannot be read, first: {fault}", view.faults.len());
                checks.push(Check::warn("records", found, "report it, with the record, to who maintains Headroom"));
            }
            let gpus = view.pools.iter().map(|(model, pool)| (model.clone(), pool.capacity_gpus())).collect();
            (checks, Some(gpus))
        }
    }
}

/// Nodes without GPUs. Where they have some that slurmctld does not track, that is a check already.
fn no_gpus(facts: &Facts) -> Option<Check> {
    let is_tracking = !facts.on_nodes.is_empty() && !tracking::untracked(facts).is_empty();
    let fix = "set GresTypes=gpu and Gres=gpu:TYPE:COUNT of the nodes in slurm.conf, and their files in gres.conf";
    (!is_tracking).then(|| Check::fail("gpus", "no node has GPUs", fix))
}
