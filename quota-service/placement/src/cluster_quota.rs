//! Quotas for clusters that count every spot GPU against one number, promised or at will.
//!
//! Q_H is min(f · η, S0 + S_a(H)): it bounds promised GPUs alone. A cluster that counts GPUs at will against it, too, lets spot at will
//! lower the quota that it is counted against: each GPU at will is idle no longer, and inside no guarantee.

use crate::eta::Eta;
use crate::staleness::Stage;
use vocab::MilliGpus;

/// GPUs of a pool now, and the forecast for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// C.
    pub capacity: MilliGpus,
    /// B_H.
    pub demand_bound: MilliGpus,
    /// η.
    pub eta: Eta,
    /// S0.
    pub idle: MilliGpus,
    /// GPUs of all spot tasks: inside a guarantee of any hours, or at will.
    pub held: MilliGpus,
    /// Age of capacity, bound and η.
    pub stage: Stage,
}

/// GPUs that spot may hold in all: min(f · η, S0 + held). Spot at will counts as if it were promised H hours: up to the inventory of
/// the forecast, and what it holds is not taken from it twice. When conservative, no more than what is held.
#[must_use]
pub fn quota_in_all(counted: &Counted) -> MilliGpus {
    let scaled_inventory = counted.eta.of(counted.capacity.left_after(counted.demand_bound));
    let ceiling = counted.idle.saturating_add(counted.held);
    let quota = scaled_inventory.min(ceiling);
    debug_assert!(quota <= ceiling, "no more than idle GPUs can be added to what is held");
    match counted.stage {
        Stage::Fresh | Stage::Stale => quota,
        Stage::Conservative => quota.min(counted.held),
    }
}

