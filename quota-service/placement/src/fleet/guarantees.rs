//! Promises to spot tasks, and the end of each promise.

use std::collections::{BTreeMap, BTreeSet};
use vocab::{HorizonHours, MilliGpus, TaskId, UnixSeconds};

/// A promise to run for some hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guarantee {
    /// Hours of the promise.
    pub hours: HorizonHours,
    /// End of the promise.
    pub until: UnixSeconds,
}

impl Guarantee {
    /// So many hours from now.
    #[must_use]
    pub const fn from(now: UnixSeconds, hours: HorizonHours) -> Self {
        Self { hours, until: now.plus_s(hours.seconds()) }
    }
}

/// Nodes of a pool hold far less than an amount can.
fn amount(milli: u64) -> MilliGpus {
    MilliGpus::from_milli(milli).unwrap_or(MilliGpus::from_gpus(u32::MAX))
}

/// The promises that last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guarantees {
    ends: BTreeSet<(UnixSeconds, TaskId, HorizonHours)>,
    /// Thousandths of a GPU by the hours that were promised; none of them is zero.
    milli: BTreeMap<HorizonHours, u64>,
}

impl Guarantees {
    /// How many tasks hold a promise.
    pub fn count_of_tasks(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Adds a promise, or takes it away.
    pub fn count(&mut self, task: &TaskId, guarantee: Guarantee, gpus_milli: u64, adds: bool) {
        let end = (guarantee.until, task.clone(), guarantee.hours);
        let held = self.milli.remove(&guarantee.hours).unwrap_or(0);
        let held = if adds {
            let is_new = self.ends.insert(end);
            debug_assert!(is_new, "{task} is promised the same twice");
            held + gpus_milli
        } else {
            let was_promised = self.ends.remove(&end);
            debug_assert!(was_promised, "{task} gives back a promise that it does not have");
            debug_assert!(held >= gpus_milli, "{task} gives back more than is promised for {}", guarantee.hours);
            held - gpus_milli
        };
        if held > 0 {
            self.milli.insert(guarantee.hours, held);
        }
        // Pods without GPUs are promised their time, too.
        debug_assert!(self.milli.is_empty() || !self.ends.is_empty(), "promised GPUs have an end");
    }

    /// GPUs inside a guarantee of at least these hours: S_a(H).
    pub fn promised(&self, hours: HorizonHours) -> MilliGpus {
        amount(self.milli.range(hours..).map(|(_, milli)| milli).sum())
    }

    /// GPUs inside a guarantee, by its hours.
    pub fn by_hours(&self) -> impl Iterator<Item = (HorizonHours, MilliGpus)> {
        self.milli.iter().map(|(hours, milli)| (*hours, amount(*milli)))
    }

    /// Each promise by its end, the first one first.
    pub fn ends(&self) -> impl Iterator<Item = (UnixSeconds, &TaskId)> {
        self.ends.iter().map(|(until, task, _)| (*until, task))
    }

    /// Promises that end now or ended before, the first one first. They stay until they are taken away.
    pub fn ended(&self, now: UnixSeconds) -> Vec<(TaskId, Guarantee)> {
        let over = self.ends.iter().take_while(|(until, ..)| *until <= now);
        over.map(|(until, task, hours)| (task.clone(), Guarantee { hours: *hours, until: *until })).collect()
    }
}
