//! Options of every reader.

use crate::calendar::Calendar;
use chrono_tz::Tz;
use std::collections::BTreeMap;
use vocab::{ClusterName, GpuModel};

/// Time zones of clusters.
pub type Zones = BTreeMap<ClusterName, Tz>;

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
    /// Of files whose rows name their cluster: naive times of these clusters are read in their zones, and not in that of
    /// `calendar`.
    pub zones: Zones,
}

impl ReadOptions {
    /// The zone of naive times in a row of this cluster.
    #[must_use]
    pub fn zone_of(&self, cluster: &ClusterName) -> Tz {
        self.zones.get(cluster).copied().unwrap_or_else(|| self.calendar.zone())
    }
}
