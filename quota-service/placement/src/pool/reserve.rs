//! Reservations with backfill (EASY): the task of a class that waits longest gets nodes, and spot its room in the quota; others
//! pass it only where that does not delay it.
//!
//! Reservations are no facts: they follow from the queue and from what runs, so that they are the same after a restart. How
//! long tasks run is not known. Nodes of a reservation are closed to others of its class until the task starts, there or
//! anywhere. Spot goes on using the nodes that are reserved for HP, which evicts it.

use super::{Fact, Pool, Report, Stale};
use crate::decide::{Decision, Limit, asked};
use crate::fleet::Gang;
use crate::policy::{Admission, Blocking};
use std::collections::BTreeSet;
use std::fmt;
use vocab::{HorizonHours, MilliGpus, NodeId, TaskClass, TaskId, UnixSeconds};

/// So many of the oldest waiting tasks of a class are candidates: those that the quota has no room for cost a look each.
const MOST_CANDIDATES: usize = 64;
/// A sentence names so many nodes.
const NODES_NAMED: usize = 8;

/// Nodes and quota that are kept for a waiting task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The task that waits.
    pub task: TaskId,
    /// Nodes that are kept for it.
    pub nodes: Vec<NodeId>,
    /// When it may start, if each task in the way runs as long again as it has run.
    pub expected_start: UnixSeconds,
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reserved: nodes ")?;
        for (number, node) in self.nodes.iter().take(NODES_NAMED).enumerate() {
            write!(f, "{}{node}", if number == 0 { "" } else { ", " })?;
        }
        if self.nodes.len() > NODES_NAMED {
            write!(f, " and {} more", self.nodes.len() - NODES_NAMED)?;
        }
        write!(f, ", expected start {} if tasks in the way run as long again as they have run", self.expected_start)
    }
}

/// A task with a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Head {
    task: TaskId,
    class: TaskClass,
    /// By their numbers.
    nodes: BTreeSet<usize>,
    /// Its part of the quota, and for which hours.
    of_quota: Option<(HorizonHours, MilliGpus)>,
}

/// The reservations as they are now, and whether they still are.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservations {
    /// HP first; of each class the one that waits longest first.
    heads: Vec<Head>,
    is_current: bool,
    /// When the next task has waited long enough.
    due: Option<UnixSeconds>,
    /// Tasks that do not fit on the nodes there are.
    unfit: BTreeSet<TaskId>,
}

impl Reservations {
    /// Its inputs have changed.
    pub const fn forget(&mut self) {
        self.is_current = false;
    }

    /// A fact changes what they rest on.
    pub fn change(&mut self, fact: &Fact) {
        match fact {
            Fact::NodeAdded { .. } | Fact::NodeOpened { .. } | Fact::NodeRemoved { .. } => self.unfit.clear(),
            Fact::Ended { task, .. } => {
                self.unfit.remove(task);
            }
            Fact::Saved { .. } | Fact::Measured { .. } | Fact::Renewed { .. } | Fact::Resized { .. } => return,
            _ => {}
        }
        self.forget();
    }
}

impl Pool {
    /// Brings the reservations up to date. Where one is over, or has other nodes than before, others are tried once more.
    pub(super) fn reserve(&mut self) {
        let is_due = self.reservations.due.is_some_and(|due| due <= self.now);
        if self.policy.blocking != Blocking::Nobody || (self.reservations.is_current && !is_due) {
            return;
        }
        let before = std::mem::take(&mut self.reservations.heads);
        self.reservations.due = None;
        let limits = self.limits_now();
        for class in [TaskClass::Hp, TaskClass::Spot] {
            self.reserve_for(class, &limits);
        }
        self.reservations.is_current = true;
        let heads = &self.reservations.heads;
        debug_assert!(
            heads.iter().all(|head| self.queue.get(&head.task).is_some()),
            "a reservation is of a waiting task"
        );
        debug_assert!(heads.is_sorted_by_key(|head| head.class), "reservations of HP come first");
        if before != self.reservations.heads
            && let Some(shares) = &mut self.shares
        {
            shares.has_room_again();
        }
        if before.iter().any(|head| !self.reservations.heads.contains(head)) {
            self.stale = Stale::All;
        }
    }

    fn reserve_for(&mut self, class: TaskClass, limits: &[Limit]) {
        let (most, after_s) = self.policy.reservations.of(class);
        let Self { policy, queue, fleet, now, reservations: Reservations { heads, due, unfit, .. }, .. } = self;
        let (mut taken, mut left) = (BTreeSet::new(), most);
        let left_of_quota = |of_quota: Option<(HorizonHours, MilliGpus)>| {
            let Some((hours, gpus)) = of_quota else { return true };
            let share = |quota: MilliGpus| quota.milli() * u64::from(policy.reservations.quota_percent) / 100;
            limits.iter().filter(|limit| limit.hours <= hours).all(|limit| gpus.milli() <= share(limit.quota))
        };
        for (queued, task) in queue.oldest(class).take(MOST_CANDIDATES) {
            if left == 0 {
                return;
            }
            let ripe = queued.plus_s(after_s);
            if ripe > *now {
                *due = Some(due.map_or(ripe, |due| due.min(ripe)));
                return;
            }
            let Some(request) = queue.get(task).map(|waiting| &waiting.request) else { continue };
            let gang = request.core();
            let hours = request.hours.filter(|_| policy.admission == Admission::Quota && class == TaskClass::Spot);
            let of_quota = hours.map(|hours| (hours, asked(&gang)));
            if unfit.contains(task) || !left_of_quota(of_quota) {
                continue;
            }
            match fleet.slots(&gang, &taken) {
                Some(nodes) => {
                    debug_assert!(nodes.is_disjoint(&taken), "two reservations share a node");
                    taken.extend(nodes.iter().copied());
                    heads.push(Head { task: task.clone(), class, nodes, of_quota });
                    left -= 1;
                }
                None if taken.is_empty() => {
                    unfit.insert(task.clone());
                }
                None => {}
            }
        }
    }

