//! How organizations stand under fair shares of spot: for people, beside decisions.

use super::Pool;
use crate::decide::asked;
use crate::shares::{UseLevel, max_min};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{MilliGpus, Organization, TaskClass, TaskId};

/// An organization under fair shares of spot. Amounts are thousandths of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The organization.
    pub organization: Organization,
    /// Its weight.
    pub weight: u32,
    /// Decayed use and an hour of what it holds, per unit of weight, in thousandths of a GPU-second. The lowest is served first.
    pub level_milli_gpu_s: u64,
    /// Spot GPUs that it holds, those on loan left out.
    pub held_milli: u64,
    /// GPUs that its waiting spot tasks ask for, those at rest left out.
    pub waiting_milli: u64,
    /// Its part of all spot GPUs that are held now: the weighted max-min allocation by what each holds and, where one of its tasks
    /// could start, waits for.
    pub fair_milli: u64,
    /// The task that it waits for, and its GPUs: organizations above it leave room for that one.
    pub waits_for: Option<(TaskId, MilliGpus)>,
}

impl Standing {
    /// GPUs that it holds beyond its part: others, who wait, get them back as tasks and guarantees end.
    #[must_use]
    pub const fn borrowed_milli(&self) -> u64 {
        self.held_milli.saturating_sub(self.fair_milli)
    }
}

impl Pool {
    /// How organizations stand, the one that is served next first: those with use that still counts, with spot that waits, or
    /// with a weight. None where the policy keeps no shares. Changes nothing but ranks, which follow from the rest.
    pub fn standings(&mut self) -> Option<Vec<Standing>> {
        self.rank_now();
        let shares = self.shares.as_ref()?;
        let held: BTreeMap<&Organization, u64> = shares.organizations().collect();
        let (waiting, awaited) = (self.waiting_milli(), shares.awaited());
        let named = shares.weights().iter().map(|(organization, _)| organization);
        let all: BTreeSet<&Organization> = held.keys().chain(waiting.keys()).copied().chain(named).collect();
        let of = |map: &BTreeMap<&Organization, u64>, one: &Organization| map.get(one).copied().unwrap_or(0);
        let weight = |one: &Organization| shares.weights().of(one);
        // As nothing is kept for tasks that could not start, they take no part either.
        let demand = |one: &&Organization| {
            let wanted = if awaited.contains_key(*one) { of(&waiting, one) } else { 0 };
            (of(&held, one).saturating_add(wanted), weight(one))
        };
        let demands: Vec<(u64, u32)> = all.iter().map(demand).collect();
        let fair = max_min(held.values().sum(), &demands);
        let mut standings: Vec<(UseLevel, Standing)> = Vec::with_capacity(all.len());
        for (organization, fair_milli) in all.into_iter().zip(fair) {
            let level = shares.level(organization, self.now);
            let standing = Standing {
                organization: organization.clone(),
                weight: weight(organization),
                level_milli_gpu_s: level.milli_gpu_s(),
                held_milli: of(&held, organization),
                waiting_milli: of(&waiting, organization),
                fair_milli,
                waits_for: awaited.get(organization).cloned(),
            };
            standings.push((level, standing));
        }
        standings.sort_by(|(one, of), (other, of_other)| {
            one.cmp(other).then_with(|| of.organization.cmp(&of_other.organization))
        });
        Some(standings.into_iter().map(|(_, standing)| standing).collect())
    }

    /// GPUs that spot waits for, by organization. A task at rest is not tried.
    fn waiting_milli(&self) -> BTreeMap<&Organization, u64> {
        let mut waiting = BTreeMap::new();
        let tried = self.waiting().filter(|one| one.request.gang.class == TaskClass::Spot && one.rests_until.is_none());
        for one in tried {
            let sum: &mut u64 = waiting.entry(&one.request.organization).or_default();
            *sum = sum.saturating_add(asked(&one.request.core()).milli());
        }
        waiting
    }
}
