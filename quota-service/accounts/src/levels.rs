//! Amounts of a pool at one moment besides its tasks, and their sums over time.

use crate::day::PoolLine;
use crate::time::GpuTime;
use placement::policy::Admission;
use placement::pool::Pool;
use std::collections::BTreeSet;
use vocab::{HorizonHours, NodeId};

/// Amounts of a pool between two facts, in thousandths of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Levels {
    pub capacity: u64,
    /// Held by tasks, lent GPUs included.
    pub held: u64,
    /// Idle on nodes that take no pods.
    pub drained: u64,
    /// Of nodes that take pods.
    pub open: u64,
    pub hp_demand: u64,
    /// f · η of the shortest guarantee; none without a quota.
    pub limit: Option<u64>,
    /// Those hours.
    pub least_hours: Option<HorizonHours>,
    /// Inside a guarantee of at least so many hours.
    pub promised: u64,
}

impl Levels {
    /// The amounts of a pool now. `drains` are its nodes that take no pods; `lent` is what elastic tasks are lent.
    pub fn of(pool: &Pool, drains: &BTreeSet<NodeId>, lent: u64) -> Self {
        let fleet = pool.fleet();
        let capacity = fleet.gpus() * 1_000;
        let of_drains = drains.iter().filter_map(|node| fleet.number_of(node)).map(|number| &fleet.nodes()[number]);
        let (mut drained, mut closed) = (0, 0);
        for node in of_drains {
            let gpus = node.gpus.len() as u64 * 1_000;
            closed += gpus;
            drained += gpus - node.used_milli() - u64::from(node.lent.count_ones()) * 1_000;
        }
        let open = capacity - closed;
        let (limit, least_hours, promised) = match (pool.policy().admission, pool.limits().first()) {
            (Admission::Idle, _) => (Some(open), None, 0),
            (Admission::Quota, None) => (None, None, 0),
            (Admission::Quota, Some(first)) => {
                (Some(first.quota.milli()), Some(first.hours), fleet.promised(first.hours).milli())
            }
        };
        let hp_demand = pool.hp_demand_milli();
        Self { capacity, held: fleet.used_milli() + lent, drained, open, hp_demand, limit, least_hours, promised }
    }

    /// Adds so many seconds of it.
    pub fn add_to(&self, line: &mut PoolLine, seconds: i64) {
        let idle = self.capacity.saturating_sub(self.held + self.drained);
        let offered = match (self.limit, self.least_hours) {
            // Without a quota everybody may have what is idle.
            (Some(_), None) => idle,
            (limit, _) => idle.min(limit.unwrap_or(0).saturating_sub(self.promised)),
        };
        let over = self.limit.map_or(0, |limit| self.open.saturating_sub(limit).saturating_sub(self.hp_demand));
        line.capacity += GpuTime::of(self.capacity, seconds);
        line.idle_offered += GpuTime::of(offered, seconds);
        line.idle_reserved += GpuTime::of(idle - offered, seconds);
        line.drained += GpuTime::of(self.drained, seconds);
        line.over_reserved += GpuTime::of(over, seconds);
    }
}
