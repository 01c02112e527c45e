//! Pools, demand and guarantees as jobs and nodes make them. Pure: time is passed in.

mod hold;
mod pool;
#[cfg(test)]
mod tests;

pub use hold::Hold;
pub use pool::{HpDemand, PoolView, SpotJob, SpotWaiting, family};

use crate::config::{Config, Guarantees, Nesting};
use crate::sightings::Look;
use slurm_records::nodes::{Nodes, NodesFault};
use slurm_records::queue::{Queue, QueuedJob};
use slurm_records::{Accounts, Gpus, JobClass, Phase, Rules, State};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{GpuModel, HorizonHours, HpJob, MilliGpus, NameError, Organization, TaskId, UnixSeconds};

/// How jobs are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Which jobs are spot, and whose they are.
    pub rules: Rules,
    /// Hours of spot QOS.
    pub qos_hours: Guarantees,
    /// Hours of spot partitions.
    pub partition_hours: Guarantees,
    /// GPU model of GPUs without a type.
    pub untyped: GpuModel,
    /// Which limits carry the quota.
    pub nesting: Nesting,
}

impl Reading {
    /// By the settings, and the accounts of the cluster.
    #[must_use]
    pub fn of(config: &Config, accounts: Accounts) -> Self {
        let rules = Rules {
            spot_qos: config.spot_qos.names(),
            spot_partitions: config.spot_partitions.names(),
            hp_qos: config.hp_qos.0.clone(),
            hp_partitions: config.hp_partitions.0.clone(),
            accounts,
        };
        Self {
            rules,
            qos_hours: config.spot_qos.clone(),
            partition_hours: config.spot_partitions.clone(),
            untyped: config.untyped(),
            nesting: config.nesting,
        }
    }

    /// The QOS as which a job that waits starts first: of several, Slurm tries that of the highest priority, which rises with the hours.
    fn tried_first(&self, qos: &Arc<str>) -> Arc<str> {
        let known = qos.split(',').filter_map(|name| Some((*self.qos_hours.0.get(name)?, name)));
        known.max().map_or_else(|| qos.clone(), |(_, name)| Arc::from(name))
    }

    /// Hours that a spot job is promised; none at will.
    #[must_use]
    pub fn hours(&self, qos: &str, partition: &str) -> Option<HorizonHours> {
        let first = |names: &str| names.split(',').next().unwrap_or_default().to_owned();
        match self.qos_hours.0.get(&first(qos)) {
            Some(hours) => *hours,
            None => self.partition_hours.0.get(&first(partition)).copied().flatten(),
        }
    }
}

/// Known state of the cluster.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Pools by GPU model.
    pub pools: BTreeMap<GpuModel, PoolView>,
    /// Types of GPUs by model: the names in Slurm's resources; none for GPUs without a type.
    pub types: BTreeMap<GpuModel, Option<Arc<str>>>,
    /// Time of the look.
    pub at: Option<UnixSeconds>,
    /// Jobs with GPUs.
    pub jobs: usize,
    /// Nodes with GPUs.
    pub nodes: usize,
    /// Jobs that wait without a GPU type where several could be theirs: they count in each.
    pub untyped_waiting: usize,
    /// Records that could not be read.
    pub faults: Vec<String>,
    /// Spot runs.
    pub look: Look,
}

impl View {
    /// Of what Slurm printed.
    ///
    /// # Errors
    /// A type of GPUs is no name.
    pub fn of(queue: &Queue, nodes: &Nodes, reading: &Reading, now: UnixSeconds) -> Result<Self, NodesFault> {
        let mut view = Self { at: Some(now), jobs: queue.jobs.len(), nodes: nodes.nodes.len(), ..Self::default() };
        for fault in queue.skipped.iter().chain(&nodes.skipped) {
            view.faults.push(fault.to_string());
        }
        view.add_nodes(nodes, reading)?;
        let only = nodes.only_models(&reading.untyped)?;
        let running = running_tasks(queue);
        for job in &queue.jobs {
            if reading.rules.class(&job.qos, &job.partition) == JobClass::Spot {
                view.look.add(job);
            }
            match job.phase() {
                Phase::Ended => {}
                Phase::Holds => view.add_holder(job, reading, now),
                Phase::Waits => view.add_waiting(job, reading, &only, &running, now),
            }
        }
        Ok(view)
    }

    fn add_nodes(&mut self, nodes: &Nodes, reading: &Reading) -> Result<(), NodesFault> {
        for node in nodes.nodes.values() {
            for (model, gpus) in node.models(&reading.untyped)? {
                let has_type = node.gpus.typed.iter().find(|(name, _)| name.as_ref() == model.as_str());
                self.types.entry(model.clone()).or_insert_with(|| has_type.map(|(name, _)| name.clone()));
                // Jobs without a type that run here have this node's.
                let used = if node.gpus.typed.len() <= 1 { node.used.total } else { node.used.of_type(model.as_str()) };
                self.pools.entry(model).or_default().add_node(gpus, used.min(gpus), node.is_open, node.is_up);
            }
        }
        Ok(())
    }

