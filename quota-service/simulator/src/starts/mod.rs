//! When will a task start? Questions during a replay, held against what happens.

pub mod args;
pub mod rivals;
pub mod score;
pub mod show;
pub mod watch;

use crate::args::Config;
use crate::commands::{SimulatorError, settings, warn_of_left_out, world};
use crate::run::run_before;
use crate::world::Job;
use args::Eta;
use starts::HORIZON_S;
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
    let submitted = |job: Option<&Job>| job.map_or(UnixSeconds::new(0), |job| job.request.submitted);
    let (start, end) = (submitted(world.jobs.first()), submitted(world.jobs.last()));
    // After the last arrival the pool empties, and all that wait start: that is the end of the list, and no wait.
    let scored = start.plus_s(what.scored_after.seconds())..end.plus_s(-i64::from(HORIZON_S));
    if let Some(folder) = &what.out {
        show::write(folder, &watch.questions)?;
    }
    show::show(&watch, &scored, json);
    Ok(())
}
