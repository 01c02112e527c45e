//! Nodes and jobs of a trace, pool by pool.

use datasets::read::{ReadError, ReadOptions, gfs_nodes, gfs_tasks};
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::Request;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use vocab::{ClusterName, HorizonHours, Node, PoolId, ReservedWindow, Task, TaskClass, TaskId, UnixSeconds};

/// Why a trace cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{nodes} nodes less leave none of {have}: name fewer")]
    NoNodes { nodes: usize, have: usize },
    #[error(transparent)]
    Name(#[from] vocab::NameError),
    #[error("a node of a pool is refused: {0}")]
    Node(#[from] placement::fleet::NodeError),
    #[error(transparent)]
    Topology(#[from] vocab::TopologyError),
}

/// One job of a trace.
#[derive(Debug, Clone)]
pub struct Job {
    pub request: Request,
    /// How long it runs if nobody evicts it.
    pub duration_s: i64,
}

/// The simulated cluster and jobs.
#[derive(Debug, Clone)]
pub struct World {
    pub cluster: ClusterName,
    /// In the order of their submission, all of a pool that has nodes.
    pub jobs: Vec<Job>,
    /// Which pool each job belongs to, by its place in `pools`.
    pub pool_of: Vec<u32>,
    pub pools: Vec<(PoolId, Vec<Node>)>,
    /// GPUs that are sold ahead, by the place of their pool in `pools`.
    pub windows: Vec<(usize, ReservedWindow)>,
    /// Jobs of the organizations that bought them.
    pub reserved: BTreeSet<TaskId>,
    /// Jobs that no node could ever run, and why: they are left out and counted.
    pub left_out: Vec<(TaskId, String)>,
}

/// How a trace becomes a world.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The zero of job times.
    pub epoch: UnixSeconds,
    /// The requests of spot tasks; none for spot at will.
    pub hours: Option<HorizonHours>,
    /// Spot jobs for each one of the trace.
    pub spot_scale: f64,
    /// Nodes less than the list has, from its end.
    pub nodes_minus: usize,
    pub seed: u64,
}

/// A copy of a spot job comes at most so long before or after it.
const COPY_SHIFT_S: i64 = vocab::SECONDS_PER_HOUR;

impl World {
    /// Reads the two lists of the GFS trace.
    ///
    /// # Errors
    /// A list cannot be read, or no node is left.
    pub fn read(nodes: &Path, jobs: &Path, options: &ReadOptions, shape: &Shape) -> Result<Self, WorldError> {
        let (nodes, _) = gfs_nodes(nodes, options)?;
        let nodes: Vec<Node> = nodes.into_iter().map(|(node, _)| node).collect();
        let (tasks, _) = gfs_tasks(jobs, shape.epoch, options)?;
        Self::of(&options.cluster, nodes, tasks, shape)
    }

    /// # Errors
    /// No node is left, or one is refused.
    pub fn of(
        cluster: &ClusterName,
        mut nodes: Vec<Node>,
        tasks: Vec<Task>,
        shape: &Shape,
    ) -> Result<Self, WorldError> {
        let have = nodes.len();
        nodes.truncate(have.saturating_sub(shape.nodes_minus));
        if nodes.is_empty() {
            return Err(WorldError::NoNodes { nodes: shape.nodes_minus, have });
        }
        let mut by_pool: BTreeMap<PoolId, Vec<Node>> = BTreeMap::new();
        for node in nodes {
            by_pool.entry(node.pool.clone()).or_default().push(node);
        }
        let pools: Vec<_> = by_pool.into_iter().collect();
        let mut tasks = scaled(tasks, shape)?;
        tasks.sort_by(|one, other| (one.submitted, &one.id).cmp(&(other.submitted, &other.id)));
        let fleets = pools.iter().map(|(_, nodes)| fleet(nodes)).collect::<Result<Vec<_>, _>>()?;
        let (mut jobs, mut pool_of, mut left_out, mut known) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        for task in tasks {
            let pool = PoolId { cluster: cluster.clone(), gpu_model: task.gpu_model.clone() };
            let Ok(number) = pools.binary_search_by(|(id, _)| id.cmp(&pool)) else {
                left_out.push((task.id.clone(), format!("there is no node with {}", task.gpu_model)));
                continue;
            };
            match gang(&task) {
                Ok(gang) => {
                    let key = (number, gang.pod.gpus, gang.pod.cpu_milli, gang.pods);
                    if !*known.entry(key).or_insert_with(|| fleets[number].could_ever_hold(&gang)) {
                        left_out.push((task.id, "it does not fit even if the pool is empty".to_owned()));
                        continue;
                    }
                    let hours = shape.hours.filter(|_| task.class == TaskClass::Spot);
                    let request = Request {
                        gang,
                        organization: task.organization,
                        submitted: task.submitted,
                        hours,
                        elastic: None,
                    };
                    let duration_s =
                        task.duration_s.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(i64::MAX / 4);
                    jobs.push(Job { request, duration_s });
                    pool_of.push(number as u32);
                }
                Err(why) => left_out.push((task.id, why)),
            }
        }
        let (windows, reserved) = (Vec::new(), BTreeSet::new());
        Ok(Self { cluster: cluster.clone(), jobs, pool_of, pools, windows, reserved, left_out })
    }

    /// The HP jobs of a pool: when each is submitted, how long it runs, and thousandths of a GPU.
    #[must_use]
    pub fn hp_steps(&self, pool: usize) -> Vec<(i64, i64, u64)> {
        let of_pool = self.jobs.iter().zip(&self.pool_of).filter(|(_, of)| **of as usize == pool);
        let hp = of_pool.filter(|(job, _)| job.request.gang.class == TaskClass::Hp);
        let step = |(job, _): (&Job, _)| {
            let gang = &job.request.gang;
            (job.request.submitted.get(), job.duration_s, u64::from(gang.pod.gpus.milli()) * u64::from(gang.pods))
        };
        hp.map(step).collect()
    }

    /// GPUs of all pools.
    #[must_use]
    pub fn gpus(&self) -> u64 {
        self.pools.iter().flat_map(|(_, nodes)| nodes).map(|node| u64::from(node.gpus)).sum()
    }
}

pub(crate) fn fleet(nodes: &[Node]) -> Result<placement::fleet::Fleet, WorldError> {
    let mut fleet = placement::fleet::Fleet::new(placement::fleet::EvictionSettings::default());
    for node in nodes {
        fleet.add_laid_out(node.id.clone(), node.gpus, (node.cpu_milli, None), node.topology.clone())?;
    }
    Ok(fleet)
}

fn gang(task: &Task) -> Result<Gang, String> {
    let gpus = GpuRequest::of(task.gpus_per_pod()).map_err(|fault| fault.to_string())?;
    let pod = PodRequest::new(gpus, task.cpu_milli_per_pod, 0);
    Ok(Gang { task: task.id.clone(), class: task.class, pod, pods: task.pods() })
}

/// Spot jobs come as often as asked for: each copy within an hour of its original, so that hours and days keep their load.
fn scaled(tasks: Vec<Task>, shape: &Shape) -> Result<Vec<Task>, WorldError> {
    let mut draws = ChaCha8Rng::seed_from_u64(shape.seed);
    let first = tasks.iter().map(|task| task.submitted).min();
    let names: BTreeSet<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
    let (mut all, mut copies_made) = (Vec::with_capacity(tasks.len()), 0_u64);
    for task in tasks {
        if task.class == TaskClass::Hp {
            all.push(task);
            continue;
        }
        let whole = shape.spot_scale.floor();
        let copies = whole as usize + usize::from(draws.random::<f64>() < shape.spot_scale - whole);
        for copy in 0..copies {
            let mut one = task.clone();
            if copy > 0 {
                one.id = free_name(&names, &mut copies_made)?;
                let shifted = task.submitted.plus_s(draws.random_range(-COPY_SHIFT_S..=COPY_SHIFT_S));
                one.submitted = first.map_or(shifted, |first| shifted.max(first));
            }
            all.push(one);
        }
    }
    Ok(all)
}

/// The name of the next copy: one that no task of the trace has.
fn free_name(names: &BTreeSet<TaskId>, copies_made: &mut u64) -> Result<TaskId, WorldError> {
    loop {
        *copies_made += 1;
        let name = TaskId::parse(&format!("copy-{copies_made}"))?;
        if !names.contains(&name) {
            return Ok(name);
        }
    }
}
