//! Sums of use: exact, and the same however time is cut.

use super::*;
use proptest::prelude::*;

const HOUR_S: i64 = SECONDS_PER_HOUR;

fn name(text: &str) -> Organization {
    Organization::parse(text).unwrap()
}

/// An instant at the start of a half-life of any whole number of hours up to a day.
fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds::new(1_700_006_400 + 24 * HOUR_S * 2_520 + seconds)
}

fn meter(half_life_hours: u32) -> UseMeter {
    UseMeter::new(ShareSettings { half_life_hours })
}

fn counts(meter: &UseMeter, now: UnixSeconds) -> u64 {
    meter.parts(now).counts.first().map_or(0, |(_, counts)| *counts)
}

#[test]
fn use_is_half_after_a_half_life_to_the_last_digit() {
    let (mut meter, vision) = (meter(24), name("vision"));
    let start = UnixSeconds::new(24 * HOUR_S * 20_000);
    meter.hold(&vision, 8_000, start);
    meter.release(&vision, 8_000, start.plus_s(HOUR_S));
    let first = counts(&meter, start.plus_s(HOUR_S));
    assert_eq!(first, 8_000 * 3_600 * SCALE, "an hour of 8 GPUs in the first part of a half-life");
    let level = |meter: &UseMeter, hours| meter.level(&vision, 1, start.plus_s(hours * HOUR_S)).milli_gpu_s();
    assert_eq!(level(&meter, 1), 8_000 * 3_600);
    for half_lives in 0..40 {
        assert_eq!(counts(&meter, start.plus_s((1 + 24 * half_lives) * HOUR_S)), first >> half_lives);
    }
    // Within a half-life it falls in sixteenths: after 12 h by the square root of 2, to four digits.
    assert_eq!(level(&meter, 12) * 10_000 / (8_000 * 3_600), 7_070);
    assert_eq!(counts(&meter, start.plus_s(24 * HOUR_S * 100_000)), 0);
}

#[test]
fn constant_use_converges_and_a_leap_of_years_costs_no_time() {
    let (mut meter, vision) = (meter(1), name("vision"));
    meter.hold(&vision, 1_000, at(0));
    let year = counts(&meter, at(365 * 24 * HOUR_S));
    assert_eq!(counts(&meter, at(100_000 * 365 * 24 * HOUR_S)), year);
    // A GPU for ever: one half-life over ln 2, and the first part of it has only begun.
    let held_s = meter.level(&vision, 1, at(365 * 24 * HOUR_S)).milli_gpu_s() / 1_000 - ADVANCE_S;
    assert!((5_000..5_400).contains(&held_s), "{held_s} s, expected {}", 3_600.0 / std::f64::consts::LN_2);
}

#[test]
fn levels_are_compared_by_weight_without_rounding() {
    let mut meter = meter(24);
    meter.hold(&name("a"), 3_000, at(0));
    meter.hold(&name("b"), 1_000, at(0));
    let level = |of: &str, weight| meter.level(&name(of), weight, at(7));
    assert_eq!(level("a", 3).cmp(&level("b", 1)), Ordering::Equal);
    assert_eq!(level("a", 2).cmp(&level("b", 1)), Ordering::Greater);
    assert_eq!(level("a", 1_000_000).cmp(&level("b", 333_333)), Ordering::Less);
    assert_eq!(level("c", 1).milli_gpu_s(), 0, "an organization without use is below all others");
}

#[test]
fn a_weight_of_0_or_beyond_the_largest_is_refused_by_the_name_of_its_organization() {
    let of = |weight| Weights::new(BTreeMap::from([(name("vision"), weight)])).map_err(|fault| fault.to_string());
    assert_eq!(of(0).unwrap_err(), "the weight of vision is 0: write a number of 1 to 1000000");
    assert!(of(1_000_001).is_err());
    assert_eq!(of(7).unwrap().of(&name("vision")), 7);
    assert_eq!(of(7).unwrap().of(&name("speech")), 1);
}

