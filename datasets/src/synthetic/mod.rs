//! Synthetic clusters from a seed: for the demo, tests, benches and replays.

/// Clusters calibrated to the GFS trace.
pub mod gfs;
mod small;

pub use small::SmallCluster;
