//! One node: its GPUs, and what of them is taken by which class.

use super::request::{GpuRequest, PodRequest};
use std::sync::Arc;
use vocab::{NodeId, TaskClass, Topology};

/// Thousandths of one GPU.
pub const WHOLE_MILLI: u16 = vocab::MilliGpus::PER_GPU as u16;

/// Where a pod's GPUs are on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GpuPlace {
    /// Thousandths of the GPU of this number.
    Share {
        /// The index of the GPU on its node.
        gpu: u8,
        /// Thousandths of the GPU; 1 to 999.
        milli: u16,
    },
    /// One bit for each GPU, the first one lowest.
    Whole {
        /// A bit for each GPU of the node.
        mask: u64,
    },
}

/// The taken part of one GPU, in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gpu {
    /// Share of HP tasks, in thousandths.
    pub hp: u16,
    /// Share of spot tasks, in thousandths.
    pub spot: u16,
}

impl Gpu {
    /// Share that no task holds, in thousandths.
    #[must_use]
    pub const fn free(self) -> u16 {
        WHOLE_MILLI - self.hp - self.spot
    }

    /// Whether no task holds a share.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        self.hp == 0 && self.spot == 0
    }
}

/// A node while tasks come and go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Name of the node.
    pub id: NodeId,
    /// Its GPUs, by number.
    pub gpus: Vec<Gpu>,
    /// CPU and memory in all; `u64::MAX` where they are not known, and bind nobody.
    pub cpu_milli: u64,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// CPU that no task holds, in thousandths of a core.
    pub free_cpu_milli: u64,
    /// Memory that no task holds, in MiB.
    pub free_memory_mib: u64,
    /// Whether new pods may come: not while it drains.
    pub is_open: bool,
    /// Whether the node was taken away.
    pub is_gone: bool,
    /// Evictions within the short window and the long one.
    pub evictions: [u32; 2],
    /// Number of idle GPUs.
    pub idle: u8,
    /// Which of the fleet's GPU models its GPUs are.
    pub model: u8,
    /// Thousandths over all GPUs.
    pub hp_milli: u32,
    /// GPUs of spot tasks, in thousandths.
    pub spot_milli: u32,
    /// Pods by their GPUs, rising: how many there are with a share (0), with one GPU, and so on.
    pub sizes: Vec<(u16, u32)>,
    /// How its GPUs and cores lie, where that is known.
    pub topology: Option<Arc<Topology>>,
    /// Idle GPUs that are lent to elastic tasks, one bit for each, and what the pods on them use beside.
    pub lent: u64,
    /// CPU of lent pods, in thousandths of a core.
    pub lent_cpu_milli: u64,
    /// Memory of lent pods, in MiB.
    pub lent_memory_mib: u64,
}

impl NodeState {
    /// An empty node; CPU or memory that is not stated limits nothing.
    #[must_use]
    pub fn new(id: NodeId, gpus: usize, cpu_milli: Option<u64>, memory_mib: Option<u64>) -> Self {
        assert!(gpus <= 64, "node {id} has {gpus} GPUs: a mask has 64 bits");
        let (cpu_milli, memory_mib) = (cpu_milli.unwrap_or(u64::MAX), memory_mib.unwrap_or(u64::MAX));
        Self {
            id,
            gpus: vec![Gpu::default(); gpus],
            cpu_milli,
            memory_mib,
            free_cpu_milli: cpu_milli,
            free_memory_mib: memory_mib,
            is_open: true,
            is_gone: false,
            evictions: [0; 2],
            idle: gpus as u8,
            model: 0,
            hp_milli: 0,
            spot_milli: 0,
            sizes: Vec::new(),
            topology: None,
            lent: 0,
            lent_cpu_milli: 0,
            lent_memory_mib: 0,
        }
    }

    /// Whether new pods may come.
    #[must_use]
    pub const fn takes_pods(&self) -> bool {
        self.is_open && !self.is_gone
    }

    /// Whether such pods may come, if there is room.
    #[must_use]
    pub const fn takes(&self, pod: &PodRequest) -> bool {
        self.takes_pods() && pod.models.has(self.model)
    }

    /// Whether one such pod may come now.
    #[must_use]
    pub fn fits(&self, pod: &PodRequest) -> bool {
        let gpus_fit = match pod.gpus {
            GpuRequest::Whole(gpus) => u16::from(self.idle) >= gpus,
            GpuRequest::Share(milli) => self.gpus.iter().any(|gpu| gpu.free() >= milli),
        };
        gpus_fit && self.takes(pod) && self.has_room_beside_gpus(pod)
    }

