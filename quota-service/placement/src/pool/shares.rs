//! Spot by fair shares: the organization with the lowest level is served first, and others pass it only where they leave it
//! what it waits for.
//!
//! An organization waits for one task: the first, in the order of the policy, that the pool could hold and that asks for
//! no more of its quota than a task with a reservation may. A request that cannot start keeps nothing from others.
//! Ranks are no facts: they follow from the queue, the runs and the decayed use.

use super::queue::Shape;
use super::{Fact, Pool, Report, Request, Stale};
use crate::decide::{Limit, Refusal, asked, exceeded};
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
    idle_milli: u64,
    could_hold: BTreeMap<(PodRequest, u32), bool>,
}

impl Shares {
    pub(super) fn new(meter: UseMeter) -> Self {
        let (weights, ranked, could_hold) = (Arc::default(), Vec::new(), BTreeMap::new());
        Self { meter, weights, ranked, idle_milli: 0, could_hold }
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

    fn level(&self, organization: &Organization, now: UnixSeconds) -> UseLevel {
        self.meter.level(organization, self.weights.of(organization), now)
    }

    /// The organizations below this one, the lowest level first.
    fn below(&self, organization: &Organization, now: UnixSeconds) -> &[Ranked] {
        let level = self.level(organization, now);
        &self.ranked[..self.ranked.partition_point(|one| one.key() < (level, organization))]
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

    /// A fact may change the requests that the pool could hold.
    pub(super) fn nodes_change(&mut self, fact: &Fact) {
        if let (Some(shares), Fact::NodeAdded { .. } | Fact::NodeRemoved { .. }) = (&mut self.shares, fact) {
            shares.could_hold.clear();
        }
    }

    fn ground(&self) -> Ground {
        Ground { limits: self.limits_now(), capacity: self.capacity() }
    }

    /// Ranks the organizations again. Answers whether their order, or what they wait for, has changed.
    pub(super) fn rank(&mut self) -> bool {
        if self.shares.is_none() {
            return false;
        }
        // A task with a reservation is not one that its organization waits for.
        self.reserve();
        let Some(mut shares) = self.shares.take() else { return false };
        let ground = self.ground();
        let before = std::mem::take(&mut shares.ranked);
        let one = |organization: &Organization| self.ranked(&mut shares, organization, &ground);
        let mut ranked: Vec<Ranked> = self.queue.organizations().map(one).collect();
        ranked.sort_unstable_by(|one, other| one.key().cmp(&other.key()));
        let is_other = ranked.len() != before.len() || ranked.iter().zip(&before).any(|(one, then)| !one.is_as(then));
        shares.ranked = ranked;
        shares.idle_milli = self.idle_milli();
        self.shares = Some(shares);
        is_other
    }

    fn ranked(&self, shares: &mut Shares, organization: &Organization, ground: &Ground) -> Ranked {
        let level = shares.level(organization, self.now);
        let mut heads = self.queue.heads_of(organization).take(MOST_CANDIDATES);
        let awaited = heads.find_map(|((_, task), _)| self.awaited(shares, &task, ground));
        Ranked { level, organization: organization.clone(), awaited }
    }

    /// The task as one that its organization waits for; none where it could not start, or has a reservation.
    fn awaited(&self, shares: &mut Shares, task: &TaskId, ground: &Ground) -> Option<Awaited> {
        let request = &self.queue.get(task)?.request;
        let (gang, percent) = (request.core(), u64::from(self.policy.reservations.quota_percent));
        let is_aligned = Wish::of(&gang.pod).is_some_and(Wish::is_guaranteed);
        if is_aligned || self.has_reservation(task) {
            return None;
        }
        let (hours, asked) = (request.hours.filter(|_| self.policy.admission == Admission::Quota), asked(&gang));
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
        let fits = || self.fleet.could_ever_hold(&gang);
        let could_hold = *shares.could_hold.entry((gang.pod, gang.pods)).or_insert_with(fits);
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

    /// Starts spot, the organization with the lowest level first, until nothing fits.
    pub(super) fn walk_by_share(&mut self, report: &mut Report) {
        self.rank();
        // Of tasks that ask for the same none fits where one does not: a start takes room and gives none.
        let mut refused = BTreeSet::new();
        while self.start_next(&mut refused, report) {}
    }

    fn start_next(&mut self, refused: &mut BTreeSet<Shape>, report: &mut Report) -> bool {
        let ranked = self.shares.as_ref().map(|shares| shares.ranked.clone()).unwrap_or_default();
        let mut kept = Kept::default();
        for one in &ranked {
            let heads = self.queue.heads_of(&one.organization).filter(|(_, shape)| !refused.contains(shape));
            for ((_, task), shape) in heads.collect::<Vec<_>>() {
                let Some(request) = self.queue.get(&task).map(|waiting| &waiting.request) else { continue };
                if self.takes(&kept, &request.core(), request.hours) {
                    continue;
                }
                if self.try_to_start(&task, report) {
                    self.rank_again(&one.organization);
                    return true;
                }
                // A window is kept for one organization: another one's request of the same kind may fit.
                if self.windows.is_empty() {
                    refused.insert(shape);
                }
            }
            kept.add(one);
        }
        false
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

    /// Ranks the organizations again; where that changes an order, spot is tried once more.
    pub(super) fn rank_now(&mut self) {
        if self.rank() {
            self.stale = self.stale.max(Stale::Spot);
        }
    }
}
