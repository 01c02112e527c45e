//! The power draw of nodes: a table of GPU models and one CPU, which a user may extend, and the watts of a node that follow from it.
//!
//! A GPU counts as working where any part of it is taken, a socket where any core of it is. The model and its figures are
//! those of the PWR paper (Eqs. 1 to 3, table II, §V-B).

use crate::fleet::NodeState;
use std::collections::BTreeMap;
use vocab::GpuModel;

/// Why no power is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PowerError {
    /// The GPU model has no row in the table.
    #[error("the power of the GPU model {model} is not known; known are {}: add a row for it to the table of power", known.join(", "))]
    UnknownModel {
        /// The unknown model.
        model: GpuModel,
        /// The known models.
        known: Vec<String>,
    },
    /// A GPU draws less at full load than idle.
    #[error("{idle_w} W idle are more than {full_w} W at full load")]
    Swapped {
        /// Watts of an idle GPU.
        idle_w: u32,
        /// Watts of a busy GPU.
        full_w: u32,
    },
    /// A CPU without cores.
    #[error("a socket has no cores")]
    NoCores,
}

/// Watts of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuPower {
    idle_w: u32,
    full_w: u32,
}

impl GpuPower {
    /// # Errors
    /// Idle it would draw more than at full load.
    pub const fn new(idle_w: u32, full_w: u32) -> Result<Self, PowerError> {
        if idle_w > full_w { Err(PowerError::Swapped { idle_w, full_w }) } else { Ok(Self { idle_w, full_w }) }
    }
}

/// Watts of one socket, and the cores that it has, of two virtual CPUs each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPower {
    idle_w: u32,
    full_w: u32,
    cores: u32,
}

impl CpuPower {
    /// Intel Xeon E5-2682 v4: the CPU that the PWR paper assumes (§V-B).
    pub const XEON_E5_2682_V4: Self = Self { idle_w: 15, full_w: 120, cores: 16 };

    /// # Errors
    /// Idle it would draw more than at full load, or it has no cores.
    pub const fn new(idle_w: u32, full_w: u32, cores: u32) -> Result<Self, PowerError> {
        match (idle_w > full_w, cores) {
            (true, _) => Err(PowerError::Swapped { idle_w, full_w }),
            (_, 0) => Err(PowerError::NoCores),
            _ => Ok(Self { idle_w, full_w, cores }),
        }
    }
}

/// Thousandths of a virtual CPU on a core.
const MILLI_PER_CORE: u64 = 2_000;

/// The power draw of nodes with one GPU model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePower {
    /// Power of the CPU.
    pub cpu: CpuPower,
    /// Power of each GPU.
    pub gpu: GpuPower,
}

impl NodePower {
    /// Watts of a node. Where its CPUs are not known they draw nothing.
    #[must_use]
    pub fn watts(&self, node: &NodeState) -> u64 {
        self.with(node, node.idle, node.free_cpu_milli)
    }

    /// Watts of the same node with so many GPUs idle and so many thousandths of a virtual CPU free.
    #[must_use]
    pub fn with(&self, node: &NodeState, idle_gpus: u8, free_cpu_milli: u64) -> u64 {
        let working = node.gpus.len() as u64 - u64::from(idle_gpus);
        let gpus_w = working * u64::from(self.gpu.full_w) + u64::from(idle_gpus) * u64::from(self.gpu.idle_w);
        if node.cpu_milli == u64::MAX {
            return gpus_w;
        }
        let per_socket = u64::from(self.cpu.cores);
        let cores = node.cpu_milli.div_ceil(MILLI_PER_CORE);
        let working = cores - free_cpu_milli / MILLI_PER_CORE;
        let (sockets, active) = (cores.div_ceil(per_socket), working.div_ceil(per_socket));
        gpus_w + active * u64::from(self.cpu.full_w) + (sockets - active) * u64::from(self.cpu.idle_w)
    }
}

/// Watts by GPU model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerTable {
    cpu: CpuPower,
    gpus: BTreeMap<String, GpuPower>,
}

/// PWR paper, table II, by the names of its trace; G2 and G3 stand there for A10 and A100. The last names are those that other
/// traces have for the same boards.
const GPUS: [(&str, u32, u32); 10] = [
    ("V100M16", 30, 300),
    ("V100M32", 30, 300),
    ("P100", 25, 250),
    ("T4", 10, 70),
    ("A10", 30, 150),
    ("G2", 30, 150),
    ("G3", 50, 400),
    ("V100", 30, 300),
    ("A100", 50, 400),
    ("A100-SXM4-80GB", 50, 400),
];

