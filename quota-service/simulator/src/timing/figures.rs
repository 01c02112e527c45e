//! The figures of a run (Lazer §2, §5.1).

use super::work::{TimedJob, Work};
use crate::rivals::timing::{Phase, Run};
use placement::timing::predictor::DEFERRAL_MOST_MS;
use serde::Serialize;
use std::time::Duration;

/// Mean, median and 95th percentile over jobs, in seconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spread {
    pub mean_s: f64,
    pub median_s: f64,
    pub p95_s: f64,
}

/// X of each newcomer that could preempt a job: how many, and the deciles from the least to the largest.
#[derive(Debug, Clone, Serialize)]
pub struct Deferrals {
    pub count: u64,
    pub deciles_s: Vec<f64>,
    /// The same of those above 0.
    pub positive_deciles_s: Vec<f64>,
    /// Parts of them at the bounds, 0 and 100 s, a millisecond more or less.
    pub at_zero: f64,
    pub at_most: f64,
    /// Part of them that a load which was going on made longer.
    pub prolonged: f64,
}

/// The time of a run's decisions.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    pub decisions: u64,
    pub decision_p50_us: f64,
    pub decision_p99_us: f64,
    pub decision_max_us: f64,
    /// The longest update of the model, apart from decisions.
    pub learning_max_us: f64,
    pub cpu_s: f64,
}

/// The figures of a run. Times of a job are those of Eq. 1: JCT = waiting + loading + training + saving.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    pub gpus: u32,
    pub offered_load: f64,
    pub finished: u64,
    pub left_out: u64,
    pub jct: Spread,
    pub waiting: Spread,
    /// Of jobs with more than one GPU: they are who waits where others fill what falls idle.
    pub gang_waiting: Spread,
    /// Loading that a preemption cut off.
    pub futile: Spread,
    pub loading_mean_s: f64,
    pub saving_mean_s: f64,
    pub futile_gpu_hours: f64,
    pub load_gpu_hours: f64,
    pub preemptions: u64,
    pub futile_preemptions: u64,
    /// From the first submission to the last completion.
    pub makespan_h: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferrals: Option<Deferrals>,
    /// Differs from run to run.
    pub cost: Cost,
    #[serde(skip)]
    pub course: Vec<Deferral>,
}

/// A newcomer that was put off, by its place in the list.
#[derive(Debug, Clone, Copy)]
pub struct Deferral {
    pub at_ms: i64,
    pub job: u32,
    pub predicted_ms: i64,
    /// Until the end of loads that are waited for.
    pub deferral_ms: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Life {
    run: Option<Run>,
    loading_ms: i64,
    saving_ms: i64,
    futile_ms: i64,
    jct_ms: Option<i64>,
}

/// Sums while a run goes on.
#[derive(Debug)]
pub struct Tally {
    lives: Vec<Life>,
    preemptions: u64,
    futile_preemptions: u64,
    last_ms: i64,
    course: Vec<Deferral>,
    decisions_ns: Vec<u64>,
    learning: Duration,
}

impl Tally {
    #[must_use]
    pub fn new(work: &Work) -> Self {
        Self {
            lives: vec![Life::default(); work.jobs.len()],
            preemptions: 0,
            futile_preemptions: 0,
            last_ms: 0,
            course: Vec::new(),
            decisions_ns: Vec::new(),
            learning: Duration::ZERO,
        }
    }

    pub fn decided(&mut self, took: Duration, learning: Duration) {
        self.decisions_ns.push(took.as_nanos() as u64);
        self.learning = self.learning.max(learning);
    }

    pub fn started(&mut self, job: u32, run: Run) {
        self.lives[job as usize].run = Some(run);
    }

    /// A preemption is futile where it cuts off a load (Eq. 2).
    pub fn paused(&mut self, now_ms: i64, job: u32, phase: Phase, saved_at_ms: i64) {
        let life = &mut self.lives[job as usize];
        let Some(run) = life.run.take() else { return };
        self.preemptions += 1;
        match phase {
            Phase::Promised => {}
            Phase::Loading => {
                life.loading_ms += now_ms - run.loads_from_ms;
                life.futile_ms += now_ms - run.loads_from_ms;
                self.futile_preemptions += 1;
            }
            Phase::Training => {
                life.loading_ms += run.trains_from_ms - run.loads_from_ms;
                life.saving_ms += saved_at_ms - now_ms;
            }
        }
    }

    pub fn finished(&mut self, now_ms: i64, job: u32, of: &TimedJob) {
        let life = &mut self.lives[job as usize];
        if let Some(run) = life.run.take() {
            life.loading_ms += run.trains_from_ms - run.loads_from_ms;
        }
        life.jct_ms = Some(now_ms - of.submitted_ms);
        self.last_ms = now_ms;
    }

