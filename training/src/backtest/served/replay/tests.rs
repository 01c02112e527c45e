//! A pool of 100 GPUs over four days, with forecasts that tell when they were issued.

use super::*;
use datasets::{Calendar, PanelBuilder};
use placement::Promise;
use vocab::{ClusterName, Organization, SeriesId};

const HOURS: i64 = 96;
const HALF_AN_HOUR_S: i64 = 1_800;

fn hour(hour: i64) -> HourStart {
    HourStart::from_unix_s(hour * SECONDS_PER_HOUR).unwrap()
}

fn pool() -> PoolId {
    PoolId::parse("earth:V100").unwrap()
}

/// `demand(hour)` in GPUs; none where nothing was measured.
fn panel(demand: impl Fn(i64) -> Option<f64>) -> Panel {
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, hour(0), hour(HOURS));
    let series = SeriesId { pool: pool(), organization: Organization::parse("a").unwrap() };
    for (at, gpus) in (0..HOURS).filter_map(|at| Some((at, demand(at)?))) {
        builder.push(&series, hour(at), gpus).unwrap();
    }
    builder.finish().unwrap()
}

/// `bound(issue, more_steps)` in GPUs, for one hour.
fn forecast(bound: impl Fn(i64, u8) -> u32) -> PoolBounds {
    let one = |issue: i64, more: u8| {
        let bound = MilliGpus::from_gpus(bound(issue, more));
        vec![ForecastBound { hours: HorizonHours::ONE, bound, returns: MilliGpus::ZERO }]
    };
    (0..HOURS).flat_map(|issue| [0, 1, 2].map(|more| ((hour(issue), more), one(issue, more)))).collect()
}

fn schedule(late_s: i64) -> Schedule {
    Schedule {
        from: hour(24).instant(),
        until: hour(HOURS - 1).instant(),
        end: hour(HOURS).instant(),
        renewal_s: HALF_AN_HOUR_S,
        late_s,
        restart_every_s: None,
        restart_state: RestartState::Kept,
    }
}

fn play(
    panel: &Panel,
    minutes: Option<&Minutes>,
    forecast: &PoolBounds,
    schedule: Schedule,
    promise: Promise,
) -> Replayed {
    let settings = PoolSettings { promise, offered_hours: vec![HorizonHours::ONE], ..PoolSettings::default() };
    let capacities = [(hour(0), MilliGpus::from_gpus(100))];
    let history = PoolHistory { panel, pool: &pool(), capacities: &capacities, minutes, jobs: None, forecast };
    replay(&history, &schedule, &settings)
}

fn at(replayed: &Replayed, half_hours: i64) -> Option<&Sample> {
    replayed.samples.iter().find(|one| one.at.get() == half_hours * HALF_AN_HOUR_S)
}

#[test]
fn a_promise_is_bounded_by_the_newest_hour_that_is_known_and_the_steps_since() {
    let panel = panel(|_| Some(1.0));
    // 30 of the issue time 30, and a tenth more for each step.
    let forecast = forecast(|issue, more| (issue * 10) as u32 + u32::from(more));
    let text = |late_s: i64| {
        let replayed = play(&panel, None, &forecast, schedule(late_s), Promise::Peak);
        // At 30:00 and at 30:30.
        [60, 61].map(|half| at(&replayed, half).map(|one| (one.issue.unix_s() / SECONDS_PER_HOUR, one.bound_gpus)))
    };
    assert_eq!(text(0), [Some((30, 300.0)), Some((30, 301.0))]);
    assert_eq!(text(HALF_AN_HOUR_S), [Some((29, 291.0)), Some((30, 301.0))]);
    assert_eq!(text(3_600), [Some((29, 291.0)), Some((29, 292.0))]);
    assert_eq!(text(7_200), [Some((28, 282.0)), None], "usage that is older than two hours serves nothing");
}

#[test]
fn renewals_begin_once_the_first_hour_is_known_and_those_without_a_quota_are_counted() {
    let (forecast, on_time) = (forecast(|_, _| 60), |panel: &Panel, forecast: &PoolBounds| {
        play(panel, None, forecast, schedule(0), Promise::Peak)
    });
    let whole = on_time(&panel(|_| Some(1.0)), &forecast);
    assert_eq!((whole.renewals, whole.unserved, whole.samples.len()), (142, 0, 142));
    // Five hours are missing: the first two are bridged, and at the end of the fifth it knows of the sixth.
    let gap = on_time(&panel(|hour| (!(40..45).contains(&hour)).then_some(1.0)), &forecast);
    assert_eq!((gap.renewals, gap.unserved), (142, 7));
    assert_eq!(at(&gap, 84).map(|one| one.issue), Some(hour(40)), "at 42:00 usage is two hours old");
    assert!(at(&gap, 85).is_none() && at(&gap, 91).is_none() && at(&gap, 92).is_some());
    let late = play(&panel(|_| Some(1.0)), None, &forecast, schedule(7_200), Promise::Peak);
    assert_eq!((late.renewals, late.unserved), (138, 69));
}

