//! How the GPUs and cores of a node lie, and what a pod asks of that.

mod affinity;
mod list;
mod preset;

pub use affinity::{Affinity, Domain, Strictness};
pub use list::{List, ListError};

use std::fmt;

/// GPUs of a node at most: one bit each.
const MOST_GPUS: u32 = 64;
/// Sockets of a node at most: what is best is found by a look at all sets of them.
const MOST_SOCKETS: usize = 8;

/// Why a topology is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    #[error("unknown topology {name:?}: expected one of {}", Topology::PRESETS.join(", "))]
    NoPreset { name: String },
    #[error(
        "the topology has no GPU: nvidia-smi and /sys show none on this machine; run it on a node with GPUs, or give files of one"
    )]
    NoGpus,
    #[error("GPU {gpu} exceeds the limit of {most} GPUs of a node", most = MOST_GPUS)]
    TooManyGpus { gpu: u32 },
    #[error("GPU {gpu} is in no NUMA node, but GPU {last} is: number GPUs from 0 without gaps")]
    Gap { gpu: u32, last: u32 },
    #[error("GPU {gpu} is in two NUMA nodes, {one} and {other}")]
    GpuTwice { gpu: u32, one: u16, other: u16 },
    #[error("NUMA node {numa} occurs twice")]
    NumaTwice { numa: u16 },
    #[error("core {core} is in two NUMA nodes, {one} and {other}")]
    CoreTwice { core: u32, one: u16, other: u16 },
    #[error("there are {sockets} sockets, more than {most}", most = MOST_SOCKETS)]
    TooManySockets { sockets: usize },
    #[error("GPU {gpu} of an NVLink island is in no NUMA node")]
    UnknownGpu { gpu: u32 },
    #[error("GPU {gpu} is in two NVLink islands")]
    IslandTwice { gpu: u32 },
    #[error("an NVLink island needs at least two GPUs")]
    LoneIsland,
    #[error("the topology has {have} GPUs, the node {gpus}")]
    OtherSize { have: u32, gpus: u32 },
    #[error(transparent)]
    List(#[from] ListError),
    #[error("{text:?} is not part of a topology: write for example numa 0 socket 0 gpus 0-3 cores 0-31; nvlink 0-3")]
    Text { text: String },
}

/// A NUMA node: its cores and GPUs reach each other and its memory without a detour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumaNode {
    /// Number of the NUMA node.
    pub number: u16,
    /// Socket of the NUMA node.
    pub socket: u16,
    /// One bit for each GPU, the first one lowest.
    pub gpus: u64,
    /// Logical CPUs, as the operating system numbers them.
    pub cores: List,
}

/// Which GPUs and cores lie in which NUMA node and socket, and which GPUs reach each other over NVLink.
///
/// Each GPU is in exactly one NUMA node and in at most one island; GPUs are numbered from 0 without gaps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Topology {
    /// By their numbers.
    numa_nodes: Vec<NumaNode>,
    /// One bit for each GPU; by their lowest GPU.
    islands: Vec<u64>,
    gpus: u32,
    /// GPUs of each NUMA node, socket, and island that has any; a GPU in no island is one of its own.
    parts: [Vec<u64>; 3],
}

