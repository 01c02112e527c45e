//! The result of a run, as figures.

use super::run::{Course, Job};
use crate::rivals::elastic::Label;
use serde::Serialize;

/// Figures of one policy on one cluster. Queueing is time without any GPU; interactive jobs are those that are, and not
/// those that are merely called so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub interactive_queue_mean_s: f64,
    pub interactive_queue_p99_s: f64,
    /// From submission to all the GPUs that were asked for, or to the end of a job that never had them.
    pub interactive_full_mean_s: f64,
    pub interactive_full_p99_s: f64,
    pub interactive_jct_mean_s: f64,
    /// Until the first GPU, of all that are called interactive.
    pub labelled_start_mean_s: f64,
    /// Of the same: all time without a GPU, that after a demotion too.
    pub labelled_queue_mean_s: f64,
    pub jct_mean_s: f64,
    pub jct_median_s: f64,
    pub jct_p95_s: f64,
    /// Mean of completion time over the time that the job takes alone on its request.
    pub jct_inflation_mean: f64,
    pub finished: usize,
    pub unfinished: usize,
    /// Jobs with a deadline, where deadlines were read, and those that ended by then.
    pub deadlines: usize,
    pub deadlines_met: usize,
    pub preemptions_partial: u64,
    pub preemptions_full: u64,
    pub gpu_hours: f64,
    pub cpu_s: f64,
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Nearest rank.
fn percentile(values: &mut [f64], hundredths: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * hundredths).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(0.0)
}

/// Figures of those that finished.
#[must_use]
pub fn summary(jobs: &[Job], courses: &[Course], cpu_s: f64) -> Summary {
    let done: Vec<(&Job, &Course, i64)> =
        jobs.iter().zip(courses).filter_map(|(job, course)| Some((job, course, course.ended_ms?))).collect();
    let seconds = |ms: i64| ms as f64 / 1_000.0;
    let jct = |(job, _, ended_ms): &(&Job, &Course, i64)| seconds(ended_ms - job.submitted_ms);
    let called: Vec<_> = done.iter().filter(|(job, _, _)| job.job.label() == Label::Interactive).collect();
    let interactive: Vec<_> = called.iter().filter(|(job, _, _)| !job.mislabelled).collect();
    let mut queue: Vec<f64> = interactive.iter().map(|(_, course, _)| seconds(course.stripped_ms)).collect();
    let full = |(job, course, ended_ms): &(&Job, &Course, i64)| {
        seconds(course.full_ms.unwrap_or(*ended_ms) - job.submitted_ms)
    };
    let mut full: Vec<f64> = interactive.iter().map(|one| full(one)).collect();
    let start = |(job, course, ended_ms): &(&Job, &Course, i64)| {
        seconds(course.started_ms.unwrap_or(*ended_ms) - job.submitted_ms)
    };
    let mut jcts: Vec<f64> = done.iter().map(jct).collect();
    let inflation: Vec<f64> =
        done.iter().map(|one| jct(one) / seconds(one.0.duration_ms).max(f64::MIN_POSITIVE)).collect();
    let deadlines = || jobs.iter().zip(courses).filter_map(|(job, course)| Some((job.job.deadline_ms()?, course)));
    let is_met = |(deadline_ms, course): &(i64, &Course)| course.ended_ms.is_some_and(|end_ms| end_ms <= *deadline_ms);
    Summary {
        interactive_queue_mean_s: mean(&queue),
        interactive_queue_p99_s: percentile(&mut queue, 99),
        interactive_full_mean_s: mean(&full),
        interactive_full_p99_s: percentile(&mut full, 99),
        interactive_jct_mean_s: mean(&interactive.iter().map(|one| jct(one)).collect::<Vec<_>>()),
        labelled_start_mean_s: mean(&called.iter().map(|one| start(one)).collect::<Vec<_>>()),
        labelled_queue_mean_s: mean(&called.iter().map(|one| seconds(one.1.stripped_ms)).collect::<Vec<_>>()),
        jct_mean_s: mean(&jcts),
        jct_median_s: percentile(&mut jcts, 50),
        jct_p95_s: percentile(&mut jcts, 95),
        jct_inflation_mean: mean(&inflation),
        finished: done.len(),
        unfinished: jobs.len() - done.len(),
        deadlines: deadlines().count(),
        deadlines_met: deadlines().filter(is_met).count(),
        preemptions_partial: courses.iter().map(|course| course.shrunk).sum(),
        preemptions_full: courses.iter().map(|course| course.stopped).sum(),
        gpu_hours: courses.iter().map(|course| course.gpu_ms).sum::<i64>() as f64 / 3_600_000.0,
        cpu_s,
    }
}
