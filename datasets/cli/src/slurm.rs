//! `datasets ingest --format slurm`: records of `sacct`, out of a file or of the program itself.

use crate::args::Ingest;
use crate::error::CliError;
use crate::source::new_capacity;
use command_line::{Progress, print_notice, say};
use datasets::ReadReport;
use serde::Serialize;
use slurm_records::command::Programs;
use slurm_records::demand::{Demand, Reading, demand};
use slurm_records::nodes::Nodes;
use slurm_records::{Form, History, RecordsError, source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::Store;
use vocab::{CapacityRow, ClusterName, GpuModel, HourStart, UnixSeconds};

/// A path with this name is run, and no file.
const PROGRAM: &str = "sacct";
/// Time limit of a program, in seconds: a week of a large cluster takes the accounting daemon minutes.
const LIMIT_S: u64 = 300;
/// Hours that are asked for without --from.
const LOOKBACK_HOURS: i64 = 35 * vocab::HOURS_PER_DAY;
/// GPU model of nodes whose GPUs have no type.
const ANY_MODEL: &str = "any";

/// Summary of the records.
#[derive(Serialize)]
pub struct SlurmSummary {
    /// Version of the JSON.
    form: String,
    /// Records with GPUs: a job has one for each start.
    records: usize,
    /// Records that stood there again and count once.
    repeated: u64,
    /// Jobs that ask for parts of GPUs alone.
    jobs_with_parts: u64,
    /// Jobs that are neither HP nor spot by the flags.
    other_jobs: u64,
    /// Records that were at no time eligible to run.
    jobs_without_demand: u64,
    /// Jobs without a GPU type, by the model that they count as.
    untyped_jobs: BTreeMap<String, u64>,
    /// GPU-hours of HP demand, running and waiting, by GPU model.
    hp_gpu_hours: BTreeMap<String, f64>,
    /// Spot beside it.
    spot: Vec<SpotSummary>,
    skipped: Vec<String>,
}

#[derive(Serialize)]
struct SpotSummary {
    gpu_model: String,
    qos: String,
    starts: u64,
    gpu_hours: f64,
    evictions: u64,
}

/// Reads the records of a file or of `sacct`.
pub async fn read(what: &Ingest, store: Option<&dyn Store>) -> Result<(ReadReport, SlurmSummary), CliError> {
    let rules = what.slurm.rules()?;
    let is_live = what.path.file_name().is_some_and(|name| name == PROGRAM);
    let (history, form, nodes) = if is_live { live(what)? } else { saved(what)? };
    if !what.skip_bad_rows
        && let Some(bad) = history.skipped.first().or_else(|| nodes.as_ref().and_then(|nodes| nodes.skipped.first()))
    {
        return Err(RecordsError::Record { place: what.path.display().to_string(), record: bad.to_string() }.into());
    }
    if history.jobs.is_empty() && history.skipped.is_empty() {
        return Err(CliError::NoRecords { place: what.path.clone() });
    }
    let untyped = what.gpu_model.clone().map_or_else(|| GpuModel::parse(ANY_MODEL), Ok)?;
    let reading = Reading {
        rules,
        cluster: what.cluster.clone(),
        untyped: what.gpu_model.clone(),
        partitions: nodes.as_ref().map(|nodes| nodes.only_models(&untyped)).transpose()?.unwrap_or_default(),
        from: what.source.from,
        until: what.source.until,
    };
    let found = demand(&history, &reading)
        .map_err(|fault| CliError::Demand { place: what.path.display().to_string(), fault: Box::new(fault) })?;
    let mut capacity = match (&nodes, what.capacity) {
        (Some(nodes), None) => capacity(nodes, &found, &untyped)?,
        _ => Vec::new(),
    };
    if is_live {
        capacity = new_capacity(store, capacity).await?;
    }
    let summary = SlurmSummary::of(&history, nodes.as_ref(), form, &found);
    let report = ReadReport {
        rows: found.rows,
        capacity,
        jobs_without_gpus: history.jobs_without_gpus,
        ..ReadReport::default()
    };
    Ok((report, summary))
}

type Read = (History, Form, Option<Nodes>);

fn saved(what: &Ingest) -> Result<Read, CliError> {
    let (history, form) = source::history_of_file(&what.path)?;
    let nodes = what.nodes.as_deref().map(source::nodes_of_file).transpose()?;
    Ok((history, form, nodes.map(|(nodes, _)| nodes)))
}

fn live(what: &Ingest) -> Result<Read, CliError> {
    let folder = what.path.parent().unwrap_or(Path::new(""));
    let programs = Programs::new(folder, Duration::from_secs(what.source.timeout.unwrap_or(LIMIT_S)));
    let present = now().hour().map_err(CliError::Clock)?;
    let until = what.source.until.unwrap_or(present).min(present);
    let from = what.source.from.unwrap_or_else(|| until.plus_hours(-LOOKBACK_HOURS));
    if from >= until {
        return Err(CliError::NoHours { from, until });
    }
    let progress = Progress::new(PROGRAM, until.hours_since(from).unsigned_abs());
    let step = |hours: u64| progress.step(hours, "hours".to_owned());
    let read = source::history_of_sacct(&programs, from, until, &step);
    progress.done();
    let (mut history, form) = read?;
    // The present hour is not over, even where nothing has happened in it yet.
    history.latest = history.latest.max(Some(present.instant()));
    let nodes = match &what.nodes {
        Some(file) => source::nodes_of_file(file)?.0,
        None => source::nodes_of_slurm(&programs)?.0,
    };
    Ok((history, form, Some(nodes)))
}

fn now() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds::new(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Capacity of the clusters and pools of the rows, from their first hour on.
fn capacity(nodes: &Nodes, found: &Demand, untyped: &GpuModel) -> Result<Vec<CapacityRow>, CliError> {
    let mut first: BTreeMap<&ClusterName, HourStart> = BTreeMap::new();
    for row in &found.rows {
        let hour = first.entry(&row.series.pool.cluster).or_insert(row.hour);
        *hour = (*hour).min(row.hour);
    }
    let mut rows = Vec::new();
    for (cluster, from) in first {
        rows.extend(nodes.capacity(cluster, untyped, from)?);
    }
    Ok(rows)
}

fn hours(gpu_seconds: u64) -> f64 {
    gpu_seconds as f64 / vocab::SECONDS_PER_HOUR as f64
}

impl SlurmSummary {
    fn of(history: &History, nodes: Option<&Nodes>, form: Form, found: &Demand) -> Self {
        let mut hp_gpu_hours: BTreeMap<String, f64> = BTreeMap::new();
        for ((_, model), seconds) in &found.hp_gpu_seconds {
            *hp_gpu_hours.entry(model.to_string()).or_default() += hours(*seconds);
        }
        let spot = found.spot.iter().map(|((model, qos), spot)| SpotSummary {
            gpu_model: model.to_string(),
            qos: qos.clone(),
            starts: spot.starts,
            gpu_hours: hours(spot.gpu_seconds),
            evictions: spot.evictions,
        });
        let skipped = history.skipped.iter().chain(nodes.iter().flat_map(|nodes| &nodes.skipped));
        Self {
            form: form.to_string(),
            records: history.jobs.len(),
            repeated: history.repeated,
            jobs_with_parts: history.jobs_with_parts,
            other_jobs: found.other_jobs,
            jobs_without_demand: found.jobs_without_demand,
            untyped_jobs: found.untyped_jobs.iter().map(|(model, jobs)| (model.to_string(), *jobs)).collect(),
            hp_gpu_hours,
            spot: spot.collect(),
            skipped: skipped.map(ToString::to_string).collect(),
        }
    }

    /// Why there is no usage in them.
    pub fn nothing(&self, place: PathBuf) -> CliError {
        CliError::NoWholeHour { place, records: self.records, bad: self.skipped.len() }
    }

    /// Prints unreadable records and assumptions on stderr.
    pub fn note(&self) {
        for record in &self.skipped {
            print_notice(format_args!("skipped: {record}"));
        }
        for (model, jobs) in &self.untyped_jobs {
            let jobs = vocab::count(*jobs, "job");
            print_notice(format_args!("note: without a GPU type, and counted as {model} (--gpu-model): {jobs}"));
        }
        if self.repeated > 0 {
            print_notice(format_args!("note: {} records stand there again and count once", self.repeated));
        }
        if self.jobs_with_parts > 0 {
            let jobs = vocab::count(self.jobs_with_parts, "job").verb("asks", "ask");
            print_notice(format_args!("note: {jobs} for parts of GPUs, which do not count"));
        }
        if self.other_jobs > 0 {
            let jobs = vocab::count(self.other_jobs, "job").verb("is", "are");
            print_notice(format_args!("note: {jobs} neither HP nor spot and not counted"));
        }
    }

    /// Its lines of the summary.
    pub fn tell(&self) {
        say(format_args!("records: {} in form {}, {} bad ones skipped", self.records, self.form, self.skipped.len()));
        for (model, hours) in &self.hp_gpu_hours {
            say(format_args!("HP {model}: {hours:.1} GPU-hours running and waiting"));
        }
        for SpotSummary { gpu_model, qos, starts, gpu_hours, evictions } in &self.spot {
            say(format_args!(
                "spot {gpu_model} {qos}: {starts} starts, {gpu_hours:.1} GPU-hours, {evictions} evictions"
            ));
        }
    }
}
