//! Answers of a pool beside decisions: why a task waits, the supply that quota is cut from, and how much may be promised when nobody
//! knows a quota.

use super::{Pool, Reservation};
use crate::decide::{Decision, Limit, Refusal, over_quota};
use crate::fleet::Gang;
use crate::policy::Admission;
use vocab::{HorizonHours, MilliGpus, PoolId, PoolState, TaskId, UnixSeconds};

/// Why a task waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// It was evicted too often in a short time.
    Rests {
        /// The end of its rest after several evictions.
        until: UnixSeconds,
    },
    /// It evicts nobody yet: GPUs may fall idle.
    Deferred {
        /// The end of the deferral.
        until: UnixSeconds,
    },
    /// The task is refused, for this reason.
    Refused(Refusal),
    /// Nodes are kept for it until it fits.
    Reserved {
        /// The reason without the reservation.
        refusal: Refusal,
        /// Nodes and quota that are kept for it.
        reservation: Reservation,
    },
    /// It would start, but for the reservation of this task.
    HeldBack {
        /// The task with the reservation.
        by: TaskId,
    },
}

impl Pool {
    /// Why a task waits; none where it could start, or does not wait.
    pub fn why_it_waits(&mut self, task: &TaskId) -> Option<WaitReason> {
        let waiting = self.queue.get(task)?;
        if let Some(until) = waiting.rests_until {
            return Some(WaitReason::Rests { until });
        }
        if let Some(deferral) = &waiting.deferral {
            return Some(WaitReason::Deferred { until: deferral.until });
        }
        let (gang, hours) = (waiting.request.core(), waiting.request.hours);
        let request = waiting.request.clone();
        match self.decide_on(&request) {
            Decision::Start { .. } => None,
            Decision::Wait(refusal) => Some(match (self.reservation(task), self.held_back_by(&gang, hours)) {
                (Some(reservation), _) => WaitReason::Reserved { refusal, reservation },
                (None, Some(by)) => WaitReason::HeldBack { by },
                (None, None) => WaitReason::Refused(refusal),
            }),
        }
    }

    /// l of DESIGN §4.2: how long a task waits because of quota alone, in seconds: the longest among the first ones of all
    /// that ask for the same.
    pub fn longest_quota_wait_s(&mut self) -> u64 {
        if self.policy.admission == Admission::Idle {
            return 0;
        }
        let mut first: Vec<(Gang, Option<HorizonHours>, UnixSeconds)> = self.queue.first_of_each_shape().collect();
        // The task that waits longest is tried first: the first one that would fit is the answer.
        first.sort_by_key(|(.., queued)| *queued);
        let limits = self.limits_now();
        let by_quota_alone = first.into_iter().find(|(gang, hours, _)| {
            let is_over = |hours| over_quota(&self.fleet, gang, hours, &limits).is_some();
            hours.is_some_and(is_over) && self.fleet.plan_by(gang, self.policy.score, &self.workload).is_some()
        });
        by_quota_alone.map_or(0, |(.., queued)| u64::try_from(self.now.since_s(queued)).unwrap_or(0))
    }

    /// HP GPUs, running and waiting, now.
    #[must_use]
    pub fn hp_demand(&self) -> MilliGpus {
        MilliGpus::from_milli(self.hp_demand_milli()).unwrap_or(MilliGpus::from_gpus(u32::MAX))
    }

    /// Whether a task was ever submitted.
    #[must_use]
    pub fn has_had_tasks(&self) -> bool {
        !self.workload.is_empty()
    }

    /// The power draw of nodes; none where it is not known for their GPU model.
    #[must_use]
    pub fn watts(&self) -> Option<u64> {
        self.fleet.watts()
    }

    /// Thousandths of a GPU that are free and of no use to the pods that come most, on average.
    #[must_use]
    pub fn fragmentation_milli(&self) -> u64 {
        self.fleet.fragmentation_milli(self.workload.target())
    }

    /// The pool as a scheduler would report it. Only nodes that take pods count, for capacity and idle GPUs alike.
    pub fn state(&mut self, pool: PoolId) -> PoolState {
        let amount = |milli| MilliGpus::from_milli(milli).unwrap_or(MilliGpus::ZERO);
        PoolState {
            pool,
            capacity: self.capacity(),
            idle: amount(self.idle_milli()),
            spot_by_guarantee: self.fleet.promises().collect(),
            longest_quota_wait_s: self.longest_quota_wait_s(),
            as_of: self.now,
        }
    }

