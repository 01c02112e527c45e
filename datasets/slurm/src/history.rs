//! Jobs of `sacct --json`: each start of a job is a record of its own.

use crate::array;
use crate::document::{self, Kind, Skipped};
use crate::error::RecordsError;
use crate::form::Form;
use crate::gpus::Gpus;
use crate::state::{Phase, State};
use crate::values::{Number, Texts, Words};
use serde::Deserialize;
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use vocab::UnixSeconds;

/// The document, and the command that prints it. Without `--duplicates` the starts of a requeued job before its last are
/// missing; `--allocations` leaves its steps out.
pub const KIND: Kind = Kind {
    list: "jobs",
    command: "sacct --allusers --duplicates --allocations --starttime=TIME --json",
    named_by: "job_id",
};

/// Name of a job as Slurm shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobName {
    /// `17`
    Job(u32),
    /// `24_3`: a task of an array.
    Task(u32, u32),
    /// `24_*`: tasks of an array that wait in one record.
    Tasks(u32),
    /// `6+1`: a component of a heterogeneous job.
    Component(u32, u32),
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "{job}"),
            Self::Task(array, task) => write!(f, "{array}_{task}"),
            Self::Tasks(array) => write!(f, "{array}_*"),
            Self::Component(job, offset) => write!(f, "{job}+{offset}"),
        }
    }
}

impl JobName {
    /// Of the ids of a record, where zero is none.
    pub(crate) fn of(job: u32, array: (Number, Number), het: (Number, Number)) -> Self {
        let id = |number: Number| number.nonzero().and_then(|id| u32::try_from(id).ok());
        let index = |number: Number| number.0.and_then(|index| u32::try_from(index).ok());
        if let Some(array_job) = id(array.0) {
            return index(array.1).map_or(Self::Tasks(array_job), |task| Self::Task(array_job, task));
        }
        match (id(het.0), index(het.1)) {
            (Some(het_job), Some(offset)) => Self::Component(het_job, offset),
            _ => Self::Job(job),
        }
    }
}

/// One start of a job, or its wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Slurm's own number; a task of an array has one of its own.
    pub id: u32,
    /// Name as Slurm shows it.
    pub name: JobName,
    /// Slurm's name of the cluster.
    pub cluster: Arc<str>,
    /// Account.
    pub account: Arc<str>,
    /// QOS; one that waits may name several, comma between them.
    pub qos: Arc<str>,
    /// Partition; one that waits may name several, comma between them.
    pub partition: Arc<str>,
    /// Last known state.
    pub state: State,
    /// Time of submission, or of the requeue.
    pub submitted: UnixSeconds,
    /// Since when nothing but resources held it back: no hold, no dependency, no begin time, no limit of its array.
    pub eligible: Option<UnixSeconds>,
    /// Start; none of a job that ended before it had its GPUs.
    pub started: Option<UnixSeconds>,
    /// End; none while it waits or runs. Of a run whose size changed, each size is a record of its own: all have the start of the
    /// run, and all but the last are [`State::Resizing`] and end where the next one begins.
    pub ended: Option<UnixSeconds>,
    /// Where the record before it in the same run ended, if there is one: its GPUs count from then on.
    pub continues: Option<UnixSeconds>,
    /// GPUs that it asked for, of each task.
    pub requested: Gpus,
    /// GPUs that it had.
    pub allocated: Gpus,
    /// Tasks in the record: more than one where tasks of an array wait.
    pub tasks: u32,
}

/// Jobs of a document.
#[derive(Debug, Default)]
pub struct History {
    /// Jobs that ask for GPUs.
    pub jobs: Vec<Job>,
    /// Jobs that ask for none.
    pub jobs_without_gpus: u64,
    /// Jobs that ask for parts of GPUs (`gres/shard`, `gres/mps`) alone, which are not counted.
    pub jobs_with_parts: u64,
    /// Records of a document that stand in it again, as where two answers were put together; each counts once.
    pub repeated: u64,
    /// Latest time in the document: when it was printed, or shortly before.
    pub latest: Option<UnixSeconds>,
    /// Earliest end in the document: it was asked for from then on, or from before.
    pub earliest_end: Option<UnixSeconds>,
    /// Unreadable records.
    pub skipped: Vec<Skipped>,
    texts: Texts,
}

