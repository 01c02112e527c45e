//! Counts of a turn, added to the metrics once it is durable.

use crate::metrics;
use placement::pool::{Cut, CutReason, Fact, NodeLoss, Pool, Report};
use std::collections::BTreeMap;
use vocab::{PoolId, TaskClass, TaskId, UnixSeconds};

/// Since when each task waits that waits; of those that run nothing.
pub type Queued = BTreeMap<TaskId, UnixSeconds>;

/// The tasks of a pool that wait.
#[must_use]
pub fn queued(pool: &Pool) -> Queued {
    pool.waiting().map(|one| (one.request.gang.task.clone(), one.queued)).collect()
}

/// Counts of a turn.
#[derive(Debug, Default)]
pub struct Tally {
    submitted: u64,
    /// Seconds that each waited, by class.
    started: Vec<(TaskClass, i64)>,
    evicted: u64,
    node_failed: u64,
    node_drained: u64,
    cleared: u64,
    rests: u64,
}

impl Tally {
    /// Adds what a command led to. `rests` is how often tasks were sent to rest before it.
    pub fn add(&mut self, pool: &Pool, report: &Report, queued: &mut Queued, rests: u64) {
        let now = pool.now();
        for cut in &report.consequences.cuts {
            queued.insert(cut.task.clone(), now);
            *self.cause(cut) += 1;
        }
        for fact in &report.facts {
            match fact {
                Fact::Submitted { request } => {
                    self.submitted += 1;
                    queued.insert(request.gang.task.clone(), now);
                }
                Fact::Started { task, .. } => {
                    let since = queued.remove(task).unwrap_or(now);
                    // A node that is gone again within the turn is counted by the cause of the cut.
                    if let Some((request, _)) = pool.running(task) {
                        self.started.push((request.gang.class, now.since_s(since).max(0)));
                    }
                }
                Fact::Ended { task, .. } => {
                    queued.remove(task);
                }
                _ => {}
            }
        }
        self.rests += pool.rests().saturating_sub(rests);
    }

    fn cause(&mut self, cut: &Cut) -> &mut u64 {
        match cut.why {
            CutReason::EvictedBy { .. } => &mut self.evicted,
            CutReason::ClearedFor { .. } => &mut self.cleared,
            CutReason::Lost { cause: NodeLoss::Failed, .. } => &mut self.node_failed,
            CutReason::Lost { cause: NodeLoss::Drained, .. } => &mut self.node_drained,
        }
    }

    /// Adds it to the counters.
    pub fn record(&self, pool: &PoolId) {
        metrics::decided(pool, "submitted", self.submitted);
        metrics::decided(pool, "started", self.started.len() as u64);
        let (hp, failed, drained) = (self.evicted, self.node_failed, self.node_drained);
        let causes = [("hp", hp), ("node_failure", failed), ("drain", drained), ("reservation", self.cleared)];
        for (cause, count) in causes {
            metrics::evicted(pool, cause, count);
        }
        metrics::cycles(pool, self.rests);
        for (class, waited_s) in &self.started {
            metrics::waited(pool, class.as_str(), *waited_s);
        }
    }
}