    /// The limits when a quota is too old to promise by (DESIGN §5): nothing. What is promised stays, since a limit evicts nobody, and no
    /// promise takes the place of one that ends, by another task or by its own.
    #[must_use]
    pub fn held_limits(&self) -> Vec<Limit> {
        self.limits.iter().map(|limit| Limit { quota: MilliGpus::ZERO, ..*limit }).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::fleet::{Gang, GpuRequest, PodRequest};
    use crate::pool::{Command, Fact, Pool, PoolRules, Request};
    use crate::{Limit, Policy};
    use vocab::{HorizonHours, MilliGpus, NodeId, Organization, PoolId, TaskClass, TaskId, UnixSeconds};

    const NOW: UnixSeconds = UnixSeconds::new(1_700_000_000);

    fn done(pool: &mut Pool, command: &Command) {
        assert_eq!(pool.handle(NOW, command).1, Ok(()), "{command:?}");
    }

    fn spot(name: &str, hours: u64) -> Command {
        let pod = PodRequest::new(GpuRequest::Whole(2), 0, 0);
        let gang = Gang { task: TaskId::parse(name).unwrap(), class: TaskClass::Spot, pod, pods: 1 };
        let organization = Organization::parse("vision").unwrap();
        Command::Submit(Request {
            gang,
            organization,
            submitted: NOW,
            hours: HorizonHours::new(hours).ok(),
            elastic: None,
        })
    }

    #[test]
    fn a_pool_reports_itself() {
        let mut pool = Pool::new(Policy::GFS, PoolRules::default());
        for node in ["a", "b"] {
            let node = NodeId::parse(node).unwrap();
            done(&mut pool, &Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None });
        }
        let limit = |hours| Limit { hours: HorizonHours::new(hours).unwrap(), quota: MilliGpus::from_gpus(6) };
        done(&mut pool, &Command::SetLimits(vec![limit(1), limit(4)]));
        assert!(!pool.has_had_tasks());
        done(&mut pool, &spot("one", 1));
        done(&mut pool, &spot("four", 4));
        done(&mut pool, &Command::OpenNode { node: NodeId::parse("b").unwrap(), is_open: false });
        let state = pool.state(PoolId::parse("earth:V100").unwrap());
        assert_eq!((state.capacity, state.idle), (MilliGpus::from_gpus(8), MilliGpus::from_gpus(4)));
        assert_eq!(state.spot(HorizonHours::ONE), MilliGpus::from_gpus(4));
        assert_eq!(state.spot(limit(4).hours), MilliGpus::from_gpus(2));
        assert!(pool.has_had_tasks());
    }

    #[test]
    fn a_promise_that_ends_before_new_limits_are_taken_over_is_renewed_by_them_alone() {
        let mut pool = Pool::new(Policy::GFS, PoolRules::default());
        let node = NodeId::parse("a").unwrap();
        done(&mut pool, &Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None });
        let limit = |gpus| vec![Limit { hours: HorizonHours::ONE, quota: MilliGpus::from_gpus(gpus) }];
        done(&mut pool, &Command::SetLimits(limit(6)));
        done(&mut pool, &spot("one", 1));
        let mut renewed = |gpus: u32, hours: i64| {
            pool.set_limits_next(limit(gpus));
            let (report, _) = pool.handle(NOW.plus_s(hours * 3_600), &Command::Pass);
            assert_eq!(pool.limits(), limit(gpus));
            report.facts.len() == 2 && matches!(report.facts[1], Fact::Renewed { .. })
        };
        assert!(renewed(4, 1), "they have room for it");
        assert!(!renewed(0, 2), "those of before had");
    }

    #[test]
    fn a_pool_that_holds_keeps_its_promises_and_replaces_none() {
        let mut pool = Pool::new(Policy::GFS, PoolRules::default());
        let node = NodeId::parse("a").unwrap();
        done(&mut pool, &Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None });
        let limit = |hours| Limit { hours: HorizonHours::new(hours).unwrap(), quota: MilliGpus::from_gpus(6) };
        done(&mut pool, &Command::SetLimits(vec![limit(1), limit(4)]));
        done(&mut pool, &spot("one", 1));
        done(&mut pool, &spot("four", 4));
        let held = pool.held_limits();
        done(&mut pool, &Command::SetLimits(held));
        let task = |name: &str| TaskId::parse(name).unwrap();
        let promised = |pool: &Pool| pool.fleet().promised(HorizonHours::ONE).milli();
        assert_eq!(promised(&pool), 4_000, "nobody is evicted");
        done(&mut pool, &spot("late", 1));
        done(&mut pool, &Command::Finish { task: task("four") });
        assert!(pool.waiting_task(&task("late")).is_some(), "nothing takes the place of what has ended");
        assert_eq!(promised(&pool), 2_000);
        assert_eq!(pool.handle(NOW.plus_s(3_600), &Command::Pass).1, Ok(()));
        assert!(pool.running(&task("one")).is_some_and(|(_, running)| running.guarantee.is_none()), "no new promise");
        done(&mut pool, &Command::SetLimits(vec![limit(1), limit(4)]));
        assert!(pool.running(&task("late")).is_some(), "a new quota is promised by again");
    }
}
