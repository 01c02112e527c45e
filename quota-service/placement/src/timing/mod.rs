//! When to preempt: who runs under an order of jobs, and deferrals that are learned (Lazer, DAC 2026).
//!
//! A [`Scheduler`] is a cluster of so many GPUs under a [`TimingPolicy`]. [`Event`]s go in, [`Action`]s come out; the
//! phases of a job (promised, loading, training, saving) follow from the times of its [`Run`]. Times are whole
//! milliseconds on the caller's clock.

pub mod checks;
pub mod gaussian;
mod gpus;
mod history;
mod job;
mod lazer;
pub mod normal;
mod observed;
mod policy;
pub mod predictor;
mod scheduler;
mod search;
#[cfg(test)]
mod tests;
mod tiresias;

pub use gpus::Gpus;
pub use history::History;
pub use job::{Ask, JobNumber, Phase, Run};
pub use lazer::Lazer;
pub use policy::{Futile, LazerRules, TimingPolicy};
pub use scheduler::{Action, Event, Scheduler};
