//! Spot by fair shares: the organization with the lowest level is served first, and others pass it only where they leave it
//! what it waits for.
//!
//! An organization waits for one task: the first, in the order of the policy, that the pool could hold and that asks for
//! no more of its quota than a task with a reservation may. A request that cannot start keeps nothing from others.
//! Ranks are no facts: they follow from the queue, the runs and the decayed use. They are made again where one of these has
//! changed; where only time has passed, levels alone.

mod turns;

use super::queue::Shape;
use super::{Fact, Pool, Request, Stale};
use crate::decide::{Limit, Refusal, asked, asked_by, exceeded};
use crate::fleet::{Gang, PodRequest, Running, Wish};
use crate::policy::Admission;
use crate::shares::{AboveFairShare, UseLevel, UseMeter, UseParts, Weights};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{HorizonHours, MilliGpus, Organization, TaskClass, TaskId, UnixSeconds};

/// So many kinds of requests of one organization are candidates for what it waits for.
const MOST_CANDIDATES: usize = 16;
/// So many kinds of requests are remembered as ones that the pool could hold, or not.
const MOST_REMEMBERED: usize = 10_000;

/// The task of an organization that is kept free from those above it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Awaited {
    task: TaskId,
    /// Its guarantee, where that needs quota.
    hours: Option<HorizonHours>,
    asked: MilliGpus,
}

/// An organization with spot that waits.
#[derive(Debug, Clone)]
struct Ranked {
    level: UseLevel,
    organization: Organization,
    awaited: Option<Awaited>,
}

impl Ranked {
    fn key(&self) -> (UseLevel, &Organization) {
        (self.level, &self.organization)
    }

    fn is_as(&self, other: &Self) -> bool {
        self.organization == other.organization && self.awaited == other.awaited
    }
}

/// The shares of a pool.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    meter: UseMeter,
    weights: Arc<Weights>,
    /// The lowest level first.
    ranked: Vec<Ranked>,
    /// When the ranks were made, and after which change; none before the first.
    made: Option<(UnixSeconds, u64)>,
    /// Changes of the pool that ranks may depend on.
    changes: u64,
    idle_milli: u64,
    could_hold: BTreeMap<(PodRequest, u32), bool>,
    /// Of tasks that ask for the same none fits where one does not, until there is room again: a start takes room and gives none.
    refused: BTreeSet<Shape>,
    /// Whether a task that might start was left out for those below its organization: only then does another order matter.
    is_held_back: bool,
}

impl Shares {
    pub(super) fn new(meter: UseMeter) -> Self {
        Self {
            meter,
            weights: Arc::default(),
            ranked: Vec::new(),
            made: None,
            changes: 0,
            idle_milli: 0,
            could_hold: BTreeMap::new(),
            refused: BTreeSet::new(),
            // Unknown after a restart.
            is_held_back: true,
        }
    }

    /// A task that was refused may fit now.
    pub(super) fn has_room_again(&mut self) {
        self.refused.clear();
        self.changes += 1;
    }

    pub(super) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Organizations with use that counts, and the thousandths of a GPU that each holds.
    pub(super) fn organizations(&self) -> impl Iterator<Item = (&Organization, u64)> {
        self.meter.organizations()
    }

    /// The task that an organization waits for, as of the last ranks, and its GPUs.
    pub(super) fn awaited_by(&self, organization: &Organization) -> Option<(TaskId, MilliGpus)> {
        let awaited = self.ranked.iter().find(|one| one.organization == *organization)?.awaited.as_ref()?;
        Some((awaited.task.clone(), awaited.asked))
    }

    pub(super) fn hold(&mut self, organization: &Organization, milli: u64, now: UnixSeconds) {
        self.meter.hold(organization, milli, now);
    }

    pub(super) fn release(&mut self, organization: &Organization, milli: u64, now: UnixSeconds) {
        self.meter.release(organization, milli, now);
    }

    pub(super) fn parts(&self, now: UnixSeconds) -> UseParts {
        self.meter.parts(now)
    }

    pub(super) fn level(&self, organization: &Organization, now: UnixSeconds) -> UseLevel {
        self.meter.level(organization, self.weights.of(organization), now)
    }

    /// The organizations below this one, the lowest level first.
    fn below(&self, organization: &Organization, now: UnixSeconds) -> &[Ranked] {
        let level = self.level(organization, now);
        &self.ranked[..self.ranked.partition_point(|one| one.key() < (level, organization))]
    }

    /// Lets time pass: levels change, and the order by them. Answers whether the order did.
    fn pass_to(&mut self, now: UnixSeconds) -> bool {
        let mut ranked = std::mem::take(&mut self.ranked);
        for one in &mut ranked {
            one.level = self.level(&one.organization, now);
        }
        let was_sorted = ranked.is_sorted_by(|one, next| one.key() < next.key());
        if !was_sorted {
            ranked.sort_unstable_by(|one, other| one.key().cmp(&other.key()));
        }
        self.ranked = ranked;
        !was_sorted
    }

