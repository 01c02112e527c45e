//! What people see of a pool: its tasks, its nodes, and how many there are. Looks change nothing.

use super::record;
use super::state::State;
use placement::fleet::NodeState;
use placement::pool::Pool;
use std::cmp::Reverse;
use store::{TaskRecord, TaskStatus};
use vocab::{MilliGpus, NodeId, Organization, TaskClass, TaskId};

/// Thousandths of a whole GPU.
const WHOLE_MILLI: u64 = MilliGpus::PER_GPU;

/// Which tasks to list.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub is_running: bool,
    /// Of this organization alone.
    pub organization: Option<Organization>,
    pub limit: usize,
}

/// Tasks of a pool, by class and state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskCounts {
    pub hp_waiting: u64,
    pub hp_running: u64,
    pub spot_waiting: u64,
    pub spot_running: u64,
    /// Spot tasks inside a guarantee.
    pub promised: u64,
}

/// A node and what is allocated on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLook {
    pub node: NodeId,
    pub gpus: u32,
    pub hp: MilliGpus,
    /// Lent GPUs included.
    pub spot: MilliGpus,
    pub drains: bool,
    /// Within the long window of the policy.
    pub evictions: u64,
}

impl NodeLook {
    /// GPUs on which nothing runs, shares of them apart.
    #[must_use]
    pub fn idle(&self) -> MilliGpus {
        MilliGpus::from_gpus(self.gpus).left_after(self.hp).left_after(self.spot)
    }
}

/// How many tasks there are.
#[must_use]
pub fn counts(pool: &Pool) -> TaskCounts {
    let mut counts = TaskCounts::default();
    for waiting in pool.waiting() {
        match waiting.request.gang.class {
            TaskClass::Hp => counts.hp_waiting += 1,
            TaskClass::Spot => counts.spot_waiting += 1,
        }
    }
    for running in pool.fleet().tasks().values() {
        match running.class {
            TaskClass::Hp => counts.hp_running += 1,
            TaskClass::Spot => counts.spot_running += 1,
        }
        counts.promised += u64::from(running.guarantee.is_some());
    }
    counts
}

/// The nodes that are there, in their order.
#[must_use]
pub fn nodes(pool: &Pool) -> Vec<NodeLook> {
    let amount = |milli: u64| MilliGpus::from_milli(milli).unwrap_or(MilliGpus::ZERO);
    let look = |node: &NodeState| NodeLook {
        node: node.id.clone(),
        gpus: u32::try_from(node.gpus.len()).unwrap_or(u32::MAX),
        hp: amount(u64::from(node.hp_milli)),
        spot: amount(u64::from(node.spot_milli) + u64::from(node.lent.count_ones()) * WHOLE_MILLI),
        drains: !node.is_open,
        evictions: u64::from(node.evictions[1]),
    };
    let mut looks: Vec<_> = pool.fleet().nodes().iter().filter(|node| !node.is_gone).map(look).collect();
    looks.sort_by(|one, other| one.node.cmp(&other.node));
    looks
}

/// Tasks that wait, in the order of the default policy's queue, or that run, by name; and how many there are of them.
pub fn tasks(state: &mut State, wanted: &Wanted) -> (Vec<TaskRecord>, u64) {
    let pool = &state.pool;
    let is_wanted = |of: &Organization| wanted.organization.as_ref().is_none_or(|wanted| wanted == of);
    let mut found: Vec<TaskId> = if wanted.is_running {
        let of = |task: &TaskId| pool.running(task).is_some_and(|(request, _)| is_wanted(&request.organization));
        pool.fleet().tasks().keys().filter(|task| of(task)).cloned().collect()
    } else {
        let mut waiting: Vec<_> = pool.waiting().map(|one| &one.request).collect();
        waiting.retain(|request| is_wanted(&request.organization));
        waiting.sort_by_cached_key(|one| {
            let gang = &one.gang;
            (gang.class, Reverse(gang.pod.gpus.milli()), Reverse(gang.pods), one.submitted, gang.task.clone())
        });
        waiting.iter().map(|one| one.gang.task.clone()).collect()
    };
    let total = found.len() as u64;
    found.truncate(wanted.limit);
    // Why each of them waits is asked of the pool: for those that are shown alone.
    let shown = found.iter().filter_map(|task| record::of_pool(&mut state.pool, task, None, Vec::new()));
    (shown.collect(), total)
}

impl Wanted {
    /// As it is asked for by status; `None` of a status that is not listed.
    #[must_use]
    pub fn of(status: TaskStatus, organization: Option<Organization>, limit: usize) -> Option<Self> {
        let is_running = match status {
            TaskStatus::Waiting => false,
            TaskStatus::Running => true,
            TaskStatus::Finished | TaskStatus::Deleted => return None,
        };
        Some(Self { is_running, organization, limit })
    }
}
