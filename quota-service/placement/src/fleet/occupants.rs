//! Parts of nodes with a topology that spot tasks hold, ready to be weighed: a search over many nodes does not look
//! each task up.

use super::{Fleet, GpuPlace, NodeError, Running};
use std::sync::Arc;
use vocab::{NodeId, TaskClass, TaskId, Topology, TopologyError, UnixSeconds};

/// A spot task on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Occupant {
    /// Task that holds the share.
    pub task: TaskId,
    /// GPUs of which it holds any part, one bit for each.
    pub gpus: u64,
    /// Parts that its pods on this node hold beside.
    pub cpu_milli: u64,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// Over all its pods, on any node.
    pub gpus_milli: u64,
    /// Last checkpoint.
    pub saved: UnixSeconds,
    /// Whether the task is inside a guarantee.
    pub is_guaranteed: bool,
}

impl Fleet {
    /// Whether the topology of nodes counts; before any task comes.
    #[must_use]
    pub const fn looking_at_topology(mut self, is_aware: bool) -> Self {
        self.is_aware = is_aware;
        self
    }

    /// Whether the topology of nodes counts.
    #[must_use]
    pub const fn looks_at_topology(&self) -> bool {
        self.is_aware
    }

    /// [`add`](Self::add), and how the GPUs lie.
    ///
    /// # Errors
    /// The node is refused, or its topology is of another number of GPUs; nothing has changed.
    pub fn add_laid_out(
        &mut self,
        id: NodeId,
        gpus: u32,
        (cpu_milli, memory_mib): (Option<u64>, Option<u64>),
        topology: Option<Arc<Topology>>,
    ) -> Result<usize, NodeError> {
        if let Some(have) = topology.as_ref().map(|topology| topology.gpus()).filter(|have| *have != gpus) {
            return Err(NodeError::Topology { node: id, fault: TopologyError::OtherSize { have, gpus } });
        }
        let number = self.add(id.clone(), gpus, cpu_milli, memory_mib)?;
        self.set_topology(number, topology).map_err(|fault| NodeError::Topology { node: id, fault })?;
        Ok(number)
    }

    /// States how the GPUs of a node lie. Nodes that are alike share one.
    ///
    /// # Errors
    /// It is of another number of GPUs; nothing has changed.
    pub fn set_topology(&mut self, node: usize, topology: Option<Arc<Topology>>) -> Result<(), TopologyError> {
        let gpus = self.nodes[node].gpus.len() as u32;
        if let Some(topology) = topology.as_ref().filter(|topology| topology.gpus() != gpus) {
            return Err(TopologyError::OtherSize { have: topology.gpus(), gpus });
        }
        let known = self.nodes.iter().filter_map(|node| node.topology.as_ref());
        let alike = known.into_iter().find(|known| topology.as_ref() == Some(known)).cloned();
        self.nodes[node].topology = alike.or(topology);
        self.occupants[node].clear();
        let here: Vec<TaskId> = self.spot[node].iter().cloned().collect();
        for task in here {
            if let Some(running) = self.tasks.remove(&task) {
                self.occupy(&task, &running, false);
                self.occupy(&task, &running, true);
                self.tasks.insert(task, running);
            }
        }
        Ok(())
    }

    /// Notes what a task holds of the nodes that it is on, or forgets it.
    pub(super) fn occupy(&mut self, task: &TaskId, running: &Running, adds: bool) {
        if !self.is_aware || running.class != TaskClass::Spot {
            return;
        }
        for place in running.places.iter().filter(|place| self.nodes[place.node].topology.is_some()) {
            let here = &mut self.occupants[place.node];
            let gpus = match place.gpus {
                GpuPlace::Share { gpu, .. } => 1 << gpu,
                GpuPlace::Whole { mask } => mask,
            };
            match here.binary_search_by(|one| one.task.cmp(task)) {
                Ok(at) if adds => {
                    here[at].gpus |= gpus;
                    here[at].cpu_milli += running.pod.cpu_milli;
                    here[at].memory_mib += running.pod.memory_mib;
                }
                // All its pods here are one.
                Ok(at) => drop(here.remove(at)),
                Err(at) if adds => here.insert(
                    at,
                    Occupant {
                        task: task.clone(),
                        gpus,
                        cpu_milli: running.pod.cpu_milli,
                        memory_mib: running.pod.memory_mib,
                        gpus_milli: running.gpus_milli(),
                        saved: running.saved,
                        is_guaranteed: running.guarantee.is_some(),
                    },
                ),
                Err(_) => {}
            }
        }
    }
}
