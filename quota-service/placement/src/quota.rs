//! Q_H: how many GPUs spot tasks with a guarantee of at least H hours may hold.

use crate::eta::Eta;
use crate::invariants;
use crate::reason::Reason;
use crate::supply::Supply;
use vocab::{HorizonHours, MilliGpus};

/// B_H of one number of hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Hours H of the bound.
    pub hours: HorizonHours,
    /// B_H, in GPUs.
    pub bound: MilliGpus,
}

/// A quota with every number that it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Guarantee hours H.
    pub hours: HorizonHours,
    /// C.
    pub capacity: MilliGpus,
    /// B_H, and what is sold ahead within H hours and is not in use yet.
    pub demand_bound: MilliGpus,
    /// GPUs that are sold ahead within H hours: no promise reaches into them.
    pub sold: MilliGpus,
    /// f(p, H) = max(0, C − B_H).
    pub inventory: MilliGpus,
    /// η at the computation.
    pub eta: Eta,
    /// f · η, rounded down, and no more than what windows that are sold ahead leave of the capacity.
    pub scaled_inventory: MilliGpus,
    /// S0.
    pub idle: MilliGpus,
    /// S_a(H).
    pub used: MilliGpus,
    /// S0 + S_a(H), without idle GPUs that are kept for an open window.
    pub ceiling: MilliGpus,
    /// Q_H = min(f · η, S0 + S_a(H)).
    pub quota: MilliGpus,
    /// GPUs that may still be admitted with this guarantee: the least that every offered guarantee up to it leaves, since a task counts
    /// among all of them (DESIGN §4.8).
    pub available: MilliGpus,
    /// Reasons of the result, in the order of the computation.
    pub reasons: Vec<Reason>,
}

/// The quota for each offered number of hours (GFS Eqs. 9 and 10, as DESIGN §4.1 corrects them). `bounds` rise with the
/// hours and do not decrease.
///
/// # Panics
/// Where the bounds decrease: the forecaster makes them non-decreasing.
#[must_use]
pub fn quotas(supply: &Supply, bounds: &[Bound], eta: Eta) -> Vec<Quota> {
    assert!(
        bounds.is_sorted_by(|one, next| one.hours < next.hours),
        "bounds are in the order of their hours: {bounds:?}"
    );
    assert!(bounds.is_sorted_by_key(|bound| bound.bound), "bounds decrease with the hours: {bounds:?}");
    let mut quotas: Vec<_> = bounds.iter().map(|bound| quota(supply, *bound, eta)).collect();
    debug_assert_eq!(quotas.len(), bounds.len(), "a quota for each bound");
    hold_to_shorter_guarantees(&mut quotas);
    invariants::longer_guarantees_get_no_more(&quotas);
    quotas.iter().for_each(invariants::quota_stays_inside_its_limits);
    quotas
}

/// S_a(h') + request ≤ Q_h' has to hold for every offered h' ≤ h.
fn hold_to_shorter_guarantees(quotas: &mut [Quota]) {
    let mut least: Option<(HorizonHours, MilliGpus)> = None;
    for quota in quotas {
        match least {
            Some((hours, available)) if available < quota.available => {
                quota.available = available;
                quota.reasons.push(Reason::HeldByShorterGuarantee { hours, available });
            }
            _ => least = Some((quota.hours, quota.available)),
        }
    }
}

fn quota(supply: &Supply, Bound { hours, bound }: Bound, eta: Eta) -> Quota {
    let sold = supply.sold(hours);
    let bound = bound.saturating_add(sold.unused);
    let inventory = supply.capacity.left_after(bound);
    // Eta corrects a bound that may be too high. A window is no estimate.
    let scaled_inventory = eta.of(inventory).min(supply.capacity.left_after(sold.gpus));
    let used = supply.spot(hours);
    let idle = supply.idle.left_after(supply.kept);
    // Both parts are at most the capacity of a pool, whose sum an amount holds; past it the smaller one rules anyway.
    let ceiling = idle.checked_add(used).unwrap_or(scaled_inventory.max(idle));
    let quota = scaled_inventory.min(ceiling);
    let mut result = Quota {
        hours,
        capacity: supply.capacity,
        demand_bound: bound,
        sold: sold.gpus,
        inventory,
        eta,
        scaled_inventory,
        idle: supply.idle,
        used,
        ceiling,
        quota,
        available: quota.left_after(used),
        reasons: Vec::new(),
    };
    result.reasons = reasons(supply, &result);
    debug_assert!(!result.reasons.is_empty(), "a quota has a reason: {result:?}");
    debug_assert!(
        result.inventory.checked_add(bound).is_none_or(|sum| bound > supply.capacity || sum == supply.capacity)
    );
    debug_assert!(eta > Eta::ONE || result.scaled_inventory <= result.inventory, "eta up to 1 enlarges no inventory");
    result
}