#[test]
fn use_beyond_the_range_of_a_sum_stays_at_its_end() {
    let (mut meter, vision) = (meter(ShareSettings::MOST_HALF_LIFE_HOURS), name("vision"));
    meter.hold(&vision, u64::MAX / 4, at(0));
    assert_eq!(meter.level(&vision, 1, at(HOUR_S)).counts >> 64, 1);
    meter.release(&vision, u64::MAX / 4, at(HOUR_S));
    assert_eq!(counts(&meter, at(HOUR_S)), u64::MAX);
}

#[test]
fn another_half_life_keeps_what_use_is_worth_at_that_instant() {
    let (mut old, vision) = (meter(24), name("vision"));
    old.hold(&vision, 8_000, at(0));
    old.release(&vision, 8_000, at(5 * HOUR_S));
    let (now, to) = (at(17 * HOUR_S), ShareSettings { half_life_hours: 72 });
    let new = UseMeter::from_parts(to, now, &old.parts(now));
    let worth = |meter: &UseMeter| meter.level(&vision, 1, now).milli_gpu_s();
    assert!(worth(&new).abs_diff(worth(&old)) <= 1, "{} {}", worth(&new), worth(&old));
    let same = UseMeter::from_parts(ShareSettings { half_life_hours: 24 }, now, &old.parts(now));
    assert_eq!(same.parts(now), old.parts(now));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000, rng_seed: proptest::test_runner::RngSeed::Fixed(31), failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The sums of a meter that is asked at any time, and made of its parts, are those of one that is never asked; and
    /// those of a sum over every single second.
    #[test]
    fn sums_do_not_depend_on_how_time_is_cut(
        half_life_hours in prop::sample::select(vec![1_u32, 2, 24]),
        from in 0_i64..200_000,
        steps in prop::collection::vec((0_i64..9_000, 0_u64..3_000, any::<bool>(), any::<bool>()), 1..12),
    ) {
        let (settings, vision) = (ShareSettings { half_life_hours }, name("vision"));
        let (mut whole, mut cut) = (meter(half_life_hours), meter(half_life_hours));
        let (mut now, mut held, mut by_second) = (at(from), 0_u64, 0_u64);
        for (passes_s, milli, holds, is_asked) in steps {
            for second in 0..passes_s {
                let instant = now.plus_s(second);
                by_second += held * settings.count(instant);
                by_second >>= u32::from(instant.plus_s(1).get().rem_euclid(settings.half_life_s()) == 0);
            }
            now = now.plus_s(passes_s);
            if is_asked {
                cut.hold(&vision, 0, now.plus_s(-passes_s / 2));
                let middle = cut.parts(now);
                let mut again = UseMeter::from_parts(settings, now, &middle);
                again.hold(&vision, held, now);
                cut = again;
            }
            let milli = if holds { milli } else { milli.min(held) };
            for one in [&mut whole, &mut cut] {
                if holds { one.hold(&vision, milli, now) } else { one.release(&vision, milli, now) }
            }
            held = if holds { held + milli } else { held - milli };
        }
        prop_assert_eq!(counts(&whole, now), by_second);
        prop_assert_eq!(counts(&cut, now), by_second);
    }

    /// None gets more than its demand, all is given that is asked for, and nobody who wants more has less per unit of weight than
    /// another one, to the rounding of one unit each.
    #[test]
    fn an_allocation_is_max_min_by_weight(amount in 0_u64..40_000, of in prop::collection::vec((0_u64..20_000, 1_u32..6), 0..6)) {
        let given = max_min(amount, &of);
        let (asked, rounding) = (of.iter().map(|(demand, _)| demand).sum::<u64>(), of.len() as u64);
        let sum = given.iter().sum::<u64>();
        prop_assert!(sum <= asked.min(amount) && sum + rounding >= asked.min(amount), "{:?} of {}", given, amount);
        for (one, (demand, weight)) in given.iter().zip(&of) {
            prop_assert!(one <= demand);
            for (other, (_, other_weight)) in given.iter().zip(&of).filter(|_| one < demand) {
                let (mine, theirs) = (one * u64::from(*other_weight), other * u64::from(*weight));
                prop_assert!(mine + rounding * u64::from(weight * other_weight) >= theirs, "{:?} of {}", given, amount);
            }
        }
    }
}
