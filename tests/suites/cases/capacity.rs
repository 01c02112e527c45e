//! Demand above the capacity.

use super::played::{horizon, play};
use super::{AT, END, learned, usual};
use placement::{Bound, CapacitySource, Eta, Quota, Reason, Supply, quotas};
use std::collections::BTreeMap;
use vocab::MilliGpus;

/// All ask for three times as much from one hour on, of a pool that has room for what they asked before.
#[test]
fn demand_that_grows_past_the_capacity_leaves_a_quota_of_zero_and_no_bound_explodes() {
    const CAPACITY_GPUS: u32 = 300;
    let made = usual().change_all(&(AT..END + 4), |gpus| 3.0 * gpus);
    let played = play(learned(), &made);
    let quota = |hour: usize| -> Quota {
        let total: f64 = made.demand.values().map(|demand| demand[hour - 1]).sum();
        let supply = Supply {
            capacity: MilliGpus::from_gpus(CAPACITY_GPUS),
            capacity_source: CapacitySource::CapacityTable,
            idle: MilliGpus::from_gpus(CAPACITY_GPUS).left_after(MilliGpus::nearest(total).unwrap()),
            spot_by_guarantee: BTreeMap::new(),
            estimated: false,
            latest_demand: MilliGpus::nearest(total).unwrap(),
            longest_quota_wait_s: 0,
            sold: BTreeMap::new(),
            kept: MilliGpus::ZERO,
        };
        let bound = MilliGpus::rounded_up(played.bound_gpus(hour)).unwrap();
        quotas(&supply, &[Bound { hours: horizon(), bound }], Eta::ONE).remove(0)
    };
    assert!(!quota(AT - 1).quota.is_zero(), "before it there was room");
    let above: Vec<usize> =
        (AT + 1..END).filter(|hour| made.demand.values().map(|demand| demand[hour - 1]).sum::<f64>() > 300.0).collect();
    assert!(above.len() > 300, "{}", above.len());
    for hour in above {
        let quota = quota(hour);
        assert_eq!((quota.quota, quota.inventory.is_zero() || quota.idle.is_zero()), (MilliGpus::ZERO, true), "{hour}");
        assert!(quota.reasons.iter().any(|reason| matches!(reason, Reason::DemandAboveCapacity { .. })), "{quota:?}");
    }
    let pool = played.pool(AT + 1..END);
    println!("three times as much: {pool:?}");
    assert!(pool.coverage > 0.83 && pool.over_reserved_gpus < 150.0, "{pool:?}");
}
