//! What Headroom is asked and told.

use placement::{Limit, Stage};
use std::collections::BTreeMap;
use vocab::{GpuModel, MilliGpus, UnixSeconds};

/// What Headroom offers in one pool, as it was answered last.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Q_H, by rising hours; what the stage leaves of it.
    pub limits: Vec<Limit>,
    pub capacity: MilliGpus,
    pub stage: Stage,
    pub computed_at: UnixSeconds,
}

/// The offers of this cluster's pools. A pool that is not there has no quota: nothing is admitted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Offers {
    pub pools: BTreeMap<GpuModel, Offer>,
    /// When they were answered, by the clock of this machine.
    pub asked_at: Option<UnixSeconds>,
}
