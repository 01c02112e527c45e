//! The generated cluster: jobs, nodes, and the usage that follows from the jobs.

use super::GfsCluster;
use super::published::{self, MODELS};
use crate::sweep::{Sweep, SweepError};
use vocab::{GpuModel, MilliGpus, Node, NodeId, Organization, PoolId, Task, TaskClass, TaskId, UsageRow};

/// One job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// The organization of the trace whose shares it has a part in; numbers from 84 on are organizations that came again.
    pub organization: u32,
    /// Index in [`MODELS`].
    pub model: u8,
    /// Spot or HP.
    pub spot: bool,
    /// Thousandths of a GPU that each worker asks for.
    pub request_milli: u16,
    /// Pods of the job.
    pub workers: u16,
    /// vCPUs that each worker asks for.
    pub vcpus: u16,
    /// Seconds from the start.
    pub submit_s: u32,
    /// Runtime in seconds.
    pub duration_s: u32,
}

impl Job {
    /// Thousandths of a GPU, over all workers.
    #[must_use]
    pub fn milli(&self) -> u64 {
        u64::from(self.request_milli) * u64::from(self.workers)
    }

    /// GPUs × runtime.
    #[must_use]
    pub fn gpu_seconds(&self) -> f64 {
        self.milli() as f64 / 1_000.0 * f64::from(self.duration_s)
    }

    /// As its column of a job list names it.
    #[must_use]
    pub fn organization_name(&self) -> String {
        format!("org-{:02}", self.organization)
    }

    /// Name of the GPU model.
    #[must_use]
    pub fn model_name(&self) -> &'static str {
        MODELS[usize::from(self.model)].name
    }
}

/// A cluster, made up.
#[derive(Debug, Clone)]
pub struct Made {
    /// Parameters of the cluster.
    pub what: GfsCluster,
    /// By time of submission; a job's place here is its name.
    pub jobs: Vec<Job>,
}

impl Made {
    /// The jobs as every reader gives them.
    pub fn tasks(&self) -> impl Iterator<Item = Task> {
        let models = MODELS.map(|model| GpuModel::parse(model.name).expect("a published name"));
        self.jobs.iter().enumerate().map(move |(number, job)| {
            Task::new(
                TaskId::parse(&number.to_string()).expect("a number is a name"),
                Organization::parse(&job.organization_name()).expect("a plain name"),
                models[usize::from(job.model)].clone(),
                if job.spot { TaskClass::Spot } else { TaskClass::Hp },
                self.what.start.instant().plus_s(i64::from(job.submit_s)),
                Some(u64::from(job.duration_s)),
                MilliGpus::from_milli(u64::from(job.request_milli)).expect("a node's GPUs"),
                u32::from(job.workers),
            )
            .expect("a job has workers, and asks for less than a fleet")
        })
    }

    /// Hourly HP demand over the whole window: what a reader of the job list computes, since the first and the last hour
    /// have a submission each.
    ///
    /// # Errors
    /// The window leaves the years that hours may have.
    pub fn usage(&self) -> Result<Vec<UsageRow>, SweepError> {
        let what = &self.what;
        let mut sweep = Sweep::new(what.cluster.clone(), what.start, what.start.plus_hours(i64::from(what.days) * 24));
        for task in self.tasks() {
            sweep.add(&task);
        }
        sweep.rows()
    }

    /// Nodes in the shapes of the published list, under names of their own.
    #[must_use]
    pub fn nodes(&self) -> Vec<Node> {
        let shapes = self.what.fleet().iter();
        let nodes = shapes.flat_map(|shape| std::iter::repeat_n(shape, shape.nodes as usize)).enumerate();
        let node = |(number, shape): (usize, &published::Shape)| Node {
            id: NodeId::parse(&format!("node-{number:04}")).expect("a plain name"),
            pool: PoolId {
                cluster: self.what.cluster.clone(),
                gpu_model: GpuModel::parse(MODELS[shape.model].name).expect("a published name"),
            },
            gpus: shape.gpus,
            cpu_milli: Some(u64::from(shape.vcpus) * 1_000),
            memory_mib: None,
            drains: false,
            topology: None,
        };
        nodes.map(node).collect()
    }
}