    pub fn deferred(&mut self, at_ms: i64, job: u32, predicted_ms: i64, deferral_ms: i64) {
        self.course.push(Deferral { at_ms, job, predicted_ms, deferral_ms });
    }

    #[must_use]
    pub fn finish(mut self, work: &Work, cpu: Duration) -> Figures {
        let first_ms = work.jobs.first().map_or(0, |job| job.submitted_ms);
        let each = || self.lives.iter().zip(&work.jobs);
        let over = |value: &dyn Fn(&Life, &TimedJob) -> Option<i64>| {
            spread(each().filter_map(|(life, job)| value(life, job)).collect())
        };
        let gpu_hours = |value: fn(&Life) -> i64| {
            each().map(|(life, job)| value(life) as f64 * f64::from(job.ask.gpus)).sum::<f64>() / 3_600_000.0
        };
        let waited =
            |life: &Life, job: &TimedJob| Some(life.jct_ms? - life.loading_ms - life.saving_ms - job.duration_ms);
        Figures {
            gpus: work.gpus,
            offered_load: work.offered_load(),
            finished: self.lives.iter().filter(|life| life.jct_ms.is_some()).count() as u64,
            left_out: work.left_out,
            jct: over(&|life, _| life.jct_ms),
            waiting: over(&waited),
            gang_waiting: over(&|life, job| waited(life, job).filter(|_| job.ask.gpus > 1)),
            futile: over(&|life, _| Some(life.futile_ms)),
            loading_mean_s: over(&|life, _| Some(life.loading_ms)).mean_s,
            saving_mean_s: over(&|life, _| Some(life.saving_ms)).mean_s,
            futile_gpu_hours: gpu_hours(|life| life.futile_ms),
            load_gpu_hours: gpu_hours(|life| life.loading_ms),
            preemptions: self.preemptions,
            futile_preemptions: self.futile_preemptions,
            makespan_h: (self.last_ms - first_ms) as f64 / 3_600_000.0,
            deferrals: deferrals(&self.course),
            cost: cost(&mut self.decisions_ns, self.learning, cpu),
            course: self.course,
        }
    }
}

/// The least of the sorted values that at least so many of `of` parts do not exceed.
fn quantile<T: Copy + Default>(sorted: &[T], part: usize, of: usize) -> T {
    let rank = (sorted.len() * part).div_ceil(of).max(1) - 1;
    sorted.get(rank).copied().unwrap_or_default()
}

fn spread(mut values_ms: Vec<i64>) -> Spread {
    values_ms.sort_unstable();
    let seconds = |ms: i64| ms as f64 / 1_000.0;
    let sum: f64 = values_ms.iter().map(|ms| seconds(*ms)).sum();
    Spread {
        mean_s: sum / values_ms.len().max(1) as f64,
        median_s: seconds(quantile(&values_ms, 50, 100)),
        p95_s: seconds(quantile(&values_ms, 95, 100)),
    }
}

/// None where nobody was deferred.
fn deferrals(course: &[Deferral]) -> Option<Deferrals> {
    let mut sorted: Vec<i64> = course.iter().map(|one| one.predicted_ms).collect();
    sorted.sort_unstable();
    let part = |which: &dyn Fn(&Deferral) -> bool| {
        course.iter().filter(|one| which(one)).count() as f64 / course.len().max(1) as f64
    };
    let deciles = |sorted: &[i64]| (0..=10).map(|tenth| quantile(sorted, tenth, 10) as f64 / 1_000.0).collect();
    let positive = &sorted[sorted.partition_point(|ms| *ms <= 1)..];
    (!sorted.is_empty()).then(|| Deferrals {
        count: sorted.len() as u64,
        deciles_s: deciles(&sorted),
        positive_deciles_s: deciles(positive),
        at_zero: part(&|one| one.predicted_ms <= 1),
        at_most: part(&|one| one.predicted_ms >= DEFERRAL_MOST_MS - 1),
        prolonged: part(&|one| one.deferral_ms > one.predicted_ms),
    })
}

fn cost(decisions_ns: &mut [u64], learning: Duration, cpu: Duration) -> Cost {
    decisions_ns.sort_unstable();
    let us = |part: usize| quantile(decisions_ns, part, 100) as f64 / 1_000.0;
    Cost {
        decisions: decisions_ns.len() as u64,
        decision_p50_us: us(50),
        decision_p99_us: us(99),
        decision_max_us: us(100),
        learning_max_us: learning.as_nanos() as f64 / 1_000.0,
        cpu_s: cpu.as_secs_f64(),
    }
}
