//! Spot tasks that were let through and are not seen to run yet.
//!
//! Where another scheduler binds, between our yes and the news that the task runs there is time for more to ask. What was answered
//! counts as promised until then. A task that does not come sends no report: an assumption ends by itself.

use crate::decide::{Limit, Refusal, exceeded};
use crate::staleness::Stage;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vocab::{HorizonHours, MilliGpus, UnixSeconds};

/// A guarantee that another scheduler's task asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The task, as a number: a UUID is one.
    pub task: u128,
    /// GPUs of the task.
    pub gpus: MilliGpus,
    /// Guarantee hours of the task.
    pub hours: HorizonHours,
}

/// Why a task may not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdmitted {
    /// The task is refused.
    Refused(Refusal),
    /// The quota is so old that nothing new is admitted, even where some of it is left.
    Conservative {
        /// The number of hours that was asked for.
        hours: HorizonHours,
    },
}

impl NotAdmitted {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Conservative { .. } => "quota_conservative",
        }
    }
}

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Conservative { hours } => {
                write!(f, "a guarantee of {hours} is not given now: the quota was not renewed for long")
            }
        }
    }
}

/// One that was let through.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Assumption<P> {
    pool: P,
    hours: HorizonHours,
    milli: u64,
    until: UnixSeconds,
}

/// Those that were let through, of all pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumed<P> {
    by_task: BTreeMap<u128, Assumption<P>>,
    ends: BTreeSet<(UnixSeconds, u128)>,
    /// Thousandths of a GPU by pool and hours; none of them is zero.
    milli: BTreeMap<(P, HorizonHours), u64>,
}

impl<P: Ord + Clone> Default for Assumed<P> {
    fn default() -> Self {
        Self { by_task: BTreeMap::new(), ends: BTreeSet::new(), milli: BTreeMap::new() }
    }
}

impl<P: Ord + Clone> Assumed<P> {
    /// Lets a task through if its promise leaves all quotas of the pool kept, by the rule of
    /// [`decide`](crate::decide()): S_a(h') + request ≤ Q_h' for every offered h' ≤ h, where S_a is what runs
    /// (`running`) and what was let through. It then counts until `until`, or until it is [forgotten](Self::forget). Who asks again
    /// is asked again, and counts once.
    ///
    /// # Errors
    /// It may not start; it counts no longer.
    pub fn admit(
        &mut self,
        pool: &P,
        ask: Ask,
        (limits, stage): (&[Limit], Stage),
        running: impl Fn(HorizonHours) -> MilliGpus,
        until: UnixSeconds,
    ) -> Result<(), NotAdmitted> {
        self.forget(ask.task);
        if stage == Stage::Conservative {
            return Err(NotAdmitted::Conservative { hours: ask.hours });
        }
        let promised = |hours| running(hours).saturating_add(self.promised(pool, hours));
        if let Some(refusal) = exceeded(promised, ask.gpus, ask.hours, limits) {
            return Err(NotAdmitted::Refused(refusal));
        }
        self.ends.insert((until, ask.task));
        *self.milli.entry((pool.clone(), ask.hours)).or_default() += ask.gpus.milli();
        let assumption = Assumption { pool: pool.clone(), hours: ask.hours, milli: ask.gpus.milli(), until };
        self.by_task.insert(ask.task, assumption);
        debug_assert_eq!(self.ends.len(), self.by_task.len(), "each assumption has one end");
        Ok(())
    }

    /// A task runs, or has gone. Answers whether it was assumed.
    pub fn forget(&mut self, task: u128) -> bool {
        let Some(Assumption { pool, hours, milli, until }) = self.by_task.remove(&task) else { return false };
        let had_end = self.ends.remove(&(until, task));
        debug_assert!(had_end, "an assumption has an end");
        debug_assert!(self.milli.contains_key(&(pool.clone(), hours)), "an assumption is counted");
        let key = (pool, hours);
        let left = self.milli.remove(&key).unwrap_or(0) - milli;
        if left > 0 {
            self.milli.insert(key, left);
        }
        true
    }

    /// Forgets those whose time has come by now.
    pub fn pass_to(&mut self, now: UnixSeconds) {
        while let Some((_, task)) = self.ends.first().copied().filter(|(until, _)| *until <= now) {
            let was_assumed = self.forget(task);
            debug_assert!(was_assumed, "what ends was assumed");
        }
        debug_assert!(self.milli.values().all(|milli| *milli > 0), "nothing is counted as zero");
    }

    /// GPUs that tasks let through for at least so many hours will hold.
    #[must_use]
    pub fn promised(&self, pool: &P, hours: HorizonHours) -> MilliGpus {
        let of_pool = self.milli.range((pool.clone(), hours)..).take_while(|((of, _), _)| of == pool);
        MilliGpus::from_milli(of_pool.map(|(_, milli)| milli).sum()).unwrap_or(MilliGpus::from_gpus(u32::MAX))
    }

