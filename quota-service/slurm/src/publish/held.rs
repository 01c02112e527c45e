//! GPUs that jobs hold, by the limits that count them. Pure.

use crate::config::{Config, Nesting};
use crate::limits::{ALL_GPUS, ByName, Tres, tres_of};
use crate::view::Reading;
use slurm_records::queue::{Queue, QueuedJob};
use slurm_records::{JobClass, Phase};
use std::collections::BTreeMap;
use vocab::{HorizonHours, UnixSeconds};

/// Limits that count a job: that of its QOS, or those of its account and of the accounts above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counting {
    nesting: Nesting,
    names: Vec<String>,
    hours: BTreeMap<String, HorizonHours>,
    parents: BTreeMap<String, String>,
}

impl Counting {
    /// By the settings, and the parents of accounts.
    #[must_use]
    pub fn new(config: &Config, parents: BTreeMap<String, String>) -> Self {
        let limited = config.limited();
        let promised = limited.promised();
        let names = promised.iter().map(|(_, name)| (*name).to_owned()).collect();
        let hours = promised.iter().map(|(hours, name)| ((*name).to_owned(), *hours)).collect();
        Self { nesting: config.nesting, names, hours, parents }
    }

    /// Names of the limits, the shortest promise first.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether a limit counts a job of this QOS and account.
    #[must_use]
    pub fn counts(&self, limit: &str, qos: &str, account: &str) -> bool {
        match self.nesting {
            Nesting::Qos => qos == limit,
            Nesting::Accounts => {
                let (mut at, mut steps) = (account, 0);
                loop {
                    if at == limit {
                        return true;
                    }
                    steps += 1;
                    match self.parents.get(at) {
                        // A circle cannot be entered in Slurm; it would end here.
                        Some(parent) if steps <= self.parents.len() => at = parent,
                        _ => return false,
                    }
                }
            }
        }
    }

    /// GPUs of jobs that hold some, by limit: of each type, and all.
    #[must_use]
    pub fn held(&self, queue: &Queue) -> ByName {
        self.sum(queue, |_, _| true)
    }

    /// GPUs of jobs that run outside of promises of the hours of each limit: of each type, and all. A job that ends still has its GPUs,
    /// and Slurm counts it under no limit any more.
    #[must_use]
    pub fn outside(&self, queue: &Queue, reading: &Reading, now: UnixSeconds) -> ByName {
        self.sum(queue, |name, job| {
            let hours = self.hours.get(name).copied();
            !job.completes && promised(job, reading, now).is_none_or(|promised| Some(promised) < hours)
        })
    }

    fn sum(&self, queue: &Queue, is_part: impl Fn(&str, &QueuedJob) -> bool) -> ByName {
        let mut all: ByName = self.names.iter().map(|name| (name.clone(), Tres::new())).collect();
        for job in queue.jobs.iter().filter(|job| job.phase() == Phase::Holds) {
            let counted = |name: &&String| self.counts(name, &job.qos, &job.account) && is_part(name, job);
            for name in self.names.iter().filter(counted) {
                add(all.entry(name.clone()).or_default(), job);
            }
        }
        all
    }
}

/// Hours of the promise that still holds for a job with GPUs.
fn promised(job: &QueuedJob, reading: &Reading, now: UnixSeconds) -> Option<HorizonHours> {
    let is_spot = reading.rules.class(&job.qos, &job.partition) == JobClass::Spot;
    let hours = reading.hours(&job.qos, &job.partition).filter(|_| is_spot)?;
    let started = job.started.unwrap_or(job.submitted).min(now);
    (started.plus_s(hours.seconds()) > now).then_some(hours)
}

fn add(held: &mut Tres, job: &QueuedJob) {
    let gpus = if job.allocated.total > 0 { &job.allocated } else { &job.requested };
    *held.entry(ALL_GPUS.to_owned()).or_default() += u64::from(gpus.total);
    for (name, count) in &gpus.typed {
        *held.entry(tres_of(name)).or_default() += u64::from(*count);
    }
}

/// GPUs of one limit without a type: those that no typed resource has.
#[must_use]
pub fn untyped(all: &ByName, name: &str) -> u64 {
    let typed = all.get(name).into_iter().flatten().filter(|(tres, _)| *tres != ALL_GPUS).map(|(_, gpus)| *gpus);
    of(all, name, ALL_GPUS).saturating_sub(typed.sum())
}

/// The larger of two counts: neither what Slurm counts nor what its jobs say is proof.
#[must_use]
pub fn larger(one: &ByName, other: &ByName) -> ByName {
    let mut all = one.clone();
    for (name, tres) in other {
        let here = all.entry(name.clone()).or_default();
        for (tres, gpus) in tres {
            let most = here.entry(tres.clone()).or_default();
            *most = (*most).max(*gpus);
        }
    }
    all
}

/// GPUs of one limit and resource.
#[must_use]
pub fn of(all: &ByName, name: &str, tres: &str) -> u64 {
    all.get(name).and_then(|of| of.get(tres)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurm_records::Accounts;

    const NOW: i64 = 1_795_600_000;

    /// A job of two GPUs that began so long ago.
    fn job(id: u32, state: &str, qos: &str, age_s: i64) -> String {
        let (start, tres) = (NOW - age_s, "gres/gpu=2,gres/gpu:a100=2");
        format!(
            r#"{{"job_id":{id},"account":"vision","qos":"{qos}","partition":"gpu","job_state":[{state}],"submit_time":{start},
            "start_time":{start},"tres_req_str":"{tres}","tres_alloc_str":"{tres}"}}"#
        )
    }

    #[test]
    fn jobs_past_their_hours_and_at_will_run_outside_and_those_that_end_under_no_limit() {
        let jobs = [
            job(1, "\"RUNNING\"", "spot1h", 60),
            job(2, "\"RUNNING\"", "spot1h", 3_600),
            job(3, "\"COMPLETED\",\"COMPLETING\"", "spot1h", 3_700),
            job(4, "\"RUNNING\"", "spot4h", 3_600),
            job(5, "\"SUSPENDED\"", "spot4h", 15_000),
            job(6, "\"PENDING\"", "spot4h", 15_000),
        ];
        let text = format!(r#"{{"jobs":[{}],"meta":{{"plugin":{{"data_parser":"v0.0.42"}}}}}}"#, jobs.join(","));
        let (queue, _) = Queue::read("squeue.json", text.as_bytes()).unwrap();
        let config = Config { spot_qos: "spot1h=1,spot4h=4".parse().unwrap(), ..Config::default() };
        let (counting, reading) = (Counting::new(&config, BTreeMap::new()), Reading::of(&config, Accounts::default()));
        let outside = counting.outside(&queue, &reading, UnixSeconds::new(NOW));
        let gpus = |all: &ByName| ["spot1h", "spot4h"].map(|name| of(all, name, "gres/gpu:a100"));
        assert_eq!((gpus(&outside), gpus(&counting.held(&queue))), ([2, 2], [6, 4]));
        assert_eq!(untyped(&outside, "spot1h"), 0);
    }
}
