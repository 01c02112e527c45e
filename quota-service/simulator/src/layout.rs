//! Topologies for nodes, and affinities for pods, of a trace that knows neither.

use crate::commands::SimulatorError;
use crate::world::{World, WorldError, fleet};
use placement::Policy;
use placement::fleet::{GpuRequest, Wish};
use placement::pool::Request;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vocab::{Affinity, Strictness, Topology};
use wire::TopologyBody;

/// The additions to a trace.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Of every node; one with fewer GPUs has the first ones of it.
    pub topology: Option<Topology>,
    /// Of every pod with whole GPUs, two at least and at most half of the largest node of its pool.
    pub affinity: Option<Affinity>,
}

/// A topology by its name, or in a file as `PUT /v1/nodes/{id}` takes it.
#[derive(Debug, Clone)]
pub enum TopologyChoice {
    /// A preset, or what was read of a file.
    Known(Box<Topology>),
    /// A file that cannot be read: a fault of the input, not of the command line.
    Unread {
        /// The file.
        file: PathBuf,
        /// Cause.
        why: String,
    },
}

impl TopologyChoice {
    /// The topology.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn read(&self) -> Result<Topology, SimulatorError> {
        match self {
            Self::Known(topology) => Ok(topology.as_ref().clone()),
            Self::Unread { file, why } => Err(SimulatorError::TopologyFile { file: file.clone(), why: why.clone() }),
        }
    }
}

/// The choice of a flag.
///
/// # Errors
/// No preset has the name, or the file describes no topology.
pub fn topology(text: &str) -> Result<TopologyChoice, String> {
    let known = |topology| TopologyChoice::Known(Box::new(topology));
    if Topology::PRESETS.contains(&text) {
        return Topology::preset(text).map(known).map_err(|fault| fault.to_string());
    }
    let json = match std::fs::read_to_string(Path::new(text)) {
        Ok(json) => json,
        // A word alone is a preset that is misspelt.
        Err(fault) if fault.kind() == io::ErrorKind::NotFound && !text.contains(['/', '.']) => {
            return Err(format!(
                "no topology has this name: write a file with a topology, or one of {}",
                Topology::PRESETS.join(", ")
            ));
        }
        Err(fault) => return Ok(TopologyChoice::Unread { file: text.into(), why: command_line::unread(&fault) }),
    };
    let body: TopologyBody = wire::from_json(&json).map_err(|fault| format!("{text}: {fault}"))?;
    body.parse().map(known).map_err(|fault| format!("{text}: {fault}"))
}

impl World {
    /// Gives nodes their topology and pods their affinity. Jobs that could then never run are left out.
    ///
    /// # Errors
    /// A node has more GPUs than the topology.
    pub fn lay_out(&mut self, layout: &Layout) -> Result<(), WorldError> {
        if let Some(topology) = &layout.topology {
            for node in self.pools.iter_mut().flat_map(|(_, nodes)| nodes) {
                node.topology = Some(Arc::new(topology.first(node.gpus)?));
            }
        }
        let Some(affinity) = layout.affinity else { return Ok(()) };
        let largest = |nodes: &[vocab::Node]| nodes.iter().map(|node| node.gpus).max().unwrap_or(0);
        let most: Vec<u32> = self.pools.iter().map(|(_, nodes)| largest(nodes) / 2).collect();
        let fleets = self.pools.iter().map(|(_, nodes)| fleet(nodes)).collect::<Result<Vec<_>, _>>()?;
        let jobs = std::mem::take(&mut self.jobs).into_iter().zip(std::mem::take(&mut self.pool_of));
        for (mut job, pool) in jobs {
            let gang = &mut job.request.gang;
            if let GpuRequest::Whole(gpus @ 2..) = gang.pod.gpus
                && u32::from(gpus) <= most[pool as usize]
            {
                gang.pod.affinity = Some(affinity);
            }
            if fleets[pool as usize].could_ever_align(gang) {
                self.jobs.push(job);
                self.pool_of.push(pool);
            } else {
                let why = format!("its GPUs can never lie as {affinity} asks");
                self.left_out.push((gang.task.clone(), why));
            }
        }
        Ok(())
    }
}

/// A request as a policy can take it: one that is blind to topology cannot guarantee anything, and is measured by what it
/// happens to do.
#[must_use]
pub fn asked_of(policy: &Policy, request: &Request) -> Request {
    let mut request = request.clone();
    if let Some(affinity) = request.gang.pod.affinity.as_mut().filter(|_| !policy.topology) {
        affinity.strictness = Strictness::BestEffort;
    }
    request
}

/// Pods with an affinity that started, and those of them that lay well, by class.
#[derive(Debug, Clone, Copy, Default)]
pub struct Aligned {
    pods: [u64; 2],
    aligned: [u64; 2],
}

impl Aligned {
    /// Counts the pods of a task that started.
    pub fn count(&mut self, fleet: &placement::fleet::Fleet, class: usize, task: &vocab::TaskId) {
        let Some(running) = fleet.tasks().get(task) else { return };
        let Some(wish) = Wish::of(&running.pod) else { return };
        for place in &running.places {
            let topology = fleet.nodes()[place.node].topology.as_deref();
            self.pods[class] += 1;
            self.aligned[class] += u64::from(wish.alignment(topology, place.gpus).is_aligned());
        }
    }

    /// Of all, of HP, of spot; none where there were no such pods.
    #[must_use]
    pub fn shares(&self) -> [Option<f64>; 3] {
        let share = |aligned: u64, pods: u64| (pods > 0).then(|| aligned as f64 / pods as f64);
        let [hp, spot] = [0, 1].map(|class| (self.aligned[class], self.pods[class]));
        [share(hp.0 + spot.0, hp.1 + spot.1), share(hp.0, hp.1), share(spot.0, spot.1)]
    }
}