impl Topology {
    /// Checks and orders what is known of a node.
    ///
    /// # Errors
    /// A GPU, core or NUMA node is missing, unknown, or there twice.
    pub fn new(mut numa_nodes: Vec<NumaNode>, mut islands: Vec<u64>) -> Result<Self, TopologyError> {
        numa_nodes.sort_by_key(|numa| numa.number);
        if let Some(pair) = numa_nodes.windows(2).find(|pair| pair[0].number == pair[1].number) {
            return Err(TopologyError::NumaTwice { numa: pair[0].number });
        }
        let all = check_parts(&numa_nodes)?;
        let gpus = all.count_ones();
        if all == 0 {
            return Err(TopologyError::NoGpus);
        }
        if all.trailing_ones() != gpus {
            return Err(TopologyError::Gap { gpu: all.trailing_ones(), last: all.ilog2() });
        }
        let in_islands = check_islands(&islands, all)?;
        islands.sort_by_key(|island| island.trailing_zeros());
        let mut sockets: Vec<(u16, u64)> = Vec::new();
        for numa in numa_nodes.iter().filter(|numa| numa.gpus != 0) {
            match sockets.iter_mut().find(|(socket, _)| *socket == numa.socket) {
                Some((_, mask)) => *mask |= numa.gpus,
                None => sockets.push((numa.socket, numa.gpus)),
            }
        }
        if sockets.len() > MOST_SOCKETS {
            return Err(TopologyError::TooManySockets { sockets: sockets.len() });
        }
        let of_numa = numa_nodes.iter().map(|numa| numa.gpus).filter(|mask| *mask != 0).collect();
        let alone = (0..gpus).map(|gpu| 1_u64 << gpu).filter(|gpu| in_islands & gpu == 0);
        let of_islands = islands.iter().copied().chain(alone).collect();
        let parts = [of_numa, sockets.into_iter().map(|(_, mask)| mask).collect(), of_islands];
        Ok(Self { numa_nodes, islands, gpus, parts })
    }

    /// GPUs of the node.
    #[must_use]
    pub const fn gpus(&self) -> u32 {
        self.gpus
    }

    /// By their numbers; those without GPUs are among them.
    #[must_use]
    pub fn numa_nodes(&self) -> &[NumaNode] {
        &self.numa_nodes
    }

    /// GPUs that reach each other over NVLink, one bit for each GPU.
    #[must_use]
    pub fn islands(&self) -> &[u64] {
        &self.islands
    }

    /// The GPUs of each part of one kind, one bit for each GPU: every GPU is in exactly one of them. A GPU in no NVLink
    /// island is a part of its own.
    #[must_use]
    pub fn parts(&self, domain: Domain) -> &[u64] {
        &self.parts[domain as usize]
    }

    /// Numbers of the NUMA nodes of some GPUs, rising.
    #[must_use]
    pub fn numa_of(&self, gpus: u64) -> Vec<u16> {
        self.with(gpus).map(|numa| numa.number).collect()
    }

    /// Numbers of the sockets of some GPUs, rising.
    #[must_use]
    pub fn sockets_of(&self, gpus: u64) -> Vec<u16> {
        let mut sockets: Vec<u16> = self.with(gpus).map(|numa| numa.socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        sockets
    }

    fn with(&self, gpus: u64) -> impl Iterator<Item = &NumaNode> {
        self.numa_nodes.iter().filter(move |numa| numa.gpus & gpus != 0)
    }

    /// The cores beside some GPUs: those of a NUMA node are shared out evenly among its GPUs, so that pods on different GPUs
    /// have different cores. Each run of numbers is shared out by itself: hyperthreads of one core stay together.
    #[must_use]
    pub fn cores_of(&self, gpus: u64) -> List {
        let mut cores = Vec::new();
        for numa in self.with(gpus) {
            let of = numa.gpus.count_ones();
            let mine = (0..MOST_GPUS).filter(|gpu| numa.gpus >> gpu & 1 == 1).zip(0..);
            for (_, place) in mine.filter(|(gpu, _)| gpus >> gpu & 1 == 1) {
                cores.extend(numa.cores.ranges().iter().filter_map(|range| share(*range, place, of)));
            }
        }
        List::of_ranges(cores)
    }

    /// The same for a node that has only the first so many of the GPUs.
    ///
    /// # Errors
    /// There are fewer, or none is left.
    pub fn first(&self, gpus: u32) -> Result<Self, TopologyError> {
        if gpus > self.gpus {
            return Err(TopologyError::OtherSize { have: self.gpus, gpus });
        }
        let kept = 1_u64.checked_shl(gpus).map_or(u64::MAX, |bit| bit - 1);
        let numa = |numa: &NumaNode| NumaNode { gpus: numa.gpus & kept, ..numa.clone() };
        let islands = self.islands.iter().map(|island| island & kept).filter(|island| island.count_ones() > 1);
        Self::new(self.numa_nodes.iter().map(numa).collect(), islands.collect())
    }

    /// One that [`Display`](fmt::Display) has written.
    ///
    /// # Errors
    /// The text is none, or describes no topology.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        let (mut numa_nodes, mut islands) = (Vec::new(), Vec::new());
        for part in text.split(';').map(str::trim) {
            let refused = || TopologyError::Text { text: part.to_owned() };
            match part.split(' ').collect::<Vec<_>>()[..] {
                ["numa", number, "socket", socket, "gpus", gpus, "cores", cores] => numa_nodes.push(NumaNode {
                    number: number.parse().map_err(|_| refused())?,
                    socket: socket.parse().map_err(|_| refused())?,
                    gpus: gpu_mask(&List::parse(gpus)?)?,
                    cores: List::parse(cores)?,
                }),
                ["nvlink", gpus] => islands.push(gpu_mask(&List::parse(gpus)?)?),
                _ => return Err(refused()),
            }
        }
        Self::new(numa_nodes, islands)
    }
}