    /// The largest free part of a GPU that is already shared.
    #[must_use]
    pub fn largest_part(&self) -> u16 {
        self.gpus.iter().filter(|gpu| !gpu.is_idle()).map(|gpu| gpu.free()).max().unwrap_or(0)
    }

    /// Thousandths over all GPUs that tasks have.
    #[must_use]
    pub fn used_milli(&self) -> u64 {
        u64::from(self.hp_milli) + u64::from(self.spot_milli)
    }

    /// Idle GPUs as bits.
    #[must_use]
    pub fn idle_mask(&self) -> u64 {
        self.mask(Gpu::is_idle)
    }

    /// GPUs for which `which` holds, as bits.
    pub fn mask(&self, which: impl Fn(Gpu) -> bool) -> u64 {
        let bits = self.gpus.iter().enumerate().filter(|(_, gpu)| which(**gpu));
        bits.fold(0, |mask, (number, _)| mask | 1 << number)
    }

    /// Whether CPU and memory suffice, where they are known.
    #[must_use]
    pub const fn has_room_beside_gpus(&self, pod: &PodRequest) -> bool {
        self.free_cpu_milli >= pod.cpu_milli && self.free_memory_mib >= pod.memory_mib
    }

    /// How many such pods would fit if nobody else were here.
    #[must_use]
    pub fn pods_when_empty(&self, pod: &PodRequest) -> u64 {
        let gpus = self.gpus.len() as u64;
        let by_gpus = match pod.gpus {
            GpuRequest::Share(milli) => gpus * u64::from(WHOLE_MILLI / milli.max(1)),
            GpuRequest::Whole(asked) => gpus.checked_div(u64::from(asked)).unwrap_or(u64::MAX),
        };
        let by = |all: u64, asked: u64| all.checked_div(asked).unwrap_or(u64::MAX);
        by_gpus.min(by(self.cpu_milli, pod.cpu_milli)).min(by(self.memory_mib, pod.memory_mib))
    }

    /// The GPUs that a pod would get now: a share goes to the fullest GPU that fits, then to an idle one; whole GPUs are
    /// idle ones, the lowest numbers first, those that are lent last.
    #[must_use]
    pub fn place(&self, request: GpuRequest) -> Option<GpuPlace> {
        match request {
            GpuRequest::Whole(count) => {
                let (idle, unlent) = (self.idle_mask(), self.idle_mask() & !self.lent);
                let first = lowest(unlent, count.min(unlent.count_ones() as u16))?;
                let rest = lowest(idle & !unlent, count - first.count_ones() as u16)?;
                debug_assert_eq!(
                    (first | rest).count_ones(),
                    u32::from(count),
                    "a place has the GPUs that are asked for"
                );
                debug_assert_eq!((first | rest) & !idle, 0, "whole GPUs are idle ones");
                Some(GpuPlace::Whole { mask: first | rest })
            }
            GpuRequest::Share(milli) => {
                let fits = self.gpus.iter().enumerate().filter(|(_, gpu)| gpu.free() >= milli);
                let (number, _) = fits.min_by_key(|(number, gpu)| (self.lent >> *number & 1, gpu.free(), *number))?;
                Some(GpuPlace::Share { gpu: number as u8, milli })
            }
        }
    }

    /// Whether these GPUs are free for it.
    #[must_use]
    pub fn can_hold(&self, place: GpuPlace) -> bool {
        match place {
            GpuPlace::Whole { mask } => mask & !self.idle_mask() == 0,
            GpuPlace::Share { gpu, milli } => self.gpus.get(usize::from(gpu)).is_some_and(|gpu| gpu.free() >= milli),
        }
    }

