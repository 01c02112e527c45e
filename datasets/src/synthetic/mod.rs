//! Synthetic clusters from a seed: for the demo, tests, benches and replays.

pub mod gfs;
mod small;

pub use small::SmallCluster;
