//! Options of every reader.

use crate::calendar::Calendar;
use vocab::{ClusterName, GpuModel};

/// How files are read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The cluster of files that do not name one.
    pub cluster: ClusterName,
    /// The GPU model of files that do not name one.
    pub gpu_model: GpuModel,
    /// Naive times are read in its zone.
    pub calendar: Calendar,
    /// Collect bad rows in the report instead of stopping at the first.
    pub skip_bad_rows: bool,
}
