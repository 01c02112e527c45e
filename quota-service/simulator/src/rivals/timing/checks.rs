//! Invariants after every decision, as functions that code, tests and simulator call.

use super::job::JobNumber;
use super::scheduler::Scheduler;

/// GPUs that are given and GPUs that are not are all GPUs.
///
/// # Panics
/// They are not.
pub fn gpus_are_given_once(scheduler: &Scheduler) {
    let given: u32 = scheduler.active.iter().map(|job| scheduler.job(*job).ask.gpus).sum();
    let available = scheduler.gpus.available();
    assert_eq!(given + available, scheduler.total, "{given} GPUs are given and {available} are not");
}

/// Nobody is paused if nobody starts for it.
///
/// # Panics
/// A job is.
pub fn nobody_is_paused_in_vain<T>(pauses: &[JobNumber], starts: &[T]) {
    assert!(pauses.is_empty() || !starts.is_empty(), "{pauses:?} would be paused and nobody started");
}

/// Without any one of the victims the GPUs would not suffice.
///
/// # Panics
/// They would.
pub fn every_victim_is_needed(scheduler: &Scheduler, job: JobNumber, victims: &[JobNumber]) {
    let gpus = |job: &JobNumber| scheduler.job(*job).ask.gpus;
    let freed = scheduler.gpus.available() + victims.iter().map(gpus).sum::<u32>();
    let needed = gpus(&job);
    assert!(freed >= needed, "{freed} GPUs would be free for the {needed} of {job:?}");
    let in_vain = victims.iter().find(|victim| freed - gpus(victim) >= needed);
    assert_eq!(in_vain, None, "{job:?} does not need its GPUs");
}
