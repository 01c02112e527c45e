//! Jobs of `squeue --json`: what waits, runs, and ended lately.

use crate::array;
use crate::document::{self, Kind, Skipped};
use crate::error::RecordsError;
use crate::form::Form;
use crate::gpus::Gpus;
use crate::history::{JobName, time};
use crate::state::{Phase, State};
use crate::values::{Number, Texts, Words};
use serde::Deserialize;
use std::io::Read;
use std::sync::Arc;
use vocab::UnixSeconds;

/// The document, and the command that prints it.
pub const KIND: Kind = Kind { list: "jobs", command: "squeue --all --json", named_by: "job_id" };

/// A job that asks for GPUs, or has some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedJob {
    /// Slurm's own number; a task of an array has one of its own once it starts.
    pub id: u32,
    /// Name as Slurm shows it.
    pub name: JobName,
    /// Account.
    pub account: Arc<str>,
    /// QOS; one that waits may name several, comma between them.
    pub qos: Arc<str>,
    /// Partition; one that waits may name several, comma between them.
    pub partition: Arc<str>,
    /// State.
    pub state: State,
    /// Whether it still holds its GPUs while it ends.
    pub completes: bool,
    /// Why it waits, or why it ended: Slurm's word.
    pub reason: Arc<str>,
    /// Submission, or the requeue.
    pub submitted: UnixSeconds,
    /// Since when nothing but resources and limits holds it back; none while a hold, a dependency or the limit of its
    /// array does.
    pub eligible: Option<UnixSeconds>,
    /// Start: real, or, while it waits, as expected.
    pub started: Option<UnixSeconds>,
    /// End: real, or as its time limit says.
    pub ends: Option<UnixSeconds>,
    /// Time of the notice of its eviction.
    pub evicted: Option<UnixSeconds>,
    /// Starts before this one.
    pub restarts: u32,
    /// GPUs that it asked for, of each task.
    pub requested: Gpus,
    /// GPUs that it has.
    pub allocated: Gpus,
    /// Tasks that wait in this record; 1 for others.
    pub tasks: u32,
    /// The most tasks of its array that may run at once.
    pub most_tasks: Option<u32>,
    /// Its nodes, as a list of hosts.
    pub nodes: String,
}

impl QueuedJob {
    /// Whether it waits for GPUs, holds them, or has ended.
    #[must_use]
    pub fn phase(&self) -> Phase {
        if self.completes { Phase::Holds } else { self.state.phase() }
    }
}

/// Jobs of a document.
#[derive(Debug, Default)]
pub struct Queue {
    /// Jobs with GPUs, in the order of the document.
    pub jobs: Vec<QueuedJob>,
    /// Jobs without.
    pub jobs_without_gpus: u64,
    /// Unreadable records.
    pub skipped: Vec<Skipped>,
    texts: Texts,
}

#[derive(Deserialize)]
struct Raw {
    job_id: u32,
    #[serde(default)]
    account: Option<String>,
    #[serde(default)]
    qos: Option<String>,
    #[serde(default)]
    partition: Option<String>,
    job_state: Words,
    #[serde(default)]
    state_reason: Option<String>,
    #[serde(default)]
    array_job_id: Number,
    #[serde(default)]
    array_task_id: Number,
    #[serde(default)]
    array_task_string: Option<String>,
    #[serde(default)]
    array_max_tasks: Number,
    #[serde(default)]
    het_job_id: Number,
    #[serde(default)]
    het_job_offset: Number,
    submit_time: Number,
    #[serde(default)]
    eligible_time: Number,
    #[serde(default)]
    start_time: Number,
    #[serde(default)]
    end_time: Number,
    #[serde(default)]
    preempt_time: Number,
    #[serde(default)]
    restart_cnt: Number,
    #[serde(default)]
    tres_req_str: Option<String>,
    #[serde(default)]
    tres_per_node: Option<String>,
    #[serde(default)]
    node_count: Number,
    #[serde(default)]
    tres_alloc_str: Option<String>,
    #[serde(default)]
    nodes: Option<String>,
}