/// The two quotas where the cluster counts promised GPUs apart from those at will: (promised, at will), each with what it holds.
/// Promised GPUs are bounded by the inventory that other promises leave, GPUs at will by the inventory that all of spot leaves.
/// Both share the idle GPUs: the first to come takes them.
#[must_use]
pub fn quotas_apart(counted: &Counted, promised: MilliGpus, at_will: MilliGpus) -> (MilliGpus, MilliGpus) {
    debug_assert_eq!(promised.saturating_add(at_will), counted.held, "each spot GPU is promised or at will");
    let of_promised = quota_in_all(&Counted { held: promised, ..*counted });
    (of_promised, quota_in_all(counted).left_after(promised))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::{Bound, Quota, quotas};
    use crate::supply::{CapacitySource, Supply};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use vocab::HorizonHours;

    fn gpus(gpus: u32) -> MilliGpus {
        MilliGpus::from_gpus(gpus)
    }

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    /// A pool whose GPUs are HP's, spot's by guarantee, at will, or idle.
    #[derive(Debug, Clone)]
    struct Mix {
        hp: u32,
        idle: u32,
        at_will: u32,
        promised: BTreeMap<u64, u32>,
        bounds: Vec<u32>,
        eta_micro: u32,
    }

    const OFFERED: [u64; 3] = [1, 4, 8];

    impl Mix {
        fn held(&self) -> u32 {
            self.at_will + self.promised.values().sum::<u32>()
        }

        fn capacity(&self) -> u32 {
            self.hp + self.idle + self.held()
        }

        /// The quota of the longest hours by `placement`, with spot as it is counted here.
        fn quota(&self, spot_by_guarantee: BTreeMap<HorizonHours, MilliGpus>) -> Quota {
            let supply = Supply {
                capacity: gpus(self.capacity()),
                capacity_source: CapacitySource::ReportedState,
                idle: gpus(self.idle),
                spot_by_guarantee,
                estimated: false,
                latest_demand: gpus(self.hp),
                longest_quota_wait_s: 0,
                sold: BTreeMap::new(),
                kept: MilliGpus::ZERO,
            };
            let bounds = OFFERED.iter().zip(&self.bounds);
            let bounds: Vec<Bound> = bounds.map(|(h, bound)| Bound { hours: hours(*h), bound: gpus(*bound) }).collect();
            quotas(&supply, &bounds, Eta::from_micro(self.eta_micro)).pop().unwrap()
        }

        fn counted(&self, stage: Stage) -> Counted {
            Counted {
                capacity: gpus(self.capacity()),
                demand_bound: gpus(self.bounds[2]),
                eta: Eta::from_micro(self.eta_micro),
                idle: gpus(self.idle),
                held: gpus(self.held()),
                stage,
            }
        }
    }

    fn mix() -> impl Strategy<Value = Mix> {
        let promised = prop::collection::btree_map(prop::sample::select(vec![1_u64, 2, 4, 8, 24]), 0_u32..60, 0..4);
        let bounds = prop::collection::vec(0_u32..400, 3);
        (0_u32..200, 0_u32..200, 0_u32..200, promised, bounds, 1_000_u32..2_000_000).prop_map(
            |(hp, idle, at_will, promised, mut bounds, eta_micro)| {
                bounds.sort_unstable();
                Mix { hp, idle, at_will, promised, bounds, eta_micro }
            },
        )
    }

    #[test]
    fn spot_at_will_does_not_lower_the_quota_that_it_is_counted_against() {
        let before =
            Mix { hp: 30, idle: 68, at_will: 0, promised: BTreeMap::new(), bounds: vec![30; 3], eta_micro: 1_000_000 };
        let full = Mix { idle: 0, at_will: 68, ..before.clone() };
        let after = Mix { idle: 25, at_will: 43, ..before.clone() };
        let in_all = |mix: &Mix| quota_in_all(&mix.counted(Stage::Fresh));
        assert_eq!([&before, &full, &after].map(in_all), [gpus(68); 3]);
        assert_eq!(full.quota(BTreeMap::new()).quota, gpus(0), "Q_H bounds promised GPUs alone");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Where all of spot is counted, as `placement` cuts it for a pool whose GPUs at will are promised, too.
        #[test]
        fn published_less_held_gpus_may_still_be_admitted(mix in mix()) {
            let all_promised = BTreeMap::from([(hours(24), gpus(mix.held()))]);
            let in_all = quota_in_all(&mix.counted(Stage::Fresh));
            prop_assert_eq!(in_all.left_after(gpus(mix.held())), mix.quota(all_promised).available);
            prop_assert!(in_all <= gpus(mix.idle + mix.held()));
            prop_assert!(quota_in_all(&mix.counted(Stage::Conservative)) <= gpus(mix.held()), "nothing new is admitted");
        }

        /// Where promised GPUs are counted apart: their part is that of `placement`, however much is held at will.
        #[test]
        fn apart_spot_at_will_takes_nothing_from_what_is_promised(mix in mix()) {
            let promised = mix.held() - mix.at_will;
            let (of_promised, of_at_will) = quotas_apart(&mix.counted(Stage::Fresh), gpus(promised), gpus(mix.at_will));
            let by_placement = mix.quota(BTreeMap::from([(hours(24), gpus(promised))])).available;
            prop_assert_eq!(of_promised.left_after(gpus(promised)), by_placement);
            let all_promised = BTreeMap::from([(hours(24), gpus(mix.held()))]);
            prop_assert_eq!(of_at_will.left_after(gpus(mix.at_will)), mix.quota(all_promised).available);
        }

        /// Tasks at will that come and go leave the quota as it is.
        #[test]
        fn a_task_at_will_that_starts_or_ends_does_not_move_the_quota(mix in mix(), moved in 0_u32..100) {
            let moved = moved.min(mix.at_will);
            let ended = Mix { at_will: mix.at_will - moved, idle: mix.idle + moved, ..mix.clone() };
            let in_all = |mix: &Mix| quota_in_all(&mix.counted(Stage::Fresh));
            prop_assert_eq!(in_all(&ended), in_all(&mix));
        }
    }
}