    fn put(&mut self, one: Ranked) {
        let place = self.ranked.partition_point(|other| other.key() < one.key());
        self.ranked.insert(place, one);
        debug_assert!(self.ranked.is_sorted_by(|one, next| one.key() < next.key()), "ranks are in order");
    }
}

/// The inputs of a rank beside the queue.
struct Ground {
    limits: Vec<Limit>,
    capacity: MilliGpus,
}

/// Sums of GPUs that are kept for organizations.
#[derive(Debug, Default)]
struct Kept<'a> {
    first: Option<(&'a Ranked, &'a Awaited)>,
    at_will_milli: u64,
    guaranteed: BTreeMap<HorizonHours, u64>,
}

impl<'a> Kept<'a> {
    fn of(below: &'a [Ranked]) -> Self {
        let mut kept = Self::default();
        for one in below {
            kept.add(one);
        }
        kept
    }

    fn add(&mut self, one: &'a Ranked) {
        let Some(awaited) = &one.awaited else { return };
        self.first = self.first.or(Some((one, awaited)));
        match awaited.hours {
            None => self.at_will_milli += awaited.asked.milli(),
            Some(hours) => *self.guaranteed.entry(hours).or_default() += awaited.asked.milli(),
        }
    }

    /// The limits without it.
    fn leaves(&self, limits: &[Limit]) -> Vec<Limit> {
        let of = |hours| MilliGpus::from_milli(self.guaranteed.range(hours..).map(|(_, milli)| milli).sum());
        let left = |limit: &Limit| limit.quota.left_after(of(limit.hours).unwrap_or(limit.quota));
        limits.iter().map(|limit| Limit { quota: left(limit), ..*limit }).collect()
    }

    /// Idle GPUs that it needs: of tasks with a guarantee no more than they have quota for.
    fn idle_milli(&self, left_of_quota: MilliGpus) -> u64 {
        self.at_will_milli + self.guaranteed.values().sum::<u64>().min(left_of_quota.milli())
    }
}

impl Pool {
    /// Weighs the organizations: a setting, not a part of the state. Without it each has a weight of 1.
    #[must_use]
    pub fn with_weights(mut self, weights: Arc<Weights>) -> Self {
        if let Some(shares) = &mut self.shares {
            shares.weights = weights;
            shares.made = None;
        }
        self
    }

    /// The spot GPUs that each organization holds, in thousandths, and its level in thousandths of a GPU-second, where the policy
    /// keeps shares; those with neither are left out.
    pub fn use_levels(&self) -> impl Iterator<Item = (&Organization, u64, u64)> {
        self.shares.iter().flat_map(|shares| {
            shares.meter.organizations().map(|(organization, held_milli)| {
                (organization, held_milli, shares.level(organization, self.now).milli_gpu_s())
            })
        })
    }

    /// A run of an organization has ended.
    pub(super) fn releases(&mut self, request: &Request, run: &Running) {
        if let Some(shares) = self.shares.as_mut().filter(|_| run.class == TaskClass::Spot) {
            shares.release(&request.organization, run.gpus_milli(), self.now);
        }
    }

    /// A fact changes what ranks rest on.
    pub(super) fn shares_change(&mut self, fact: &Fact) {
        if let Some(shares) = &mut self.shares {
            shares.changes += 1;
            if let Fact::NodeAdded { .. } | Fact::NodeRemoved { .. } = fact {
                shares.could_hold.clear();
            }
        }
    }

    fn ground(&self) -> Ground {
        Ground { limits: self.limits_now(), capacity: self.capacity() }
    }

    /// Ranks the organizations again. Answers whether their order, or what they wait for, has changed.
    fn rank(&mut self) -> bool {
        if self.shares.is_none() {
            return false;
        }
        // A task with a reservation is not one that its organization waits for.
        self.reserve();
        let Some(mut shares) = self.shares.take() else { return false };
        let is_other = match shares.made {
            Some(made) if made == (self.now, shares.changes) => false,
            Some((_, changes)) if changes == shares.changes => shares.pass_to(self.now),
            _ => self.rank_from_scratch(&mut shares),
        };
        shares.made = Some((self.now, shares.changes));
        self.shares = Some(shares);
        is_other
    }

    fn rank_from_scratch(&self, shares: &mut Shares) -> bool {
        let ground = self.ground();
        let before = std::mem::take(&mut shares.ranked);
        let one = |organization: &Organization| self.ranked(shares, organization, &ground);
        let mut ranked: Vec<Ranked> = self.queue.organizations().map(one).collect();
        ranked.sort_unstable_by(|one, other| one.key().cmp(&other.key()));
        let is_other = ranked.len() != before.len() || ranked.iter().zip(&before).any(|(one, then)| !one.is_as(then));
        // Where none waits for a task nothing is kept.
        shares.idle_milli = if ranked.iter().any(|one| one.awaited.is_some()) { self.idle_milli() } else { 0 };
        shares.ranked = ranked;
        is_other
    }

