//! Topologies of nodes, affinities of tasks, and the places of pods.

use crate::choices::{DomainBody, StrictnessBody};
use crate::fact::PlaceRecord;
use crate::fault::{FieldFault, Place};
use placement::fleet::{GpuPlace, PodRequest, Wish};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use vocab::{Affinity, List, NodeId, NumaNode, Topology, gpu_mask};

/// The affinity of the GPUs of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AffinityBody {
    /// The part of a node.
    pub domain: DomainBody,
    /// Whether the task waits for it; `best_effort` if it is not given.
    #[serde(default = "best_effort")]
    pub strictness: StrictnessBody,
}

const fn best_effort() -> StrictnessBody {
    StrictnessBody::BestEffort
}

impl AffinityBody {
    pub(crate) fn of(self) -> Affinity {
        Affinity { domain: self.domain.into(), strictness: self.strictness.into() }
    }
}

impl From<Affinity> for AffinityBody {
    fn from(of: Affinity) -> Self {
        Self { domain: of.domain.into(), strictness: of.strictness.into() }
    }
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NumaNodeBody {
    /// Its number.
    pub numa_node: u16,
    /// The number of its socket.
    pub socket: u16,
    /// Numbers of GPUs, from 0.
    pub gpus: Vec<u32>,
    /// Logical CPUs as the kernel lists them, such as 0-31,64-95.
    #[serde(default)]
    pub cores: String,
}

/// The topology of a node: its NUMA nodes one by one, or the name of a known server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TopologyBody {
    /// `rtx4090-8` or `a100-8`, instead of the other fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The NUMA nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa_nodes: Vec<NumaNodeBody>,
    /// Groups of GPUs that NVLink connects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nvlink_islands: Vec<Vec<u32>>,
}

impl TopologyBody {
    /// # Errors
    /// A part is missing or there twice, or the preset is unknown.
    pub fn parse(&self) -> Result<Topology, FieldFault> {
        let place = Place("/topology");
        let refused = |field: &'static str| move |fault: vocab::TopologyError| place.fault(field, fault);
        if let Some(name) = &self.preset {
            if !self.numa_nodes.is_empty() || !self.nvlink_islands.is_empty() {
                return Err(
                    place.fault("preset", "a preset is a whole topology: leave out the other fields, or the preset")
                );
            }
            return Topology::preset(name).map_err(refused("preset"));
        }
        let mask = |gpus: &[u32]| gpu_mask(&List::of_ranges(gpus.iter().map(|gpu| (*gpu, *gpu)).collect()));
        let numa = |one: &NumaNodeBody| {
            let cores = List::parse(&one.cores).map_err(|fault| place.fault("numa_nodes", fault))?;
            let gpus = mask(&one.gpus).map_err(refused("numa_nodes"))?;
            Ok(NumaNode { number: one.numa_node, socket: one.socket, gpus, cores })
        };
        let numa_nodes = self.numa_nodes.iter().map(numa).collect::<Result<_, FieldFault>>()?;
        let islands = self.nvlink_islands.iter().map(|gpus| mask(gpus)).collect::<Result<_, _>>();
        let islands = islands.map_err(refused("nvlink_islands"))?;
        Topology::new(numa_nodes, islands).map_err(|fault| FieldFault::new("/topology", fault))
    }

    /// For a node of so many GPUs.
    pub(crate) fn of_node(&self, gpus: u32) -> Result<Arc<Topology>, FieldFault> {
        let topology = self.parse()?;
        let have = topology.gpus();
        if have != gpus {
            let fault = vocab::TopologyError::OtherSize { have, gpus };
            return Err(FieldFault::new("/topology", fault));
        }
        Ok(Arc::new(topology))
    }
}

impl From<&Topology> for TopologyBody {
    fn from(of: &Topology) -> Self {
        let gpus = |mask: u64| List::of_mask(mask).numbers().collect::<Vec<u32>>();
        let numa = |one: &NumaNode| NumaNodeBody {
            numa_node: one.number,
            socket: one.socket,
            gpus: gpus(one.gpus),
            cores: if one.cores.is_empty() { String::new() } else { one.cores.to_string() },
        };
        Self {
            preset: None,
            numa_nodes: of.numa_nodes().iter().map(numa).collect(),
            nvlink_islands: of.islands().iter().map(|island| gpus(*island)).collect(),
        }
    }
}

/// The GPUs of one running pod, and their neighbourhood where the node has a topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceBody {
    /// The id of the node.
    pub node: String,
    /// Numbers of GPUs, from 0.
    pub gpus: Vec<u8>,
    /// Thousandths of the only one; absent where they are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_milli: Option<u16>,
    /// The NUMA nodes of its GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa_nodes: Vec<u16>,
    /// The sockets of its GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<u16>,
    /// The logical CPUs beside its GPUs: those of a NUMA node are shared out evenly among its GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<String>,
    /// Whether the GPUs meet the affinity of the task, as far as the node's hardware allows; absent without an affinity or a
    /// topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aligned: Option<bool>,
}

impl PlaceBody {
    /// The place of a pod on a node of this topology.
    #[must_use]
    pub fn of(node: &NodeId, gpus: GpuPlace, pod: &PodRequest, topology: Option<&Topology>) -> Self {
        let PlaceRecord { node, gpus: numbers, share_milli } = PlaceRecord::from(&(node.clone(), gpus));
        let mask = numbers.iter().fold(0_u64, |mask, gpu| mask | 1 << gpu);
        let cores = topology.map(|topology| topology.cores_of(mask)).filter(|cores| !cores.is_empty());
        let wish = Wish::of(pod).filter(|_| topology.is_some());
        Self {
            node,
            gpus: numbers,
            share_milli,
            numa_nodes: topology.map(|topology| topology.numa_of(mask)).unwrap_or_default(),
            sockets: topology.map(|topology| topology.sockets_of(mask)).unwrap_or_default(),
            cores: cores.map(|cores| cores.to_string()),
            aligned: wish.map(|wish| wish.alignment(topology, gpus).is_aligned()),
        }
    }
}
