//! The HP jobs of a pool whose tasks are placed here.

use placement::pool::{Pool, Request};
use vocab::{HpJob, TaskClass, UnixSeconds};

/// The HP jobs that run and wait, as far as they are demand, the running ones first.
#[must_use]
pub fn hp_jobs(pool: &Pool) -> Vec<HpJob> {
    let running = pool.fleet().tasks().iter().filter(|(_, running)| running.class == TaskClass::Hp);
    let running =
        running.filter_map(|(task, _)| pool.running(task)).map(|(request, run)| job(request, Some(run.since)));
    let is_demand = |request: &Request| request.gang.class == TaskClass::Hp && pool.is_demand(&request.gang.task);
    let waiting = pool.waiting().filter(|waiting| is_demand(&waiting.request));
    running.chain(waiting.map(|waiting| job(&waiting.request, None))).collect()
}

fn job(request: &Request, started: Option<UnixSeconds>) -> HpJob {
    let gang = &request.gang;
    HpJob {
        task: gang.task.clone(),
        organization: request.organization.clone(),
        gpus_milli: u64::from(gang.pod.gpus.milli()) * u64::from(gang.pods),
        submitted: request.submitted,
        started,
    }
}
