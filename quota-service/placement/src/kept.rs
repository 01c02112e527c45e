//! Kept rate K_H: the share of GPUs that a promise of H hours left where they were for H hours (PROMISE §2).
//!
//! A period that ends by itself after ten minutes of a promise of four hours has kept nothing: it says that ten minutes went
//! well, and no more. So K_H is the Kaplan–Meier survival at H, each period weighted by its GPUs. The event is an eviction
//! by HP; everything else that ends a period ends its observation.

use std::collections::BTreeSet;
use vocab::{HorizonHours, MilliGpus, UnixSeconds};

const DAY_S: i64 = vocab::SECONDS_PER_DAY;
const HOUR_S: i64 = vocab::SECONDS_PER_HOUR;

/// The measured course of one guarantee period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Start of the promise.
    pub began: UnixSeconds,
    /// How long it was seen, in seconds; at most the promise.
    pub lasted_s: i64,
    /// Thousandths of a GPU over all pods.
    pub gpus_milli: u64,
    /// Whether HP evicted it. A task's own end, a deletion, a failed node and a drain are no evictions.
    pub broken: bool,
}

/// K_H of some periods, and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptRate {
    /// Kaplan–Meier survival at H, weighted by GPUs.
    pub rate: f64,
    /// The same with each period counted once.
    pub unweighted: f64,
    /// One standard error of `rate`, from leaving out one day after the other (evictions of a day come together); none
    /// where all periods began on one day.
    pub deviation: Option<f64>,
    /// Number of promises.
    pub periods: u64,
    /// Number of broken promises.
    pub broken: u64,
}

impl Period {
    /// As it was reported. One whose beginning is not known counts as long as its promise, one whose GPUs are not known as one
    /// GPU.
    #[must_use]
    pub fn reported(
        hours: HorizonHours,
        ended_at: UnixSeconds,
        began_at: Option<UnixSeconds>,
        gpus: Option<MilliGpus>,
        broken: bool,
    ) -> Self {
        let began = began_at.unwrap_or_else(|| ended_at.plus_s(-hours.seconds()));
        let watched_s = ended_at.since_s(began);
        // A task that is evicted after its hours has had its promise.
        let broken = broken && watched_s <= hours.seconds();
        let lasted_s = watched_s.clamp(0, hours.seconds());
        debug_assert!(!broken || watched_s <= hours.seconds(), "an eviction after its hours breaks nothing");
        Self { began, lasted_s, gpus_milli: gpus.map_or(1_000, MilliGpus::milli), broken }
    }
}

impl KeptRate {
    /// K_H of these periods; `None` of none.
    #[must_use]
    pub fn of(periods: &[Period], hours: HorizonHours) -> Option<Self> {
        let rate = survival(periods, hours.seconds(), |one| one.gpus_milli)?;
        let unweighted = survival(periods, hours.seconds(), |_| 1)?;
        let broken = periods.iter().filter(|one| one.broken).count() as u64;
        let deviation = deviation(periods, hours);
        debug_assert!((0.0..=1.0).contains(&rate), "K_H is a share: {rate}");
        debug_assert!((0.0..=1.0).contains(&unweighted), "K_H is a share: {unweighted}");
        debug_assert!(deviation.is_none_or(|one| one >= 0.0), "a deviation is not negative: {deviation:?}");
        Some(Self { rate, unweighted, deviation, periods: periods.len() as u64, broken })
    }
}

/// A span of time in which promises of the pool were kept least, by when they were given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worst {
    /// Start of the window.
    pub from: UnixSeconds,
    /// Kept rate K_H in the window, 0 to 1.
    pub rate: f64,
    /// Promises that ended in the window.
    pub periods: u64,
}

impl Worst {
    /// Days with fewer periods say nothing.
    pub const LEAST_OF_DAY: usize = 20;
    /// Weeks with fewer periods say nothing.
    pub const LEAST_OF_WEEK: usize = 100;

    /// Of the days that begin with an hour of UTC; `None` where none has enough periods.
    #[must_use]
    pub fn day(periods: &[Period], hours: HorizonHours) -> Option<Self> {
        Self::of(periods, hours, DAY_S, HOUR_S, Self::LEAST_OF_DAY)
    }

    /// Of the seven days that begin with a day of UTC; `None` where none have enough periods.
    #[must_use]
    pub fn week(periods: &[Period], hours: HorizonHours) -> Option<Self> {
        Self::of(periods, hours, 7 * DAY_S, DAY_S, Self::LEAST_OF_WEEK)
    }