impl Quota {
    /// Whether a larger eta would give a larger quota: there is inventory, and S0 + Sa does not hold the quota.
    #[must_use]
    pub fn grows_with_eta(&self) -> bool {
        let is_held_by_windows = self.scaled_inventory == self.capacity.left_after(self.sold) && !self.sold.is_zero();
        !self.inventory.is_zero() && self.scaled_inventory < self.ceiling && !is_held_by_windows
    }

    /// The change that would raise the quota, for people who ask why it is so low.
    #[must_use]
    pub fn what_would_change(&self) -> String {
        if self.inventory.is_zero() {
            let short = self.demand_bound.left_after(self.capacity);
            return format!("it is above 0 once capacity rises, or HP demand falls, by more than {short} GPUs");
        }
        if self.ceiling < self.scaled_inventory {
            let held = self.scaled_inventory.left_after(self.ceiling);
            return format!("up to {held} GPUs more as HP work leaves and GPUs fall idle; eta has no effect now");
        }
        if self.reasons.contains(&Reason::Estimated) {
            // Idle GPUs are what the latest demand leaves of the capacity: the ceiling rises with it.
            return format!(
                "each GPU more of capacity adds {} to the quota; each less of the demand bound, too, up to {}",
                self.eta, self.ceiling
            );
        }
        format!(
            "each GPU more of capacity, or less of the demand bound, adds {} to the quota, up to {}",
            self.eta, self.ceiling
        )
    }
}

