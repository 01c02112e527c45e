//! Overrides: what people know of the hours ahead moves the demand bound B_H before a quota is cut from it.

use crate::quota::Bound;
use vocab::{MilliGpus, Override, OverrideId, OverrideKind, UnixSeconds};

/// A bound with what people asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overridden {
    /// B_H that the quota is cut from.
    pub bound: Bound,
    /// B_H before.
    pub before: MilliGpus,
    /// By how much it was raised.
    pub reserved: MilliGpus,
    /// By how much it was lowered then; less than was asked for where HP work still needs it.
    pub released: MilliGpus,
    /// Those that apply, in their order.
    pub applied: Vec<OverrideId>,
}

/// Whether an override applies to a promise of `seconds` that is given at `now`. A reservation does as soon as the promise
/// would reach into its hours: a spot task must be gone by then. A release does only while the whole promise lies inside, since
/// the demand of any hour of it may come back.
#[must_use]
pub fn applies(one: &Override, now: UnixSeconds, seconds: i64) -> bool {
    let end = now.plus_s(seconds);
    match one.kind {
        OverrideKind::Reserve => one.from < end && now < one.to,
        OverrideKind::Release => one.from <= now && end <= one.to,
    }
}

/// The bounds under overrides of their pool. Nothing is released that HP work holds at this moment (`demand`). Bounds that rise
/// with the hours do so after it.
///
/// # Panics
/// Where the bounds decrease afterwards though they did not before: a bug.
#[must_use]
pub fn overridden(
    bounds: &[Bound],
    overrides: &[(OverrideId, Override)],
    demand: MilliGpus,
    now: UnixSeconds,
) -> Vec<Overridden> {
    let all: Vec<_> = bounds.iter().map(|bound| one(*bound, overrides, demand, now)).collect();
    for (before, pair) in bounds.windows(2).zip(all.windows(2)) {
        assert!(
            before[0].bound > before[1].bound || pair[0].bound.bound <= pair[1].bound.bound,
            "a longer promise has a lower bound under overrides: {pair:?}"
        );
    }
    all
}

