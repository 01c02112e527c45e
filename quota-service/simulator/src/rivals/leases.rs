//! Leases, as Chronus grants them: a task holds its GPUs for a fixed time, nobody is evicted inside it, and who holds what is
//! decided again in rounds. A rival that policies are compared with; the service does not use it.

use placement::fleet::{EvictionSettings, Fleet, Gang, NodeError, Plan, PodPlace, ScoreRule, Workload};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{NodeId, TaskClass, TaskId, UnixSeconds};

/// How long leases are. The values of the GFS paper's comparison (§4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseSettings {
    /// 20 minutes.
    pub hp_s: i64,
    /// 5 minutes.
    pub spot_s: i64,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self { hp_s: 1_200, spot_s: 300 }
    }
}

/// The effect of a round on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseChange {
    Started {
        task: TaskId,
    },
    /// It goes on, on the same GPUs or on others.
    Renewed {
        task: TaskId,
    },
    /// Its lease is over, and others came first.
    Ended {
        task: TaskId,
    },
}

/// HP before spot, then earlier ones.
type Order = (TaskClass, UnixSeconds, TaskId);

#[derive(Debug, Clone)]
struct Lease {
    order: Order,
    gang: Gang,
    until: UnixSeconds,
}

/// Nodes, leases, and tasks that wait for one.
#[derive(Debug, Clone)]
pub struct Leases {
    settings: LeaseSettings,
    fleet: Fleet,
    waiting: BTreeMap<Order, Gang>,
    running: BTreeMap<TaskId, Lease>,
}

impl Leases {
    #[must_use]
    pub fn new(settings: LeaseSettings) -> Self {
        let fleet = Fleet::ordered(EvictionSettings::default(), ScoreRule::Fullest);
        Self { settings, fleet, waiting: BTreeMap::new(), running: BTreeMap::new() }
    }

    /// # Errors
    /// The node is there already, or has more GPUs than fit.
    pub fn add(&mut self, node: NodeId, gpus: u32, cpu_milli: Option<u64>) -> Result<(), NodeError> {
        self.fleet.add(node, gpus, cpu_milli, None).map(|_| ())
    }

    #[must_use]
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// How many tasks of a class wait.
    #[must_use]
    pub fn waiting(&self, class: TaskClass) -> usize {
        self.waiting.keys().filter(|(of, ..)| *of == class).count()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    pub fn submit(&mut self, gang: Gang, submitted: UnixSeconds) {
        self.waiting.insert((gang.class, submitted, gang.task.clone()), gang);
    }

    /// A task came to its end: its GPUs are free for the next round.
    pub fn finish(&mut self, task: &TaskId) {
        if self.running.remove(task).is_some() {
            self.fleet.finish(task);
        }
    }

    /// Grants leases: those that are over and those that wait stand in one order, and each gets what is left.
    pub fn round(&mut self, now: UnixSeconds) -> Vec<LeaseChange> {
        let over: Vec<TaskId> =
            self.running.iter().filter(|(_, lease)| lease.until <= now).map(|(task, _)| task.clone()).collect();
        let mut candidates: BTreeMap<Order, (Gang, Option<Vec<PodPlace>>)> = BTreeMap::new();
        for task in over {
            let (Some(lease), Some(run)) = (self.running.remove(&task), self.fleet.finish(&task)) else { continue };
            candidates.insert(lease.order, (lease.gang, Some(run.places)));
        }
        let waiting = std::mem::take(&mut self.waiting);
        candidates.extend(waiting.into_iter().map(|(order, gang)| (order, (gang, None))));
        let (mut changes, mut failed) = (Vec::new(), BTreeSet::new());
        for (order, (gang, held)) in candidates {
            let shape = (gang.pod, gang.pods);
            let task = gang.task.clone();
            if self.grant(&gang, held.as_deref(), failed.contains(&shape), now) {
                changes.push(if held.is_some() {
                    LeaseChange::Renewed { task }
                } else {
                    LeaseChange::Started { task }
                });
                let lease_s = if gang.class == TaskClass::Hp { self.settings.hp_s } else { self.settings.spot_s };
                self.running.insert(gang.task.clone(), Lease { order, gang, until: now.plus_s(lease_s) });
            } else {
                failed.insert(shape);
                if held.is_some() {
                    changes.push(LeaseChange::Ended { task });
                }
                self.waiting.insert(order, gang);
            }
        }
        changes
    }

    /// On the GPUs that it had, if they are free, else where the fullest nodes have room.
    fn grant(&mut self, gang: &Gang, held: Option<&[PodPlace]>, is_hopeless: bool, now: UnixSeconds) -> bool {
        let plan = |places: &[PodPlace]| Plan { gang: gang.clone(), places: places.to_vec(), victims: Vec::new() };
        if held.is_some_and(|places| self.fleet.apply(&plan(places), now, None).is_ok()) {
            return true;
        }
        if is_hopeless {
            return false;
        }
        let found = self.fleet.plan_by(gang, ScoreRule::Fullest, &Workload::default());
        found.is_some_and(|plan| self.fleet.apply(&plan, now, None).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement::fleet::GpuRequest;
    use placement::fleet::PodRequest;
    use placement::invariants;

    fn at(seconds: i64) -> UnixSeconds {
        UnixSeconds::new(1_700_000_000 + seconds)
    }

    fn gang(name: &str, class: TaskClass, gpus: u16) -> Gang {
        let pod = PodRequest::new(GpuRequest::Whole(gpus), 0, 0);
        Gang { task: TaskId::parse(name).unwrap(), class, pod, pods: 1 }
    }

    #[test]
    fn nobody_is_evicted_inside_a_lease_and_hp_comes_first_after_it() {
        let mut leases = Leases::new(LeaseSettings::default());
        leases.add(NodeId::parse("a").unwrap(), 8, None).unwrap();
        let task = |name: &str| TaskId::parse(name).unwrap();
        leases.submit(gang("spot", TaskClass::Spot, 8), at(0));
        assert_eq!(leases.round(at(0)), [LeaseChange::Started { task: task("spot") }]);
        leases.submit(gang("hp", TaskClass::Hp, 4), at(10));
        assert_eq!(leases.round(at(299)), [], "its lease lasts");
        let over = [LeaseChange::Started { task: task("hp") }, LeaseChange::Ended { task: task("spot") }];
        assert_eq!(leases.round(at(300)), over);
        assert_eq!((leases.waiting(TaskClass::Spot), leases.waiting(TaskClass::Hp)), (1, 0));
        assert_eq!(leases.round(at(1_500)), [LeaseChange::Renewed { task: task("hp") }]);
        leases.finish(&task("hp"));
        assert_eq!(leases.round(at(1_800)), [LeaseChange::Started { task: task("spot") }]);
        invariants::no_gpu_is_overused(leases.fleet());
        invariants::books_balance(leases.fleet());
    }
}