    /// Spans of `span_s` that begin every `step_s`.
    fn of(periods: &[Period], hours: HorizonHours, span_s: i64, step_s: i64, least: usize) -> Option<Self> {
        let mut sorted = periods.to_vec();
        sorted.sort_unstable_by_key(|one| one.began);
        let (first, last) = (sorted.first()?.began.get(), sorted.last()?.began.get());
        // A span that ends after the last one holds no more than the one before it.
        let last = (last - span_s + step_s).max(first);
        let begins = first.div_euclid(step_s)..=last.div_euclid(step_s);
        let span = |number: i64| {
            let (from, to) = (number * step_s, number * step_s + span_s);
            let begin = sorted.partition_point(|one| one.began.get() < from);
            let end = sorted.partition_point(|one| one.began.get() < to);
            debug_assert!(begin <= end, "periods are in the order of their beginning");
            let of_span = &sorted[begin..end];
            let rate = survival(of_span, hours.seconds(), |one| one.gpus_milli)?;
            let is_enough = of_span.len() >= least;
            is_enough.then_some(Self { from: UnixSeconds::new(from), rate, periods: of_span.len() as u64 })
        };
        begins.filter_map(span).min_by(|one, other| one.rate.total_cmp(&other.rate))
    }
}

/// Kaplan–Meier survival at `until_s`, in units of `weight`; `None` where nothing has any.
fn survival(periods: &[Period], until_s: i64, weight: impl Fn(&Period) -> u64) -> Option<f64> {
    survival_of(&by_length(periods, until_s), |_| true, until_s, weight)
}

/// By how long they were seen, up to `until_s`.
fn by_length(periods: &[Period], until_s: i64) -> Vec<Period> {
    let mut sorted: Vec<Period> = periods.to_vec();
    sorted.sort_by_key(|one| one.lasted_s.min(until_s));
    sorted
}

/// Of those that count, in the order of their lengths. A period that is evicted and one that ends in the same second were both
/// there to be evicted.
fn survival_of(
    sorted: &[Period],
    counts: impl Fn(&Period) -> bool,
    until_s: i64,
    weight: impl Fn(&Period) -> u64,
) -> Option<f64> {
    let all = || sorted.iter().filter(|one| counts(one));
    debug_assert!(
        sorted.is_sorted_by_key(|one| one.lasted_s.min(until_s)),
        "periods are in the order of their lengths"
    );
    let mut at_risk: u64 = all().map(&weight).sum();
    if at_risk == 0 {
        return None;
    }
    // Of the second that is read: evicted, and in all.
    let (mut survival, mut second, mut evicted, mut ended) = (1.0, i64::MIN, 0, 0);
    for one in all() {
        let lasted_s = one.lasted_s.min(until_s);
        if lasted_s > second {
            debug_assert!(evicted <= ended && ended <= at_risk, "more periods end than are at risk");
            survival *= (at_risk - evicted) as f64 / at_risk as f64;
            at_risk -= ended;
            (second, evicted, ended) = (lasted_s, 0, 0);
        }
        ended += weight(one);
        if one.broken && one.lasted_s <= until_s {
            evicted += weight(one);
        }
    }
    Some(survival * (at_risk - evicted) as f64 / at_risk as f64)
}

