//! Nodes and pods as a fleet takes them, and what the nodes draw.

use super::InflateError;
use crate::args::Inflate;
use crate::power::{PowerFault, table};
use datasets::read::openb::{self, GpuAsk, OpenbNode, OpenbPod};
use placement::fleet::{GpuRequest, Models, PodRequest, Spec, Workload};
use placement::power::NodePower;
use std::collections::{BTreeMap, BTreeSet};
use vocab::GpuModel;

/// The cluster to fill, and the pods that fill it.
pub struct Trace {
    pub nodes: Vec<OpenbNode>,
    /// Of the nodes, in the order of their numbers.
    pub models: Vec<GpuModel>,
    /// Of the nodes, by the number of their model.
    pub power: Vec<NodePower>,
    pub pods: Vec<PodRequest>,
    /// With a target that is made of all pods, and stays.
    pub workload: Workload,
    pub gpus: u64,
}

impl Trace {
    /// # Errors
    /// A list cannot be read, nothing can come of it, or what a GPU model draws is not known.
    pub fn read(what: &Inflate) -> Result<Self, InflateError> {
        let nodes = openb::nodes(&what.nodes)?.items;
        let pods = openb::pods(&what.pods)?.items;
        let models: Vec<GpuModel> =
            nodes.iter().filter_map(|node| node.model.clone()).collect::<BTreeSet<_>>().into_iter().collect();
        let (file, most) = (what.nodes.clone(), Models::MOST);
        if models.is_empty() {
            return Err(InflateError::NoGpus { file });
        }
        if models.len() > usize::from(most) {
            return Err(InflateError::TooManyModels { file, have: models.len(), most });
        }
        let table = table(what.power.as_deref())?;
        let power = models.iter().map(|model| table.of(model)).collect::<Result<_, _>>().map_err(PowerFault::from)?;
        let pods: Vec<PodRequest> = pods.iter().map(|pod| request(pod, &models)).collect();
        if pods.iter().all(|pod| pod.gpus.milli() == 0) {
            return Err(InflateError::NoRequests { file: what.pods.clone() });
        }
        let mut counts: BTreeMap<Spec, u64> = BTreeMap::new();
        for pod in &pods {
            *counts.entry(Spec::of(pod)).or_default() += 1;
        }
        let workload = Workload::from_parts(counts.into_iter().map(|(spec, count)| (spec, count, None)));
        let gpus = nodes.iter().map(|node| u64::from(node.gpus)).sum();
        Ok(Self { nodes, models, power, pods, workload, gpus })
    }

    /// The number of a node's GPU model; that of the first one where it has no GPU.
    pub fn model_of(&self, node: &OpenbNode) -> u8 {
        let number = node.model.as_ref().and_then(|model| self.models.binary_search(model).ok());
        number.unwrap_or(0) as u8
    }
}

/// The request of a pod. Without a GPU it takes any node; a model that no node has is none.
fn request(pod: &OpenbPod, models: &[GpuModel]) -> PodRequest {
    let gpus = match pod.gpus {
        GpuAsk::None => GpuRequest::Whole(0),
        GpuAsk::Share(part) => GpuRequest::Share(part.milli() as u16),
        // More than a node may have fits no node, as it should.
        GpuAsk::Whole(gpus) => GpuRequest::Whole(u16::try_from(gpus).unwrap_or(u16::MAX)),
    };
    let request = PodRequest::new(gpus, pod.cpu_milli, pod.memory_mib.unwrap_or(0));
    if pod.models.is_empty() || pod.gpus == GpuAsk::None {
        return request;
    }
    let numbers = models.iter().zip(0..).filter(|(model, _)| pod.models.contains(model)).map(|(_, number)| number);
    PodRequest { models: Models::of(numbers), ..request }
}
