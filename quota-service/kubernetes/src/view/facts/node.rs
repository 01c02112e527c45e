//! Facts of nodes.

use super::{FactFault, Reading, gpus, text};
use crate::cluster::slim::Node;
use crate::names;
use std::collections::BTreeMap;
use vocab::{GpuModel, NodeId};

/// Start of the keys of taints that Kubernetes sets itself, such as that of a node that does not answer.
const OF_KUBERNETES: &str = "node.kubernetes.io/";

/// A node with GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    pub node: NodeId,
    pub gpu_model: Option<GpuModel>,
    pub gpus: u32,
    /// Whether new pods may come: it is ready and not cordoned.
    pub is_open: bool,
    /// Whether it answers. What runs on one that does not may go on, or be lost.
    pub is_ready: bool,
    /// Whether an operator empties it: it is ready, and a taint that evicts is not of Kubernetes.
    pub is_emptied: bool,
    /// How its GPUs lie, as JSON.
    pub topology: Option<String>,
}

impl NodeFacts {
    /// Reads a node; `None` where it has no GPUs.
    ///
    /// # Errors
    /// Its GPUs or names cannot be read.
    pub fn read(node: &Node, reading: &Reading) -> Result<Option<Self>, FactFault> {
        Ok(Self::read_any(node, reading)?.map(|(facts, _)| facts).filter(|facts| facts.gpus > 0))
    }

    /// As [`read`](Self::read), also of a node without GPUs, and whether it states its GPU model.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_any(node: &Node, reading: &Reading) -> Result<Option<(Self, bool)>, FactFault> {
        let name = text(node.metadata.name.as_ref());
        let resource = &reading.gpu_resource;
        let count =
            node.status.allocatable.get(resource).map_or(Ok(0), |amount| gpus("node", name, resource, amount))?;
        if count == 0 && reading.device_classes.is_empty() {
            return Ok(None);
        }
        let named = |fault| FactFault::Name { what: "node", name: name.to_owned(), fault };
        let labels: Option<&BTreeMap<String, String>> = node.metadata.labels.as_ref();
        let model = labels.and_then(|labels| labels.get(&reading.gpu_model_label)).filter(|model| !model.is_empty());
        let model = model.map(|model| GpuModel::parse(model)).transpose().map_err(named)?;
        let is_ready = node.status.conditions.iter().any(|one| one.kind == "Ready" && one.status == "True");
        let has_model = model.is_some();
        let facts = Self {
            node: NodeId::parse(name).map_err(named)?,
            gpu_model: model.or_else(|| reading.default_gpu_model.clone()),
            gpus: count,
            is_open: is_ready && !node.spec.unschedulable,
            is_ready,
            is_emptied: is_ready && is_emptied(node),
            topology: node.metadata.annotations.as_ref().and_then(|all| all.get(names::TOPOLOGY)).cloned(),
        };
        Ok(Some((facts, has_model)))
    }
}

/// Whether taints that evict are there, and none of Kubernetes: where both are, it is not known which one evicts.
fn is_emptied(node: &Node) -> bool {
    let mut evicting = node.spec.taints.iter().filter(|taint| taint.effect == "NoExecute").peekable();
    evicting.peek().is_some() && evicting.all(|taint| !taint.key.starts_with(OF_KUBERNETES))
}
