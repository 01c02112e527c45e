//! When to preempt: orders of jobs, plans of who runs, and deferrals that are learned (Lazer, DAC 2026; DESIGN §1).

pub mod draw;
pub mod gaussian;
pub mod normal;
pub mod predictor;
mod search;