fn one(bound: Bound, overrides: &[(OverrideId, Override)], demand: MilliGpus, now: UnixSeconds) -> Overridden {
    let applied: Vec<_> = overrides.iter().filter(|(_, one)| applies(one, now, bound.hours.seconds())).collect();
    let sum = |kind: OverrideKind| {
        let of_kind = applied.iter().filter(|(_, one)| one.kind == kind).map(|(_, one)| one.gpus);
        of_kind.fold(MilliGpus::ZERO, MilliGpus::saturating_add)
    };
    // The largest amount is more than any pool has: a reservation of everything leaves nothing.
    let raised = bound.bound.saturating_add(sum(OverrideKind::Reserve));
    let lowered = raised.left_after(sum(OverrideKind::Release)).max(demand.min(raised));
    Overridden {
        bound: Bound { hours: bound.hours, bound: lowered },
        before: bound.bound,
        reserved: raised.left_after(bound.bound),
        released: raised.left_after(lowered),
        applied: applied.iter().map(|(id, _)| *id).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vocab::{HorizonHours, PoolId};

    fn gpus(gpus: u32) -> MilliGpus {
        MilliGpus::from_gpus(gpus)
    }

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    /// `from` and `to` in hours.
    fn asked(id: u64, kind: OverrideKind, amount: u32, from: i64, to: i64) -> (OverrideId, Override) {
        let at = |hour: i64| UnixSeconds::new(hour * 3_600);
        let pool = PoolId::parse("earth:A100").unwrap();
        (OverrideId(id), Override { pool, kind, gpus: gpus(amount), from: at(from), to: at(to) })
    }

    /// Bounds of 60, 70 and 80 GPUs for 1, 2 and 4 h under overrides, at hour 10, while HP holds 50.
    fn at_ten(overrides: &[(OverrideId, Override)]) -> Vec<(u64, Vec<u64>)> {
        let bounds = [(1, 60), (2, 70), (4, 80)].map(|(h, b)| Bound { hours: hours(h), bound: gpus(b) });
        let all = overridden(&bounds, overrides, gpus(50), UnixSeconds::new(10 * 3_600));
        let ids = |one: &Overridden| one.applied.iter().map(|id| id.0).collect();
        all.iter().map(|one| (one.bound.bound.milli() / 1_000, ids(one))).collect()
    }

    #[test]
    fn a_reservation_is_kept_by_every_promise_that_reaches_into_it() {
        let launch = asked(1, OverrideKind::Reserve, 30, 12, 14);
        assert_eq!(
            at_ten(&[launch]),
            [(60, vec![]), (70, vec![]), (110, vec![1])],
            "a promise of 2 h ends as it begins"
        );
        let under_way = asked(1, OverrideKind::Reserve, 30, 8, 11);
        assert_eq!(at_ten(&[under_way]), [(90, vec![1]), (100, vec![1]), (110, vec![1])]);
        let over = asked(1, OverrideKind::Reserve, 30, 8, 10);
        assert_eq!(at_ten(&[over]), [(60, vec![]), (70, vec![]), (80, vec![])]);
    }

    #[test]
    fn a_release_counts_only_for_promises_that_end_inside_it() {
        let leave = asked(2, OverrideKind::Release, 5, 9, 12);
        assert_eq!(at_ten(&[leave]), [(55, vec![2]), (65, vec![2]), (80, vec![])]);
        let later = asked(2, OverrideKind::Release, 5, 11, 20);
        assert_eq!(at_ten(&[later]), [(60, vec![]), (70, vec![]), (80, vec![])]);
    }

    #[test]
    fn nothing_is_released_that_hp_work_holds_now() {
        let leave = asked(3, OverrideKind::Release, 500, 0, 100);
        assert_eq!(at_ten(&[leave]), [(50, vec![3]), (50, vec![3]), (50, vec![3])]);
    }

    #[test]
    fn overrides_add_up() {
        let both = [asked(1, OverrideKind::Reserve, 30, 0, 100), asked(2, OverrideKind::Release, 10, 0, 100)];
        assert_eq!(at_ten(&both), [(80, vec![1, 2]), (90, vec![1, 2]), (100, vec![1, 2])]);
    }

    #[test]
    fn a_reservation_of_everything_leaves_nothing_however_large_it_is() {
        let most = 1_000_000_000;
        for gpus in [most, most - 65, most - 75] {
            let all: Vec<_> = at_ten(&[asked(1, OverrideKind::Reserve, gpus, 0, 100)]);
            assert!(all.iter().all(|(bound, applied)| *bound >= u64::from(most) - 15 && *applied == [1]), "{all:?}");
        }
        let many = [300_000_000, 500_000_000, 400_000_000].map(|gpus| asked(1, OverrideKind::Reserve, gpus, 0, 100));
        assert_eq!(at_ten(&many)[0].0, u64::from(most));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(23), cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn bounds_still_rise_with_the_hours_and_never_fall_below_what_hp_holds(
            mut bounds in prop::collection::vec(0_u32..1_000, 3),
            asks in prop::collection::vec(
                (any::<bool>(), prop_oneof![0_u32..500, 999_999_000_u32..=1_000_000_000], -10_i64..20, 1_i64..20), 0..6),
            demand in 0_u32..1_000, now_s in 0_i64..36_000,
        ) {
            bounds.sort_unstable();
            let bounds: Vec<_> = bounds.iter().zip([1, 2, 4]).map(|(&b, h)| Bound { hours: hours(h), bound: gpus(b) }).collect();
            let kind = |reserve| if reserve { OverrideKind::Reserve } else { OverrideKind::Release };
            let asks: Vec<_> = asks.iter().zip(1..).map(|(&(r, g, from, long), id)| asked(id, kind(r), g, from, from + long)).collect();
            let all = overridden(&bounds, &asks, gpus(demand), UnixSeconds::new(now_s));
            prop_assert!(all.is_sorted_by_key(|one| one.bound.bound), "{:?}", all);
            for (one, before) in all.iter().zip(&bounds) {
                prop_assert!(one.bound.bound >= before.bound.min(gpus(demand)));
                prop_assert_eq!(one.before.checked_add(one.reserved), one.bound.bound.checked_add(one.released));
                prop_assert!(!one.applied.is_empty() || one.bound.bound == before.bound);
            }
        }
    }
}
