//! The accounts of a pool: facts in, sums out.

use crate::day::{Caused, DayAccounts, Totals};
use crate::levels::Levels;
use crate::open::Open;
use crate::time::{Day, GpuTime};
use placement::pool::{Consequences, Cut, CutReason, Fact, PeriodEnd, Pool, Report};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{NodeId, Organization, OutcomeKind, TaskId, UnixSeconds};

/// The accounts of one pool, from when they began.
///
/// [`take`](Self::take) follows each command of the pool. A day is final once time has passed its midnight, and may then be taken out
/// ([`finished`](Self::finished)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accounts {
    /// None before the first fact.
    pub(crate) begun: Option<UnixSeconds>,
    /// Up to when all sums but those of tasks are complete.
    pub(crate) now: UnixSeconds,
    pub(crate) open: BTreeMap<TaskId, Open>,
    /// Ends of guarantees, for the quota that is left.
    pub(crate) ends: BTreeSet<(UnixSeconds, TaskId)>,
    pub(crate) drains: BTreeSet<NodeId>,
    pub(crate) levels: Levels,
    /// Thousandths of a GPU that elastic tasks are lent.
    pub(crate) lent_milli: u64,
    pub(crate) today: DayAccounts,
    /// Days that are final.
    pub(crate) final_days: BTreeMap<Day, DayAccounts>,
    /// Sums of all final days since the accounts began.
    pub(crate) before: Totals,
}

impl Accounts {
    /// The accounts of a pool that begin with its next fact or, where tasks run, now.
    #[must_use]
    pub fn begin(pool: &Pool) -> Self {
        let now = pool.now();
        let nodes = pool.fleet().nodes().iter();
        let drains = nodes.filter(|node| !node.is_gone && !node.is_open).map(|node| node.id.clone()).collect();
        let mut accounts = Self {
            begun: (!pool.fleet().nodes().is_empty()).then_some(now),
            now,
            open: BTreeMap::new(),
            ends: BTreeSet::new(),
            drains,
            levels: Levels::default(),
            lent_milli: 0,
            today: DayAccounts::default(),
            final_days: BTreeMap::new(),
            before: Totals::default(),
        };
        for task in pool.fleet().tasks().keys() {
            accounts.started(pool, task, now);
        }
        accounts.levels = Levels::of(pool, &accounts.drains, accounts.lent_milli);
        accounts
    }

    /// When they began.
    #[must_use]
    pub const fn begun(&self) -> Option<UnixSeconds> {
        self.begun
    }

    /// Follows a command. `pool` is its state after it.
    pub fn take(&mut self, pool: &Pool, report: &Report) {
        self.follow(pool, &report.facts, &report.consequences);
    }

    /// Follows one fact that was applied alone, as a journal is read back.
    pub fn apply(&mut self, pool: &Pool, fact: &Fact, then: &Consequences) {
        self.follow(pool, std::slice::from_ref(fact), then);
    }

    fn follow(&mut self, pool: &Pool, facts: &[Fact], then: &Consequences) {
        let now = pool.now();
        if self.begun.is_none() {
            (self.begun, self.now) = (Some(now), now);
        }
        // Ends first: a guarantee may have ended on a day that is over now.
        let mut ends: Vec<&PeriodEnd> = then.ends.iter().collect();
        ends.sort_by_key(|end| end.at);
        for end in ends {
            self.pass_to(end.at);
            self.ended(pool, end);
        }
        self.pass_to(now);
        let mut cuts = then.cuts.iter();
        for fact in facts {
            match fact {
                Fact::Started { task, victims, .. } => {
                    for cut in cuts.by_ref().take(victims.len()) {
                        self.cut(pool, cut, now);
                    }
                    self.started(pool, task, now);
                }
                Fact::Cleared { victims, .. } => {
                    for cut in cuts.by_ref().take(victims.len()) {
                        self.cut(pool, cut, now);
                    }
                }
                Fact::Resized { task, .. } => self.resized(pool, task, now),
                Fact::Renewed { task, guarantee } => self.promised(task, Some(*guarantee)),
                Fact::Ended { task, .. } => self.leaves(task, now),
                Fact::NodeRemoved { node, .. } => {
                    self.drains.remove(node);
                    let lost = |cut: &&Cut| matches!(&cut.why, CutReason::Lost { node: of, .. } if of == node);
                    while let Some(cut) = cuts.clone().next().filter(lost) {
                        let _ = cuts.next();
                        self.cut(pool, cut, now);
                    }
                }
                Fact::NodeAdded { node, .. } | Fact::NodeOpened { node, is_open: true } => {
                    self.drains.remove(node);
                }
                Fact::NodeOpened { node, is_open: false } => {
                    self.drains.insert(node.clone());
                }
                _ => {}
            }
        }
        self.levels = Levels::of(pool, &self.drains, self.lent_milli);
    }

