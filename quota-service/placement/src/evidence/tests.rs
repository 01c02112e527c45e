//! Synthetic months of a pool whose promises are kept as often as the test asks.

use super::*;
use crate::draw::Draw;

const NINETY: f64 = 0.9;
/// Gangs that hold a promise at any time, and their GPUs.
const GANGS: [u64; 24] = [1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 8, 16, 16, 16, 32, 32, 1, 2, 4, 8, 8, 16, 32, 64];

/// How evictions come.
#[derive(Debug, Clone, Copy)]
enum Evictions {
    Alone,
    /// Within so many hours a burst evicts each gang with this chance.
    Bursts(f64, f64),
    /// On this share of all days, and on no other.
    BadDays(f64),
}

/// Seconds until the next event of a rate per second.
fn wait_s(draw: &mut Draw, rate: f64) -> f64 {
    -(1.0 - draw.unit()).ln() / rate
}

/// Times at which each gang would be evicted. `kept` is K_H by the second of the time.
fn evictions(draw: &mut Draw, how: Evictions, hours: f64, days: f64, kept: &dyn Fn(f64) -> f64) -> Vec<Vec<f64>> {
    let until = days * 86_400.0;
    let rate = |at: f64| -kept(at).ln() / (hours * 3_600.0);
    let mut of_gangs = vec![Vec::new(); GANGS.len()];
    match how {
        Evictions::Alone => {
            for gang in &mut of_gangs {
                let mut at = wait_s(draw, rate(0.0));
                while at < until {
                    gang.push(at);
                    at += wait_s(draw, rate(at));
                }
            }
        }
        Evictions::BadDays(share) => {
            let bad: Vec<bool> = (0..days as usize).map(|_| draw.unit() < share).collect();
            for gang in &mut of_gangs {
                let mut at = wait_s(draw, rate(0.0) / share);
                while at < until {
                    gang.extend(Some(at).filter(|at| bad[(at / 86_400.0) as usize]));
                    at += wait_s(draw, rate(at) / share);
                }
            }
        }
        Evictions::Bursts(width_h, share) => {
            let mut at = wait_s(draw, rate(0.0) / share);
            while at < until {
                for gang in &mut of_gangs {
                    if draw.unit() < share {
                        gang.push(at + draw.unit() * width_h * 3_600.0);
                    }
                }
                at += wait_s(draw, rate(at) / share);
            }
            for gang in &mut of_gangs {
                gang.sort_by(f64::total_cmp);
            }
        }
    }
    of_gangs
}

/// Periods of gangs that follow each other: two of five end by themselves before their promise does.
fn month(seed: u64, how: Evictions, hours: HorizonHours, days: f64, kept: &dyn Fn(f64) -> f64) -> Vec<Period> {
    let mut draw = Draw::new(seed);
    let length_s = hours.seconds() as f64;
    let evictions = evictions(&mut draw, how, f64::from(hours.get()), days, kept);
    let mut all = Vec::new();
    for (gpus, evictions) in GANGS.iter().zip(evictions) {
        let (mut at, mut next) = (draw.unit() * length_s, evictions.into_iter().peekable());
        while at < days * 86_400.0 {
            let own = if draw.unit() < 0.4 { draw.unit() * length_s } else { length_s };
            while next.next_if(|evicted| *evicted <= at).is_some() {}
            let evicted = next.next_if(|evicted| *evicted < at + own);
            let end = evicted.unwrap_or(at + own);
            let (began, lasted_s) = (UnixSeconds::new(at as i64), (end - at) as i64);
            all.push(Period { began, lasted_s, gpus_milli: gpus * 1_000, broken: evicted.is_some() });
            // An evicted task waits for a new place.
            at = end + if evicted.is_some() { draw.unit() * length_s } else { 60.0 };
        }
    }
    all
}

/// The days from the 28th on until the first alarm, where there is one within the next 28; read after each block.
fn alarm(periods: &[Period], hours: HorizonHours, rate: GuaranteeRate) -> Option<f64> {
    let month = (DAYS * BLOCKS_A_DAY) as usize;
    let all = blocks(periods, hours, 0, 2 * month);
    let is_alarm = |end: &usize| e_value(&all[end - month..*end], (end - month) as i64, rate).0 >= Evidence::ALARM;
    (month + 1..=2 * month).find(is_alarm).map(|end| (end - month) as f64 / BLOCKS_A_DAY as f64)
}

fn hours(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).unwrap()
}

/// Months of a hundred with an alarm though the promise is kept, and the days until there is one, rising, where K_H falls by a tenth.
fn months(how: Evictions, hours: HorizonHours, count: u64) -> (f64, Vec<f64>) {
    let rate = GuaranteeRate::GFS;
    // A month goes before that is as promised: it hides nothing, and is forgotten.
    let kept = |seed| month(seed, how, hours, 56.0, &|_| NINETY);
    let alarms = (0..count).filter(|seed| alarm(&kept(*seed), hours, rate).is_some()).count();
    let fails = |at: f64| if at < 28.0 * 86_400.0 { NINETY } else { NINETY - 0.1 };
    let failing = |seed| alarm(&month(1_000 + seed, how, hours, 56.0, &fails), hours, rate);
    let mut days: Vec<f64> = (0..count / 4).map(|seed| failing(seed).unwrap_or(f64::INFINITY)).collect();
    days.sort_by(f64::total_cmp);
    (100.0 * alarms as f64 / count as f64, days)
}

