//! How nodes are laid out, what tasks ask of that, and what they got.

use crate::fact::PlaceRecord;
use crate::fault::{FieldFault, Place};
use placement::fleet::{GpuPlace, PodRequest, Wish};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use vocab::{Affinity, Domain, List, NodeId, NumaNode, Strictness, Topology, gpu_mask};

/// Where the GPUs of a pod are to lie together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AffinityBody {
    /// `numa`, `socket` or `nvlink-island`.
    pub domain: String,
    /// `guaranteed`: the task waits rather than run otherwise; or `best_effort`, which is the default.
    #[serde(default = "best_effort")]
    pub strictness: String,
}

fn best_effort() -> String {
    Strictness::BestEffort.as_str().to_owned()
}

impl AffinityBody {
    pub(crate) fn parse(&self, place: Place<'_>) -> Result<Affinity, FieldFault> {
        let names = || Domain::ALL.map(Domain::as_str).join(", ");
        let domain = Domain::parse(&self.domain)
            .ok_or_else(|| place.fault("affinity/domain", format!("{:?} is none of {}", self.domain, names())))?;
        let known = Strictness::ALL.map(Strictness::as_str).join(", ");
        let strictness = Strictness::parse(&self.strictness)
            .ok_or_else(|| place.fault("affinity/strictness", format!("{:?} is none of {known}", self.strictness)))?;
        Ok(Affinity { domain, strictness })
    }
}

impl From<Affinity> for AffinityBody {
    fn from(of: Affinity) -> Self {
        Self { domain: of.domain.as_str().to_owned(), strictness: of.strictness.as_str().to_owned() }
    }
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NumaNodeBody {
    pub numa_node: u16,
    pub socket: u16,
    /// Numbers of GPUs, from 0.
    pub gpus: Vec<u32>,
    /// Logical CPUs as the kernel lists them, such as 0-31,64-95.
    #[serde(default)]
    pub cores: String,
}

/// How the GPUs and cores of a node lie: NUMA nodes one by one, or the name of a server that is known here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TopologyBody {
    /// `rtx4090-8` or `a100-8`, instead of all else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa_nodes: Vec<NumaNodeBody>,
    /// GPUs that reach each other over NVLink.
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
                return Err(place.fault("preset", "a preset says it all: leave out the rest, or the preset"));
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

/// The GPUs of one pod that runs, and what lies beside them where the node says its topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceBody {
    pub node: String,
    /// Numbers of GPUs, from 0.
    pub gpus: Vec<u8>,
    /// Thousandths of the only one; none where they are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_milli: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa_nodes: Vec<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<u16>,
    /// The logical CPUs beside its GPUs: those of a NUMA node are shared out evenly among its GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<String>,
    /// Whether the GPUs lie as the task asks, as far as the node's hardware allows; none where it asks for nothing, or the
    /// node does not say its topology.
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
