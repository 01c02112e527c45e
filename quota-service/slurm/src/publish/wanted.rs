//! Limits to publish, from quotas and jobs. Pure.
//!
//! A limit counts every job under it, also those whose promise is over, while the quota counts those inside: a limit is the
//! quota and what is held outside of promises, so that limit − held = what may still be admitted.
//!
//! Inside and outside are counted in one list of jobs. Two lists are a moment apart: what began or ended in between would
//! count as held outside, and raise the limit. Errors of each count have a safe side:
//! - Outside: too few. A job that is missed there leaves less room; one too many is room for a job that no quota has. So what Slurm
//!   counts beyond its list of jobs, as of a job that ended since or of a record that cannot be read, is not outside.
//! - Inside: too many. A job that has ended leaves its room unused until the next look.
//! - Held, the larger of both counts: too many. It only keeps a limit from falling below what is held.

#[cfg(test)]
mod tests;

use super::held::{self, Counting};
use super::share::{Part, shares};
use super::turns::Turns;
use crate::config::{Config, Nesting};
use crate::limits::{ALL_GPUS, ByName, Tres, tres_of};
use crate::view::View;
use connectors::Offers;
use placement::{Limit, Stage};
use std::collections::BTreeSet;
use vocab::{GpuModel, HorizonHours, MilliGpus, UnixSeconds};

/// Limits as they should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Limits by name and resource.
    pub limits: ByName,
    /// Why they are less than the quota; empty where they are it.
    pub lowered_because: String,
    /// Whether there is an offer for any pool. Without one all of it is for want of an offer, and no decision.
    pub is_offered: bool,
}

/// Inputs of limits.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Settings.
    pub config: &'a Config,
    /// Which limit counts which job.
    pub counting: &'a Counting,
    /// Pools and spot jobs.
    pub view: &'a View,
    /// GPUs held, by limit.
    pub held: &'a ByName,
    /// GPUs held outside of promises, by limit, in the list of jobs that the view is of.
    pub outside: &'a ByName,
    /// Quotas at their age.
    pub offers: &'a Offers,
    /// Resources that the accounting tracks.
    pub tracked: &'a BTreeSet<String>,
    /// Limits that stand. One of a model whose quota is no longer fresh is not raised.
    pub stands: &'a ByName,
    /// Jobs whose turn it is.
    pub turns: &'a Turns,
    /// Now.
    pub now: UnixSeconds,
}

