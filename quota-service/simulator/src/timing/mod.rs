//! Timing: a list of jobs on so many GPUs under `crate::rivals::timing`, with phases of loading and saving.

pub mod args;
pub mod figures;
pub mod phases;
pub mod run;
pub mod show;
pub mod work;

use crate::args::Config;
use crate::commands::SimulatorError;
use crate::rivals::timing::TimingPolicy;
use args::Timing;

/// `simulate timing`.
///
/// # Errors
/// A policy is none, the jobs or phases cannot be read, or the folder cannot be written.
pub fn timing(what: &Timing, config: &Config, json: bool) -> Result<(), SimulatorError> {
    // A wrong name is refused before anything is read.
    let policies: Vec<(&str, TimingPolicy)> = what.policies.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
    crate::policies::each_once("--policies", &what.policies).map_err(SimulatorError::Value)?;
    let work = work::Work::read(what, config.seed)?;
    let mut played = Vec::new();
    for (name, policy) in policies {
        played.push((name.to_owned(), run::run(&work, policy, config.seed)));
    }
    if let Some(folder) = &what.out {
        show::write(folder, &played)?;
    }
    show::show(&work, &played, json);
    Ok(())
}

fn named(name: &str) -> Result<(&str, TimingPolicy), SimulatorError> {
    let policy = TimingPolicy::parse(name).map(|policy| (name, policy));
    policy.ok_or_else(|| {
        let known = TimingPolicy::ALL.map(|(name, _)| name).join(", ");
        SimulatorError::Value(format!("{name:?} is no policy of timing; there are {known}"))
    })
}
