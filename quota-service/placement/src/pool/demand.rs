//! HP demand as it is measured: GPUs running and waiting, peak within the hour (DESIGN §2). A task that does not fit even on the
//! empty pool is no demand: it will not run, and nothing kept for it would serve it.

use super::apply::gpus_milli;
use super::{Pool, Request};
use crate::fleet::{Fleet, Gang, PodRequest};
use std::collections::BTreeMap;
use vocab::{HourStart, MilliGpus, Organization, TaskClass, TaskId, UnixSeconds};

/// The demand of one organization now, and its peak within the hour, in thousandths of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level {
    pub milli: u64,
    pub peak_milli: u64,
}

impl Level {
    fn change(&mut self, milli: u64, adds: bool) {
        self.milli = if adds { self.milli + milli } else { self.milli - milli };
        self.peak_milli = self.peak_milli.max(self.milli);
    }
}

/// The peak of an hour that is over; `*` for the pool's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourOfDemand {
    pub hour: HourStart,
    pub organization: Organization,
    pub demand: MilliGpus,
}

/// Measures HP demand while tasks come and go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DemandMeter {
    hour: Option<HourStart>,
    organizations: BTreeMap<Organization, Level>,
    total: Level,
}

impl DemandMeter {
    #[must_use]
    pub const fn from_parts(
        hour: Option<HourStart>,
        organizations: BTreeMap<Organization, Level>,
        total: Level,
    ) -> Self {
        Self { hour, organizations, total }
    }

    /// The hour that is measured, each organization's level, and the pool's own.
    #[must_use]
    pub const fn parts(&self) -> (Option<HourStart>, &BTreeMap<Organization, Level>, Level) {
        (self.hour, &self.organizations, self.total)
    }

    #[must_use]
    pub const fn total_milli(&self) -> u64 {
        self.total.milli
    }

    pub(super) fn change(&mut self, organization: &Organization, milli: u64, adds: bool) {
        self.organizations.entry(organization.clone()).or_default().change(milli, adds);
        self.total.change(milli, adds);
    }

    /// Closes the hours that are over by now; the first call begins to measure, and its hour is not whole.
    pub(super) fn pass_to(&mut self, now: UnixSeconds) -> Vec<HourOfDemand> {
        let Ok(present) = now.hour() else { return Vec::new() };
        let mut closed = Vec::new();
        let mut hour = *self.hour.get_or_insert(present);
        while hour < present {
            let one = |(organization, level): (&Organization, &Level)| HourOfDemand {
                hour,
                organization: organization.clone(),
                demand: MilliGpus::from_milli(level.peak_milli).unwrap_or(MilliGpus::ZERO),
            };
            closed.extend(self.organizations.iter().map(one));
            closed.push(one((&Organization::pool_peak(), &self.total)));
            for level in self.organizations.values_mut().chain([&mut self.total]) {
                level.peak_milli = level.milli;
            }
            hour = hour.plus_hours(1);
        }
        self.hour = Some(hour);
        closed
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
            self.demand.change(&request.organization, gpus_milli(request), true);
        } else {
            self.unplaceable.insert(request.gang.task.clone());
        }
    }

    /// An HP task has gone.
    pub(super) fn remove_demand(&mut self, request: &Request) {
        if !self.unplaceable.remove(&request.gang.task) {
            self.demand.change(&request.organization, gpus_milli(request), false);
        }
    }

    /// An HP task runs: whatever was thought of it, it fits.
    pub(super) fn runs(&mut self, request: &Request) {
        if self.unplaceable.remove(&request.gang.task) {
            self.demand.change(&request.organization, gpus_milli(request), true);
        }
    }

    /// Nodes came or went: tasks that wait may fit now, or no longer.
    pub(super) fn recount_demand(&mut self) {
        let mut placeable = Placeable::default();
        let mut changed: Vec<(TaskId, Organization, u64)> = Vec::new();
        for waiting in self.queue.all().filter(|waiting| waiting.request.gang.class == TaskClass::Hp) {
            let request = &waiting.request;
            let task = &request.gang.task;
            if placeable.holds(&self.fleet, request) == self.unplaceable.contains(task) {
                changed.push((task.clone(), request.organization.clone(), gpus_milli(request)));
            }
        }
        for (task, organization, milli) in changed {
            let fits_now = self.unplaceable.remove(&task);
            self.demand.change(&organization, milli, fits_now);
            if !fits_now {
                self.unplaceable.insert(task);
            }
        }
    }
}
