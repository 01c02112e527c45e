//! A pool with its queue: every command becomes facts, and facts alone change its state.
//!
//! [`Pool::handle`] decides: it answers the facts that follow from a command, already applied. A caller that keeps those facts
//! rebuilds the same state with [`Pool::apply`], without deciding again; a [`Snapshot`] stands for all facts before it.
//! The service and the simulator drive this one type, so that they decide alike.

mod apply;
mod defer;
mod demand;
mod elastic;
mod facts;
mod handle;
mod queue;
mod reserve;
mod resize;
mod shares;
mod snapshot;
mod standing;
mod state;
#[cfg(test)]
mod tests;
mod windows;

pub use defer::Deferral;
pub use demand::{DemandMeter, HourOfDemand, Level};
pub use elastic::{Elastic, ElasticFault};
pub use facts::{
    Command, Consequences, Cut, CutReason, Ending, Fact, Fault, NodeLoss, PeriodEnd, Report, Resize, ResizeReason,
};
pub use queue::Key as QueueKey;
pub use reserve::Reservation;
pub use snapshot::{Snapshot, SnapshotNode, SnapshotRun, SnapshotSpec};
pub use standing::Standing;
pub use state::WaitReason;
pub use windows::Beside;

use crate::decide::Limit;
use crate::fleet::{EvictionSettings, Fleet, Gang, History, Running, Workload};
use crate::policy::Policy;
use crate::power::NodePower;
use crate::shares::UseMeter;
use queue::Queue;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vocab::{HorizonHours, MilliGpus, Organization, ReservedWindow, TaskId, UnixSeconds};

/// A task as it was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Pods and their requests.
    pub gang: Gang,
    /// The organization that pays for it.
    pub organization: Organization,
    /// The time of its submission.
    pub submitted: UnixSeconds,
    /// The guarantee that a spot task asks for; none for one at will, and for HP.
    pub hours: Option<HorizonHours>,
    /// How far a spot task may shrink and grow; none where it runs on all its pods or not at all.
    pub elastic: Option<Elastic>,
}

/// A task that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The request that waits.
    pub request: Request,
    /// When it came, or came back.
    pub queued: UnixSeconds,
    /// Until when it rests, having been evicted too often.
    pub rests_until: Option<UnixSeconds>,
    /// When it was evicted lately, oldest first.
    pub evicted: Vec<UnixSeconds>,
    /// Where the policy puts evictions off: until when it evicts nobody.
    pub deferral: Option<Deferral>,
}

/// How a pool treats tasks, besides its policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolRules {
    /// How long victims have to save their work before HP gets their GPUs. 0 in the simulator, as in the traces.
    pub grace_s: i64,
    /// A task that is evicted so often within [`rest_window_s`](Self::rest_window_s) rests before it may start again: two
    /// tasks that keep pushing each other out would otherwise do nothing else.
    pub evictions_before_rest: u32,
    /// Seconds within which evictions of a task count towards its rest.
    pub rest_window_s: i64,
    /// Seconds for which a task that was evicted often waits.
    pub rest_s: i64,
    /// How long an elastic task whose pods have changed gets no more: each change costs it time.
    pub resize_rest_s: i64,
    /// The load time of a task before it works, as far as the timing of evictions goes: 40 s, the restart of DESIGN §5.
    pub load_s: i64,
    /// Costs of evictions.
    pub evictions: EvictionSettings,
    /// The power draw of the nodes, if it is known for their GPU model.
    pub power: Option<NodePower>,
}

impl Default for PoolRules {
    fn default() -> Self {
        let evictions = EvictionSettings::default();
        Self {
            grace_s: 0,
            evictions_before_rest: 4,
            rest_window_s: 3_600,
            rest_s: 900,
            resize_rest_s: 60,
            load_s: 40,
            evictions,
            power: None,
        }
    }
}

/// Nodes, tasks that run, tasks that wait.
#[derive(Debug, Clone)]
pub struct Pool {
    policy: Policy,
    rules: PoolRules,
    now: UnixSeconds,
    fleet: Fleet,
    queue: Queue,
    /// Those that run.
    requests: BTreeMap<TaskId, Admitted>,
    /// Those of them that are elastic.
    borrowing: BTreeSet<TaskId>,
    /// From when a look for pods that can be lent is worth it.
    grow_at: Option<UnixSeconds>,
    limits: Vec<Limit>,
    /// Limits that take their place as soon as time passes.
    next_limits: Option<Vec<Limit>>,
    /// HP demand when they were set, in thousandths of a GPU.
    limits_demand_milli: u64,
    /// Runs of spot that ended within the usage window, and whether by eviction, oldest first.
    runs: VecDeque<(UnixSeconds, bool)>,
    history: History,
    workload: Workload,
    demand: DemandMeter,
    /// HP tasks that wait and do not fit even on the empty pool: they are no demand until nodes come on which they do.
    unplaceable: BTreeSet<TaskId>,
    resting: BTreeSet<(UnixSeconds, TaskId)>,
    deferred: BTreeSet<(UnixSeconds, TaskId)>,
    learned: Option<Box<defer::Learned>>,
    /// Follow from the rest.
    reservations: reserve::Reservations,
    /// Where the policy keeps fair shares of spot.
    shares: Option<Box<shares::Shares>>,
    /// GPUs that are sold ahead, each window from its notice on, in the order of their begin.
    windows: Vec<ReservedWindow>,
    /// The HP task that has just come: it alone is put off, not who waited already or lost its node.
    newcomer: Option<TaskId>,
    /// Times that a task was sent to rest.
    rests: u64,
    /// Something that a waiting task waits for may have changed.
    stale: Stale,
}

