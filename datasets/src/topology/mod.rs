//! How the GPUs and cores of a machine lie: sockets, NUMA nodes and cores from sysfs, NVLink from `nvidia-smi topo -m`.

mod nvidia;
mod sysfs;
#[cfg(test)]
mod tests;

pub use nvidia::{GpuRow, parse as nvidia_smi};
pub use sysfs::{Machine, machine};

use std::path::PathBuf;
use vocab::{ListError, NumaNode, Topology, TopologyError};

/// Why a machine could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TopologyReadError {
    #[error("{}: {fault}", path.display())]
    Read { path: PathBuf, fault: std::io::Error },
    #[error("{}: {text:?} is not a number", path.display())]
    Number { path: PathBuf, text: String },
    #[error("{}: {fault}", path.display())]
    List { path: PathBuf, fault: ListError },
    #[error("{} has no NUMA node: name the /sys folder of the machine", path.display())]
    NoNuma { path: PathBuf },
    #[error("line {line} of nvidia-smi topo -m: {what}")]
    Matrix { line: usize, what: String },
    #[error("no line of GPUs: expected the output of nvidia-smi topo -m")]
    NoMatrix,
    #[error("nvidia-smi shows {shown} GPUs, sysfs {found}: take both from one machine")]
    Differ { shown: usize, found: usize },
    #[error("the NUMA node of GPU {gpu} is unknown: neither nvidia-smi nor sysfs contains it")]
    NoNumaOf { gpu: usize },
    #[error("GPU {gpu} is in NUMA node {numa}, but the machine has no such node")]
    UnknownNuma { gpu: usize, numa: u16 },
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Topology of both sources. sysfs fills in NUMA nodes that `nvidia-smi` does not print: its GPUs are in the order of
/// their addresses, as those of `nvidia-smi` are.
///
/// # Errors
/// They contradict each other, or what they say is no topology.
pub fn combined(machine: &Machine, gpus: Option<&[GpuRow]>) -> Result<Topology, TopologyReadError> {
    let found = machine.gpu_numa.len();
    if let Some(shown) = gpus.map(<[GpuRow]>::len).filter(|shown| found > 0 && *shown != found) {
        return Err(TopologyReadError::Differ { shown, found });
    }
    let only = if let [only] = &machine.numa_nodes[..] { Some(only.number) } else { None };
    let mut numa_nodes = machine.numa_nodes.clone();
    for gpu in 0..gpus.map_or(found, <[GpuRow]>::len) {
        let shown = gpus.and_then(|gpus| gpus[gpu].numa);
        let numa = shown.or_else(|| machine.gpu_numa.get(gpu).copied().flatten()).or(only);
        let numa = numa.ok_or(TopologyReadError::NoNumaOf { gpu })?;
        let here: Option<&mut NumaNode> = numa_nodes.iter_mut().find(|one| one.number == numa);
        let bit = 1_u64.checked_shl(gpu as u32).ok_or(TopologyError::TooManyGpus { gpu: gpu as u32 })?;
        here.ok_or(TopologyReadError::UnknownNuma { gpu, numa })?.gpus |= bit;
    }
    // A NUMA node with memory alone, without cores or GPUs, is left out.
    numa_nodes.retain(|numa| numa.gpus != 0 || !numa.cores.is_empty());
    Ok(Topology::new(numa_nodes, gpus.map(nvidia::islands).unwrap_or_default())?)
}
