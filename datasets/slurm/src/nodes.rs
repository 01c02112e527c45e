//! Nodes of `sinfo --json` (22.05) and of `scontrol show nodes --json`.

use crate::document::{self, Kind, Skipped};
use crate::error::RecordsError;
use crate::form::Form;
use crate::gpus::Gpus;
use crate::values::Words;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use vocab::{AmountError, CapacityRow, ClusterName, GpuModel, HourStart, MilliGpus, NameError, PoolId};

/// The document, and the command that prints it. 22.05 prints it with `sinfo --json`.
pub const KIND: Kind =
    Kind { list: "nodes", command: "scontrol show nodes --json (22.05: sinfo --json)", named_by: "name" };

/// Words of a state on which no job starts. `PLANNED` is none of them: a job waits for the node.
const CLOSED: [&str; 17] = [
    "DOWN",
    "DRAIN",
    "DRAINING",
    "DRAINED",
    "ERROR",
    "FAIL",
    "FAILING",
    "FUTURE",
    "INVALID",
    "INVALID_REG",
    "MAINTENANCE",
    "MAINT",
    "NOT_RESPONDING",
    "POWER_DRAIN",
    "REBOOT_ISSUED",
    "RESERVED",
    "BLOCKED",
];
/// Words of a state on which no job runs either.
const GONE: [&str; 4] = ["DOWN", "FUTURE", "ERROR", "INVALID_REG"];

/// A node with GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// GPUs that it has.
    pub gpus: Gpus,
    /// GPUs of jobs on it.
    pub used: Gpus,
    /// Its partitions.
    pub partitions: Vec<String>,
    /// Whether jobs may start on it.
    pub is_open: bool,
    /// Whether jobs may run on it.
    pub is_up: bool,
}

/// Nodes of a document.
#[derive(Debug, Default)]
pub struct Nodes {
    /// Nodes with GPUs, by name.
    pub nodes: BTreeMap<String, Node>,
    /// Unreadable records.
    pub skipped: Vec<Skipped>,
}

#[derive(Deserialize)]
struct Raw {
    name: String,
    #[serde(default)]
    state: Words,
    /// 22.05: beside a state in lower case.
    #[serde(default)]
    state_flags: Words,
    #[serde(default)]
    partitions: Words,
    #[serde(default)]
    tres: Option<String>,
    #[serde(default)]
    tres_used: Option<String>,
    #[serde(default)]
    gres_used: Option<String>,
}

impl Nodes {
    /// Reads the output of `scontrol show nodes --json`; `place` names it in faults. A node that stands there twice, once
    /// for each of its partitions, is one.
    ///
    /// # Errors
    /// See [`RecordsError`]; an unreadable record is no error: it is among [`Nodes::skipped`].
    pub fn read(place: &str, from: impl Read) -> Result<(Self, Form), RecordsError> {
        let mut nodes = BTreeMap::<String, Node>::new();
        let (form, skipped) = document::read(place, KIND, from, &mut |raw: Raw| {
            let node = node(raw)?;
            if node.gpus.total > 0 {
                match nodes.get_mut(&node.name) {
                    Some(known) => known.partitions.extend(node.partitions),
                    None => drop(nodes.insert(node.name.clone(), node)),
                }
            }
            Ok(())
        })?;
        for node in nodes.values_mut() {
            node.partitions.sort();
            node.partitions.dedup();
        }
        Ok((Self { nodes, skipped }, form))
    }

    /// GPUs of each model, from an hour on: all of them, since nodes that are down today come back.
    ///
    /// # Errors
    /// A type is no name, or a sum is too large.
    pub fn capacity(
        &self,
        cluster: &ClusterName,
        untyped: &GpuModel,
        from: HourStart,
    ) -> Result<Vec<CapacityRow>, NodesFault> {
        let mut by_model: BTreeMap<GpuModel, u64> = BTreeMap::new();
        for node in self.nodes.values() {
            for (model, count) in node.models(untyped)? {
                *by_model.entry(model).or_default() += u64::from(count);
            }
        }
        let row = |(gpu_model, count): (GpuModel, u64)| {
            let pool = PoolId { cluster: cluster.clone(), gpu_model };
            let milli = count.saturating_mul(MilliGpus::PER_GPU);
            Ok(CapacityRow { pool, from, capacity: MilliGpus::stated(MilliGpus::from_milli(milli))? })
        };
        by_model.into_iter().map(row).collect()
    }

    /// Partitions whose nodes have GPUs of one model alone, with that model.
    ///
    /// # Errors
    /// A type is no name.
    pub fn only_models(&self, untyped: &GpuModel) -> Result<BTreeMap<String, GpuModel>, NodesFault> {
        let mut of: BTreeMap<&String, BTreeSet<GpuModel>> = BTreeMap::new();
        for node in self.nodes.values() {
            for partition in &node.partitions {
                of.entry(partition).or_default().extend(node.models(untyped)?.into_iter().map(|(model, _)| model));
            }
        }
        let only = of.into_iter().filter(|(_, models)| models.len() == 1);
        Ok(only.filter_map(|(partition, models)| Some((partition.clone(), models.into_iter().next()?))).collect())
    }
}

impl Node {
    /// GPUs by model; those without a type as `untyped`.
    ///
    /// # Errors
    /// A type is no name.
    pub fn models(&self, untyped: &GpuModel) -> Result<Vec<(GpuModel, u32)>, NodesFault> {
        let named =
            |name: &str| GpuModel::parse(name).map_err(|fault| NodesFault::Name { node: self.name.clone(), fault });
        let mut models = Vec::new();
        for (name, count) in &self.gpus.typed {
            models.push((named(name)?, *count));
        }
        if self.gpus.untyped() > 0 {
            models.push((untyped.clone(), self.gpus.untyped()));
        }
        Ok(models)
    }
}

/// Why nodes have no capacity.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NodesFault {
    /// A type of GPU.
    #[error("node {node}: {fault}")]
    Name {
        /// The node.
        node: String,
        /// Cause.
        fault: NameError,
    },
    /// A sum.
    #[error("the GPUs of the nodes exceed the limit of a pool: {0}")]
    Sum(#[from] AmountError),
}

fn node(raw: Raw) -> Result<Node, String> {
    let gpus = |text: Option<&str>, field| {
        // Nothing is in use: Slurm writes null, nothing, or "N/A".
        let text = text.filter(|text| *text != "N/A").unwrap_or_default();
        Gpus::parse(text).map_err(|fault| format!("{field}: {fault}"))
    };
    // Of jobs that ended while slurmctld was away tres_used may keep the GPUs, until it starts again; gres_used does not.
    let used = match raw.gres_used.as_deref().and_then(Gpus::of_gres) {
        Some(used) => used,
        None => gpus(raw.tres_used.as_deref(), "tres_used")?,
    };
    let states: Vec<String> =
        raw.state.0.iter().chain(&raw.state_flags.0).map(|word| word.to_uppercase().replace('*', "")).collect();
    if states.is_empty() {
        return Err("state: no state: expected one such as IDLE".to_owned());
    }
    let is_among = |words: &[&str]| states.iter().any(|state| words.contains(&state.as_str()));
    Ok(Node {
        gpus: gpus(raw.tres.as_deref(), "tres")?,
        used,
        partitions: raw.partitions.0,
        is_open: !is_among(&CLOSED),
        is_up: !is_among(&GONE),
        name: raw.name,
    })
}