/// Tasks whose chances may have changed since waiting tasks were tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stale {
    #[default]
    Nobody,
    /// Quotas and promises concern spot alone.
    Spot,
    All,
}

/// The request of a running task, and how often it was evicted lately.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Admitted {
    request: Request,
    starts: UnixSeconds,
    evicted: Vec<UnixSeconds>,
    /// When its pods changed last.
    resized: Option<UnixSeconds>,
}

impl Pool {
    /// A pool without nodes, tasks and limits.
    #[must_use]
    pub fn new(policy: Policy, rules: PoolRules) -> Self {
        let mut fleet = Fleet::ordered(rules.evictions, policy.score).looking_at_topology(policy.topology);
        fleet.set_power(rules.power.into_iter().collect());
        Self {
            policy,
            rules,
            now: UnixSeconds::new(i64::MIN / 4),
            fleet,
            queue: Queue::new(policy.order, policy.shares.is_some()),
            requests: BTreeMap::new(),
            borrowing: BTreeSet::new(),
            grow_at: None,
            limits: Vec::new(),
            next_limits: None,
            limits_demand_milli: 0,
            runs: VecDeque::new(),
            history: History::default(),
            workload: Workload::default(),
            demand: DemandMeter::default(),
            unplaceable: BTreeSet::new(),
            resting: BTreeSet::new(),
            deferred: BTreeSet::new(),
            learned: defer::Learned::of(policy.timing),
            reservations: reserve::Reservations::default(),
            shares: policy.shares.map(|settings| Box::new(shares::Shares::new(UseMeter::new(settings)))),
            windows: Vec::new(),
            newcomer: None,
            rests: 0,
            stale: Stale::Nobody,
        }
    }

    /// The policy of decisions.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Nodes and running tasks.
    #[must_use]
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The quotas by hours, ascending.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The limits as they count now: HP demand that has come since they were set takes from them. They were cut from a bound
    /// of what HP needs; where it needs more than it did then, the bound lies higher by as much.
    #[must_use]
    pub fn limits_now(&self) -> Vec<Limit> {
        if !self.policy.limits_follow_demand {
            return self.limits.clone();
        }
        let risen = self.demand.total_milli().saturating_sub(self.limits_demand_milli);
        let risen = MilliGpus::from_milli(risen).unwrap_or(MilliGpus::from_gpus(u32::MAX));
        self.limits.iter().map(|limit| Limit { quota: limit.quota.left_after(risen), ..*limit }).collect()
    }

    /// The latest time that the pool has seen. It does not go back.
    #[must_use]
    pub const fn now(&self) -> UnixSeconds {
        self.now
    }

    /// Tasks that wait, in no order that means anything.
    pub fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.all()
    }

    /// A waiting task by its id.
    #[must_use]
    pub fn waiting_task(&self, task: &TaskId) -> Option<&Waiting> {
        self.queue.get(task)
    }

    /// A running task by its id: its request, and its places.
    #[must_use]
    pub fn running(&self, task: &TaskId) -> Option<(&Request, &Running)> {
        Some((&self.requests.get(task)?.request, self.fleet.tasks().get(task)?))
    }

    /// When the GPUs of a task that has its places are, or were, free.
    #[must_use]
    pub fn starts(&self, task: &TaskId) -> Option<UnixSeconds> {
        self.requests.get(task).map(|running| running.starts)
    }

    /// HP GPUs, running and waiting, now. A waiting task that does not fit even on the empty pool is no demand.
    #[must_use]
    pub const fn hp_demand_milli(&self) -> u64 {
        self.demand.total_milli()
    }

    /// Whether an HP task counts as demand: one that does not fit even on the empty pool does not.
    #[must_use]
    pub fn is_demand(&self, task: &TaskId) -> bool {
        !self.unplaceable.contains(task)
    }

    /// The measured HP demand of the pool.
    #[must_use]
    pub const fn demand(&self) -> &DemandMeter {
        &self.demand
    }

    /// GPUs that nobody has, on nodes that take pods, shares of GPUs in use included. Those that are lent are among them: who
    /// is placed gets them at once.
    #[must_use]
    pub fn idle_milli(&self) -> u64 {
        let of = |node: &crate::fleet::NodeState| {
            node.gpus.len() as u64 * 1_000 - u64::from(node.hp_milli + node.spot_milli)
        };
        let idle_milli = self.fleet.nodes().iter().filter(|node| node.takes_pods()).map(of).sum();
        debug_assert!(idle_milli <= self.registered_milli(), "idle GPUs are GPUs of the pool");
        idle_milli
    }

    /// GPUs of nodes that take pods.
    #[must_use]
    pub fn capacity(&self) -> MilliGpus {
        let open = self.fleet.nodes().iter().filter(|node| node.takes_pods());
        let gpus: u64 = open.map(|node| node.gpus.len() as u64).sum();
        debug_assert!(gpus * 1_000 <= self.registered_milli(), "open nodes are nodes of the pool");
        MilliGpus::from_milli(gpus * 1_000).unwrap_or(MilliGpus::ZERO)
    }

    /// GPUs of all nodes, draining ones included.
    #[must_use]
    pub fn registered_milli(&self) -> u64 {
        self.fleet.nodes().iter().filter(|node| !node.is_gone).map(|node| node.gpus.len() as u64 * 1_000).sum()
    }

    /// How often tasks were sent to rest.
    #[must_use]
    pub const fn rests(&self) -> u64 {
        self.rests
    }
}
