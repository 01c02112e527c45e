//! HP demand as it is measured: GPUs running and waiting, peak within the hour (DESIGN §2). A task that does not fit even on the
//! empty pool is no demand: it will not run, and nothing kept for it would serve it. Another one is demand at once, and counts
//! toward the peak of the hour when it has waited, or run, for [`SETTLED_AFTER_S`], or has come to its own end: what is submitted
//! and withdrawn within seconds would otherwise be stored as the demand of an hour.

use super::apply::gpus_milli;
use super::{Ending, Pool, Request, Waiting};
use crate::fleet::{Fleet, Gang, PodRequest};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{HourDemand, HourStart, MilliGpus, Organization, TaskClass, TaskId, UnixSeconds};

/// How long a task waits or runs before it counts toward the peak of an hour.
pub const SETTLED_AFTER_S: i64 = 60;

/// The demand of one organization now, and its peak within the hour, in thousandths of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level {
    /// HP GPUs now, running and waiting, in thousandths.
    pub milli: u64,
    /// Peak of the hour so far, in thousandths.
    pub peak_milli: u64,
}

impl Level {
    /// All but `young_milli`, which has not been there for long enough, counts toward the peak.
    fn raise(&mut self, young_milli: u64) {
        self.peak_milli = self.peak_milli.max(self.milli.saturating_sub(young_milli));
    }

    /// Ends an hour; the next one begins with what counts at its end.
    fn close(&mut self, hour: HourStart, organization: &Organization, young_milli: u64) -> HourOfDemand {
        debug_assert!(self.milli >= young_milli, "young demand of {organization} is demand");
        let amount = |milli| MilliGpus::from_milli(milli).unwrap_or(MilliGpus::ZERO);
        let at_end_milli = self.milli - young_milli;
        let peak = amount(std::mem::replace(&mut self.peak_milli, at_end_milli));
        let demand = HourDemand { peak, at_end: Some(amount(at_end_milli).min(peak)) };
        HourOfDemand { hour, organization: organization.clone(), demand }
    }
}

/// The demand of an hour that is over; `*` for the pool's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourOfDemand {
    /// The hour.
    pub hour: HourStart,
    /// The organization.
    pub organization: Organization,
    /// Its HP demand in the hour: the peak, and the level at the end.
    pub demand: HourDemand,
}

/// A task that has neither waited nor run for [`SETTLED_AFTER_S`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct Young {
    organization: Organization,
    milli: u64,
    settles: UnixSeconds,
}

/// The tasks that have not been there for long enough, and their sums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Nursery {
    tasks: BTreeMap<TaskId, Young>,
    by_time: BTreeSet<(UnixSeconds, TaskId)>,
    milli: BTreeMap<Organization, u64>,
    total_milli: u64,
}

impl Nursery {
    fn of(&self, organization: &Organization) -> u64 {
        self.milli.get(organization).copied().unwrap_or(0)
    }

    fn add(&mut self, task: &TaskId, young: Young) {
        *self.milli.entry(young.organization.clone()).or_default() += young.milli;
        self.total_milli += young.milli;
        self.by_time.insert((young.settles, task.clone()));
        let before = self.tasks.insert(task.clone(), young);
        debug_assert!(before.is_none(), "{task} is young twice");
        debug_assert_eq!(self.by_time.len(), self.tasks.len(), "each young task has its time");
    }

    fn remove(&mut self, task: &TaskId) -> Option<Young> {
        let young = self.tasks.remove(task)?;
        self.by_time.remove(&(young.settles, task.clone()));
        debug_assert!(self.total_milli >= young.milli, "{task} leaves with more GPUs than all young tasks have");
        self.total_milli -= young.milli;
        if let Some(milli) = self.milli.get_mut(&young.organization) {
            debug_assert!(*milli >= young.milli, "{task} leaves with more GPUs than its organization has");
            *milli -= young.milli;
            if *milli == 0 {
                self.milli.remove(&young.organization);
            }
        }
        Some(young)
    }

    /// The task that settles first, where it does by then.
    fn due(&self, by: UnixSeconds) -> Option<TaskId> {
        self.by_time.first().filter(|(settles, _)| *settles <= by).map(|(_, task)| task.clone())
    }
}

/// Measures HP demand while tasks come and go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DemandMeter {
    hour: Option<HourStart>,
    organizations: BTreeMap<Organization, Level>,
    total: Level,
    /// Follows from the tasks that wait and run: no snapshot has it.
    nursery: Nursery,
}

impl DemandMeter {
    /// Demand from the parts of a snapshot.
    #[must_use]
    pub fn from_parts(hour: Option<HourStart>, organizations: BTreeMap<Organization, Level>, total: Level) -> Self {
        Self { hour, organizations, total, nursery: Nursery::default() }
    }

    /// The hour that is measured, each organization's level, and the pool's own.
    #[must_use]
    pub const fn parts(&self) -> (Option<HourStart>, &BTreeMap<Organization, Level>, Level) {
        (self.hour, &self.organizations, self.total)
    }

    /// HP demand of the pool now, in thousandths of a GPU.
    #[must_use]
    pub const fn total_milli(&self) -> u64 {
        self.total.milli
    }

    /// Demand has come; what of it is young is in the nursery.
    fn comes(&mut self, request: &Request) {
        let milli = gpus_milli(request);
        self.organizations.entry(request.organization.clone()).or_default().milli += milli;
        self.total.milli += milli;
        self.raise(&request.organization);
    }

    fn raise(&mut self, organization: &Organization) {
        let young = self.nursery.of(organization);
        if let Some(level) = self.organizations.get_mut(organization) {
            level.raise(young);
        }
        self.total.raise(self.nursery.total_milli);
    }