    /// Lets time pass: days that are over become final.
    pub(crate) fn pass_to(&mut self, to: UnixSeconds) {
        while Day::of(self.now) < Day::of(to) {
            let midnight = Day::of(self.now).next().begin();
            self.level_to(midnight);
            for open in self.open.values_mut() {
                open.settle(midnight, self.today.line(&open.organization));
            }
            let over = std::mem::take(&mut self.today);
            self.before += &over;
            self.final_days.insert(Day::of(midnight.plus_s(-1)), over);
        }
        self.level_to(to);
    }

    /// Adds up what the pool has besides its tasks, up to an instant of the same day.
    fn level_to(&mut self, to: UnixSeconds) {
        while let Some((until, task)) = self.ends.first().filter(|(until, _)| *until <= to).cloned() {
            self.level_for(until);
            self.ends.pop_first();
            let counts = |hours| self.levels.least_hours.is_some_and(|least| least <= hours);
            if let Some(open) = self.open.get(&task)
                && open.guarantee.is_some_and(|guarantee| counts(guarantee.hours))
            {
                self.levels.promised = self.levels.promised.saturating_sub(open.core_milli);
            }
        }
        self.level_for(to);
    }

    fn level_for(&mut self, to: UnixSeconds) {
        let seconds = to.since_s(self.now);
        if seconds > 0 {
            self.levels.add_to(&mut self.today.pool, seconds);
            self.today.accounted_s += seconds as u64;
            self.now = to;
        }
    }

    fn started(&mut self, pool: &Pool, task: &TaskId, now: UnixSeconds) {
        // One that started and was cut by the same command has no time.
        let Some((request, running)) = pool.running(task) else { return };
        let open = Open {
            organization: request.organization.clone(),
            class: request.gang.class,
            core_milli: running.gpus_milli(),
            lent_milli: lent_milli(running),
            since: now,
            starts: pool.starts(task).unwrap_or(now),
            guarantee: None,
        };
        let guarantee = running.guarantee;
        self.lent_milli += open.lent_milli;
        self.open.insert(task.clone(), open);
        self.promised(task, guarantee);
    }

    fn promised(&mut self, task: &TaskId, guarantee: Option<placement::fleet::Guarantee>) {
        let Some(open) = self.open.get_mut(task) else { return };
        // Its time so far is inside the earlier promise.
        open.settle(self.now, self.today.line(&open.organization));
        if let Some(before) = std::mem::replace(&mut open.guarantee, guarantee) {
            self.ends.remove(&(before.until, task.clone()));
        }
        self.ends.extend(guarantee.map(|guarantee| (guarantee.until, task.clone())));
    }

    fn resized(&mut self, pool: &Pool, task: &TaskId, now: UnixSeconds) {
        let Some((_, running)) = pool.running(task) else { return };
        let Some(open) = self.open.get_mut(task) else { return };
        open.settle(now, self.today.line(&open.organization));
        self.lent_milli = self.lent_milli - open.lent_milli + lent_milli(running);
        (open.core_milli, open.lent_milli) = (running.gpus_milli(), lent_milli(running));
    }

