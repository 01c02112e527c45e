//! The jobs that are played.

use super::args::{Durations, Timing};
use super::phases::Phases;
use crate::commands::SimulatorError;
use crate::rivals::timing::Ask;
use crate::world::WorldError;
use datasets::Calendar;
use datasets::read::{ReadOptions, philly_models, philly_tasks};
use placement::draw::Draw;
use std::collections::BTreeMap;
use vocab::{ClusterName, GpuModel, Organization, Task, UnixSeconds};

/// A job as it comes.
#[derive(Debug, Clone, Copy)]
pub struct TimedJob {
    pub submitted_ms: i64,
    /// Training that it needs, whether or not schedulers know.
    pub duration_ms: i64,
    pub ask: Ask,
}

/// Jobs by the time at which they come, on a cluster of so many GPUs.
#[derive(Debug)]
pub struct Work {
    pub jobs: Vec<TimedJob>,
    pub gpus: u32,
    /// Jobs that ask for more GPUs than there are, or for none.
    pub left_out: u64,
}

impl Work {
    /// # Errors
    /// The jobs or phases cannot be read, or no job fits.
    pub fn read(what: &Timing, seed: u64) -> Result<Self, SimulatorError> {
        let world = |fault| SimulatorError::World(WorldError::Read(fault));
        let options = options(what)?;
        let phases = Phases::read(what.phases.as_deref()).map_err(world)?;
        let (tasks, report) = philly_tasks(&what.jobs, UnixSeconds::new(0), &options).map_err(world)?;
        let models = philly_models(&what.jobs, &options).map_err(world)?;
        for skipped in &report.skipped {
            command_line::print_notice(format_args!(
                "skipped: {}, row {}: {}",
                skipped.file.display(),
                skipped.row,
                skipped.fault
            ));
        }
        let mut draw = Draw::new(seed);
        let mut numbers: BTreeMap<Organization, u32> = BTreeMap::new();
        let (mut jobs, mut left_out) = (Vec::new(), report.jobs_without_gpus);
        for task in &tasks {
            let model = models.get(&task.id).map_or("", String::as_str);
            let next = numbers.len() as u32;
            let organization = *numbers.entry(task.organization.clone()).or_insert(next);
            // Drawn for each, so that a smaller cluster gets the same jobs at the same times.
            let within_ms = (draw.unit() * f64::from(what.spread_s) * 1_000.0) as i64;
            match timed(task, phases_of(&phases, model, task), organization, within_ms, what.durations) {
                Some(job) if job.ask.gpus <= what.gpus => jobs.push(job),
                _ => left_out += 1,
            }
        }
        if jobs.is_empty() {
            let all = format!("none of the {left_out} jobs fits on {} GPUs: write a larger --gpus", what.gpus);
            return Err(SimulatorError::Value(all));
        }
        // Of equals the one that stands first.
        jobs.sort_by_key(|job| job.submitted_ms);
        Ok(Self { jobs, gpus: what.gpus, left_out })
    }

    /// Training that is asked for, of what the GPUs could do from the first submission to the last.
    #[must_use]
    pub fn offered_load(&self) -> f64 {
        let (Some(first), Some(last)) = (self.jobs.first(), self.jobs.last()) else { return 0.0 };
        let asked: f64 = self.jobs.iter().map(|job| f64::from(job.ask.gpus) * job.duration_ms as f64).sum();
        let window_ms = (last.submitted_ms - first.submitted_ms).max(1);
        asked / (f64::from(self.gpus) * window_ms as f64)
    }
}

fn phases_of(phases: &Phases, model: &str, task: &Task) -> (i64, i64) {
    phases.of(model, gpus(task))
}

/// Whole ones; the Philly list has no others.
fn gpus(task: &Task) -> u32 {
    (task.gpus().milli() / 1_000) as u32
}

fn timed(
    task: &Task,
    (load_ms, save_ms): (i64, i64),
    organization: u32,
    within_ms: i64,
    durations: Durations,
) -> Option<TimedJob> {
    let duration_ms = task.duration_s?.checked_mul(1_000).and_then(|ms| i64::try_from(ms).ok())?;
    let known = (durations == Durations::Known).then_some(duration_ms);
    let ask = Ask { gpus: gpus(task), organization, duration_ms: known, load_ms, save_ms };
    Some(TimedJob { submitted_ms: task.submitted.get() * 1_000 + within_ms, duration_ms, ask })
}

/// Cluster, GPU model and calendar decide nothing here.
fn options(what: &Timing) -> Result<ReadOptions, SimulatorError> {
    let value = |fault: &dyn std::fmt::Display| SimulatorError::Value(fault.to_string());
    Ok(ReadOptions {
        cluster: ClusterName::parse("trace").map_err(|fault| value(&fault))?,
        gpu_model: GpuModel::parse("any").map_err(|fault| value(&fault))?,
        calendar: Calendar::parse("UTC", Calendar::WEEKDAYS).map_err(|fault| value(&fault))?,
        skip_bad_rows: what.skip_bad_rows,
        zones: datasets::Zones::new(),
    })
}