#[derive(Deserialize)]
pub(crate) struct Raw {
    job_id: u32,
    #[serde(default)]
    cluster: Option<String>,
    #[serde(default)]
    account: Option<String>,
    #[serde(default)]
    qos: Option<String>,
    #[serde(default)]
    partition: Option<String>,
    #[serde(default)]
    array: RawArray,
    #[serde(default)]
    het: RawHet,
    state: RawState,
    time: RawTime,
    tres: RawTres,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawArray {
    job_id: Number,
    task_id: Number,
    task: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawHet {
    job_id: Number,
    job_offset: Number,
}

#[derive(Deserialize)]
struct RawState {
    current: Words,
}

#[derive(Deserialize)]
struct RawTime {
    #[serde(default)]
    elapsed: Number,
    #[serde(default)]
    eligible: Number,
    #[serde(default)]
    end: Number,
    #[serde(default)]
    start: Number,
    submission: Number,
}

#[derive(Deserialize)]
struct RawTres {
    #[serde(default)]
    allocated: Vec<Resource>,
    #[serde(default)]
    requested: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: Option<String>,
    /// Of resources other than GPUs it may be anything.
    #[serde(default)]
    count: serde_json::Value,
}

/// GPUs of a list of resources.
fn gpus(of: &[Resource], field: &str) -> Result<Gpus, String> {
    let mut counts = Vec::new();
    for resource in of.iter().filter(|resource| resource.kind == "gres") {
        let name = resource.name.as_deref().unwrap_or_default();
        let count = serde_json::from_value::<Number>(resource.count.clone());
        let count = count.map_err(|fault| format!("{field}: {name}: {fault}"))?;
        counts.push((name, count.0.unwrap_or(0)));
    }
    Gpus::of(counts.into_iter()).map_err(|fault| format!("{field}: {fault}"))
}

/// A time, where there is one.
pub(crate) fn time(number: Number, field: &str) -> Result<Option<UnixSeconds>, String> {
    let Some(unix_s) = number.nonzero() else { return Ok(None) };
    let time = UnixSeconds::new(i64::try_from(unix_s).unwrap_or(i64::MAX)).in_calendar();
    time.map(Some).map_err(|fault| format!("{field}: {fault}"))
}

impl History {
    /// Reads the output of `sacct --json`; `place` names it in faults.
    ///
    /// # Errors
    /// See [`RecordsError`]; an unreadable record is no error: it is among [`History::skipped`].
    pub fn read(place: &str, from: impl Read) -> Result<(Self, Form), RecordsError> {
        let mut history = Self::default();
        let (form, skipped) = document::read(place, KIND, from, &mut |raw: Raw| history.add(&raw))?;
        history.skipped = skipped;
        history.repeated = history.unite();
        Ok((history, form))
    }

    /// Joins the records of another document. One that is in both counts once; of a wait and a start of the same
    /// submission the start stays.
    pub fn join(&mut self, other: Self) {
        self.jobs.extend(other.jobs);
        self.jobs_without_gpus += other.jobs_without_gpus;
        self.jobs_with_parts += other.jobs_with_parts;
        self.latest = self.latest.max(other.latest);
        self.earliest_end = [self.earliest_end, other.earliest_end].into_iter().flatten().min();
        self.skipped.extend(other.skipped);
        self.repeated += other.repeated;
        let _ = self.unite();
    }

    /// Leaves one record of each size of a start, and joins the sizes; answers how many records stood there again.
    fn unite(&mut self) -> u64 {
        // A size that lasted no second: the record that goes on has the same times, and would be taken for it.
        self.jobs.retain(|job| job.state != State::Resizing || job.ended > Some(job.submitted));
        let before = self.jobs.len();
        self.jobs.sort_by_key(|job| (job.id, job.submitted, job.started, job.ended));
        self.jobs.dedup_by(|later, earlier| {
            let is_same = (later.id, later.submitted) == (earlier.id, earlier.submitted);
            let is_over = earlier.state == State::Resizing && earlier.ended != later.ended;
            let is_again = is_same && !is_over && (earlier.started.is_none() || earlier.started == later.started);
            if is_again {
                std::mem::swap(later, earlier);
            }
            is_again
        });
        let again = before - self.jobs.len();
        self.continue_runs();
        again as u64
    }

    /// Records of one run follow each other: the one that goes on is submitted where the size changed. It has the start of the run, or,
    /// where a node was lost (`--no-kill`), that of its size; squeue shows that of the run in either case.
    fn continue_runs(&mut self) {
        for place in 0..self.jobs.len() {
            let job = &self.jobs[place];
            let before = place.checked_sub(1).map(|before| &self.jobs[before]);
            let resized = before.filter(|before| {
                before.state == State::Resizing
                    && job.started.is_some()
                    && (before.id, &before.cluster) == (job.id, &job.cluster)
                    && [before.started, before.ended].contains(&job.started)
            });
            let run = resized.map(|before| (before.ended, before.started));
            self.jobs[place].continues = run.and_then(|(ended, _)| ended);
            if let Some((_, started)) = run {
                self.jobs[place].started = started;
            }
        }
    }

    fn add(&mut self, raw: &Raw) -> Result<(), String> {
        let requested = gpus(&raw.tres.requested, "tres.requested")?;
        let allocated = gpus(&raw.tres.allocated, "tres.allocated")?;
        let (mut state, _) = State::of(&raw.state.current.0).map_err(|fault| format!("state.current: {fault}"))?;
        let [eligible, mut started, ended] = [
            time(raw.time.eligible, "time.eligible")?,
            time(raw.time.start, "time.start")?,
            time(raw.time.end, "time.end")?,
        ];
        let submitted = time(raw.time.submission, "time.submission")?.ok_or("time.submission: no time")?;
        if let (Some(started), Some(ended)) = (started, ended)
            && ended < started
        {
            return Err(format!("time.end: {ended} is before time.start, {started}"));
        }
        if state.phase() == Phase::Ended && ended.is_none() {
            return Err("time.end: an ended job without its end; see sacctmgr show runawayjobs".to_owned());
        }
        if state == State::Resizing && ended.is_none() {
            state = State::Running;
        }
        let elapsed = i64::try_from(raw.time.elapsed.0.unwrap_or(0)).unwrap_or(0);
        // A submission that is refused, or a cancel before the start: Slurm writes the end as the start, too, and no GPUs. A run of less
        // than a second has them.
        if started == ended && allocated.total == 0 && !allocated.has_parts && state.phase() == Phase::Ended {
            started = None;
        }
        let seen = [Some(submitted), started.map(|started| started.plus_s(elapsed)), ended];
        self.latest = seen.into_iter().flatten().chain(self.latest).max();
        self.earliest_end = ended.into_iter().chain(self.earliest_end).min();
        if requested.total == 0 && allocated.total == 0 {
            let has_parts = requested.has_parts || allocated.has_parts;
            *(if has_parts { &mut self.jobs_with_parts } else { &mut self.jobs_without_gpus }) += 1;
            return Ok(());
        }
        let tasks = match raw.array.task.as_deref().filter(|_| raw.array.task_id.0.is_none()) {
            None | Some("") => 1,
            Some(expression) => array::tasks_of(expression).map_err(|fault| format!("array.task: {fault}"))?,
        };
        let name = JobName::of(raw.job_id, (raw.array.job_id, raw.array.task_id), (raw.het.job_id, raw.het.job_offset));
        let [cluster, account, qos, partition] =
            [&raw.cluster, &raw.account, &raw.qos, &raw.partition].map(|text| self.texts.shared(text.as_deref()));
        let id = raw.job_id;
        #[rustfmt::skip]
        self.jobs.push(Job {
            id, name, cluster, account, qos, partition, state, submitted, eligible, started, ended, requested, allocated, tasks, continues: None,
        });
        Ok(())
    }
}
