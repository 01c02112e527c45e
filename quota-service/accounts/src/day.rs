//! The sums of one day.

use crate::time::GpuTime;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use vocab::Organization;

/// Guarantee periods that ended in one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Periods {
    /// Their number.
    pub count: u64,
    /// GPU time that they promised: GPUs × guarantee hours.
    pub promised: GpuTime,
    /// GPU time that they had lasted when they ended.
    pub served: GpuTime,
}

impl AddAssign<&Self> for Periods {
    fn add_assign(&mut self, other: &Self) {
        self.count += other.count;
        self.promised += other.promised;
        self.served += other.served;
    }
}

/// Evictions of one organization's spot tasks by the HP tasks of another, or of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caused {
    /// Evicted runs.
    pub evictions: u64,
    /// Those of them inside a guarantee.
    pub broken: u64,
    /// Work since the last checkpoint.
    pub lost: GpuTime,
}

impl AddAssign<&Self> for Caused {
    fn add_assign(&mut self, other: &Self) {
        self.evictions += other.evictions;
        self.broken += other.broken;
        self.lost += other.lost;
    }
}

/// One organization: the GPU time that its tasks held, and what became of its promises and its work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// HP tasks.
    pub hp: GpuTime,
    /// Spot tasks inside their guarantee.
    pub guaranteed: GpuTime,
    /// Spot tasks without a guarantee or after it, and pods on lent GPUs.
    pub at_will: GpuTime,
    /// GPUs that a task has been given and that victims still leave: until the grace period is over.
    pub handover: GpuTime,
    /// Work of spot tasks since their last checkpoint, at evictions for HP.
    pub lost_to_evictions: GpuTime,
    /// Work since the last checkpoint, of both classes, at losses of nodes.
    pub lost_to_nodes: GpuTime,
    /// Guarantee periods that were kept: to their end, or until the task finished.
    pub kept: Periods,
    /// Guarantee periods that HP broke.
    pub broken: Periods,
    /// Guarantee periods that ended otherwise: by a lost node, a drain, or the user.
    pub voided: Periods,
    /// Evictions of its spot tasks, by the organization of the HP task.
    pub evicted_by: BTreeMap<Organization, Caused>,
}

impl Line {
    /// GPU time in which tasks ran.
    #[must_use]
    pub fn ran(&self) -> GpuTime {
        self.hp + self.guaranteed + self.at_will
    }

    /// GPU time that tasks held.
    #[must_use]
    pub fn held(&self) -> GpuTime {
        self.ran() + self.handover
    }

    /// GPU time that was lost again.
    #[must_use]
    pub fn lost(&self) -> GpuTime {
        self.lost_to_evictions + self.lost_to_nodes
    }

    /// GPU time that was promised by the periods that ended: kept, broken and voided.
    #[must_use]
    pub fn sold(&self) -> GpuTime {
        self.kept.promised + self.broken.promised + self.voided.promised
    }

    /// Evictions of its tasks.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evicted_by.values().map(|caused| caused.evictions).sum()
    }
}

impl AddAssign<&Self> for Line {
    fn add_assign(&mut self, other: &Self) {
        self.hp += other.hp;
        self.guaranteed += other.guaranteed;
        self.at_will += other.at_will;
        self.handover += other.handover;
        self.lost_to_evictions += other.lost_to_evictions;
        self.lost_to_nodes += other.lost_to_nodes;
        self.kept += &other.kept;
        self.broken += &other.broken;
        self.voided += &other.voided;
        for (by, caused) in &other.evicted_by {
            *self.evicted_by.entry(by.clone()).or_default() += caused;
        }
    }
}

/// The GPU time of a pool that no task held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolLine {
    /// GPUs of all nodes.
    pub capacity: GpuTime,
    /// Idle, and within the quota of the shortest guarantee: nobody wanted it.
    pub idle_offered: GpuTime,
    /// Idle beyond the quota: kept for HP work.
    pub idle_reserved: GpuTime,
    /// Idle on nodes that take no new pods.
    pub drained: GpuTime,
    /// Kept for HP work by the quota of the shortest guarantee, beyond HP demand at that moment. Spot at will may have run on it.
    pub over_reserved: GpuTime,
}

impl PoolLine {
    /// Idle on nodes that take pods.
    #[must_use]
    pub fn idle(&self) -> GpuTime {
        self.idle_offered + self.idle_reserved
    }
}

impl AddAssign<&Self> for PoolLine {
    fn add_assign(&mut self, other: &Self) {
        self.capacity += other.capacity;
        self.idle_offered += other.idle_offered;
        self.idle_reserved += other.idle_reserved;
        self.drained += other.drained;
        self.over_reserved += other.over_reserved;
    }
}

/// A pool on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayAccounts {
    /// Seconds of the day that were accounted for: fewer than 86,400 on the first day and the present one.
    pub accounted_s: u64,
    /// By organization; those without any sum are left out.
    pub organizations: BTreeMap<Organization, Line>,
    /// GPU time that no organization held.
    pub pool: PoolLine,
}

impl DayAccounts {
    pub(crate) fn line(&mut self, organization: &Organization) -> &mut Line {
        // No entry by value: most lines exist already.
        if !self.organizations.contains_key(organization) {
            self.organizations.insert(organization.clone(), Line::default());
        }
        self.organizations.get_mut(organization).expect("it was inserted where it was missing")
    }

    /// GPU time that tasks held.
    #[must_use]
    pub fn held(&self) -> GpuTime {
        self.organizations.values().map(Line::held).sum()
    }

    /// The difference between the capacity and all that is accounted for, in thousandths of a GPU times seconds: zero.
    #[must_use]
    pub fn unaccounted(&self) -> i128 {
        let accounted = self.held() + self.pool.idle() + self.pool.drained;
        i128::from(self.pool.capacity.milli_gpu_s()) - i128::from(accounted.milli_gpu_s())
    }

    /// The sum of all organizations.
    #[must_use]
    pub fn total(&self) -> Line {
        let mut total = Line::default();
        for line in self.organizations.values() {
            total += line;
        }
        total
    }
}

impl AddAssign<&Self> for DayAccounts {
    fn add_assign(&mut self, other: &Self) {
        self.accounted_s += other.accounted_s;
        for (organization, line) in &other.organizations {
            *self.line(organization) += line;
        }
        self.pool += &other.pool;
    }
}

/// Sums of a pool over all organizations and days.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Of all organizations.
    pub line: Line,
    /// GPU time that no organization held.
    pub pool: PoolLine,
}

impl AddAssign<&DayAccounts> for Totals {
    fn add_assign(&mut self, day: &DayAccounts) {
        self.line += &day.total();
        self.pool += &day.pool;
    }
}
