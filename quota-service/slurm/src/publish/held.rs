//! GPUs that jobs hold, by the limits that count them. Pure.

use crate::config::{Config, Nesting};
use crate::limits::{ALL_GPUS, ByName, Tres, tres_of};
use slurm_records::Phase;
use slurm_records::queue::{Queue, QueuedJob};
use std::collections::BTreeMap;

/// Limits that count a job: that of its QOS, or those of its account and of the accounts above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counting {
    nesting: Nesting,
    names: Vec<String>,
    parents: BTreeMap<String, String>,
}

impl Counting {
    /// By the settings, and the parents of accounts.
    #[must_use]
    pub fn new(config: &Config, parents: BTreeMap<String, String>) -> Self {
        let names = config.limited().promised().into_iter().map(|(_, name)| name.to_owned()).collect();
        Self { nesting: config.nesting, names, parents }
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
        let mut all: ByName = self.names.iter().map(|name| (name.clone(), Tres::new())).collect();
        for job in queue.jobs.iter().filter(|job| job.phase() == Phase::Holds) {
            for name in self.names.iter().filter(|name| self.counts(name, &job.qos, &job.account)) {
                add(all.entry(name.clone()).or_default(), job);
            }
        }
        all
    }
}

fn add(held: &mut Tres, job: &QueuedJob) {
    let gpus = if job.allocated.total > 0 { &job.allocated } else { &job.requested };
    *held.entry(ALL_GPUS.to_owned()).or_default() += u64::from(gpus.total);
    for (name, count) in &gpus.typed {
        *held.entry(tres_of(name)).or_default() += u64::from(*count);
    }
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
