//! The quota under a change: the same rules on a changed supply and changed bounds.

use crate::quota::Bound;
use crate::supply::Supply;
use vocab::{HorizonHours, MilliGpus};

/// More, or less, of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Change {
    /// No change.
    #[default]
    None,
    /// More GPUs.
    More(MilliGpus),
    /// Fewer GPUs.
    Less(MilliGpus),
}

impl Change {
    /// The amount after the change; no more is taken away than there is.
    #[must_use]
    pub fn of(self, amount: MilliGpus) -> MilliGpus {
        match self {
            Self::None => amount,
            Self::More(more) => amount.saturating_add(more),
            Self::Less(less) => amount.left_after(less),
        }
    }

    /// The other way round.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::More(amount) => Self::Less(amount),
            Self::Less(amount) => Self::More(amount),
        }
    }
}

/// A pool with another capacity and another HP demand. Idle GPUs come and go first; spot tasks keep what they hold, as far as
/// the capacity reaches.
#[must_use]
pub fn changed_supply(supply: &Supply, capacity: Change, demand: Change) -> Supply {
    let changed = capacity.of(supply.capacity);
    let held = supply.spot(HorizonHours::ONE);
    let idle = demand.reversed().of(capacity.of(supply.idle)).min(changed.left_after(held));
    Supply { capacity: changed, idle, latest_demand: demand.of(supply.latest_demand), ..supply.clone() }
}

/// The demand bounds with another HP demand in every hour ahead.
#[must_use]
pub fn changed_bounds(bounds: &[Bound], demand: Change) -> Vec<Bound> {
    bounds.iter().map(|one| Bound { hours: one.hours, bound: demand.of(one.bound) }).collect()
}

/// `now` moved as far as a forecast's bound moves from `from` to `to`: of a bound that was mixed from a forecast and more.
/// Bounds that rise with the hours do so after it.
#[must_use]
pub fn moved_bounds(now: &[Bound], from: &[MilliGpus], to: &[MilliGpus]) -> Vec<Bound> {
    let mut least = MilliGpus::ZERO;
    let moved = now.iter().zip(from.iter().zip(to)).map(|(one, (&from, &to))| {
        let change = if to >= from { Change::More(to.left_after(from)) } else { Change::Less(from.left_after(to)) };
        least = least.max(change.of(one.bound));
        Bound { hours: one.hours, bound: least }
    });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supply::CapacitySource;
    use crate::{Eta, quotas};

    fn gpus(gpus: u32) -> MilliGpus {
        MilliGpus::from_gpus(gpus)
    }

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    fn supply() -> Supply {
        Supply {
            capacity: gpus(100),
            capacity_source: CapacitySource::Nodes,
            idle: gpus(30),
            spot_by_guarantee: [(hours(4), gpus(10))].into(),
            estimated: false,
            latest_demand: gpus(60),
            longest_quota_wait_s: 0,
            sold: [].into(),
            kept: MilliGpus::ZERO,
        }
    }

    const BOUNDS: [(u64, u32); 2] = [(1, 65), (4, 70)];

    fn bounds() -> Vec<Bound> {
        BOUNDS.map(|(h, bound)| Bound { hours: hours(h), bound: gpus(bound) }).into()
    }

    /// Capacity, idle GPUs, and the quotas.
    fn then(capacity: Change, demand: Change) -> (u64, u64, Vec<u64>) {
        let changed = changed_supply(&supply(), capacity, demand);
        let quotas = quotas(&changed, &changed_bounds(&bounds(), demand), Eta::ONE);
        let whole = |amount: MilliGpus| amount.milli() / 1_000;
        (whole(changed.capacity), whole(changed.idle), quotas.iter().map(|quota| whole(quota.quota)).collect())
    }

    #[test]
    fn capacity_that_goes_takes_idle_gpus_first() {
        assert_eq!(then(Change::None, Change::None), (100, 30, vec![35, 30]));
        assert_eq!(then(Change::Less(gpus(10)), Change::None), (90, 20, vec![25, 20]));
        assert_eq!(then(Change::Less(gpus(95)), Change::None), (5, 0, vec![0, 0]));
        assert_eq!(then(Change::More(gpus(10)), Change::None), (110, 40, vec![45, 40]));
    }

    #[test]
    fn demand_that_comes_takes_idle_gpus_and_raises_every_bound() {
        assert_eq!(then(Change::None, Change::More(gpus(20))), (100, 10, vec![15, 10]));
        assert_eq!(then(Change::None, Change::Less(gpus(20))), (100, 50, vec![55, 50]));
        assert_eq!(then(Change::None, Change::Less(gpus(500))), (100, 90, vec![100, 100]), "spot keeps its ten");
    }

    #[test]
    fn what_is_beyond_every_pool_changes_nothing_in_the_order_of_the_quotas() {
        let most = Change::More(gpus(999_999_935));
        assert_eq!(then(Change::None, most).2, [0, 0]);
        assert_eq!(then(most, Change::None).2, [999_999_935, 999_999_930], "an amount holds a thousand million");
        let changed = changed_supply(&supply(), most, Change::None);
        let quotas = quotas(&changed, &bounds(), Eta::nearest(1_000.0).unwrap());
        assert!(quotas[0].quota >= quotas[1].quota);
    }

    #[test]
    fn a_mixed_bound_moves_as_far_as_the_forecast_does_and_stays_in_order() {
        let (from, to) = ([gpus(60), gpus(66)], [gpus(70), gpus(61)]);
        let moved: Vec<_> = moved_bounds(&bounds(), &from, &to).iter().map(|one| one.bound).collect();
        assert_eq!(moved, [gpus(75), gpus(75)]);
    }
}
