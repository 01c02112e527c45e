//! What is sold is what is kept: conformal risk control of a pool's bound (PROMISE §3; Angelopoulos et al. 2022), online with
//! a step (Gibbs and Candès 2021; Feldman et al. 2023).
//!
//! A bound at p is exceeded by demand in a share 1 − p of all times, and sells far less than p allows: demand that comes out k
//! GPUs above the bound breaks the promises of k GPUs, not of all. So the bound is moved between what HP needs now and beyond
//! that bound, by one factor λ for each H: B(λ) = centre + λ · (bound − centre). λ rises with GPUs that were broken, and falls
//! with the share 1 − p of those that were exposed to it: over time the one is the other, whatever demand does. Promises teach
//! by what became of them. While nobody holds any, the inventory f = max(0, C − B) teaches by what would have: with measured
//! peak P over the hours of the promise, min(f, max(0, P − B)) of f GPUs would have been broken.

use std::collections::VecDeque;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, UnixSeconds};

/// One time in so many seconds is looked at again: neighbours say the same.
const SAMPLE_S: i64 = 900;
/// So long a bound stays where it is: nothing is known of the pool yet.
const WATCHED_S: i64 = 86_400;
/// λ after that, if nothing else was learned. Chosen, as the step, on the jobs of Philly at 1,280 GPUs.
const LAMBDA_START: f64 = 0.7;
/// The largest λ: nothing that was seen calls for more.
const LAMBDA_MOST: f64 = 3.0;
/// By how much λ moves for all GPUs of the pool, broken once.
const STEP: f64 = 1.0;

/// What is known of a pool's demand at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    pub now: UnixSeconds,
    /// When `demand` was measured: now, or the end of the last hour whose usage is known.
    pub measured_at: UnixSeconds,
    /// HP GPUs, running and waiting.
    pub demand: MilliGpus,
    pub capacity: MilliGpus,
}

/// What a bound was made of at one time, in GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stated {
    /// At p, of the peak.
    pub bound_gpus: f64,
    /// Whether spot holds anything under a promise of these hours or more, of which the end will be told.
    pub is_sold: bool,
}

/// A bound as it was moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Controlled {
    pub bound_gpus: f64,
    /// Before.
    pub peak_gpus: f64,
    /// 1 where it stays; 0 where it is what is needed now.
    pub lambda: f64,
}

impl Controlled {
    /// As an amount, rounded up.
    #[must_use]
    pub fn bound(&self) -> MilliGpus {
        MilliGpus::rounded_up(self.bound_gpus.max(0.0)).unwrap_or(MilliGpus::from_gpus(u32::MAX))
    }
}

/// An inventory of which nothing was sold, and which is not judged yet.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unsold {
    at: UnixSeconds,
    bound_gpus: f64,
    capacity_gpus: f64,
    /// The largest demand since.
    peak_gpus: f64,
}

/// One number of hours.
#[derive(Debug, Clone, PartialEq)]
struct Horizon {
    hours: HorizonHours,
    lambda: f64,
    open: VecDeque<Unsold>,
}

/// The factors of one pool, by the hours of the promise.
#[derive(Debug, Clone, PartialEq)]
pub struct RiskControl {
    rate: GuaranteeRate,
    /// When it first saw demand.
    since: Option<UnixSeconds>,
    horizons: Vec<Horizon>,
}

impl RiskControl {
    #[must_use]
    pub fn new(rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let horizon = |hours: &HorizonHours| Horizon { hours: *hours, lambda: LAMBDA_START, open: VecDeque::new() };
        Self { rate, since: None, horizons: offered.iter().map(horizon).collect() }
    }

    /// For another rate and other hours: what was learned of hours that stay stays.
    #[must_use]
    pub fn made_for(self, rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let Self { since, horizons: known, .. } = self;
        let of_hours = |fresh: Horizon| known.iter().find(|one| one.hours == fresh.hours).cloned().unwrap_or(fresh);
        let Self { horizons, .. } = Self::new(rate, offered);
        Self { rate, since, horizons: horizons.into_iter().map(of_hours).collect() }
    }

    /// Whether the pool was watched for long enough that bounds move at all.
    #[must_use]
    pub fn is_known(&self, now: UnixSeconds) -> bool {
        self.since.is_some_and(|since| now.since_s(since) >= WATCHED_S)
    }

