//! A task that runs, and the part of its time that is not in the sums yet.

use crate::day::Line;
use crate::time::GpuTime;
use placement::fleet::Guarantee;
use vocab::{Organization, TaskClass, UnixSeconds};

/// A task that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The tenant.
    pub organization: Organization,
    /// HP or spot.
    pub class: TaskClass,
    /// Thousandths of a GPU over all pods that it keeps.
    pub core_milli: u64,
    /// Thousandths of a GPU over its pods on lent GPUs.
    pub lent_milli: u64,
    /// From when on its time is not in the sums yet.
    pub since: UnixSeconds,
    /// When its GPUs are free.
    pub starts: UnixSeconds,
    /// Its promise, until that is over.
    pub guarantee: Option<Guarantee>,
}

impl Open {
    /// Thousandths of a GPU that it holds.
    #[must_use]
    pub const fn held_milli(&self) -> u64 {
        self.core_milli + self.lent_milli
    }

    /// Adds its time up to an instant of the same day to the line of its organization.
    pub(crate) fn settle(&mut self, to: UnixSeconds, line: &mut Line) {
        let from = self.since;
        if to <= from {
            return;
        }
        self.since = to;
        let begins = self.starts.max(from).min(to);
        line.handover += GpuTime::of(self.held_milli(), begins.since_s(from));
        let ran_s = to.since_s(begins);
        if self.class == TaskClass::Hp {
            line.hp += GpuTime::of(self.held_milli(), ran_s);
            return;
        }
        let until = self.guarantee.map_or(begins, |guarantee| guarantee.until.max(begins).min(to));
        let guaranteed_s = until.since_s(begins);
        line.guaranteed += GpuTime::of(self.core_milli, guaranteed_s);
        line.at_will += GpuTime::of(self.core_milli, ran_s - guaranteed_s) + GpuTime::of(self.lent_milli, ran_s);
    }
}
