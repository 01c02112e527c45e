//! A job list as elastic jobs.

use super::args::Run as Arguments;
use super::commands::{CHRONUS, ElasticError};
use super::draws::{Stream, some, stream};
use super::run::Job;
use super::{labels, profiles};
use crate::rivals::elastic::{ElasticJob, JobNumber, Label};
use datasets::{Calendar, ReadOptions};
use std::collections::BTreeMap;
use std::path::Path;
use vocab::{ClusterName, GpuModel, TaskId, UnixSeconds};

/// The zero of the list's minutes; any other hour would do.
const EPOCH: UnixSeconds = UnixSeconds::new(1_506_960_000);
const MINUTE_MS: i64 = 60_000;
/// GPUs of the groups of which a share is not elastic (Cornucopia §5.6).
const GROUPS: [std::ops::RangeInclusive<u32>; 3] = [2..=4, 5..=8, 9..=u32::MAX];

/// A row of the list, in the order of submission.
#[derive(Debug, Clone)]
pub struct Row {
    pub id: TaskId,
    pub model: String,
    pub request: u32,
    pub submitted_ms: i64,
    pub duration_ms: i64,
    /// Where deadlines were asked for: until when it is wanted.
    pub deadline_ms: Option<i64>,
}

impl Row {
    #[must_use]
    pub fn gpu_minutes(&self) -> i64 {
        self.duration_ms / MINUTE_MS * i64::from(self.request)
    }
}

/// # Errors
/// The list cannot be read, or lacks deadlines that are asked for.
pub fn rows(file: &Path, skip_bad_rows: bool, with_deadlines: bool) -> Result<Vec<Row>, ElasticError> {
    let options = ReadOptions {
        cluster: ClusterName::parse("philly").expect("it is a name"),
        gpu_model: GpuModel::parse("any").expect("it is a name"),
        calendar: Calendar::parse("UTC", Calendar::WEEKDAYS).expect("it comes along"),
        skip_bad_rows,
        zones: datasets::Zones::new(),
    };
    let (mut tasks, mut report) = datasets::read::philly_tasks(file, EPOCH, &options)?;
    let mut models = datasets::read::philly_models(file, &options)?;
    let mut deadlines = BTreeMap::new();
    if with_deadlines {
        let mut skipped = Vec::new();
        deadlines = datasets::read::philly_deadlines(file, &options, &mut skipped)?;
        tasks.retain(|task| deadlines.contains_key(&task.id));
        // A wrong row is reported once.
        skipped.retain(|one| report.skipped.iter().all(|known| known.row != one.row));
        report.skipped.extend(skipped);
    }
    for one in &report.skipped {
        command_line::print_notice(format_args!(
            "warning: {}, row {} is left out: {}",
            one.file.display(),
            one.row,
            one.fault
        ));
    }
    if report.jobs_without_gpus > 0 {
        command_line::print_notice(format_args!(
            "warning: {} left out for want of GPUs",
            vocab::count(report.jobs_without_gpus, "job").verb("is", "are")
        ));
    }
    let row = |task: vocab::Task| {
        let submitted_ms = (task.submitted.get() - EPOCH.get()) * 1_000;
        let after_ms = deadlines.get(&task.id).copied().flatten().map(|after_s| after_s.saturating_mul(1_000));
        Row {
            model: models.remove(&task.id).unwrap_or_default(),
            request: u32::try_from(task.gpus().milli() / 1_000).unwrap_or(u32::MAX),
            submitted_ms,
            duration_ms: task.duration_s.unwrap_or_default().saturating_mul(1_000) as i64,
            deadline_ms: after_ms.map(|after_ms| submitted_ms.saturating_add_unsigned(after_ms)),
            id: task.id,
        }
    };
    let mut rows: Vec<Row> = tasks.into_iter().map(row).collect();
    rows.sort_by(|one, other| (one.submitted_ms, &one.id).cmp(&(other.submitted_ms, &other.id)));
    Ok(rows)
}

/// Jobs as the arguments want them.
///
/// # Errors
/// A file cannot be read, or says nothing of a job or its model.
pub fn jobs(arguments: &Arguments, seed: u64) -> Result<Vec<Job>, ElasticError> {
    let with_deadlines = arguments.policies.iter().any(|name| name == CHRONUS);
    let rows = rows(&arguments.jobs, arguments.skip_bad_rows, with_deadlines)?;
    let profiles = profiles::profiles(arguments.profiles.as_deref())?;
    let mut labels = match &arguments.labels {
        Some(file) => labels::read(file, &rows)?,
        None => labels::made(&rows, seed),
    };
    let batch = (0..rows.len()).filter(|index| labels[*index] == Label::Batch).collect();
    let mislabelled = some(batch, arguments.mislabelled, &mut stream(seed, Stream::Mislabelled));
    let (mut is_mislabelled, mut is_fixed) = (vec![false; rows.len()], vec![false; rows.len()]);
    for index in mislabelled {
        (is_mislabelled[index], labels[index]) = (true, Label::Interactive);
    }
    let mut draws = stream(seed, Stream::NonElastic);
    for group in GROUPS {
        let of_group = (0..rows.len()).filter(|index| group.contains(&rows[*index].request)).collect();
        for index in some(of_group, arguments.non_elastic, &mut draws) {
            is_fixed[index] = true;
        }
    }
    let mut jobs = Vec::with_capacity(rows.len());
    for ((row, index), number) in rows.into_iter().zip(0..).zip(0..) {
        let Some(profile) = profiles.get(&row.model) else {
            let models = profiles.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(ElasticError::NoProfile { job: row.id, model: row.model, models });
        };
        let index: usize = index;
        let make = if is_fixed[index] { ElasticJob::fixed } else { ElasticJob::elastic };
        let made = make(JobNumber(number), labels[index], row.request, profile.clone());
        let job = made.map_err(|fault| ElasticError::Job { job: row.id, fault })?;
        let job = if arguments.ramp_up { job.learning() } else { job };
        let job = if let Some(deadline_ms) = row.deadline_ms { job.due(deadline_ms) } else { job };
        let (submitted_ms, duration_ms) = (row.submitted_ms, row.duration_ms);
        jobs.push(Job { job, submitted_ms, duration_ms, mislabelled: is_mislabelled[index] });
    }
    Ok(jobs)
}
