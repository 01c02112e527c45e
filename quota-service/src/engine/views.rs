//! Views of a pool: its tasks, its nodes, and their numbers. A view changes nothing.

use super::call::TaskPage;
use super::record;
use super::state::State;
use placement::fleet::NodeState;
use placement::pool::{Pool, Standing};
use placement::shares::ShareSettings;
use std::cmp::Reverse;
use store::TaskStatus;
use vocab::{MilliGpus, NodeId, Organization, TaskClass, TaskId};

/// Thousandths of a whole GPU.
const WHOLE_MILLI: u64 = MilliGpus::PER_GPU;

/// Tasks to list.
#[derive(Debug, Clone)]
pub struct TaskQuery {
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
pub struct NodeUse {
    pub node: NodeId,
    pub gpus: u32,
    pub hp: MilliGpus,
    /// Lent GPUs included.
    pub spot: MilliGpus,
    pub drains: bool,
    /// Within the long window of the policy.
    pub evictions: u64,
}

impl NodeUse {
    /// GPUs on which nothing runs, shares of them apart.
    #[must_use]
    pub fn idle(&self) -> MilliGpus {
        MilliGpus::from_gpus(self.gpus).left_after(self.hp).left_after(self.spot)
    }
}

/// Number of tasks by class and state.
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

/// The nodes of the pool, in their order.
#[must_use]
pub fn nodes(pool: &Pool) -> Vec<NodeUse> {
    let amount = |milli: u64| MilliGpus::from_milli(milli).unwrap_or(MilliGpus::ZERO);
    let view = |node: &NodeState| NodeUse {
        node: node.id.clone(),
        gpus: u32::try_from(node.gpus.len()).unwrap_or(u32::MAX),
        hp: amount(u64::from(node.hp_milli)),
        spot: amount(u64::from(node.spot_milli) + u64::from(node.lent.count_ones()) * WHOLE_MILLI),
        drains: !node.is_open,
        evictions: u64::from(node.evictions[1]),
    };
    let mut nodes: Vec<_> = pool.fleet().nodes().iter().filter(|node| !node.is_gone).map(view).collect();
    nodes.sort_by(|one, other| one.node.cmp(&other.node));
    nodes
}

/// The fair shares of a pool that keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    pub settings: ShareSettings,
    /// The organization that is served next first.
    pub standings: Vec<Standing>,
}

/// How organizations stand; `None` where the pool keeps no shares.
#[must_use]
pub fn shares(pool: &mut Pool) -> Option<Shares> {
    let settings = pool.policy().shares?;
    pool.standings().map(|standings| Shares { settings, standings })
}

/// Waiting tasks in the order of the default policy's queue, or running tasks by name.
pub fn tasks(state: &mut State, wanted: &TaskQuery) -> TaskPage {
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
    // The pool computes the reason of each wait: only for the tasks of the answer.
    let shown = found.iter().filter_map(|task| record::of_pool(&mut state.pool, task, None, Vec::new()));
    TaskPage { records: shown.collect(), total }
}

impl TaskQuery {
    /// A query by status; `None` for a status that is not listed.
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
