//! How well GPUs of a node lie together, and which sets of them lie best.
//!
//! A set of GPUs is measured by the parts of the node that it touches: NUMA nodes, sockets, or NVLink islands. It is
//! aligned where it touches as few as the node's hardware allows for so many GPUs: with a GPU a NUMA node, four GPUs touch
//! four of them wherever they lie, and are aligned within one socket. So does Kubernetes' `restricted` topology policy. An
//! NVLink island is one or none: GPUs of two are never aligned.

mod sets;
#[cfg(test)]
mod tests;

pub use vocab::{Affinity, Domain, NumaNode, Strictness, Topology, TopologyError};

pub(crate) use sets::{Search, each_set};

/// How well a set of GPUs lies together, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alignment {
    level: u8,
    /// Parts of the wanted kind, then sockets, that are touched; zero where it is aligned.
    parts: u8,
    sockets: u8,
}

impl Alignment {
    /// As the hardware allows at best.
    pub const ALIGNED: Self = Self { level: 0, parts: 0, sockets: 0 };
    /// On a node that does not say its topology.
    pub const UNKNOWN: Self = Self { level: 2, parts: 0, sockets: 0 };

    /// Whether the set lies as well as it can on this machine.
    #[must_use]
    pub const fn is_aligned(self) -> bool {
        self.level == 0
    }
}

/// Measures sets of so many GPUs on nodes of one topology.
#[derive(Debug, Clone)]
pub struct Ruler<'a> {
    topology: &'a Topology,
    domain: Domain,
    count: u16,
    /// Parts that an aligned set touches: parts of the wanted kind, sockets.
    least: (u8, u8),
    /// By GPU: the bit of its part of the wanted kind, and of its socket.
    bits: [(u64, u64); 64],
}

impl<'a> Ruler<'a> {
    /// For sets of `count` GPUs that are to share a `domain`.
    #[must_use]
    pub fn new(topology: &'a Topology, domain: Domain, count: u16) -> Self {
        debug_assert!(topology.parts(domain).len() <= 64, "a part is a bit");
        let mut bits = [(0, 0); 64];
        for (kind, sockets) in [(domain, false), (Domain::Socket, true)] {
            for (number, part) in topology.parts(kind).iter().enumerate() {
                for gpu in crate::fleet::numbers(*part) {
                    let bit = if sockets { &mut bits[gpu].1 } else { &mut bits[gpu].0 };
                    *bit = 1 << number;
                }
            }
        }
        let all = topology.parts(Domain::Socket).iter().fold(0, |all, part| all | part);
        let mut ruler = Self { topology, domain, count, least: (1, 0), bits };
        if domain != Domain::NvlinkIsland {
            ruler.least = ruler.fewest(all).unwrap_or((u8::MAX, u8::MAX));
        }
        ruler
    }

    /// Parts and sockets that the best set of the available GPUs touches; none where they are too few. Exact: of each set of
    /// sockets, the parts with most GPUs come first.
    fn fewest(&self, available: u64) -> Option<(u8, u8)> {
        if available.count_ones() < u32::from(self.count) {
            return None;
        }
        let sockets = if self.domain == Domain::Numa { self.topology.parts(Domain::Socket) } else { &[u64::MAX][..] };
        let counted = |chosen: u32| -> Option<(u8, u8)> {
            let inside =
                crate::fleet::numbers(u64::from(chosen)).fold(0, |all, number| all | sockets[number]) & available;
            let mut sizes = [0_u8; 64];
            let parts = self.topology.parts(self.domain);
            sizes.iter_mut().zip(parts).for_each(|(size, part)| *size = (part & inside).count_ones() as u8);
            sizes[..parts.len()].sort_unstable_by(|one, other| other.cmp(one));
            let mut have = 0;
            let enough = sizes[..parts.len()].iter().position(|size| {
                have += u16::from(*size);
                have >= self.count
            });
            let sockets = if self.domain == Domain::Numa { chosen.count_ones() as u8 } else { 0 };
            enough.map(|last| (last as u8 + 1, sockets))
        };
        (1..1_u32 << sockets.len()).filter_map(counted).min()
    }

    /// How a set lies that touches so many parts of the wanted kind and so many sockets. A set that grows never lies better.
    fn touching(&self, parts: u64, sockets: u64) -> Alignment {
        let (parts, sockets) = (parts.count_ones() as u8, sockets.count_ones() as u8);
        let sockets = if self.domain == Domain::Numa { sockets } else { 0 };
        self.measured((parts, sockets))
    }

