//! The two servers of the paper on topology-aware preemption (its figure 2).

use super::{List, NumaNode, Topology, TopologyError};

impl Topology {
    /// Names of what is known here.
    pub const PRESETS: [&'static str; 2] = ["rtx4090-8", "a100-8"];

    /// A server by its name: `rtx4090-8` has 2 sockets, 8 NUMA nodes with a GPU and 8 cores each, and no NVLink; `a100-8` has
    /// 2 sockets with a NUMA node, 4 GPUs and 64 cores each, and all GPUs in one NVLink island.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn preset(name: &str) -> Result<Self, TopologyError> {
        match name {
            "rtx4090-8" => Self::even(4, 1, 8, Vec::new()),
            "a100-8" => Self::even(1, 4, 64, vec![0xff]),
            _ => Err(TopologyError::NoPreset { name: name.to_owned() }),
        }
    }

    /// Two sockets with so many NUMA nodes each, all with as many GPUs and cores.
    fn even(numa_nodes: u16, gpus: u32, cores: u32, islands: Vec<u64>) -> Result<Self, TopologyError> {
        let numa = |number: u16| {
            let (gpu, core) = (u32::from(number) * gpus, u32::from(number) * cores);
            let gpus = ((1_u64 << gpus) - 1) << gpu;
            let cores = List::of_ranges(vec![(core, core + cores - 1)]);
            NumaNode { number, socket: number / numa_nodes, gpus, cores }
        };
        Self::new((0..2 * numa_nodes).map(numa).collect(), islands)
    }
}