    /// Number of tasks that count as placed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_task.len()
    }

    /// Whether no task counts as placed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_task.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    fn at(seconds: i64) -> UnixSeconds {
        UnixSeconds::new(1_700_000_000 + seconds)
    }

    fn limits(quotas: [u32; 2]) -> Vec<Limit> {
        let each = [1, 4].into_iter().zip(quotas);
        each.map(|(of, quota)| Limit { hours: hours(of), quota: MilliGpus::from_gpus(quota) }).collect()
    }

    fn ask(task: u128, gpus: u32, of: u64) -> Ask {
        Ask { task, gpus: MilliGpus::from_gpus(gpus), hours: hours(of) }
    }

    fn asks(assumed: &mut Assumed<u8>, ask: Ask, limits: &[Limit], until: i64) -> &'static str {
        let running = |of| MilliGpus::from_gpus(if of == hours(1) { 2 } else { 0 });
        match assumed.admit(&0, ask, (limits, Stage::Stale), running, at(until)) {
            Ok(()) => "passes",
            Err(why) => why.code(),
        }
    }

    #[test]
    fn what_was_let_through_counts_beside_what_runs_until_it_is_seen_or_its_time_is_over() {
        let (mut assumed, limits) = (Assumed::default(), limits([8, 4]));
        assert_eq!(asks(&mut assumed, ask(1, 4, 4), &limits, 30), "passes");
        assert_eq!(asks(&mut assumed, ask(2, 1, 4), &limits, 30), "over_quota", "4 of 4 for 4 h");
        assert_eq!(asks(&mut assumed, ask(2, 3, 1), &limits, 30), "over_quota", "2 run, 4 are assumed, 8 for 1 h");
        assert_eq!(asks(&mut assumed, ask(2, 2, 1), &limits, 40), "passes");
        assert_eq!(asks(&mut assumed, ask(2, 2, 1), &limits, 50), "passes", "who asks again counts once");
        assumed.pass_to(at(29));
        assert_eq!(assumed.len(), 2);
        assumed.pass_to(at(30));
        assert_eq!(asks(&mut assumed, ask(3, 4, 4), &limits, 60), "passes", "the first one never came");
        assert!(assumed.forget(2) && !assumed.forget(2));
        assert_eq!(assumed.promised(&0, hours(1)), MilliGpus::from_gpus(4));
        assert_eq!(assumed.promised(&1, hours(1)), MilliGpus::default(), "another pool");
    }

    #[test]
    fn without_an_offer_and_when_conservative_nothing_passes() {
        let mut assumed = Assumed::default();
        assert_eq!(asks(&mut assumed, ask(1, 1, 1), &[], 30), "guarantee_not_offered");
        assert_eq!(asks(&mut assumed, ask(1, 1, 2), &limits([8, 8]), 30), "guarantee_not_offered");
        let plenty = limits([100, 100]);
        let none = |_| MilliGpus::default();
        let refused = assumed.admit(&0, ask(1, 1, 1), (&plenty, Stage::Conservative), none, at(30)).unwrap_err();
        assert_eq!(refused.to_string(), "a guarantee of 1h is not given now: the quota was not renewed for long");
        assert!(assumed.is_empty());
    }

    proptest! {
        /// In any order of events the sums are those of the present tasks, and no quota is exceeded by admitted ones.
        #[test]
        fn sums_are_those_of_the_parts(steps in prop::collection::vec((0..12_u128, 1..9_u32, any::<bool>(), 0..40_i64, 0..4_u8), 0..80)) {
            let (mut assumed, limits) = (Assumed::<u8>::default(), limits([20, 12]));
            let mut now = 0;
            for (task, gpus, is_long, seconds, what) in steps {
                match what {
                    0 => {
                        now += seconds;
                        assumed.pass_to(at(now));
                    }
                    1 => drop(assumed.forget(task)),
                    _ => {
                        let ask = ask(task, gpus, if is_long { 4 } else { 1 });
                        let until = at(now + 1 + seconds);
                        let _ = assumed.admit(&(task as u8 % 2), ask, (&limits, Stage::Fresh), |_| MilliGpus::default(), until);
                    }
                }
                prop_assert!(assumed.by_task.values().all(|one| one.until > at(now)));
                prop_assert_eq!(assumed.ends.len(), assumed.len());
                for (pool, limit) in [(0, limits[0]), (0, limits[1]), (1, limits[0]), (1, limits[1])] {
                    let parts = assumed.by_task.values().filter(|one| one.pool == pool && one.hours >= limit.hours);
                    let sum = MilliGpus::from_milli(parts.map(|one| one.milli).sum()).unwrap();
                    prop_assert_eq!(assumed.promised(&pool, limit.hours), sum);
                    prop_assert!(sum <= limit.quota);
                }
            }
        }
    }
}
