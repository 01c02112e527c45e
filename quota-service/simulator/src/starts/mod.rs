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
use std::ops::Range;
use vocab::{HorizonHours, SECONDS_PER_HOUR, UnixSeconds};
use watch::Watch;

/// `simulate eta`.
///
/// # Errors
/// The trace cannot be read, the run broke off, or the folder cannot be written.
pub fn eta(what: &Eta, config: &Config, json: bool) -> Result<(), SimulatorError> {
    let world = world(&what.trace, config)?;
    warn_of_left_out(&world);
    let (_, settings) = settings(&what.policy, &what.trace, config)?;
    let submitted = |job: Option<&Job>| job.map_or(UnixSeconds::new(0), |job| job.request.submitted);
    let scored = scored(submitted(world.jobs.first())..submitted(world.jobs.last()), what.scored_after);
    if scored.is_empty() && what.out.is_none() {
        let (after, last_h) = (what.scored_after, i64::from(HORIZON_S) / SECONDS_PER_HOUR);
        return Err(SimulatorError::Value(format!(
            "no question would be scored: those of the first {after} and of the last {last_h}h of submissions are not; \
             replay a longer list, lower --scored-after, or write all questions with --out"
        )));
    }
    let mut watch = Watch::new(&world, what.every, config.seed);
    run_before(&world, &settings, &mut watch)?;
    if let Some(folder) = &what.out {
        show::write(folder, &watch.questions)?;
    }
    show::show(&watch, &scored, json);
    Ok(())
}

/// When questions are scored, of submissions that last so long. After the last arrival the pool empties, and all that wait start: that is
/// the end of the list, and no wait.
fn scored(submissions: Range<UnixSeconds>, after: HorizonHours) -> Range<UnixSeconds> {
    submissions.start.plus_s(after.seconds())..submissions.end.plus_s(-i64::from(HORIZON_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hours_teach_and_the_last_72_are_the_end_of_the_list() {
        let hours = |from: i64, to: i64| UnixSeconds::new(from * 3_600)..UnixSeconds::new(to * 3_600);
        let day = HorizonHours::new(24).unwrap();
        assert_eq!(scored(hours(10, 110), day), hours(34, 38));
        assert!(scored(hours(10, 106), day).is_empty());
    }
}
