//! Answers lowered by what an external scheduler has reported since.

use super::{Answer, PublishedPool};
use crate::plan::{self, Held};
use placement::Eta;
use vocab::{HorizonHours, HpJob, MilliGpus, PoolState, hp_gpus};
use wire::QuotaAnswer;

/// A report of an external scheduler.
#[derive(Debug, Clone)]
pub struct Report {
    /// The state.
    pub state: PoolState,
    /// GPUs that its HP jobs need now, running and waiting; `None` where they were not reported, or are not known here.
    pub hp_demand: Option<MilliGpus>,
}

impl Report {
    #[must_use]
    pub fn new(state: PoolState, jobs: Option<&[HpJob]>) -> Self {
        Self { state, hp_demand: jobs.map(hp_gpus) }
    }

    /// η · (C − B), where the bound is no less than what HP needs now (PROMISE.md, the live bound).
    fn scaled_inventory(&self, answer: &QuotaAnswer) -> (MilliGpus, MilliGpus) {
        let bound = plan::amount(answer.demand_bound_gpus).max(self.hp_demand.unwrap_or(MilliGpus::ZERO));
        let inventory = self.state.capacity.left_after(bound);
        (bound, Eta::nearest(answer.eta).unwrap_or(Eta::ONE).of(inventory))
    }
}

impl PublishedPool {
    /// The same answers, none above what a report leaves; `None` where none of them is. The newest answers stay what a
    /// restart finds: these are never larger.
    #[must_use]
    pub fn lowered(&self, report: &Report) -> Option<Self> {
        // Headroom knows the state of a pool that it places from the tasks.
        if self.glance.tasks.is_some() {
            return None;
        }
        let state = &report.state;
        let mut least = state.idle;
        let mut has_lowered = false;
        let mut lowered = |answer: &Answer| {
            let Ok(hours) = HorizonHours::new(u64::from(answer.hours())) else { return answer.clone() };
            let spot = state.spot(hours);
            let before = plan::amount(answer.fresh.quota_gpus);
            let ceiling = state.idle.saturating_add(spot);
            let (bound, scaled) = report.scaled_inventory(&answer.fresh);
            let quota = before.min(ceiling).min(scaled);
            least = least.min(answer.held.available).min(quota.left_after(spot));
            if quota == before && least == answer.held.available {
                return answer.clone();
            }
            has_lowered = true;
            let mut fresh = answer.fresh.clone();
            if quota < before {
                fresh.quota_gpus = quota.as_gpus();
                let why = if scaled < ceiling {
                    plan::lowered_by_demand(state, bound, scaled)
                } else {
                    plan::lowered_reason(state, spot)
                };
                fresh.reasons.retain(|known| known.code != why.code);
                fresh.reasons.push(why);
            }
            if scaled < before {
                fresh.capacity_gpus = state.capacity.as_gpus();
                fresh.demand_bound_gpus = bound.as_gpus();
                fresh.inventory_gpus = state.capacity.left_after(bound).as_gpus();
            }
            fresh.available_gpus = least.as_gpus();
            fresh.idle_gpus = fresh.idle_gpus.min(state.idle.as_gpus());
            Answer::new(fresh, answer.computed_at, Held { spot, available: least }, self.problem.as_deref())
        };
        let answers = self.answers.iter().map(&mut lowered).collect();
        has_lowered.then(|| self.with_answers(answers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::tests::{published, reported};

    fn of(pool: &PublishedPool) -> Vec<(f64, f64)> {
        pool.answers.iter().map(|answer| (answer.fresh.quota_gpus, answer.fresh.available_gpus)).collect()
    }

    #[test]
    fn a_report_lowers_the_answers_that_it_leaves_less_for_and_raises_none() {
        let pool = published(&[(1, 60.0, 10.0), (4, 40.0, 10.0)]);
        let four = HorizonHours::new(4).unwrap();
        assert!(pool.lowered(&reported(90, &[(four, 10)])).is_none(), "it leaves what was answered");
        assert!(pool.lowered(&reported(128, &[])).is_none(), "a raise waits");
        let lowered = pool.lowered(&reported(35, &[(four, 10)])).unwrap();
        assert_eq!(of(&lowered), [(45.0, 35.0), (40.0, 30.0)]);
        assert_eq!(lowered.answers[0].fresh.reasons[0].code, "lowered_by_report");
        let again = lowered.lowered(&reported(25, &[(four, 10)])).unwrap();
        let reasons: Vec<_> = again.answers[0].fresh.reasons.iter().map(|reason| reason.detail.as_str()).collect();
        assert!(reasons.len() == 1 && reasons[0].starts_with("lowered to idle 25"), "{reasons:?}");
        assert!(lowered.answers[1].fresh.reasons.is_empty(), "this one stands");
        assert_eq!(of(&lowered.lowered(&reported(0, &[])).unwrap()), [(0.0, 0.0), (0.0, 0.0)]);
    }

    #[test]
    fn hp_work_that_waits_and_capacity_that_goes_lower_answers_while_gpus_are_idle() {
        let pool = published(&[(1, 60.0, 0.0), (4, 40.0, 0.0)]);
        let hp = |gpus: u32| Report { hp_demand: Some(MilliGpus::from_gpus(gpus)), ..reported(90, &[]) };
        // 128 GPUs, of which HP may need 28.
        assert!(pool.lowered(&hp(28)).is_none() && pool.lowered(&hp(68)).is_none(), "60 are left");
        let lowered = pool.lowered(&hp(78)).unwrap();
        assert_eq!(of(&lowered), [(50.0, 50.0), (40.0, 40.0)]);
        let answer = &lowered.answers[0].fresh;
        assert_eq!((answer.demand_bound_gpus, answer.inventory_gpus), (78.0, 50.0));
        assert!(answer.reasons[0].detail.starts_with("lowered to 50"), "{:?}", answer.reasons);
        assert_eq!(of(&pool.lowered(&hp(500)).unwrap()), [(0.0, 0.0), (0.0, 0.0)]);
        let mut smaller = reported(90, &[]);
        smaller.state.capacity = MilliGpus::from_gpus(64);
        assert_eq!(of(&pool.lowered(&smaller).unwrap()), [(36.0, 36.0), (36.0, 36.0)]);
    }
}
