//! Tasks of a future: those that wait, and those that run.

use crate::room::Occupants;
use std::ops::Range;

/// A task that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// Among the waiting tasks of now; none for those that come later.
    pub(super) waiting: u32,
    pub(super) submitted: i64,
    pub(super) queued_s: i64,
    /// Seconds of work, and what of it is saved; none until they are drawn.
    pub(super) work_s: Option<f32>,
    pub(super) saved_s: f32,
}

/// A task that runs, or ran.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Among the waiting tasks of now; none for others.
    pub(super) waiting: u32,
    pub(super) group: u32,
    pub(super) submitted: i64,
    pub(super) pods: Range<u32>,
    /// Age at the time from which it is counted.
    pub(super) age_s: f32,
    pub(super) from_s: f32,
    /// When it began within its step.
    pub(super) began_s: f32,
    /// Work of it that was saved then.
    pub(super) saved_s: f32,
    pub(super) work_s: f32,
    pub(super) runs: bool,
    pub(super) promised: bool,
}

/// Running tasks, for those who look for victims.
#[derive(Debug, Clone)]
pub(super) struct Runs(pub(super) Vec<Run>);

impl Occupants for Runs {
    fn stands(&self, run: u32) -> (bool, bool) {
        let run = &self.0[run as usize];
        (run.runs, run.promised)
    }
}
