//! Which jobs are interactive: the public copy of the Philly jobs lacks the status column that Cornucopia made its labels of.

use super::commands::ElasticError;
use super::draws::{Stream, stream};
use super::trace::Row;
use crate::rivals::elastic::Label;
use rand::RngExt;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use vocab::TaskId;

/// Interactive jobs and jobs (Cornucopia, table 3).
const SHARE: (usize, usize) = (6_829, 30_940);

/// The shortest jobs are interactive, until their share is the paper's; among equals a draw decides.
///
/// Table 3 leaves little choice: its interactive jobs take 27.44 GPU minutes each, and the shortest 6,829 jobs of the
/// published list 27.17. By any other rule by duration they would take more.
#[must_use]
pub fn made(jobs: &[Row], seed: u64) -> Vec<Label> {
    let mut draws = stream(seed, Stream::Labels);
    let mut order: Vec<_> =
        jobs.iter().zip(0..).map(|(job, index)| (job.duration_ms, draws.random::<u64>(), index)).collect();
    order.sort_unstable();
    let count = (jobs.len() * SHARE.0 + SHARE.1 / 2) / SHARE.1;
    let mut labels = vec![Label::Batch; jobs.len()];
    for (_, _, index) in order.into_iter().take(count) {
        let index: usize = index;
        labels[index] = Label::Interactive;
    }
    labels
}

/// Labels as a file, with how they were made.
#[must_use]
pub fn text(jobs: &[Row], labels: &[Label], seed: u64) -> String {
    let interactive = jobs.iter().zip(labels).filter(|(_, label)| **label == Label::Interactive);
    let (count, gpu_minutes) = interactive.fold((0, 0), |(count, sum), (job, _)| (count + 1, sum + job.gpu_minutes()));
    let all: i64 = jobs.iter().map(Row::gpu_minutes).sum();
    let mut text = format!(
        "# Made by `simulate elastic labels --seed {seed}`. The published list of Philly jobs has no status, of which the paper\n\
         # (Cornucopia, section 5.1) made its labels: 6,829 of 30,940 jobs are interactive there, with 187,421 GPU minutes\n\
         # (table 3). Rule: the shortest jobs are interactive until their share is 6,829 / 30,940; among jobs of equal length\n\
         # a draw by the seed decides. Here: {count} of {} jobs with {gpu_minutes} of {all} GPU minutes.\n\
         # Mislabelled and non-elastic jobs are drawn when a simulation runs (--mislabelled, --non-elastic).\n\
         job_id,label\n",
        jobs.len(),
    );
    for (job, label) in jobs.iter().zip(labels) {
        let label = if *label == Label::Interactive { "interactive" } else { "batch" };
        let _ = writeln!(text, "{},{label}", job.id);
    }
    text
}

/// Labels of a file, in the order of the jobs.
///
/// # Errors
/// The file cannot be read, or lacks a job.
pub fn read(file: &Path, jobs: &[Row]) -> Result<Vec<Label>, ElasticError> {
    let labels: BTreeMap<TaskId, bool> = datasets::read::job_labels(file)?;
    let label = |job: &Row| match labels.get(&job.id) {
        Some(true) => Ok(Label::Interactive),
        Some(false) => Ok(Label::Batch),
        None => Err(ElasticError::NoLabel { file: file.to_owned(), job: job.id.clone() }),
    };
    jobs.iter().map(label).collect()
}
