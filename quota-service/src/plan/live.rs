//! How the forecast's bound was mixed with what is known of this moment, in words and numbers.

use super::cluster::PoolQuota;
use cycle::{JobsMissing, ListFault};
use forecaster::bound::PoolBound;
use forecaster::jobs::DroppedJobs;
use placement::Reason;
use vocab::MilliGpus;
use wire::{JobsExplanation, LiveExplanation};

/// A fault of the HP jobs that were reported.
pub fn list_fault(fault: ListFault) -> Reason {
    let gpus = |gpus: f64| MilliGpus::nearest(gpus).unwrap_or(MilliGpus::MAX);
    match fault {
        ListFault::Missing(JobsMissing { hours, usage_gpus, jobs_gpus }) => {
            Reason::HpJobsMissing { hours, usage: gpus(usage_gpus), jobs: gpus(jobs_gpus) }
        }
        ListFault::Dropped { jobs: DroppedJobs { jobs, gpus_milli, since }, counted } => {
            let gpus = MilliGpus::from_milli(gpus_milli).unwrap_or(MilliGpus::MAX);
            Reason::HpJobsDropped { jobs, gpus, counted, since }
        }
    }
}

/// How the forecast's bound was mixed with the live one, and with that of the HP jobs.
pub fn live_sentence(pool: &PoolQuota, bound: &PoolBound, place: usize) -> String {
    let Some(live) = live_explanation(pool, bound, place) else {
        let measured = pool.hp_demand.unwrap_or(pool.supply.latest_demand);
        let is_raised = measured > bound.bound;
        return if is_raised { format!("; no less than the {measured} that was measured last") } else { String::new() };
    };
    let LiveExplanation { hp_demand_gpus, forecast_bound_gpus, live_bound_gpus, share, raised_from_gpus, jobs } = live;
    let mixed = live_bound_gpus
        .map(|live| format!("; {forecast_bound_gpus:.3} mixed with a share of {share} of the live bound {live:.3}"));
    let mixed = mixed.unwrap_or_default() + &raised(raised_from_gpus);
    let jobs = jobs.and_then(|jobs| Some((jobs.bound_gpus?, jobs)));
    let jobs = jobs.map(|(gpus, JobsExplanation { share, running, waiting, raised_from_gpus, .. })| {
        format!(
            "; that mixed with a share of {share:.3} of {gpus:.3}, the bound drawn from {running} running and {waiting} waiting HP jobs{}",
            raised(raised_from_gpus)
        )
    });
    format!("{mixed}{}; no less than the {hp_demand_gpus:.3} that HP needs now", jobs.unwrap_or_default())
}

/// Where a bound over fewer hours was larger than what was mixed for these.
pub fn raised(from_gpus: Option<f64>) -> String {
    from_gpus.map_or_else(String::new, |from| format!(", raised from {from:.3} to the bound over fewer hours"))
}

/// How the bound of a number of hours was mixed; none where nothing is known of this moment.
pub fn live_explanation(pool: &PoolQuota, bound: &PoolBound, place: usize) -> Option<LiveExplanation> {
    let moving = pool.moving.as_ref()?;
    let mixed = moving.mixed.get(place)?;
    let jobs = moving.jobs.zip(moving.shared.get(place)).map(|(seen, shared)| JobsExplanation {
        running: seen.running as u64,
        waiting: seen.waiting as u64,
        ended: seen.ended as u64,
        listed: pool.run.trained.jobs.get(&pool.id).map_or(0, |past| past.len() as u64),
        bound_gpus: shared.jobs_gpus,
        share: shared.share,
        raised_from_gpus: shared.raised_from_gpus,
    });
    Some(LiveExplanation {
        hp_demand_gpus: moving.hp_demand.as_gpus(),
        forecast_bound_gpus: bound.bound.as_gpus(),
        live_bound_gpus: mixed.live_gpus,
        share: mixed.share,
        raised_from_gpus: mixed.raised_from_gpus,
        jobs,
    })
}