/// The reasons of the quota: first the one that bounds it, then others that a reader should know.
fn reasons(supply: &Supply, quota: &Quota) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if supply.capacity.is_zero() {
        reasons.push(Reason::NoCapacity);
    } else if quota.inventory.is_zero() {
        reasons.push(Reason::DemandMayFillPool { bound: quota.demand_bound, capacity: quota.capacity });
    } else if quota.ceiling < quota.scaled_inventory {
        reasons.push(Reason::HeldByIdle { ceiling: quota.ceiling, scaled_inventory: quota.scaled_inventory });
    } else {
        reasons.push(Reason::Inventory { inventory: quota.inventory });
    }
    if quota.eta != Eta::ONE && !quota.inventory.is_zero() {
        reasons.push(Reason::ScaledByEta { eta: quota.eta });
    }
    if !quota.sold.is_zero() {
        reasons.push(Reason::ReservedAhead { gpus: quota.sold });
    }
    if supply.latest_demand > supply.capacity {
        reasons.push(Reason::DemandAboveCapacity { demand: supply.latest_demand, capacity: supply.capacity });
    }
    if quota.demand_bound.max(supply.latest_demand) == MilliGpus::MAX {
        reasons.push(Reason::DemandBeyondAmounts);
    }
    if quota.used > quota.quota {
        reasons.push(Reason::OverCommitted { used: quota.used, quota: quota.quota });
    }
    if supply.estimated {
        reasons.push(Reason::Estimated);
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supply::CapacitySource;
    use crate::windows::Sold;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn gpus(gpus: u32) -> MilliGpus {
        MilliGpus::from_gpus(gpus)
    }

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    fn supply(capacity: u32, idle: u32, spot: &[(u64, u32)], demand: u32) -> Supply {
        Supply {
            capacity: gpus(capacity),
            capacity_source: CapacitySource::ReportedState,
            idle: gpus(idle),
            spot_by_guarantee: spot.iter().map(|&(h, g)| (hours(h), gpus(g))).collect(),
            estimated: false,
            latest_demand: gpus(demand),
            longest_quota_wait_s: 0,
            sold: BTreeMap::new(),
            kept: MilliGpus::ZERO,
        }
    }

    fn check(supply: &Supply, bounds: &[(u64, u32)], eta_micro: u32, expected: &Expect) {
        let bounds: Vec<_> = bounds.iter().map(|&(h, b)| Bound { hours: hours(h), bound: gpus(b) }).collect();
        let lines = quotas(supply, &bounds, Eta::from_micro(eta_micro)).into_iter().map(|quota| {
            let reasons: Vec<_> = quota.reasons.iter().map(ToString::to_string).collect();
            format!("Q_{} = {}, available {}: {}\n", quota.hours, quota.quota, quota.available, reasons.join("; "))
        });
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn the_quota_is_the_inventory_where_idle_gpus_allow() {
        check(
            &supply(100, 30, &[(1, 5), (4, 10)], 55),
            &[(1, 60), (4, 75)],
            1_000_000,
            &expect![[r#"
            Q_1h = 40.000, available 25.000: 40.000 GPUs stay free of HP demand with the guarantee rate
            Q_4h = 25.000, available 15.000: 25.000 GPUs stay free of HP demand with the guarantee rate
        "#]],
        );
    }

    #[test]
    fn idle_and_spot_gpus_hold_the_quota_and_eta_scales_it() {
        check(
            &supply(100, 3, &[(2, 10)], 55),
            &[(1, 60), (4, 75)],
            500_000,
            &expect![[r#"
            Q_1h = 13.000, available 3.000: idle GPUs and those of spot tasks inside their guarantee are 13.000, below the 20.000 that the forecast leaves; eta is 0.5
            Q_4h = 3.000, available 3.000: idle GPUs and those of spot tasks inside their guarantee are 3.000, below the 12.500 that the forecast leaves; eta is 0.5
        "#]],
        );
    }

    #[test]
    fn where_idle_gpus_are_estimated_more_capacity_has_no_ceiling() {
        let changed = |capacity, is_estimated| {
            let supply = Supply { estimated: is_estimated, ..supply(capacity, capacity - 55, &[], 55) };
            let [quota] = &quotas(&supply, &[Bound { hours: hours(1), bound: gpus(55) }], Eta::ONE)[..] else {
                panic!("one quota for one bound")
            };
            (quota.quota, quota.what_would_change())
        };
        let (quota, text) = changed(100, true);
        assert_eq!(quota, gpus(45));
        let expected =
            "each GPU more of capacity adds 1 to the quota; each less of the demand bound, too, up to 45.000";
        assert_eq!(text, expected);
        assert_eq!(changed(110, true).0, gpus(55), "ten more, above that end");
        assert!(changed(100, false).1.contains("or less of the demand bound"));
    }

    #[test]
    fn idle_gpus_that_an_open_window_keeps_are_not_sold_to_spot() {
        let supply = Supply { kept: gpus(20), ..supply(100, 30, &[(4, 5)], 10) };
        let bounds = [Bound { hours: hours(4), bound: gpus(10) }];
        let [ref quota] = quotas(&supply, &bounds, Eta::ONE)[..] else { panic!("one quota for one bound") };
        assert_eq!((quota.quota, quota.available), (gpus(15), gpus(10)), "10 of 30 idle ones, and 5 that spot holds");
    }

    #[test]
    fn what_may_be_admitted_fits_into_every_shorter_guarantee() {
        check(
            &supply(100, 30, &[(1, 40)], 30),
            &[(1, 60), (4, 75)],
            1_000_000,
            &expect![[r#"
            Q_1h = 40.000, available 0.000: 40.000 GPUs stay free of HP demand with the guarantee rate
            Q_4h = 25.000, available 0.000: 25.000 GPUs stay free of HP demand with the guarantee rate; the guarantee of 1h leaves 0.000 GPUs, and a task with a longer one counts in it, too
        "#]],
        );
    }

    #[test]
    fn demand_that_may_fill_the_pool_leaves_nothing_and_what_spot_holds_is_shown() {
        check(
            &supply(100, 0, &[(4, 10)], 120),
            &[(4, 130)],
            1_000_000,
            &expect![[r#"
            Q_4h = 0.000, available 0.000: HP demand may reach 130.000 of 100.000 GPUs; HP demand is 120.000 GPUs, above the capacity of 100.000; spot tasks hold 10.000 GPUs, more than the quota of 0.000: nothing new is admitted and nothing evicted for it
        "#]],
        );
    }

    #[test]
    fn a_bound_or_demand_above_all_amounts_is_named_with_what_to_correct() {
        check(
            &supply(10_000_000, 0, &[], 1_000_000_000),
            &[(1, 20_000_000), (4, 1_000_000_000)],
            1_000_000,
            &expect![[r#"
            Q_1h = 0.000, available 0.000: HP demand may reach 20000000.000 of 10000000.000 GPUs; HP demand is 1000000000.000 GPUs, above the capacity of 10000000.000; HP demand exceeds the limit of 1000000000 GPUs and counts as that many: correct the usage of the pool's organizations, which states GPUs, not thousandths or bytes
            Q_4h = 0.000, available 0.000: HP demand may reach 1000000000.000 of 10000000.000 GPUs; HP demand is 1000000000.000 GPUs, above the capacity of 10000000.000; HP demand exceeds the limit of 1000000000 GPUs and counts as that many: correct the usage of the pool's organizations, which states GPUs, not thousandths or bytes
        "#]],
        );
    }

    #[test]
    fn gpus_that_are_sold_ahead_are_no_part_of_a_quota_however_large_eta_is() {
        let sold = Sold { gpus: gpus(30), unused: gpus(20) };
        let supply = Supply { sold: [(hours(4), sold)].into(), kept: gpus(5), ..supply(100, 90, &[], 10) };
        check(
            &supply,
            &[(4, 10)],
            1_000_000,
            &expect![[r#"
            Q_4h = 70.000, available 70.000: 70.000 GPUs stay free of HP demand with the guarantee rate; 30.000 GPUs are reserved: no promise reaches into a window
        "#]],
        );
        check(
            &supply,
            &[(4, 10)],
            2_000_000,
            &expect![[r#"
            Q_4h = 70.000, available 70.000: 70.000 GPUs stay free of HP demand with the guarantee rate; eta is 2; 30.000 GPUs are reserved: no promise reaches into a window
        "#]],
        );
    }

    #[test]
    fn a_capacity_of_zero_is_a_quota_of_zero_with_its_reason() {
        check(
            &supply(0, 0, &[], 0),
            &[(4, 0)],
            1_000_000,
            &expect![[r#"
            Q_4h = 0.000, available 0.000: the pool has no GPUs
        "#]],
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(17), cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn quotas_stay_inside_their_limits_and_never_rise_with_the_hours(
            capacity in 0_u32..20_000, idle in 0_u32..20_000,
            spot in prop::collection::btree_map(1_u64..8, 0_u32..20_000, 0..5),
            bounds in prop::collection::vec(0_u32..30_000, 1..4),
            eta_micro in 100_000_u32..3_000_000,
        ) {
            let spot: Vec<_> = spot.into_iter().collect();
            let mut bounds = bounds;
            bounds.sort_unstable();
            let bounds: Vec<_> = bounds.iter().zip([1, 2, 4]).map(|(&b, h)| Bound { hours: hours(h), bound: gpus(b) }).collect();
            // The invariants are asserted inside.
            let all = quotas(&supply(capacity, idle, &spot, 0), &bounds, Eta::from_micro(eta_micro));
            let supply = supply(capacity, idle, &spot, 0);
            for quota in &all {
                let shorter = all.iter().filter(|other| other.hours <= quota.hours);
                for other in shorter.filter(|_| !quota.available.is_zero()) {
                    let admitted = supply.spot(other.hours).checked_add(quota.available).unwrap();
                    prop_assert!(admitted <= other.quota, "{admitted} in the quota of {}", other.hours);
                }
                prop_assert!(quota.quota <= quota.ceiling && quota.quota <= quota.scaled_inventory);
                prop_assert!(!quota.reasons.is_empty());
            }
        }
    }
}