    /// Whether places are kept for a task, as of the last look.
    pub(super) fn has_reservation(&self, task: &TaskId) -> bool {
        self.reservations.heads.iter().any(|head| head.task == *task)
    }

    /// Reservations that a task leaves alone: of its class, and those before its own if it has one.
    fn reserved_before<'a>(&'a self, gang: &'a Gang) -> impl Iterator<Item = &'a Head> {
        let of_class = self.reservations.heads.iter().filter(|head| head.class == gang.class);
        of_class.take_while(|head| head.task != gang.task)
    }

    /// The limits without what is kept for others.
    pub(super) fn limits_beside_reservations(&self, gang: &Gang) -> Vec<Limit> {
        let mut limits = self.limits_now();
        for (hours, gpus) in self.reserved_before(gang).filter_map(|head| head.of_quota) {
            for limit in limits.iter_mut().filter(|limit| limit.hours <= hours) {
                limit.quota = limit.quota.left_after(gpus);
            }
        }
        limits
    }

    /// Closes the nodes that are kept for others, and answers those that were open: until [`open_again`](Self::open_again).
    pub(super) fn keep_reserved(&mut self, gang: &Gang) -> Vec<usize> {
        let nodes = self.reserved_before(gang).flat_map(|head| head.nodes.iter().copied());
        let open: Vec<usize> = nodes.filter(|node| self.fleet.nodes()[*node].is_open).collect();
        for node in &open {
            self.fleet.open(*node, false);
        }
        debug_assert!(open.iter().all(|node| !self.fleet.nodes()[*node].is_open), "kept nodes are closed");
        open
    }

    pub(super) fn open_again(&mut self, nodes: &[usize]) {
        for node in nodes {
            debug_assert!(!self.fleet.nodes()[*node].is_open, "a kept node was opened meanwhile");
            self.fleet.open(*node, true);
        }
    }

    /// Tries tasks with a reservation before all others of their class.
    pub(super) fn try_reserved(&mut self, class: TaskClass, report: &mut Report) {
        loop {
            self.reserve();
            let of_class = self.reservations.heads.iter().filter(|head| head.class == class);
            let tasks: Vec<TaskId> = of_class.map(|head| head.task.clone()).collect();
            if !tasks.iter().any(|task| self.try_to_start(task, report)) {
                return;
            }
        }
    }

    /// Nodes and quota that are kept for a waiting task.
    #[must_use]
    pub fn reservation(&mut self, task: &TaskId) -> Option<Reservation> {
        self.reserve();
        let head = self.reservations.heads.iter().find(|head| head.task == *task)?;
        let gang = self.queue.get(task)?.request.core();
        let of_nodes = self.fleet.expected_start(&gang, &head.nodes, self.now);
        let of_quota = head.of_quota.map_or(self.now, |(hours, gpus)| self.promises_end(hours, gpus));
        let nodes = head.nodes.iter().map(|node| self.fleet.nodes()[*node].id.clone()).collect();
        Some(Reservation { task: task.clone(), nodes, expected_start: of_nodes.max(of_quota) })
    }

    /// When enough promises have ended that the quota has room for so many GPUs more.
    fn promises_end(&self, hours: HorizonHours, gpus: MilliGpus) -> UnixSeconds {
        let mut ends: Vec<_> =
            self.fleet.tasks().values().filter_map(|running| Some((running.guarantee?, running))).collect();
        ends.sort_unstable_by_key(|(guarantee, _)| guarantee.until);
        let limits = self.limits_now();
        let room = |limit: &Limit| {
            let mut held = self.fleet.promised(limit.hours).milli();
            let of_it = ends.iter().filter(|(guarantee, _)| guarantee.hours >= limit.hours);
            let mut at = self.now;
            for (guarantee, running) in of_it {
                if held + gpus.milli() <= limit.quota.milli() {
                    break;
                }
                held = held.saturating_sub(running.gpus_milli());
                at = guarantee.until;
            }
            at
        };
        limits.iter().filter(|limit| limit.hours <= hours).map(room).max().unwrap_or(self.now)
    }

    /// The task whose reservation keeps another one from starting; none where it would not start without it either.
    pub(super) fn held_back_by(&mut self, gang: &Gang, hours: Option<HorizonHours>) -> Option<TaskId> {
        self.reserve();
        let others: Vec<Head> = self.reserved_before(gang).cloned().collect();
        if others.is_empty() {
            return None;
        }
        let heads = std::mem::take(&mut self.reservations.heads);
        let starts_beside = |pool: &mut Self, kept: &[Head]| {
            pool.reservations.heads = kept.to_vec();
            matches!(pool.decide(gang, hours), Decision::Start { .. })
        };
        let mut by = None;
        if starts_beside(self, &[]) {
            let first = (0..others.len()).find(|last| !starts_beside(self, &others[..=*last]));
            by = first.map(|last| others[last].task.clone());
        }
        self.reservations.heads = heads;
        by
    }
}
