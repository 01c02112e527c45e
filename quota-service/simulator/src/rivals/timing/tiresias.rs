//! Discretized two-dimensional least attained service (Tiresias, NSDI 2019), as its public simulator has it.

use super::job::{Job, JobNumber};
use super::scheduler::{Rank, Scheduler};

/// GPU-seconds at which a job leaves the first queue for the second, and the second for the third (BASELINES §4).
const LIMITS_GPU_MS: [i64; 2] = [3_250_000, 7_200_000];
/// A job that has run returns to the first queue when it has waited so many times as long as it ran. The public code
/// takes the number as an argument and names none.
const STARVATION_MULTIPLE: i64 = 8;

fn counted_gpu_ms(job: &Job, now_ms: i64) -> i64 {
    (job.level.counted_ms + job.run_ms(now_ms)) * i64::from(job.ask.gpus)
}

/// Lower queues first, and in a queue who entered it first.
pub fn rank(job: &Job, _now_ms: i64) -> Rank {
    (job.level.queue, job.level.entered_ms)
}

/// Jobs that have had more than their queue allows go down; those that starve go up to the first.
pub fn move_between_queues(scheduler: &mut Scheduler, now_ms: i64) {
    for job in scheduler.active.clone() {
        let job = scheduler.job_mut(job);
        let had = counted_gpu_ms(job, now_ms);
        let queue = LIMITS_GPU_MS.iter().filter(|limit| had >= **limit).count() as u8;
        if queue > job.level.queue {
            job.level.queue = queue;
            job.level.entered_ms = now_ms;
        }
    }
    while let Some((at_ms, number)) = scheduler.starving.first().copied().filter(|(at_ms, _)| *at_ms <= now_ms) {
        scheduler.starving.remove(&(at_ms, number));
        let entry = (scheduler.rank(now_ms, number), number);
        if scheduler.waiting.remove(&entry) {
            scheduler.job_mut(number).level = super::job::Level { queue: 0, entered_ms: now_ms, counted_ms: 0 };
            scheduler.wait(now_ms, number);
        }
    }
}

/// A job that was paused starves after a while, unless it waits in the first queue or has not run.
pub fn may_starve(scheduler: &mut Scheduler, now_ms: i64, number: JobNumber) {
    let level = scheduler.job(number).level;
    if level.queue > 0 && level.counted_ms > 0 {
        scheduler.starving.insert((now_ms + STARVATION_MULTIPLE * level.counted_ms, number));
    }
}

/// When the next job that runs leaves its queue, or the next one that waits starves.
pub fn next_crossing_ms(scheduler: &Scheduler, now_ms: i64) -> Option<i64> {
    let crossing = |number: &JobNumber| {
        let job = scheduler.job(*number);
        let limit = LIMITS_GPU_MS.get(usize::from(job.level.queue))?;
        let run = job.run?;
        let needs_ms = (limit + i64::from(job.ask.gpus) - 1) / i64::from(job.ask.gpus) - job.level.counted_ms;
        Some((run.trains_from_ms + needs_ms).max(now_ms + 1))
    };
    // Nobody waits: an order would change nothing.
    let next = scheduler.active.iter().filter_map(crossing).min().filter(|_| !scheduler.waiting.is_empty());
    let starving = scheduler.starving.first().map(|(at_ms, _)| (*at_ms).max(now_ms + 1));
    next.into_iter().chain(starving).min()
}