    fn ranked(&self, shares: &mut Shares, organization: &Organization, ground: &Ground) -> Ranked {
        let level = shares.level(organization, self.now);
        let mut heads = self.queue.heads_of(organization).take(MOST_CANDIDATES);
        let awaited = heads.find_map(|(task, shape)| self.awaited(shares, task, shape, ground));
        Ranked { level, organization: organization.clone(), awaited }
    }

    /// The task as one that its organization waits for; none where it could not start, or has a reservation.
    fn awaited(&self, shares: &mut Shares, task: &TaskId, shape: &Shape, ground: &Ground) -> Option<Awaited> {
        let percent = u64::from(self.policy.reservations.quota_percent);
        let is_aligned = Wish::of(&shape.pod).is_some_and(Wish::is_guaranteed);
        if is_aligned || self.has_reservation(task) {
            return None;
        }
        let hours = shape.hours.filter(|_| self.policy.admission == Admission::Quota);
        let asked = asked_by(&shape.pod, shape.pods);
        let is_within =
            |whole: MilliGpus| u128::from(asked.milli()) * 100 <= u128::from(whole.milli()) * u128::from(percent);
        let has_room = match hours {
            None => is_within(ground.capacity),
            Some(hours) => {
                let mut shorter = ground.limits.iter().filter(|limit| limit.hours <= hours);
                ground.limits.iter().any(|limit| limit.hours == hours) && shorter.all(|limit| is_within(limit.quota))
            }
        };
        if !has_room {
            return None;
        }
        if shares.could_hold.len() >= MOST_REMEMBERED {
            shares.could_hold.clear();
        }
        let (pod, pods) = (shape.pod, shape.pods);
        let gang = || Gang { task: task.clone(), class: shape.class, pod, pods };
        let could_hold = shares.could_hold.entry((pod, pods)).or_insert_with(|| self.fleet.could_ever_hold(&gang()));
        could_hold.then(|| Awaited { task: task.clone(), hours, asked })
    }

    /// The limits without what organizations below this one wait for.
    pub(super) fn limits_beside_shares(&self, organization: &Organization, limits: Vec<Limit>) -> Vec<Limit> {
        match &self.shares {
            Some(shares) => Kept::of(shares.below(organization, self.now)).leaves(&limits),
            None => limits,
        }
    }

    /// Whether a spot task takes some of what is kept. A task with a reservation does not.
    fn takes(&self, kept: &Kept<'_>, gang: &Gang, hours: Option<HorizonHours>) -> bool {
        let Some(shares) = self.shares.as_ref().filter(|_| kept.first.is_some()) else { return false };
        if gang.class != TaskClass::Spot || self.has_reservation(&gang.task) {
            return false;
        }
        let (limits, asked) = (self.limits_beside_reservations(gang), asked(gang));
        let left = |limit: &Limit| limit.quota.left_after(self.fleet.promised(limit.hours));
        let idle_milli = kept.idle_milli(limits.first().map_or(MilliGpus::ZERO, left));
        let takes_idle = idle_milli > 0 && idle_milli + asked.milli() > shares.idle_milli;
        let takes_quota = |hours| {
            let beside = kept.leaves(&limits);
            beside != limits && exceeded(|hours| self.fleet.promised(hours), asked, hours, &beside).is_some()
        };
        takes_idle || hours.filter(|_| self.policy.admission == Admission::Quota).is_some_and(takes_quota)
    }

    /// Why a spot task that could start leaves GPUs to an organization below its own; none where it leaves them enough.
    pub(super) fn above_fair_share(
        &self,
        organization: &Organization,
        gang: &Gang,
        hours: Option<HorizonHours>,
    ) -> Option<Refusal> {
        let shares = self.shares.as_ref()?;
        let kept = Kept::of(shares.below(organization, self.now));
        let (first, awaited) = kept.first.filter(|_| self.takes(&kept, gang, hours))?;
        Some(Refusal::AboveFairShare(AboveFairShare {
            asked: asked(gang),
            level_milli_gpu_s: shares.level(organization, self.now).milli_gpu_s(),
            by: first.organization.clone(),
            by_level_milli_gpu_s: first.level.milli_gpu_s(),
            task: awaited.task.clone(),
            waits_for: awaited.asked,
        }))
    }

    /// An organization has started a task.
    fn rank_again(&mut self, organization: &Organization) {
        let Some(mut shares) = self.shares.take() else { return };
        shares.ranked.retain(|one| one.organization != *organization);
        if self.queue.organizations().any(|one| one == organization) {
            let one = self.ranked(&mut shares, organization, &self.ground());
            shares.put(one);
        }
        shares.idle_milli = self.idle_milli();
        self.shares = Some(shares);
    }

    /// Ranks the organizations again; where that changes the turn of a task that was held back, spot is tried once more.
    pub(super) fn rank_now(&mut self) {
        if self.rank() && self.shares.as_ref().is_some_and(|shares| shares.is_held_back) {
            self.stale = self.stale.max(Stale::Spot);
        }
    }
}
