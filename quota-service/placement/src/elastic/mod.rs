//! How an elastic task scales: the throughput that it has on each number of pods, and what one pod more or less changes.

mod profile;

pub use profile::{Profile, ProfileFault, Scaling};