impl Inputs<'_> {
    /// The limits.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let promised = self.config.limited().promised();
        let mut limits: ByName = promised.iter().map(|(_, name)| ((*name).to_owned(), Tres::new())).collect();
        for model in self.view.pools.keys() {
            let quotas = self.quotas(model, &promised);
            for ((_, name), quota) in promised.iter().zip(quotas) {
                self.add(limits.entry((*name).to_owned()).or_default(), name, model, quota);
            }
        }
        if !self.view.pools.keys().any(|model| self.may_rise(model)) {
            for (name, limits) in &mut limits {
                self.hold(limits, name, ALL_GPUS);
            }
        }
        let is_offered = self.view.pools.keys().any(|model| self.offers.pools.contains_key(model));
        Wanted { limits, lowered_because: self.offers.why_conservative(self.view.pools.keys()), is_offered }
    }

    /// Adds the limit of one model. Jobs that name no type are under no typed limit: the sum bounds them.
    fn add(&self, limits: &mut Tres, name: &str, model: &GpuModel, quota: u64) {
        let gpu_type = self.view.types.get(model).and_then(Option::as_deref);
        let (held, outside) = match gpu_type.map(tres_of) {
            Some(tres) => (held::of(self.held, name, &tres), held::of(self.outside, name, &tres)),
            None => (held::untyped(self.held, name), held::untyped(self.outside, name)),
        };
        let capacity = self.view.pools.get(model).map_or(0, crate::view::PoolView::capacity_gpus);
        let mut limit = (quota + outside).min(capacity.max(held));
        if !self.may_rise(model)
            && let Some(stands) = gpu_type.and_then(|kind| self.standing(name, &tres_of(kind)))
        {
            limit = limit.min(stands);
        }
        if !self.config.drain {
            limit = limit.max(held);
        }
        if let Some(tres) = gpu_type.map(tres_of).filter(|tres| self.tracked.contains(tres)) {
            limits.insert(tres, limit);
        }
        // GPUs that jobs of a model hold beyond its limit count in the sum, too: those of other models would have to wait for them.
        let is_alone = gpu_type.is_none() && self.view.pools.len() == 1;
        let of_sum = if is_alone { limit } else { limit.max(held) };
        if self.tracked.contains(ALL_GPUS) {
            *limits.entry(ALL_GPUS.to_owned()).or_default() += of_sum;
        }
    }

    /// Whether limits of a model may be raised: its quota is fresh. Without an offer the quota is 0, and they rise by what is held alone.
    fn may_rise(&self, model: &GpuModel) -> bool {
        self.offers.pools.get(model).is_none_or(|offer| offer.stage == Stage::Fresh)
    }

    fn standing(&self, name: &str, tres: &str) -> Option<u64> {
        self.stands.get(name)?.get(tres).copied()
    }

    /// Keeps a limit at what stands, unless jobs hold more and limits may not fall below that.
    fn hold(&self, limits: &mut Tres, name: &str, tres: &str) {
        let least = if self.config.drain { 0 } else { held::of(self.held, name, tres) };
        if let (Some(limit), Some(stands)) = (limits.get_mut(tres), self.standing(name, tres)) {
            *limit = (*limit).min(stands.max(least));
        }
    }

    /// Whole GPUs that jobs under each limit may hold inside promises. Accounts stand one inside the other, QOS side by side.
    fn quotas(&self, model: &GpuModel, promised: &[(HorizonHours, &str)]) -> Vec<u64> {
        let limits = self.offers.pools.get(model).map(|offer| offer.limits.as_slice()).unwrap_or_default();
        let quota = |hours: HorizonHours| offered(limits, hours).milli() / MilliGpus::PER_GPU;
        if self.config.nesting == Nesting::Accounts {
            return promised.iter().map(|(hours, _)| quota(*hours)).collect();
        }
        shares(&self.parts(model, promised))
    }

    /// The QOS of a model, with their quotas and jobs.
    pub(super) fn parts(&self, model: &GpuModel, promised: &[(HorizonHours, &str)]) -> Vec<Part> {
        let limits = self.offers.pools.get(model).map(|offer| offer.limits.as_slice()).unwrap_or_default();
        let may_rise = self.may_rise(model);
        let part = |(hours, name): &(HorizonHours, &str)| {
            let quota = offered(limits, *hours).milli() / MilliGpus::PER_GPU;
            let part = Part { quota, inside: self.inside(name, model, *hours), ..Part::default() };
            // No limit may be raised, so none gives up to jobs that wait under another one.
            if !may_rise && let Some(room) = self.room(name, model) {
                return Part { waiting: room, ..part };
            }
            let pool = self.view.pools.get(model);
            let demand = pool.map(|pool| self.turns.demand(model, pool, name, quota)).unwrap_or_default();
            let part = Part { waiting: demand.gpus, least: demand.least, ..part };
            if may_rise { Part { first: demand.first, turn: self.turns.gpus(model, name), ..part } } else { part }
        };
        promised.iter().map(part).collect()
    }

    /// GPUs that the limit that stands leaves.
    pub(super) fn room(&self, name: &str, model: &GpuModel) -> Option<u64> {
        let tres = match self.view.types.get(model)?.as_deref() {
            Some(gpu_type) => tres_of(gpu_type),
            // The limit of all GPUs is of this model alone.
            None if self.view.pools.len() == 1 => ALL_GPUS.to_owned(),
            None => return None,
        };
        Some(self.standing(name, &tres)?.saturating_sub(held::of(self.held, name, &tres)))
    }

    /// GPUs of jobs under a limit, inside promises of its hours.
    fn inside(&self, name: &str, model: &GpuModel, hours: HorizonHours) -> u64 {
        let jobs = self.view.pools.get(model).map(|pool| pool.spot.as_slice()).unwrap_or_default();
        let inside = jobs.iter().filter(|job| {
            self.counting.counts(name, &job.qos, &job.account)
                && job.promised(self.now).is_some_and(|promised| promised >= hours)
        });
        inside.map(|job| u64::from(job.gpus)).sum()
    }
}

/// The quota of so many hours; where they are not offered, that of the next longer ones; else none.
fn offered(limits: &[Limit], hours: HorizonHours) -> MilliGpus {
    limits
        .iter()
        .filter(|limit| limit.hours >= hours)
        .min_by_key(|limit| limit.hours)
        .map_or(MilliGpus::ZERO, |limit| limit.quota)
}
