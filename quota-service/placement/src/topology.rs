//! Where the GPUs, cores and memory of a node lie, and what a pod asks of that.

/// Parts of a node that GPUs can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// A NUMA node; on nodes with one GPU for each NUMA node, as few of them as possible.
    Numa,
    Socket,
    /// GPUs that reach each other over NVLink.
    NvlinkIsland,
}

/// What becomes of a pod whose GPUs cannot lie as it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strictness {
    /// It waits.
    Guaranteed,
    /// It gets the best there is.
    BestEffort,
}

/// Where the GPUs of a pod are to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Affinity {
    pub domain: Domain,
    pub strictness: Strictness,
}
