use std::fmt;

/// Parts of a node that GPUs can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// A NUMA node; where its GPUs are too few, as few NUMA nodes as the hardware allows, then as few sockets.
    Numa,
    /// A socket; where its GPUs are too few, as few sockets as the hardware allows.
    Socket,
    /// GPUs that reach each other over NVLink: one island.
    NvlinkIsland,
}

impl Domain {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Numa, Self::Socket, Self::NvlinkIsland];

    /// As it is written in requests and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Numa => "numa",
            Self::Socket => "socket",
            Self::NvlinkIsland => "nvlink-island",
        }
    }

    /// Reads the text of `as_str`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|domain| domain.as_str() == text)
    }
}

/// Handling of a pod whose GPUs cannot be aligned as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strictness {
    /// It waits.
    Guaranteed,
    /// It gets the best there is.
    BestEffort,
}

impl Strictness {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Guaranteed, Self::BestEffort];

    /// As it is written in requests and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guaranteed => "guaranteed",
            Self::BestEffort => "best_effort",
        }
    }

    /// Reads the text of `as_str`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strictness| strictness.as_str() == text)
    }
}

/// Where the GPUs of a pod are to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Affinity {
    /// Part of the node that has to hold all GPUs.
    pub domain: Domain,
    /// Handling of a pod that does not fit into one domain.
    pub strictness: Strictness,
}

impl Affinity {
    /// `DOMAIN` or `DOMAIN:STRICTNESS`; best effort where it does not say.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, strictness) = text.split_once(':').unwrap_or((text, Strictness::BestEffort.as_str()));
        Some(Self { domain: Domain::parse(domain)?, strictness: Strictness::parse(strictness)? })
    }
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.domain.as_str(), self.strictness.as_str())
    }
}
