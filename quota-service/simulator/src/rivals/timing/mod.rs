//! When to preempt: who runs under an order of jobs, and deferrals that are learned (Lazer, DAC 2026).
//!
//! A [`Scheduler`] is a cluster of so many GPUs under a [`TimingPolicy`]. [`Event`]s go in, [`Action`]s come out; the
//! phases of a job (promised, loading, training, saving) follow from the times of its [`Run`]. Times are whole
//! milliseconds on the caller's clock.

pub mod checks;
mod gpus;
mod job;
mod lazer;
mod observed;
mod policy;
mod scheduler;
#[cfg(test)]
mod tests;
mod tiresias;

pub use gpus::Gpus;
pub use job::{Ask, JobNumber, Phase, Run};
pub use lazer::Lazer;
pub use policy::{Futile, LazerRules, TimingPolicy};
pub use scheduler::{Action, Event, Scheduler};