#[test]
fn a_bound_is_no_less_than_the_newest_known_demand_and_that_comes_late_too() {
    let panel = panel(|hour| Some(if hour < 30 { 10.0 } else { 80.0 }));
    let forecast = forecast(|_, _| 60);
    let bound = |late_s: i64, half: i64| {
        let replayed = play(&panel, None, &forecast, schedule(late_s), Promise::Peak);
        at(&replayed, half).map(|one| (one.bound_gpus, one.forecast_gpus))
    };
    assert_eq!([bound(0, 60), bound(0, 62)], [Some((60.0, 60.0)), Some((80.0, 60.0))]);
    assert_eq!([bound(3_600, 62), bound(3_600, 64)], [Some((60.0, 60.0)), Some((80.0, 60.0))]);
}

#[test]
fn the_peak_is_of_whole_hours_or_of_minutes_and_within_the_window() {
    let panel = panel(|hour| Some(if hour == 30 { 70.0 } else { 10.0 }));
    let forecast = forecast(|_, _| 60);
    let minute = |minute: i64| {
        let gpus = if minute == 30 * 60 + 10 { 70 } else { 10 };
        (UnixSeconds::new(minute * 60), MilliGpus::from_gpus(gpus))
    };
    let all: Vec<_> = (0..HOURS * 60).map(minute).collect();
    let minutes = Minutes::of_history(&all, &panel, &pool());
    let peaks = |minutes: Option<&Minutes>, halves: [i64; 4]| {
        let replayed = play(&panel, minutes, &forecast, schedule(0), Promise::Peak);
        halves.map(|half| at(&replayed, half).and_then(|one| one.peak_gpus))
    };
    assert_eq!(peaks(None, [58, 59, 61, 189]), [Some(10.0), Some(70.0), Some(70.0), Some(10.0)]);
    assert_eq!(peaks(Some(&minutes), [58, 59, 60, 61]), [Some(10.0), Some(70.0), Some(70.0), Some(10.0)]);
    let early = Schedule { end: hour(40).instant(), ..schedule(0) };
    let replayed = play(&panel, None, &forecast, early, Promise::Peak);
    let measured = [78, 79].map(|half| at(&replayed, half).unwrap().peak_gpus);
    assert_eq!(measured, [Some(10.0), None], "the hour in which the promise ends lies outside");
}

#[test]
fn a_restart_costs_a_renewal_and_what_was_learned_only_where_that_is_lost() {
    let panel = panel(|_| Some(50.0));
    let forecast = forecast(|_, _| 90);
    let played = |restart_state: RestartState| {
        let restarts = Schedule { restart_every_s: Some(36 * 3_600), restart_state, ..schedule(0) };
        play(&panel, None, &forecast, restarts, Promise::Kept)
    };
    let [kept, lost] = RestartState::ALL.map(played);
    // It began at 24:00, knows the pool a day later, and restarts at 60:00.
    for replayed in [&kept, &lost] {
        assert_eq!(at(replayed, 95).map(|one| (one.bound_gpus, one.since_restart_s)), Some((90.0, None)));
        assert!(at(replayed, 119).is_some_and(|one| one.bound_gpus < 80.0), "what stands still needs no reserve");
        assert_eq!((replayed.renewals, at(replayed, 120)), (141, None));
        assert_eq!(at(replayed, 121).and_then(|one| one.since_restart_s), Some(1_800));
    }
    assert!(at(&kept, 121).is_some_and(|one| one.bound_gpus < 80.0));
    assert_eq!(at(&lost, 121).map(|one| one.bound_gpus), Some(90.0));
}

#[test]
fn demand_of_the_minute_takes_part_where_it_is_known() {
    let panel = panel(|_| Some(50.0));
    let forecast = forecast(|_, _| 60);
    // The hours are known by their peak; a burst of ten minutes at 30:25 is known at 30:30 by the minute alone.
    let minute = |minute: i64| {
        let gpus = if (30 * 60 + 25..30 * 60 + 35).contains(&minute) { 75 } else { 50 };
        (UnixSeconds::new(minute * 60), MilliGpus::from_gpus(gpus))
    };
    let mut all: Vec<_> = (0..HOURS * 60).map(minute).collect();
    let bound = |all: &[_], half: i64| {
        let minutes = Minutes::of_history(all, &panel, &pool());
        let replayed = play(&panel, Some(&minutes), &forecast, schedule(0), Promise::Peak);
        at(&replayed, half).map(|one| one.bound_gpus)
    };
    assert_eq!([bound(&all, 60), bound(&all, 61)], [Some(60.0), Some(75.0)]);
    all.retain(|(at, _)| at.get() < 35 * 3_600);
    assert_eq!([bound(&all, 70), bound(&all, 71)], [Some(60.0), None], "demand of half an hour ago is none of now");
}
