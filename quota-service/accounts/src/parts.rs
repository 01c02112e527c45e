//! Accounts as they are kept beside a snapshot of the pool.

use crate::accounts::Accounts;
use crate::day::{DayAccounts, Totals};
use crate::levels::Levels;
use crate::open::Open;
use crate::time::Day;
use placement::pool::Pool;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{TaskId, UnixSeconds};

/// The parts of accounts that do not follow from the pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// When the accounts began; `None` before the first fact.
    pub begun: Option<UnixSeconds>,
    /// Up to when the sums are complete, but for tasks that run.
    pub now: Option<UnixSeconds>,
    /// Tasks that run.
    pub open: BTreeMap<TaskId, Open>,
    /// The present day.
    pub today: DayAccounts,
    /// Days that are over and were not taken out.
    pub final_days: BTreeMap<Day, DayAccounts>,
    /// Sums of all days that are over.
    pub before: Totals,
}

impl Accounts {
    /// The parts to keep.
    #[must_use]
    pub fn parts(&self) -> Parts {
        Parts {
            begun: self.begun,
            now: self.begun.map(|_| self.now),
            open: self.open.clone(),
            today: self.today.clone(),
            final_days: self.final_days.clone(),
            before: self.before.clone(),
        }
    }

    /// Accounts from their parts and the pool of the same moment. `None` where they do not fit together: the tasks that run are others.
    #[must_use]
    pub fn restore(parts: Parts, pool: &Pool) -> Option<Self> {
        let Parts { begun, now, open, today, final_days, before } = parts;
        if !open.keys().eq(pool.fleet().tasks().keys()) || begun.is_some() != now.is_some() {
            return None;
        }
        let now = now.unwrap_or(pool.now());
        if begun.is_some() && now != pool.now() {
            return None;
        }
        let of = |(task, open): (&TaskId, &Open)| Some((open.guarantee?.until, task.clone()));
        let ends: BTreeSet<_> = open.iter().filter_map(of).filter(|(until, _)| *until > now).collect();
        let lent_milli = open.values().map(|open| open.lent_milli).sum();
        let nodes = pool.fleet().nodes().iter();
        let drains = nodes.filter(|node| !node.is_gone && !node.is_open).map(|node| node.id.clone()).collect();
        let levels = Levels::of(pool, &drains, lent_milli);
        Some(Self { begun, now, open, ends, drains, levels, lent_milli, today, final_days, before })
    }
}
