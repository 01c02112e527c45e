use crate::bounds::{MOST_CPU_MILLI, MOST_MEMORY_MIB};
use crate::fault::{FieldFault, Place};
use crate::topology::TopologyBody;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{ClusterName, GpuModel, Node, NodeId, PoolId};

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeBody {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// Its GPUs.
    pub gpus: u32,
    /// Thousandths of a virtual CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u64>,
    /// Memory, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// The topology of its GPUs and cores; absent where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyBody>,
    /// Whether it takes no new pods; running pods stay.
    #[serde(default)]
    pub drain: bool,
    /// Its id, in answers; in a request the path names the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// `GET /v1/nodes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The nodes, by name.
    pub nodes: Vec<NodeBody>,
}

impl NodeBody {
    /// The node that the body describes, under the id of the path.
    ///
    /// # Errors
    /// A name is refused, or the body names another id.
    pub fn parse(&self, id: NodeId) -> Result<Node, FieldFault> {
        let place = Place("");
        if let Some(other) = self.id.as_deref().filter(|other| *other != id.as_str()) {
            return Err(place.fault("id", format!("the body names node {other:?}, the path {id:?}", id = id.as_str())));
        }
        let pool = PoolId {
            cluster: place.new_name("cluster", &self.cluster, ClusterName::parse)?,
            gpu_model: place.new_name("gpu_model", &self.gpu_model, GpuModel::parse)?,
        };
        let at_most =
            |field: &str, value: Option<u64>, most| value.map(|value| place.whole(field, value, most)).transpose();
        Ok(Node {
            id,
            pool,
            gpus: self.gpus,
            cpu_milli: at_most("cpu_milli", self.cpu_milli, MOST_CPU_MILLI)?,
            memory_mib: at_most("memory_mib", self.memory_mib, MOST_MEMORY_MIB)?,
            drains: self.drain,
            topology: self.topology.as_ref().map(|body| body.of_node(self.gpus)).transpose()?,
        })
    }
}

impl From<&Node> for NodeBody {
    fn from(node: &Node) -> Self {
        Self {
            cluster: node.pool.cluster.as_str().to_owned(),
            gpu_model: node.pool.gpu_model.as_str().to_owned(),
            gpus: node.gpus,
            cpu_milli: node.cpu_milli,
            memory_mib: node.memory_mib,
            drain: node.drains,
            topology: node.topology.as_deref().map(TopologyBody::from),
            id: Some(node.id.as_str().to_owned()),
        }
    }
}