    /// Learns the demand of this moment and moves each bound. `stated` has one for each of the offered hours; calls come in the
    /// order of time. The result does not decrease with the hours, and is no less than the demand.
    pub fn control(&mut self, moment: &Moment, stated: &[Stated]) -> Vec<Controlled> {
        self.since.get_or_insert(moment.now);
        let is_known = self.is_known(moment.now);
        let target = 1.0 - self.rate.as_f64();
        let mut all: Vec<Controlled> = Vec::with_capacity(stated.len());
        for (horizon, stated) in self.horizons.iter_mut().zip(stated) {
            horizon.judge(moment, target);
            let lambda = if is_known { horizon.lambda } else { 1.0 };
            let bound = horizon.bound(moment, stated, lambda);
            let bound_gpus = all.last().map_or(bound, |shorter| bound.max(shorter.bound_gpus));
            all.push(Controlled { bound_gpus, peak_gpus: stated.bound_gpus, lambda });
        }
        all
    }

    /// Learns what became of a promise: `exposed_gpus` are its GPUs times the part of its hours that it was watched for.
    pub fn ended(&mut self, hours: HorizonHours, broken_gpus: f64, exposed_gpus: f64, capacity: MilliGpus) {
        let target = 1.0 - self.rate.as_f64();
        for horizon in self.horizons.iter_mut().filter(|one| one.hours == hours) {
            horizon.step(broken_gpus - target * exposed_gpus, capacity.as_gpus());
        }
    }
}

impl Horizon {
    /// Looks at inventories of which nothing was sold, and whose hours are over.
    fn judge(&mut self, moment: &Moment, target: f64) {
        for unsold in self.open.iter_mut().filter(|one| moment.measured_at > one.at) {
            unsold.peak_gpus = unsold.peak_gpus.max(moment.demand.as_gpus());
        }
        let seconds = self.hours.seconds();
        while let Some(one) = self.open.pop_front_if(|one| moment.measured_at.since_s(one.at) >= seconds) {
            let inventory_gpus = (one.capacity_gpus - one.bound_gpus).max(0.0);
            let broken_gpus = inventory_gpus.min((one.peak_gpus - one.bound_gpus).max(0.0));
            // A promise of H hours would have been looked at so often while it lasted.
            let looks = seconds as f64 / SAMPLE_S as f64;
            self.step((broken_gpus - target * inventory_gpus) / looks, one.capacity_gpus);
        }
    }

    fn bound(&mut self, moment: &Moment, stated: &Stated, lambda: f64) -> f64 {
        let (demand_gpus, capacity_gpus) = (moment.demand.as_gpus(), moment.capacity.as_gpus());
        let bound_gpus = (demand_gpus + lambda * (stated.bound_gpus - demand_gpus)).max(demand_gpus);
        let is_due = self.open.back().is_none_or(|last| moment.now.since_s(last.at) >= SAMPLE_S);
        if is_due && !stated.is_sold {
            self.open.push_back(Unsold { at: moment.now, bound_gpus, capacity_gpus, peak_gpus: demand_gpus });
        }
        bound_gpus
    }

    /// `excess_gpus` are GPUs that were broken, less those that may be.
    fn step(&mut self, excess_gpus: f64, capacity_gpus: f64) {
        self.lambda = (self.lambda + STEP * excess_gpus / capacity_gpus.max(1.0)).clamp(0.0, LAMBDA_MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_S: i64 = 300;
    const CAPACITY: MilliGpus = MilliGpus::from_gpus(1_000);

    fn offered() -> Vec<HorizonHours> {
        [1, 4].map(|hours| HorizonHours::new(hours).unwrap()).to_vec()
    }

    fn moment(step: usize, gpus: u32) -> Moment {
        let now = UnixSeconds::new(step as i64 * STEP_S);
        Moment { now, measured_at: now, demand: MilliGpus::from_gpus(gpus), capacity: CAPACITY }
    }

    /// Numbers that look drawn and are always the same.
    fn draws() -> impl Iterator<Item = u64> {
        std::iter::successors(Some(9_u64), |last| Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)))
            .map(|number| number >> 33)
    }

    /// A demand that wanders.
    fn wandering(steps: usize) -> Vec<u32> {
        let mut level = 500_i64;
        let next = draws().take(steps).map(move |draw| {
            level = (level + (draw % 41) as i64 - 20).clamp(100, 900);
            level as u32
        });
        next.collect()
    }