/// Jackknife over the days of UTC on which periods began.
fn deviation(periods: &[Period], hours: HorizonHours) -> Option<f64> {
    let day = |one: &Period| one.began.get().div_euclid(DAY_S);
    let days: BTreeSet<i64> = periods.iter().map(day).collect();
    let sorted = by_length(periods, hours.seconds());
    let without = days.iter().filter_map(|left_out| {
        survival_of(&sorted, |one| day(one) != *left_out, hours.seconds(), |one| one.gpus_milli)
    });
    let without: Vec<f64> = without.collect();
    if without.len() < 2 {
        return None;
    }
    let count = without.len() as f64;
    let mean = without.iter().sum::<f64>() / count;
    debug_assert!((0.0..=1.0).contains(&mean), "a mean of shares is a share: {mean}");
    let squares: f64 = without.iter().map(|one| (one - mean).powi(2)).sum();
    Some(((count - 1.0) / count * squares).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn period(lasted_s: i64, gpus_milli: u64, broken: bool) -> Period {
        Period { began: UnixSeconds::new(0), lasted_s, gpus_milli, broken }
    }

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    #[test]
    fn it_is_the_survival_of_the_textbook() {
        // Remission of 21 patients under 6-MP, in weeks (Freireich et al. 1963): 6, 6, 6, 6+, 7, 9+, 10, 10+, 11+, 13, 16,
        // 17+, 19+, 20+, 22, 23, 25+, 32+, 32+, 34+, 35+; the published estimate after 23 weeks is 0.448.
        let ends = [6, 6, 6, 7, 10, 13, 16, 22, 23].map(|weeks| period(weeks, 1, true));
        let censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35].map(|weeks| period(weeks, 1, false));
        let all: Vec<Period> = ends.into_iter().chain(censored).collect();
        let at = |weeks| (survival(&all, weeks, |_| 1).unwrap() * 1_000.0).round() / 1_000.0;
        assert_eq!([5, 6, 7, 10, 13, 16, 22, 23].map(at), [1.0, 0.857, 0.807, 0.753, 0.69, 0.627, 0.538, 0.448]);
    }

    #[test]
    fn who_ends_early_has_kept_nothing_and_gpus_weigh() {
        // Nine of ten end by themselves within a minute; of those that stay, half are evicted.
        let brief = std::iter::repeat_n(period(60, 1_000, false), 18);
        let all: Vec<Period> = brief.chain([period(1_800, 1_000, true), period(3_600, 1_000, false)]).collect();
        let kept = KeptRate::of(&all, hours(1)).unwrap();
        assert_eq!((kept.rate, kept.periods, kept.broken, kept.deviation), (0.5, 20, 1, None));
        let weighted = [period(1_800, 3_000, true), period(3_600, 1_000, false)];
        let kept = KeptRate::of(&weighted, hours(1)).unwrap();
        assert_eq!((kept.rate, kept.unweighted), (0.25, 0.5));
        assert_eq!(KeptRate::of(&[], hours(1)), None);
    }

    #[test]
    fn an_eviction_after_the_hours_of_the_promise_breaks_nothing() {
        let ended = |after_s: i64| {
            let began = UnixSeconds::new(1_000);
            Period::reported(hours(1), began.plus_s(after_s), Some(began), None, true)
        };
        assert!(ended(3_600).broken && !ended(3_601).broken);
        assert_eq!(ended(9_000).lasted_s, 3_600);
        assert!(Period::reported(hours(1), UnixSeconds::new(0), None, None, true).broken, "no report says since when");
    }

    #[test]
    fn days_that_are_alike_say_more_than_days_that_are_not() {
        let day = |number: i64, broken: bool| Period {
            began: UnixSeconds::new(number * DAY_S),
            ..period(if broken { 600 } else { 3_600 }, 1_000, broken)
        };
        // One of ten on each of ten days, or ten of ten on one of them.
        let alike: Vec<Period> = (0..100).map(|one| day(one % 10, one < 10)).collect();
        let burst: Vec<Period> = (0..100).map(|one| day(one % 10, one % 10 == 0)).collect();
        let [alike, burst] = [alike, burst].map(|all| KeptRate::of(&all, hours(1)).unwrap());
        assert_eq!((alike.rate, burst.rate), (0.9, 0.9));
        assert!(alike.deviation.unwrap() < 1e-9 && burst.deviation.unwrap() > 0.09, "{alike:?} {burst:?}");
    }

    #[test]
    fn the_worst_day_is_found_wherever_it_begins() {
        let at = |hour: i64, broken: bool| Period {
            began: UnixSeconds::new(hour * HOUR_S),
            ..period(if broken { 600 } else { 3_600 }, 1_000, broken)
        };
        // From hour 18 of the second day to hour 18 of the third one half breaks.
        let all: Vec<Period> = (0..96)
            .flat_map(|hour| (0..2).map(move |one| (hour, one)))
            .map(|(hour, one)| at(hour, (42..66).contains(&hour) && one == 0))
            .collect();
        let worst = Worst::day(&all, hours(1)).unwrap();
        assert_eq!((worst.from.get(), worst.rate, worst.periods), (42 * HOUR_S, 0.5, 48));
        assert_eq!(Worst::day(&all[..19], hours(1)), None, "too few to say anything");
    }

    #[test]
    fn the_worst_week_holds_seven_days_of_utc() {
        // Ten a day for four weeks; on days 9 to 15 one of ten breaks, on day 20 all of them.
        let at = |day: i64, broken: bool| Period {
            began: UnixSeconds::new(day * DAY_S + HOUR_S),
            ..period(if broken { 600 } else { 3_600 }, 1_000, broken)
        };
        let is_broken = |day: i64, one: i64| day == 20 || ((9..16).contains(&day) && one == 0);
        let ten = |day: i64| (0..10).map(move |one| (day, one));
        let all = |count: i64| -> Vec<Period> {
            (0..28)
                .flat_map(ten)
                .filter(|(_, one)| *one < count)
                .map(|(day, one)| at(day, is_broken(day, one)))
                .collect()
        };
        assert_eq!(Worst::week(&all(10), hours(1)), None, "seventy periods say too little");
        let twice: Vec<Period> = [all(10), all(10)].concat();
        let worst = Worst::week(&twice, hours(1)).unwrap();
        // From day 14 on: two days of 0.9, four without a break, and the one on which nothing was kept.
        assert_eq!((worst.from.get(), worst.periods), (14 * DAY_S, 140));
        assert!((worst.rate - 58.0 / 70.0).abs() < 1e-9, "{worst:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_share_and_falls_with_the_hours(
            periods in proptest::collection::vec((0_i64..20_000, 1_u64..9_000, any::<bool>()), 1..40)
        ) {
            let all: Vec<Period> = periods.into_iter().map(|(lasted, gpus, broken)| period(lasted, gpus, broken)).collect();
            let [one, four] = [1, 4].map(|count| KeptRate::of(&all, hours(count)).unwrap().rate);
            prop_assert!((0.0..=1.0).contains(&four) && four <= one && one <= 1.0);
        }
    }
}