    /// GPUs by model, of a job that has some.
    fn models(&self, gpus: &Gpus, reading: &Reading) -> Vec<(GpuModel, u32)> {
        let known = |name: &str| self.pools.keys().find(|model| model.as_str() == name).cloned();
        let mut models: Vec<(GpuModel, u32)> = gpus
            .typed
            .iter()
            .filter_map(|(name, count)| Some((known(name).or_else(|| GpuModel::parse(name).ok())?, *count)))
            .collect();
        if gpus.untyped() > 0 {
            let only = self.pools.keys().next().filter(|_| self.pools.len() == 1);
            models.push((only.unwrap_or(&reading.untyped).clone(), gpus.untyped()));
        }
        models
    }

    fn add_holder(&mut self, job: &QueuedJob, reading: &Reading, now: UnixSeconds) {
        let gpus = if job.allocated.total > 0 { &job.allocated } else { &job.requested };
        let class = reading.rules.class(&job.qos, &job.partition);
        for (model, count) in self.models(gpus, reading) {
            let pool = self.pools.entry(model).or_default();
            match class {
                JobClass::Spot => {
                    let started = job.started.unwrap_or(job.submitted).min(now);
                    pool.spot.push(SpotJob {
                        name: job.name,
                        account: job.account.clone(),
                        qos: job.qos.clone(),
                        gpus: count,
                        eligible: job.eligible.unwrap_or(job.submitted),
                        started,
                        hours: reading.hours(&job.qos, &job.partition),
                        is_suspended: job.state == State::Suspended,
                    });
                }
                JobClass::Hp => {
                    match hp_job(job, reading, count, Some(job.started.unwrap_or(job.submitted).min(now))) {
                        Ok(hp) => pool.add_hp(hp, count),
                        Err(fault) => self.faults.push(format!("job {}: {fault}", job.name)),
                    }
                }
                JobClass::Other => pool.other_gpus += count,
            }
        }
    }

    fn add_waiting(
        &mut self,
        job: &QueuedJob,
        reading: &Reading,
        only: &BTreeMap<String, GpuModel>,
        running: &BTreeMap<u32, u32>,
        now: UnixSeconds,
    ) {
        // A wait behind a hold, a dependency, a begin time or the limit of its array asks for nothing.
        let Some(eligible) = job.eligible.filter(|eligible| *eligible <= now) else { return };
        let tasks = allowed_tasks(job, running);
        let mut models = Vec::new();
        for (name, count) in &job.requested.typed {
            models.extend(GpuModel::parse(name).ok().map(|model| (model, *count)));
        }
        if job.requested.untyped() > 0 {
            let first = job.partition.split(',').next().unwrap_or_default();
            if let Some(model) = only.get(first) {
                models.push((model.clone(), job.requested.untyped()));
            } else {
                // It may start in any: the worst case of each.
                self.untyped_waiting += usize::from(self.pools.len() > 1);
                models.extend(self.pools.keys().map(|model| (model.clone(), job.requested.untyped())));
            }
        }
        let class = reading.rules.class(&job.qos, &job.partition);
        for (model, count) in models {
            let gpus = count.saturating_mul(tasks);
            let Some(pool) = self.pools.get_mut(&model) else { continue };
            match class {
                JobClass::Hp => match hp_job(job, reading, gpus, None) {
                    Ok(hp) => pool.add_hp(HpJob { submitted: eligible, ..hp }, gpus),
                    Err(fault) => self.faults.push(format!("job {}: {fault}", job.name)),
                },
                JobClass::Spot => {
                    let (qos, hold) = (reading.tried_first(&job.qos), Hold::of(&job.reason, reading.nesting));
                    pool.spot_queue.push(SpotWaiting { name: job.name, qos, task: count, gpus, since: eligible, hold });
                }
                JobClass::Other => {}
            }
        }
    }
}

/// Tasks of each array that run: they count against its limit.
fn running_tasks(queue: &Queue) -> BTreeMap<u32, u32> {
    let mut running = BTreeMap::new();
    for job in queue.jobs.iter().filter(|job| job.phase() == Phase::Holds) {
        if let slurm_records::JobName::Task(array, _) = job.name {
            *running.entry(array).or_default() += 1;
        }
    }
    running
}

/// Tasks of a record that may start now.
fn allowed_tasks(job: &QueuedJob, running: &BTreeMap<u32, u32>) -> u32 {
    let (Some(most), slurm_records::JobName::Tasks(array)) = (job.most_tasks, job.name) else { return job.tasks };
    job.tasks.min(most.saturating_sub(running.get(&array).copied().unwrap_or(0)))
}

/// An HP job as Headroom takes it.
fn hp_job(job: &QueuedJob, reading: &Reading, gpus: u32, started: Option<UnixSeconds>) -> Result<HpJob, NameError> {
    Ok(HpJob {
        task: TaskId::parse(&job.name.to_string())?,
        organization: Organization::parse(reading.rules.accounts.organization(&job.account))?,
        gpus_milli: u64::from(gpus) * MilliGpus::PER_GPU,
        submitted: job.eligible.unwrap_or(job.submitted),
        started,
    })
}