    fn measured(&self, (parts, sockets): (u8, u8)) -> Alignment {
        if parts <= self.least.0 && sockets <= self.least.1 {
            return Alignment::ALIGNED;
        }
        Alignment { level: 1, parts: parts.max(self.least.0), sockets }
    }

    /// How a set of GPUs lies, one bit for each.
    #[must_use]
    pub fn align(&self, gpus: u64) -> Alignment {
        let touched = crate::fleet::numbers(gpus).fold(Touched::default(), |touched, gpu| touched.with(self, gpu));
        touched.alignment(self)
    }

    /// How the best set of the available GPUs lies; none where they are too few.
    #[must_use]
    pub fn best(&self, available: u64) -> Option<Alignment> {
        self.fewest(available).map(|touched| self.measured(touched))
    }

    /// Available GPUs that stay in parts that a set touches: fewer are better, since whole parts then stay whole. First of
    /// the wanted kind, then sockets, then NUMA nodes.
    pub(crate) fn left_beside(&self, available: u64, gpus: u64) -> [u32; 3] {
        [self.domain, Domain::Socket, Domain::Numa].map(|kind| {
            let touched = self.topology.parts(kind).iter().filter(|part| *part & gpus != 0);
            touched.map(|part| (part & available & !gpus).count_ones()).sum()
        })
    }

    /// The set of available GPUs that lies best, and of those one that leaves the fewest beside it, then the lowest numbers.
    #[must_use]
    pub fn choose(&self, available: u64) -> Option<u64> {
        let best = self.best(available)?;
        let mut search = Tightest { ruler: self, available, most: best, found: None };
        each_set(self, available, Touched::default(), &mut search);
        let found = search.found.map(|(.., gpus)| gpus);
        debug_assert!(found.is_some_and(|gpus| gpus & !available == 0 && gpus.count_ones() == u32::from(self.count)));
        found
    }

    pub(crate) const fn count(&self) -> u16 {
        self.count
    }

    pub(crate) fn parts(&self, kind: Option<Domain>) -> &[u64] {
        self.topology.parts(kind.unwrap_or(self.domain))
    }
}

/// Parts that a set of GPUs touches.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Touched {
    pub gpus: u64,
    parts: u64,
    sockets: u64,
}

impl Touched {
    pub const fn with(self, ruler: &Ruler<'_>, gpu: usize) -> Self {
        let (part, socket) = ruler.bits[gpu];
        Self { gpus: self.gpus | 1 << gpu, parts: self.parts | part, sockets: self.sockets | socket }
    }

    pub fn alignment(&self, ruler: &Ruler<'_>) -> Alignment {
        ruler.touching(self.parts, self.sockets)
    }
}

/// The search of [`Ruler::choose`].
struct Tightest<'a> {
    ruler: &'a Ruler<'a>,
    available: u64,
    /// The known possible sets.
    most: Alignment,
    found: Option<(Alignment, [u32; 3], u64)>,
}

impl Search for Tightest<'_> {
    type State = Touched;

    fn with(&self, state: Touched, gpu: usize) -> Touched {
        state.with(self.ruler, gpu)
    }

    fn may_win(&self, state: &Touched) -> bool {
        state.alignment(self.ruler) <= self.most
    }

    fn offer(&mut self, state: Touched) {
        let gpus = state.gpus;
        let one = (state.alignment(self.ruler), self.ruler.left_beside(self.available, gpus), gpus);
        if self.found.is_none_or(|found| one < found) {
            self.found = Some(one);
        }
    }

    fn burden(&self, _gpu: usize) -> u64 {
        0
    }
}

/// So many available GPUs for a pod that does not care where they lie: from the sockets, and in them the NUMA nodes, that
/// have fewest to give, so that large sets elsewhere stay whole.
#[must_use]
pub fn scarcest(topology: &Topology, available: u64, count: u16) -> Option<u64> {
    if available.count_ones() < u32::from(count) {
        return None;
    }
    let left = |kind, gpu: usize| {
        let part = topology.parts(kind).iter().find(|part| *part >> gpu & 1 == 1);
        part.map_or(0, |part| (part & available).count_ones())
    };
    let mut gpus: Vec<usize> = crate::fleet::numbers(available).collect();
    gpus.sort_by_key(|gpu| (left(Domain::Socket, *gpu), topology.sockets_of(1 << gpu), left(Domain::Numa, *gpu), *gpu));
    let chosen = gpus.into_iter().take(usize::from(count)).fold(0, |mask, gpu| mask | 1 << gpu);
    debug_assert_eq!((chosen & available).count_ones(), u32::from(count));
    Some(chosen)
}