    /// A task waits or runs since `queued`, and is demand.
    fn waits(&mut self, request: &Request, queued: UnixSeconds, now: UnixSeconds) {
        self.nurse(request, queued, now);
        self.comes(request);
    }

    /// A task whose demand is counted waits, or runs, since `since`.
    fn nurse(&mut self, request: &Request, since: UnixSeconds, now: UnixSeconds) {
        self.nursery.remove(&request.gang.task);
        let settles = since.plus_s(SETTLED_AFTER_S);
        if settles > now {
            let young = Young { organization: request.organization.clone(), milli: gpus_milli(request), settles };
            self.nursery.add(&request.gang.task, young);
        }
    }

    /// A task has been there for long enough, or has come to its end.
    fn settle(&mut self, task: &TaskId) {
        if let Some(young) = self.nursery.remove(task) {
            self.raise(&young.organization);
        }
    }

    /// A task is demand no longer.
    fn leaves(&mut self, request: &Request) {
        let (organization, milli) = (&request.organization, gpus_milli(request));
        for level in self.organizations.get_mut(organization).into_iter().chain([&mut self.total]) {
            debug_assert!(level.milli >= milli, "{} leaves with more demand than is counted", request.gang.task);
            level.milli -= milli;
        }
        self.nursery.remove(&request.gang.task);
    }

    /// Closes the hours that are over by now; the first call begins to measure, and its hour is not whole.
    pub(super) fn pass_to(&mut self, now: UnixSeconds) -> Vec<HourOfDemand> {
        let Ok(present) = now.hour() else { return Vec::new() };
        let mut closed = Vec::new();
        let mut hour = *self.hour.get_or_insert(present);
        while hour < present {
            let next = hour.plus_hours(1);
            self.settle_by(next.instant().plus_s(-1));
            for (organization, level) in &mut self.organizations {
                closed.push(level.close(hour, organization, self.nursery.of(organization)));
            }
            closed.push(self.total.close(hour, &Organization::pool_peak(), self.nursery.total_milli));
            hour = next;
        }
        debug_assert!(hour >= present, "all hours before the present one are closed");
        self.hour = Some(hour);
        self.settle_by(now);
        debug_assert!(self.nursery.due(now).is_none(), "what settles by now has settled");
        closed
    }

    fn settle_by(&mut self, by: UnixSeconds) {
        while let Some(task) = self.nursery.due(by) {
            self.settle(&task);
        }
    }
}

/// Whether a gang would run on the empty pool, its guaranteed affinity included.
fn could_ever_run(fleet: &Fleet, gang: &Gang) -> bool {
    fleet.could_ever_hold(gang) && fleet.could_ever_align(gang)
}

/// Whether a request fits on the empty pool, computed once for all that ask for the same.
#[derive(Default)]
pub(super) struct Placeable(BTreeMap<(PodRequest, u32), bool>);

impl Placeable {
    pub(super) fn holds(&mut self, fleet: &Fleet, request: &Request) -> bool {
        let gang = request.core();
        *self.0.entry((gang.pod, gang.pods)).or_insert_with(|| could_ever_run(fleet, &gang))
    }
}

impl Pool {
    /// An HP task has come.
    pub(super) fn add_demand(&mut self, request: &Request) {
        if could_ever_run(&self.fleet, &request.core()) {
            self.demand.waits(request, self.now, self.now);
        } else {
            self.unplaceable.insert(request.gang.task.clone());
        }
    }

    /// An HP task has gone: to its own end, or taken back.
    pub(super) fn remove_demand(&mut self, request: &Request, ending: Ending) {
        if !self.unplaceable.remove(&request.gang.task) {
            if ending == Ending::Finished {
                self.demand.settle(&request.gang.task);
            }
            self.demand.leaves(request);
        }
    }

    /// An HP task runs from `since` on: it fits, in spite of any earlier verdict.
    pub(super) fn runs(&mut self, request: &Request, since: UnixSeconds) {
        if self.unplaceable.remove(&request.gang.task) {
            self.demand.waits(request, since, self.now);
        } else {
            self.demand.nurse(request, since, self.now);
        }
    }

    /// An HP task that ran waits again.
    pub(super) fn runs_no_more(&mut self, request: &Request) {
        self.demand.nurse(request, self.now, self.now);
    }

    /// A waiting task has waited since it was queued, and a running one has run since it began: for a pool that was restored.
    pub(super) fn nurse_demand(&mut self, now: UnixSeconds) {
        for (task, running) in self.fleet.tasks() {
            if let Some(admitted) = self.requests.get(task).filter(|_| running.class == TaskClass::Hp) {
                self.demand.nurse(&admitted.request, running.since, now);
            }
        }
        for Waiting { request, queued, .. } in self.queue.all() {
            if request.gang.class == TaskClass::Hp && !self.unplaceable.contains(&request.gang.task) {
                self.demand.nurse(request, *queued, now);
            }
        }
    }

    /// Nodes came or went: tasks that wait may fit now, or no longer.
    pub(super) fn recount_demand(&mut self) {
        let mut placeable = Placeable::default();
        let changed: Vec<(Request, UnixSeconds)> = self
            .queue
            .all()
            .filter(|waiting| waiting.request.gang.class == TaskClass::Hp)
            .filter(|Waiting { request, .. }| {
                placeable.holds(&self.fleet, request) == self.unplaceable.contains(&request.gang.task)
            })
            .map(|waiting| (waiting.request.clone(), waiting.queued))
            .collect();
        for (request, queued) in changed {
            if self.unplaceable.remove(&request.gang.task) {
                self.demand.waits(&request, queued, self.now);
            } else {
                self.demand.leaves(&request);
                self.unplaceable.insert(request.gang.task);
            }
        }
    }
}