/// Every GPU and core is in one NUMA node at most; answers all GPUs.
fn check_parts(numa_nodes: &[NumaNode]) -> Result<u64, TopologyError> {
    let mut all = 0;
    for (place, numa) in numa_nodes.iter().enumerate() {
        all |= numa.gpus;
        for before in &numa_nodes[..place] {
            let (one, other) = (before.number, numa.number);
            if before.gpus & numa.gpus != 0 {
                return Err(TopologyError::GpuTwice { gpu: (before.gpus & numa.gpus).trailing_zeros(), one, other });
            }
            if let Some(core) = before.cores.first_common(&numa.cores) {
                return Err(TopologyError::CoreTwice { core, one, other });
            }
        }
    }
    Ok(all)
}

/// Islands are of known GPUs and disjoint; answers the GPUs that are in any.
fn check_islands(islands: &[u64], all: u64) -> Result<u64, TopologyError> {
    let mut seen = 0_u64;
    for island in islands {
        if island & !all != 0 {
            return Err(TopologyError::UnknownGpu { gpu: (island & !all).trailing_zeros() });
        }
        if island & seen != 0 {
            return Err(TopologyError::IslandTwice { gpu: (island & seen).trailing_zeros() });
        }
        if island.count_ones() < 2 {
            return Err(TopologyError::LoneIsland);
        }
        seen |= island;
    }
    Ok(seen)
}

/// One bit for each GPU of a list.
///
/// # Errors
/// One of them is beyond what a node may have.
pub fn gpu_mask(gpus: &List) -> Result<u64, TopologyError> {
    let bit = |mask: u64, gpu: u32| {
        let bit = 1_u64.checked_shl(gpu).ok_or(TopologyError::TooManyGpus { gpu })?;
        Ok(mask | bit)
    };
    gpus.numbers().try_fold(0, bit)
}

/// The part of a run of cores that falls to one of several GPUs.
fn share((first, last): (u32, u32), place: u32, of: u32) -> Option<(u32, u32)> {
    let cores = u64::from(last - first) + 1;
    let cut = |place: u32| first + (cores * u64::from(place) / u64::from(of)) as u32;
    let (from, to) = (cut(place), cut(place + 1));
    (from < to).then(|| (from, to - 1))
}

/// In one line, as the store keeps it.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, NumaNode { number, socket, gpus, cores }) in self.numa_nodes.iter().enumerate() {
            let between = if place == 0 { "" } else { "; " };
            let gpus = List::of_mask(*gpus);
            write!(f, "{between}numa {number} socket {socket} gpus {gpus} cores {cores}")?;
        }
        self.islands.iter().try_for_each(|island| write!(f, "; nvlink {}", List::of_mask(*island)))
    }
}

#[cfg(test)]
mod tests;
