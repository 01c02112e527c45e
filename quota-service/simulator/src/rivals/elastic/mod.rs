//! Elastic jobs: GPUs that come and go one by one while a job runs, by number alone.
//!
//! [`Cornucopia`] (papers: Huang et al., "Cornucopia: elastic GPU cluster management for mixed batch-interactive
//! distributed training") decides who is urgent by [queues], and who grows and who shrinks by [gains](Profile::gain). Its
//! rivals stand beside it: [`Srtf`] and [`ElasticSrtf`], [`Tiresias`], [`Flow`] (ElasticFlow without deadlines), and
//! [`Chronus`], which alone looks at deadlines. Each is a [`Scheduler`]: it receives arrivals and ends, and answers with a new
//! allotment. Time is a number that the caller passes; GPUs are whole; nobody is placed on nodes, as in those papers'
//! simulators.

mod allot;
mod chronus;
mod cornucopia;
mod flow;
mod gangs;
mod job;
pub mod queues;
mod srtf;
#[cfg(test)]
mod tests;

pub use allot::{Allotments, Change, LEVELS, Level, Standing};
pub use chronus::Chronus;
pub use cornucopia::Cornucopia;
pub use flow::Flow;
pub use gangs::{Srtf, Tiresias, TiresiasRules};
pub use job::{ElasticJob, JobFault, JobNumber, Label};
pub use srtf::ElasticSrtf;

/// Milliseconds that a job still needs on its request, as only the clairvoyant ask.
pub type Left<'a> = dyn Fn(JobNumber) -> f64 + 'a;

/// A rule for the number of GPUs of each job.
pub trait Scheduler {
    /// A job comes. Only the clairvoyant look at `work_ms`, its time on its request.
    fn arrive(&mut self, job: ElasticJob, work_ms: i64, now_ms: i64);

    /// A job has ended; its GPUs are idle.
    fn leave(&mut self, number: JobNumber, now_ms: i64);

    /// When it wants to plan again though nobody comes or goes.
    fn next_ms(&self) -> Option<i64>;

    /// The changes now, in the order of jobs: those that give and those that take.
    fn replan(&mut self, now_ms: i64, left: &Left<'_>) -> Vec<Change>;
}