#[test]
fn where_the_promise_is_kept_there_is_no_alarm_in_nineteen_of_twenty_months_and_where_it_fails_there_is_one() {
    for (how, hours_, median_days) in [
        (Evictions::Alone, 1, 6.0),
        (Evictions::Alone, 4, 10.0),
        (Evictions::Bursts(2.0, 0.3), 1, 8.0),
        (Evictions::Bursts(2.0, 0.8), 1, 9.0),
        (Evictions::Bursts(6.0, 0.5), 4, 14.0),
        (Evictions::Bursts(2.0, 0.8), 4, 22.0),
    ] {
        let (percent, days) = months(how, hours(hours_), 400);
        let median = days[days.len() / 2];
        println!(
            "{how:?}, {hours_} h: {percent} % of the months, {median} days, {} in nine of ten",
            days[days.len() * 9 / 10]
        );
        assert!(percent <= 5.0, "{how:?}, {hours_} h: alarms in {percent} % of the months");
        assert!(median <= median_days, "{how:?}, {hours_} h: {median} days");
    }
}

#[test]
fn whole_days_that_are_bad_are_an_alarm_more_often_though_their_mean_keeps_the_promise() {
    let how = Evictions::BadDays(0.33);
    for hours_ in [1, 4] {
        let (percent, _) = months(how, hours(hours_), 400);
        println!("{how:?}, {hours_} h: {percent} % of the months");
        assert!((3.0..=20.0).contains(&percent), "{hours_} h: alarms in {percent} % of the months");
    }
}

/// One gang of 8 GPUs an hour, all day long, of which every `nth` is evicted half-way; from hour `from` to `to`.
fn hourly(from: i64, to: i64, nth: i64) -> Vec<Period> {
    let one = |hour: i64| {
        let broken = hour % nth == 0;
        let lasted_s = if broken { 1_800 } else { 3_600 };
        Period { began: UnixSeconds::new(hour * 3_600), lasted_s, gpus_milli: 8_000, broken }
    };
    (from..to).map(one).collect()
}

fn look(periods: &[Period], at_hour: i64) -> Option<Evidence> {
    Evidence::of(periods, hours(1), GuaranteeRate::GFS, UnixSeconds::new(0), UnixSeconds::new(at_hour * 3_600))
}

#[test]
fn a_bad_week_after_a_good_month_is_found_with_its_beginning_and_forgotten_with_time() {
    let good = hourly(0, 28 * 24, 20);
    let before = look(&good, 28 * 24 + 1).unwrap();
    assert!(before.e_value < 0.5 && before.since.is_none() && before.blocks == 56, "{before:?}");
    // From then on, two of five break.
    let week = hourly(28 * 24, 35 * 24, 5).into_iter().chain(hourly(28 * 24, 35 * 24, 4));
    let all: Vec<Period> = good.into_iter().chain(week).collect();
    let after = look(&all, 35 * 24 + 1).unwrap();
    assert!(after.is_alarm() && after.since == Some(UnixSeconds::new(28 * DAY_S)), "{after:?}");
    let later: Vec<Period> = all.into_iter().chain(hourly(35 * 24, 70 * 24, 20)).collect();
    let forgotten = look(&later, 64 * 24).unwrap();
    assert!(!forgotten.is_alarm() && forgotten.e_value < 0.5, "{forgotten:?}");
}

#[test]
fn a_block_waits_for_the_promises_that_are_not_over_and_one_that_is_known_in_part_does_not_count() {
    let all = hourly(0, 48, 20);
    let blocks_at = |known_from_h: i64, at_h: i64| {
        let (from, now) = (UnixSeconds::new(known_from_h * 3_600), UnixSeconds::new(at_h * 3_600));
        Evidence::of(&all, hours(1), GuaranteeRate::GFS, from, now).map(|found| found.blocks)
    };
    assert_eq!(
        [12, 13, 24, 25, 48, 49].map(|at| blocks_at(0, at)),
        [None, Some(1), Some(1), Some(2), Some(3), Some(4)]
    );
    assert_eq!([1, 12, 13].map(|from| blocks_at(from, 49)), [Some(3), Some(3), Some(2)]);
    assert_eq!(Evidence::of(&[], hours(1), GuaranteeRate::GFS, UnixSeconds::new(0), UnixSeconds::new(9 * DAY_S)), None);
}

#[test]
fn a_burst_counts_once_and_not_once_for_each_of_its_gangs() {
    // All 24 gangs of an hour break at once in one hour of each four days, or one gang an hour in the same share of them.
    let at = |hour: i64, broken: bool| Period {
        began: UnixSeconds::new(hour * 3_600),
        lasted_s: if broken { 1_800 } else { 3_600 },
        gpus_milli: 8_000,
        broken,
    };
    let gangs = |hour: i64| (0..24).map(move |gang| (hour, gang));
    let rates = |is_broken: &dyn Fn(i64, i64) -> bool| {
        let all: Vec<Period> = (0..672).flat_map(gangs).map(|(hour, gang)| at(hour, is_broken(hour, gang))).collect();
        look(&all, 673).unwrap().e_value
    };
    // A fifth of all, either way.
    let together = rates(&|hour, _| hour % 120 < 24);
    let apart = rates(&|hour, gang| (hour + gang) % 5 == 0);
    assert!(apart > 1_000.0 * Evidence::ALARM && together < apart / 1_000.0, "{together} {apart}");
}

#[test]
fn no_bet_ends_below_zero_and_the_largest_stays_a_number() {
    let rate = GuaranteeRate::new(0.999_999).unwrap();
    let now = UnixSeconds::new(29 * DAY_S);
    for nth in [1, 1_000_000] {
        let found = Evidence::of(&hourly(0, 29 * 24, nth), hours(1), rate, UnixSeconds::new(0), now).unwrap();
        assert!(found.e_value.is_finite() && found.e_value > 0.0, "{found:?}");
    }
}