/// GPUs of each node times the nodes: where tasks per node say how many these are, as in `-n28 --ntasks-per-node=4 --gres=gpu:2`, Slurm requests
/// those of one node and allocates those of all. `None` where the job names none of each node.
fn on_nodes(raw: &Raw) -> Option<Gpus> {
    let of_node = raw.tres_per_node.as_deref()?;
    let entry = |part: &str| {
        let rest = part.strip_prefix("gres:").or_else(|| part.strip_prefix("gres/"));
        rest.unwrap_or(part).replace('=', ":")
    };
    let of_node = Gpus::of_gres(&of_node.split(',').map(entry).collect::<Vec<_>>().join(","))?;
    let nodes = u32::try_from(raw.node_count.nonzero()?).ok()?;
    let typed = of_node.typed.iter().map(|(kind, gpus)| Some((kind.clone(), gpus.checked_mul(nodes)?)));
    let (total, typed) = (of_node.total.checked_mul(nodes)?, typed.collect::<Option<_>>()?);
    Some(Gpus { total, typed, ..of_node })
}

impl Queue {
    /// Reads the output of `squeue --json`; `place` names it in faults.
    ///
    /// # Errors
    /// See [`RecordsError`]; an unreadable record is no error: it is among [`Queue::skipped`].
    pub fn read(place: &str, from: impl Read) -> Result<(Self, Form), RecordsError> {
        let mut queue = Self::default();
        let (form, skipped) = document::read(place, KIND, from, &mut |raw: Raw| queue.add(raw))?;
        queue.skipped = skipped;
        Ok((queue, form))
    }

    fn add(&mut self, raw: Raw) -> Result<(), String> {
        let gpus = |text: &Option<String>, field: &str| {
            Gpus::parse(text.as_deref().unwrap_or_default()).map_err(|fault| format!("{field}: {fault}"))
        };
        let (requested, allocated) =
            (gpus(&raw.tres_req_str, "tres_req_str")?, gpus(&raw.tres_alloc_str, "tres_alloc_str")?);
        let requested = on_nodes(&raw).filter(|gpus| gpus.total > requested.total).unwrap_or(requested);
        let (state, completes) = State::of(&raw.job_state.0).map_err(|fault| format!("job_state: {fault}"))?;
        if requested.total == 0 && allocated.total == 0 {
            self.jobs_without_gpus += 1;
            return Ok(());
        }
        let expression = raw.array_task_string.as_deref().filter(|text| !text.is_empty());
        let tasks = expression.map_or(Ok(1), array::tasks_of).map_err(|fault| format!("array_task_string: {fault}"))?;
        // From 24.11 on a job that waits has the QOS as its user wrote it, and Slurm takes it in capitals, too.
        let qos = raw.qos.map(|qos| qos.to_lowercase());
        let most_tasks = raw.array_max_tasks.nonzero().and_then(|most| u32::try_from(most).ok());
        self.jobs.push(QueuedJob {
            id: raw.job_id,
            name: JobName::of(raw.job_id, (raw.array_job_id, raw.array_task_id), (raw.het_job_id, raw.het_job_offset)),
            account: self.texts.shared(raw.account.as_deref()),
            qos: self.texts.shared(qos.as_deref()),
            partition: self.texts.shared(raw.partition.as_deref()),
            state,
            completes,
            reason: self.texts.shared(raw.state_reason.as_deref()),
            submitted: time(raw.submit_time, "submit_time")?.ok_or("submit_time: no time")?,
            eligible: time(raw.eligible_time, "eligible_time")?,
            started: time(raw.start_time, "start_time")?,
            ends: time(raw.end_time, "end_time")?,
            evicted: time(raw.preempt_time, "preempt_time")?,
            restarts: raw.restart_cnt.0.and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
            requested,
            allocated,
            tasks,
            most_tasks: most_tasks.or_else(|| expression.and_then(array::limit_of)),
            nodes: raw.nodes.unwrap_or_default(),
        });
        Ok(())
    }
}
