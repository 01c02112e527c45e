//! HP jobs as they run and wait.

use crate::{MilliGpus, Organization, TaskId, UnixSeconds};

/// An HP job that runs or waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HpJob {
    /// Its task.
    pub task: TaskId,
    /// The organization that submitted it.
    pub organization: Organization,
    /// Thousandths of a GPU, of all its pods.
    pub gpus_milli: u64,
    /// The time of its submission.
    pub submitted: UnixSeconds,
    /// The start of its run; none while it waits.
    pub started: Option<UnixSeconds>,
}

/// GPUs of all jobs; the largest amount where they are more than an amount holds.
#[must_use]
pub fn hp_gpus(jobs: &[HpJob]) -> MilliGpus {
    let milli = jobs.iter().fold(0_u64, |sum, job| sum.saturating_add(job.gpus_milli));
    MilliGpus::from_milli(milli).unwrap_or(MilliGpus::from_gpus(u32::MAX))
}
