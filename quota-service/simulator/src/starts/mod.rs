//! When will a task start? Questions during a replay, held against what happens.

pub mod args;
pub mod rivals;
pub mod score;
pub mod show;
pub mod watch;

use crate::args::Config;
use crate::commands::{SimulatorError, settings, warn_of_left_out, world};
use crate::run::run_before;
use args::Eta;
use vocab::UnixSeconds;
use watch::Watch;

/// `simulate eta`.
///
/// # Errors
/// The trace cannot be read, the run broke off, or the folder cannot be written.
pub fn eta(what: &Eta, config: &Config, json: bool) -> Result<(), SimulatorError> {
    let world = world(&what.trace, config)?;
    warn_of_left_out(&world);
    let (_, settings) = settings(&what.policy, &what.trace, config)?;
    let mut watch = Watch::new(&world, what.every, config.seed);
    run_before(&world, &settings, &mut watch)?;
    let start = world.jobs.first().map_or(UnixSeconds::new(0), |job| job.request.submitted);
    if let Some(folder) = &what.out {
        show::write(folder, &watch.questions)?;
    }
    show::show(&watch, start.plus_s(what.scored_after.seconds()), json);
    Ok(())
}