    /// Takes GPUs, CPU and memory, or gives them back.
    pub fn hold(&mut self, place: GpuPlace, pod: &PodRequest, class: TaskClass, takes: bool) {
        debug_assert!(!takes || self.can_hold(place), "node {} does not have {place:?}", self.id);
        let shares: Vec<(usize, u16)> = match place {
            GpuPlace::Share { gpu, milli } => vec![(usize::from(gpu), milli)],
            GpuPlace::Whole { mask } => numbers(mask).map(|number| (number, WHOLE_MILLI)).collect(),
        };
        for (number, milli) in shares {
            debug_assert!(number < self.gpus.len(), "GPU {number} of node {} does not exist", self.id);
            let gpu = &mut self.gpus[number];
            let (part, total) = match class {
                TaskClass::Hp => (&mut gpu.hp, &mut self.hp_milli),
                TaskClass::Spot => (&mut gpu.spot, &mut self.spot_milli),
            };
            if takes {
                *part += milli;
                *total += u32::from(milli);
                debug_assert!(*part <= WHOLE_MILLI, "GPU {number} of node {} is overused", self.id);
            } else {
                debug_assert!(*part >= milli, "GPU {number} of node {} gives back more than it has", self.id);
                *part -= milli;
                *total -= u32::from(milli);
            }
        }
        self.idle = self.idle_mask().count_ones() as u8;
        debug_assert!(usize::from(self.idle) <= self.gpus.len(), "node {} has more idle GPUs than GPUs", self.id);
        match place {
            GpuPlace::Share { .. } => self.count_size(0, takes),
            GpuPlace::Whole { mask: 0 } => {}
            GpuPlace::Whole { mask } => self.count_size(mask.count_ones() as u16, takes),
        }
        // Unknown parts stay unknown.
        for (free, all, asked) in [
            (&mut self.free_cpu_milli, self.cpu_milli, pod.cpu_milli),
            (&mut self.free_memory_mib, self.memory_mib, pod.memory_mib),
        ] {
            if all != u64::MAX {
                debug_assert!(!takes || *free >= asked, "a pod takes CPU or memory that is not free");
                *free = if takes { *free - asked } else { *free + asked };
                debug_assert!(*free <= all, "more CPU or memory is free than there is");
            }
        }
    }
}

impl NodeState {
    /// Lends GPUs with what a pod needs beside, or takes them back.
    pub fn lend(&mut self, mask: u64, pod: &PodRequest, lends: bool) {
        debug_assert!(!lends || self.lent & mask == 0, "a GPU of node {} is lent twice", self.id);
        debug_assert!(lends || self.lent & mask == mask, "node {} takes back what it did not lend", self.id);
        let moved = |sum: u64, part: u64| if lends { sum + part } else { sum - part };
        self.lent = if lends { self.lent | mask } else { self.lent & !mask };
        // An unknown amount binds no pod, and is not counted: a pod may ask for any of it.
        if self.cpu_milli != u64::MAX {
            self.lent_cpu_milli = moved(self.lent_cpu_milli, pod.cpu_milli);
        }
        if self.memory_mib != u64::MAX {
            self.lent_memory_mib = moved(self.lent_memory_mib, pod.memory_mib);
        }
    }

    /// Whether what is lent is idle: its GPUs, and what its pods use beside.
    #[must_use]
    pub fn loans_fit(&self) -> bool {
        self.lent & !self.idle_mask() == 0
            && self.lent_cpu_milli <= self.free_cpu_milli
            && self.lent_memory_mib <= self.free_memory_mib
    }

    fn count_size(&mut self, gpus: u16, takes: bool) {
        match (self.sizes.binary_search_by_key(&gpus, |(of, _)| *of), takes) {
            (Ok(at), true) => self.sizes[at].1 += 1,
            (Ok(at), false) if self.sizes[at].1 > 1 => self.sizes[at].1 -= 1,
            (Ok(at), false) => {
                self.sizes.remove(at);
            }
            (Err(at), true) => self.sizes.insert(at, (gpus, 1)),
            (Err(_), false) => {}
        }
        debug_assert!(self.sizes.is_sorted_by(|one, next| one.0 < next.0), "sizes of node {} rise", self.id);
        debug_assert!(self.sizes.iter().all(|(_, pods)| *pods > 0), "no size of node {} is without pods", self.id);
    }
}

/// So many of the lowest bits, if there are as many.
#[must_use]
pub fn lowest(mask: u64, count: u16) -> Option<u64> {
    if mask.count_ones() < u32::from(count) {
        return None;
    }
    let mut rest = mask;
    // Takes the lowest bit away, as often as wanted.
    (0..count).for_each(|_| rest &= rest.wrapping_sub(1));
    debug_assert_eq!((mask & !rest).count_ones(), u32::from(count), "the lowest {count} bits of {mask:b}");
    Some(mask & !rest)
}

/// Numbers of the bits that are set, rising.
pub fn numbers(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |number| mask >> number & 1 == 1)
}