    /// Takes a task out that runs no more.
    fn leaves(&mut self, task: &TaskId, now: UnixSeconds) {
        let Some(mut open) = self.open.remove(task) else { return };
        open.settle(now, self.today.line(&open.organization));
        self.lent_milli -= open.lent_milli;
        if let Some(guarantee) = open.guarantee {
            self.ends.remove(&(guarantee.until, task.clone()));
        }
    }

    fn cut(&mut self, pool: &Pool, cut: &Cut, now: UnixSeconds) {
        let Some(organization) = self.organization_of(pool, &cut.task) else { return };
        // Work begins when the GPUs are free: a run that is cut before has none.
        let starts = self.open.get(&cut.task).map_or(now, |open| open.starts);
        let lost = GpuTime::of(cut.run.gpus_milli(), now.since_s(cut.run.saved.max(starts)));
        self.leaves(&cut.task, now);
        let by = match &cut.why {
            CutReason::EvictedBy { task } => self.organization_of(pool, task),
            CutReason::ClearedFor { organization, .. } => Some(organization.clone()),
            CutReason::Lost { .. } => None,
        };
        let line = self.today.line(&organization);
        match &cut.why {
            CutReason::Lost { .. } => line.lost_to_nodes += lost,
            CutReason::EvictedBy { .. } | CutReason::ClearedFor { .. } => {
                line.lost_to_evictions += lost;
                let broken = u64::from(cut.run.guarantee.is_some());
                *line.evicted_by.entry(by.unwrap_or(organization)).or_default() +=
                    &Caused { evictions: 1, broken, lost };
            }
        }
    }

    /// Books a guarantee period on the day on which it ended.
    fn ended(&mut self, pool: &Pool, end: &PeriodEnd) {
        let Some(organization) = self.organization_of(pool, &end.task) else { return };
        let line = self.today.line(&organization);
        let periods = match end.kind {
            OutcomeKind::Kept => &mut line.kept,
            OutcomeKind::Broken => &mut line.broken,
            OutcomeKind::NodeFailure | OutcomeKind::Drain | OutcomeKind::UserDeleted => &mut line.voided,
        };
        periods.count += 1;
        periods.promised += GpuTime::of(end.period.gpus_milli, end.hours.seconds());
        periods.served += GpuTime::of(end.period.gpus_milli, end.period.lasted_s);
    }

    /// The organization of a task. One that started and was cut by the same command was never open.
    fn organization_of(&self, pool: &Pool, task: &TaskId) -> Option<Organization> {
        let open = self.open.get(task).map(|open| &open.organization);
        let running = || pool.running(task).map(|(request, _)| &request.organization);
        let waiting = || pool.waiting_task(task).map(|waiting| &waiting.request.organization);
        open.or_else(running).or_else(waiting).cloned()
    }

    /// Takes out the days that are final.
    pub fn finished(&mut self) -> BTreeMap<Day, DayAccounts> {
        std::mem::take(&mut self.final_days)
    }

    /// The days that were not taken out, the present one up to `now` with tasks that still run.
    #[must_use]
    pub fn present(&self, now: UnixSeconds) -> BTreeMap<Day, DayAccounts> {
        if self.begun.is_none() {
            return BTreeMap::new();
        }
        let mut then = self.clone();
        then.pass_to(now.max(self.now));
        let now = then.now;
        for open in then.open.values_mut() {
            open.settle(now, then.today.line(&open.organization));
        }
        then.final_days.insert(Day::of(now), then.today);
        then.final_days
    }

    /// All sums since the accounts began, with tasks that still run: for counters.
    #[must_use]
    pub fn total(&self, now: UnixSeconds) -> Totals {
        let mut total = self.before.clone();
        let kept: Vec<Day> = self.final_days.keys().copied().collect();
        for (_, day) in self.present(now).into_iter().filter(|(day, _)| !kept.contains(day)) {
            total += &day;
        }
        total
    }
}

fn lent_milli(running: &placement::fleet::Running) -> u64 {
    u64::from(running.pod.gpus.milli()) * running.lent.len() as u64
}