    fn stated(demand: u32, above: f64) -> Vec<Stated> {
        vec![Stated { bound_gpus: f64::from(demand) + above, is_sold: false }; 2]
    }

    #[test]
    fn for_a_day_a_bound_stays_where_it_is() {
        let mut risk = RiskControl::new(GuaranteeRate::GFS, &offered());
        for step in 0..288 {
            let all = risk.control(&moment(step, 300), &stated(300, 200.0));
            assert!(all.iter().all(|one| (one.bound_gpus, one.lambda) == (500.0, 1.0)), "{all:?}");
        }
        let after = risk.control(&moment(288, 300), &stated(300, 200.0));
        assert!(after.iter().all(|one| one.bound_gpus < 440.1), "{after:?}");
    }

    #[test]
    fn of_what_nobody_buys_as_much_would_break_as_may_whatever_the_bound_says() {
        // Bounds that are far too wide, and too narrow by half.
        for above in [60.0, 400.0] {
            let demand = wandering(80_000);
            let mut risk = RiskControl::new(GuaranteeRate::GFS, &offered());
            let (mut broken, mut offered_gpus) = (0.0, 0.0);
            for (step, &now) in demand.iter().enumerate() {
                let all = risk.control(&moment(step, now), &stated(now, above));
                let Some(after) = demand.get(step..=step + 48).filter(|_| step > 20_000) else { continue };
                let (peak, bound) = (f64::from(*after.iter().max().unwrap()), all[1].bound_gpus);
                let inventory = (1_000.0 - bound).max(0.0);
                broken += inventory.min((peak - bound).max(0.0));
                offered_gpus += inventory;
            }
            let share = broken / offered_gpus;
            assert!((0.075..0.105).contains(&share), "{above}: {share}");
        }
    }

    #[test]
    fn what_is_sold_teaches_by_what_became_of_it_and_by_nothing_else() {
        let mut risk = RiskControl::new(GuaranteeRate::GFS, &offered());
        let lambda = |risk: &RiskControl| risk.horizons.iter().map(|one| one.lambda).collect::<Vec<_>>();
        for step in 0..600 {
            let sold = stated(300, 200.0).into_iter().map(|one| Stated { is_sold: true, ..one });
            risk.control(&moment(step, 300), &sold.collect::<Vec<_>>());
        }
        assert_eq!(lambda(&risk), [LAMBDA_START; 2]);
        // Ten promises of 8 GPUs, of which one broke: as many as may.
        let hour = HorizonHours::ONE;
        (0..9).for_each(|_| risk.ended(hour, 0.0, 8.0, CAPACITY));
        risk.ended(hour, 8.0, 8.0, CAPACITY);
        assert!((lambda(&risk)[0] - LAMBDA_START).abs() < 1e-12 && lambda(&risk)[1] == LAMBDA_START);
        risk.ended(hour, 8.0, 4.0, CAPACITY);
        assert!(lambda(&risk)[0] > LAMBDA_START);
        (0..9_000).for_each(|_| risk.ended(hour, 0.0, 8.0, CAPACITY));
        assert_eq!(lambda(&risk), [0.0, LAMBDA_START]);
        let all = risk.control(&moment(600, 300), &stated(300, 200.0));
        assert_eq!(all[0].bound_gpus, 300.0, "no less than what HP needs");
    }

    #[test]
    fn usage_that_comes_late_is_held_against_the_hours_that_it_is_of() {
        let mut risk = RiskControl::new(GuaranteeRate::GFS, &[HorizonHours::ONE]);
        let at = |now_s: i64, measured_s: i64, gpus: u32| {
            let (now, measured_at) = (UnixSeconds::new(now_s), UnixSeconds::new(measured_s));
            Moment { now, measured_at, demand: MilliGpus::from_gpus(gpus), capacity: CAPACITY }
        };
        let one = [Stated { bound_gpus: 400.0, is_sold: false }];
        risk.control(&at(7_200, 7_200, 300), &one);
        // The hour before it is told of once more, larger: no peak of what was stated at its end.
        risk.control(&at(7_500, 7_200, 900), &one);
        risk.control(&at(14_400, 10_800, 300), &one);
        assert!(risk.horizons[0].lambda < LAMBDA_START, "{risk:?}");
    }
}