impl Default for PowerTable {
    fn default() -> Self {
        let gpus = GPUS.map(|(model, idle_w, full_w)| (model.to_owned(), GpuPower { idle_w, full_w }));
        Self { cpu: CpuPower::XEON_E5_2682_V4, gpus: gpus.into() }
    }
}

impl PowerTable {
    /// Adds a GPU model, or changes what is known of it.
    ///
    /// # Errors
    /// Idle it would draw more than at full load.
    pub fn set_gpu(&mut self, model: &GpuModel, idle_w: u32, full_w: u32) -> Result<(), PowerError> {
        self.gpus.insert(model.to_string(), GpuPower::new(idle_w, full_w)?);
        Ok(())
    }

    /// Changes what a socket draws, and how many cores it has.
    ///
    /// # Errors
    /// Idle it would draw more than at full load, or it has no cores.
    pub fn set_cpu(&mut self, idle_w: u32, full_w: u32, cores: u32) -> Result<(), PowerError> {
        self.cpu = CpuPower::new(idle_w, full_w, cores)?;
        Ok(())
    }

    /// The power draw of nodes with a GPU model.
    ///
    /// # Errors
    /// The model is not in the table.
    pub fn of(&self, model: &GpuModel) -> Result<NodePower, PowerError> {
        let known = || self.gpus.keys().cloned().collect();
        let gpu = self.gpus.get(model.as_str()).copied();
        let gpu = gpu.ok_or_else(|| PowerError::UnknownModel { model: model.clone(), known: known() })?;
        Ok(NodePower { cpu: self.cpu, gpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{GpuPlace, GpuRequest, PodRequest};
    use vocab::{NodeId, TaskClass};

    fn node(gpus: usize, cpu_milli: Option<u64>) -> NodeState {
        NodeState::new(NodeId::parse("a").unwrap(), gpus, cpu_milli, None)
    }

    fn model(name: &str) -> GpuModel {
        GpuModel::parse(name).unwrap()
    }

    #[test]
    fn a_gpu_works_from_its_first_thousandth_and_a_socket_from_its_first_core() {
        // 96 virtual CPUs are 48 cores on 3 sockets: 3 × 15 W, and 8 × 30 W for eight idle A10.
        let g2 = PowerTable::default().of(&model("G2")).unwrap();
        let mut one = node(8, Some(96_000));
        assert_eq!(g2.watts(&one), 285);
        // One virtual CPU: 47 whole cores stay free, one is in use, on one socket. 105 W for that, 120 W for the GPU.
        let small = PodRequest::new(GpuRequest::Share(1), 1_000, 0);
        one.hold(GpuPlace::Share { gpu: 3, milli: 1 }, &small, TaskClass::Spot, true);
        assert_eq!(g2.watts(&one), 285 + 105 + 120);
        // 33 more: 34 virtual CPUs are 17 cores, which need a second socket. The GPU works already.
        let large = PodRequest::new(GpuRequest::Share(999), 33_000, 0);
        one.hold(GpuPlace::Share { gpu: 3, milli: 999 }, &large, TaskClass::Hp, true);
        assert_eq!(g2.watts(&one), 285 + 2 * 105 + 120);
        assert_eq!(g2.watts(&node(2, None)), 60, "unknown CPUs add nothing");
    }

    #[test]
    fn a_table_is_extended_and_says_what_it_lacks() {
        let mut table = PowerTable::default();
        let message = table.of(&model("H800")).unwrap_err().to_string();
        assert!(
            message.starts_with("the power of the GPU model H800 is not known; known are A10, A100, "),
            "{message}"
        );
        table.set_gpu(&model("H800"), 60, 700).unwrap();
        table.set_cpu(20, 200, 32).unwrap();
        assert_eq!(table.of(&model("H800")).unwrap().watts(&node(8, Some(128_000))), 8 * 60 + 2 * 20);
        assert_eq!(GpuPower::new(2, 1).unwrap_err().to_string(), "2 W idle are more than 1 W at full load");
        assert_eq!(CpuPower::new(1, 2, 0), Err(PowerError::NoCores));
    }
}
