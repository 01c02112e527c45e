//! A calibrator learns, does not see the future, and refuses damaged state.

mod fallen;
mod mixture;
mod peaks;
mod reach;

use super::apply::SERIES_AT_ONCE;
use super::*;
use crate::bound::{Aggregation, bounds};
use crate::gaussian;
use crate::scores::actual_peak_gpus;
use datasets::{Calendar, HourRange, PanelBuilder};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use vocab::{ClusterName, GuaranteeRate, Organization, PoolId, QUANTILE_LEVELS, StepForecast};

const HOURS: u64 = 4;

fn horizon() -> HorizonHours {
    HorizonHours::new(HOURS).unwrap()
}

fn id(name: &str) -> SeriesId {
    SeriesId { pool: PoolId::parse("earth:V100").unwrap(), organization: Organization::parse(name).unwrap() }
}

fn hour(number: usize) -> HourStart {
    HourStart::from_unix_s(0).unwrap().plus_hours(number as i64)
}

/// Organizations a, b, … with their demand hour by hour; NaN is an hour without a row.
fn panel(demand: &[Vec<f64>]) -> Panel {
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let end = hour(demand[0].len());
    let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, hour(0), end);
    for (place, values) in demand.iter().enumerate() {
        for (number, gpus) in values.iter().enumerate().filter(|(_, gpus)| !gpus.is_nan()) {
            builder.push(&id(name(place)), hour(number), *gpus).unwrap();
        }
    }
    builder.finish().unwrap()
}

fn name(place: usize) -> &'static str {
    ["a", "b", "c", "d"][place]
}

fn gaussian_step(mean_gpus: f64, stddev_gpus: f64) -> StepForecast {
    let quantile = |p| mean_gpus + stddev_gpus * gaussian::quantile(p);
    StepForecast { mean_gpus, stddev_gpus, quantiles_gpus: QUANTILE_LEVELS.map(quantile) }
}

fn forecast_of(name: &str, issue: HourStart, mean_gpus: f64, stddev_gpus: f64) -> DemandForecast {
    let steps = vec![gaussian_step(mean_gpus, stddev_gpus); HOURS as usize];
    DemandForecast::new(id(name), issue, ForecastOrigin::Model, steps).unwrap()
}

/// The same forecast at every issue time, of every organization.
fn always(panel: &Panel, issues: HourRange, mean_gpus: f64, stddev_gpus: f64) -> Vec<Vec<DemandForecast>> {
    let one = |issue| {
        (0..panel.series().len()).map(|place| forecast_of(name(place), issue, mean_gpus, stddev_gpus)).collect()
    };
    issues.iter().map(one).collect()
}

/// Independent draws around a level, not whole.
fn noise(hours: usize, seed: u64, level: impl Fn(usize) -> f64, deviation: f64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let draw = |hour| (level(hour) + deviation * gaussian::quantile(rng.random_range(0.001..0.999))).max(0.0);
    (0..hours).map(draw).collect()
}

/// Share of first steps at or below each upper quantile, over the issue times from `from` on.
fn coverage(panel: &Panel, issues: HourRange, issued: &[Issued], from: usize) -> [f64; 2] {
    let mut kept = [0.0; 2];
    let (mut rows, late) = (0.0, issues.iter().zip(issued).skip(from));
    for (issue, issued) in late {
        for (place, forecast) in issued.forecasts.iter().enumerate() {
            let actual = panel.series()[place].demand_gpus()[panel.index_of(issue).unwrap()];
            rows += 1.0;
            for (kept, (quantile, _)) in kept.iter_mut().zip(LEVELS) {
                *kept += f64::from(u8::from(actual <= forecast.steps()[0].quantiles_gpus[quantile]));
            }
        }
    }
    kept.map(|kept| kept / rows)
}

fn issues(from: usize, to: usize) -> HourRange {
    HourRange { from: hour(from), to: hour(to) }
}

#[test]
fn on_a_steady_stream_coverage_comes_to_its_level_under_any_model() {
    let panel = panel(&[noise(1_004, 1, |_| 50.0, 10.0), noise(1_004, 2, |_| 50.0, 10.0)]);
    let issues = issues(0, 1_000);
    for stddev in [3.0, 30.0] {
        let raw = always(&panel, issues, 50.0, stddev);
        let before: Vec<_> = raw.iter().map(|r| Issued { forecasts: r.clone(), conformal: BTreeMap::new() }).collect();
        let [raw90, _] = coverage(&panel, issues, &before, 250);
        assert!((raw90 - 0.9).abs() > 0.09, "deviation {stddev}: the model's own coverage is {raw90}");
        let (issued, _) = replay(Calibrator::new(horizon(), true), &panel, issues, &raw, GuaranteeRate::GFS);
        let [q90, q95] = coverage(&panel, issues, &issued, 250);
        assert!((q90 - 0.9).abs() < 0.02 && (q95 - 0.95).abs() < 0.02, "deviation {stddev}: {q90}, {q95}");
    }
}

#[test]
fn after_a_level_change_coverage_comes_back_within_a_week_and_a_half() {
    let level = |hour: usize| if hour < 500 { 50.0 } else { 80.0 };
    let panel = panel(&[noise(1_004, 3, level, 10.0), noise(1_004, 4, level, 10.0)]);
    let issues = issues(0, 1_000);
    let raw = always(&panel, issues, 50.0, 10.0);
    let (issued, _) = replay(Calibrator::new(horizon(), true), &panel, issues, &raw, GuaranteeRate::GFS);
    let at_once = coverage(&panel, self::issues(500, 505), &issued[500..505], 0)[0];
    assert!(at_once < 0.3, "nobody can know a jump before it: {at_once}");
    let [q90, q95] = coverage(&panel, issues, &issued, 700);
    assert!((q90 - 0.9).abs() < 0.03 && (q95 - 0.95).abs() < 0.03, "{q90}, {q95}");
    let mean = issued[999].forecasts[0].steps()[0].mean_gpus;
    assert!(mean > 62.0, "the mean follows, too: {mean}");
}

#[test]
fn an_organization_that_stays_where_it_is_has_no_room_above_it() {
    let panel = panel(&[vec![0.0; 100], vec![5.0; 100]]);
    let issues = issues(0, 90);
    let raw: Vec<Vec<_>> =
        issues.iter().map(|at| vec![forecast_of("a", at, 0.2, 0.3), forecast_of("b", at, 5.3, 0.4)]).collect();
    let (issued, calibrator) = replay(Calibrator::new(horizon(), true), &panel, issues, &raw, GuaranteeRate::GFS);
    let quantiles = |place: usize| issued[89].forecasts[place].steps()[3].quantiles_gpus;
    assert_eq!((quantiles(0), quantiles(1)), ([0.0; 3], [5.0; 3]));
    let correction = calibrator.correction(&raw[89][1], &issued[89].forecasts[1]).unwrap();
    assert_eq!(correction.residuals, 90 * HOURS as usize);
    assert!(correction.quantiles_gpus[1] < -0.5 && correction.mean_gpus < 0.0, "{correction:?}");
}

#[test]
fn who_is_new_forecast_by_rule_or_not_measured_passes_unchanged() {
    let panel = panel(
        &[noise(200, 5, |_| 20.0, 5.0), vec![f64::NAN; 200].into_iter().chain([]).collect(), vec![3.0; 200]].map(
            |mut values: Vec<f64>| {
                values[199] = 1.0;
                values
            },
        ),
    );
    let mut calibrator = Calibrator::new(horizon(), true);
    for at in (0..60).map(hour) {
        let mut cold = forecast_of("c", at, 9.0, 1.0);
        cold =
            DemandForecast::new(cold.series().clone(), at, ForecastOrigin::ColdStart, cold.steps().to_vec()).unwrap();
        calibrator.observe(&panel, at, &[forecast_of("a", at, 30.0, 1.0), forecast_of("b", at, 7.0, 1.0), cold]);
    }
    let now = [
        forecast_of("a", hour(70), 30.0, 1.0),
        forecast_of("b", hour(70), 7.0, 1.0),
        forecast_of("d", hour(70), 7.0, 1.0),
    ];
    let issued = calibrator.apply(&panel, &now);
    assert_ne!(issued[0], now[0]);
    assert_eq!(issued[1..], now[1..], "one was never measured, one never seen");
    assert_eq!((calibrator.series.len(), calibrator.correction(&now[1], &issued[1])), (1, None));
    let off = calibrator.correcting(false);
    assert_eq!(off.apply(&panel, &now), now);
    assert!(!off.conformal(&panel, &now, GuaranteeRate::GFS).is_empty(), "pools are followed either way");
}

#[test]
fn an_issue_time_teaches_once_and_one_not_measured_for_a_week_is_forgotten() {
    let mut demand = noise(600, 6, |_| 20.0, 5.0);
    let other = demand.clone();
    demand[100..500].fill(f64::NAN);
    let panel = panel(&[demand, other]);
    let both = |at| [forecast_of("a", at, 20.0, 5.0), forecast_of("b", at, 20.0, 5.0)];
    let mut calibrator = Calibrator::new(horizon(), true);
    (0..90).map(hour).for_each(|at| calibrator.observe(&panel, at, &both(at)));
    let once = calibrator.to_bytes();
    calibrator.observe(&panel, hour(89), &both(hour(89)));
    calibrator.observe(&panel, hour(3), &both(hour(3)));
    assert_eq!(calibrator.to_bytes(), once);
    (90..300).map(hour).for_each(|at| calibrator.observe(&panel, at, &both(at)));
    assert_eq!(calibrator.series.iter().map(|one| one.id.clone()).collect::<Vec<_>>(), [id("b")]);
    calibrator.observe(&panel, hour(590), &both(hour(590)));
    assert_eq!(calibrator.shared[0].total(), 2 * HOURS as usize, "after a silence of weeks only the newest counts");
}

#[test]
fn the_bound_of_a_pool_keeps_its_promise_and_rises_with_the_hours() {
    let panel = panel(&[noise(1_004, 7, |_| 50.0, 10.0), noise(1_004, 8, |_| 30.0, 5.0)]);
    let issues = issues(0, 1_000);
    let offered: Vec<_> = (1..=HOURS).map(|hours| HorizonHours::new(hours).unwrap()).collect();
    for stddev in [1.0, 20.0] {
        let raw = always(&panel, issues, 40.0, stddev);
        let (issued, _) = replay(Calibrator::new(horizon(), false), &panel, issues, &raw, GuaranteeRate::GFS);
        let mut kept = 0;
        for (at, issued) in issues.iter().zip(&issued).skip(250) {
            let (pool, members): (_, Vec<_>) = (&id("a").pool, issued.forecasts.iter().collect());
            let conformal = issued.conformal.get(pool);
            let bounds =
                bounds(&members, Aggregation::Conformal, None, conformal, GuaranteeRate::GFS, &offered).unwrap();
            let raised = bounds.iter().any(|one| one.raised_from_gpus.is_some());
            assert!(!raised && bounds.is_sorted_by(|one, next| one.bound <= next.bound), "{bounds:?}");
            let known = bounds[3].conformal.unwrap();
            assert_eq!((known.residuals, known.own), (WINDOW_HOURS, known.shared), "one pool is all pools");
            let peak = actual_peak_gpus(&panel, pool, at, horizon()).unwrap();
            kept += usize::from(bounds[3].bound_gpus >= peak);
        }
        let coverage = kept as f64 / 750.0;
        assert!((coverage - 0.9).abs() < 0.04, "deviation {stddev}: {coverage}");
    }
}

#[test]
fn without_residuals_the_bound_is_that_of_pooled() {
    let all = [forecast_of("a", hour(0), 10.0, 2.0), forecast_of("b", hour(0), 20.0, 3.0)];
    let refs: Vec<_> = all.iter().collect();
    let panel = panel(&[vec![10.0; 4], vec![20.0; 4]]);
    let empty = Calibrator::new(horizon(), true).conformal(&panel, &all, GuaranteeRate::GFS);
    let of = |aggregation| {
        let conformal = empty.get(&id("a").pool);
        bounds(&refs, aggregation, None, conformal, GuaranteeRate::GFS, &[horizon()]).unwrap()[0].bound
    };
    assert_eq!(of(Aggregation::Conformal), of(Aggregation::Pooled));
}

fn taught(hours: usize) -> (Panel, Calibrator) {
    let panel = panel(&[noise(400, 9, |_| 20.0, 5.0), vec![3.0; 400]]);
    let mut calibrator = Calibrator::new(horizon(), true);
    let both = |at| [forecast_of("a", at, 22.0, 5.0), forecast_of("b", at, 3.2, 0.2)];
    (0..hours).map(hour).for_each(|at| calibrator.observe(&panel, at, &both(at)));
    (panel, calibrator)
}

#[test]
fn many_forecasts_are_corrected_as_each_alone_on_any_number_of_cores() {
    let (panel, calibrator) = taught(60);
    let one = |number: usize| forecast_of(name(number % 3), hour(60), 4.0 + number as f64 * 0.1, 1.0);
    let raw: Vec<_> = (0..2 * SERIES_AT_ONCE + 7).map(one).collect();
    let alone: Vec<_> = raw.iter().flat_map(|one| calibrator.apply(&panel, std::slice::from_ref(one))).collect();
    assert_ne!(alone, raw, "there is something to correct");
    for threads in [1, 3] {
        let cores = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(cores.install(|| calibrator.apply(&panel, &raw)), alone, "{threads} threads");
    }
    assert!(calibrator.apply(&panel, &[]).is_empty());
}

#[test]
fn a_state_read_back_goes_on_as_the_one_that_was_never_written() {
    for stop in [0, 5, 100, 250] {
        let (panel, mut whole) = taught(stop);
        let mut back = Calibrator::from_bytes(&whole.to_bytes()).unwrap();
        for at in (stop..stop + 40).map(hour) {
            let raw = [forecast_of("a", at, 22.0, 5.0), forecast_of("b", at, 3.2, 0.2)];
            assert_eq!(whole.apply(&panel, &raw), back.apply(&panel, &raw), "stopped after {stop} h");
            let conformal = |of: &Calibrator| of.conformal(&panel, &raw, GuaranteeRate::GFS);
            assert_eq!(conformal(&whole), conformal(&back));
            whole.observe(&panel, at, &raw);
            back.observe(&panel, at, &raw);
        }
        assert_eq!(whole.to_bytes(), back.to_bytes());
        assert_eq!(back.newest_issue(), Some(hour(stop + 39)));
    }
}

#[test]
fn what_is_no_state_is_refused_and_a_state_is_small() {
    let bytes = taught(300).1.to_bytes();
    let pool = 168 * HOURS as usize * 20 + HOURS as usize * (12 + 5 * 7) * 8 + 76;
    assert!((bytes.len() - pool) / 2 <= 2_048, "{} bytes for two series", bytes.len() - pool);
    for end in 0..bytes.len() {
        assert!(Calibrator::from_bytes(&bytes[..end]).is_err(), "cut off at {end}");
    }
    assert!(Calibrator::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    let refused = |place: usize, value: u8| {
        let mut bad = bytes.clone();
        bad[place] = value;
        Calibrator::from_bytes(&bad).unwrap_err().to_string()
    };
    assert!(refused(5, 10).contains("train again"), "another format");
    assert!(refused(6, 0).contains("a horizon outside"));
    assert!(refused(7, 2).contains("neither 0 nor 1"));
    assert!(refused(8, 1).contains("no hour"));
    assert!(refused(21, b':').contains("no name of a cluster"));
}

#[test]
fn of_a_long_horizon_four_steps_are_kept() {
    assert_eq!(recorded_steps(horizon()), [0, 1, 2, 3]);
    assert_eq!(recorded_steps(HorizonHours::ONE), [0]);
    assert_eq!(recorded_steps(HorizonHours::new(24).unwrap()), [5, 11, 17, 23]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn what_is_issued_is_a_distribution_and_never_negative(
        demand in prop::collection::vec(0.0..60.0_f64, 80),
        mean in -5.0..60.0_f64,
        stddev in 0.0..20.0_f64,
    ) {
        let panel = panel(&[demand.clone(), demand.iter().map(|gpus| gpus.round()).collect()]);
        let raw = always(&panel, issues(0, 70), mean, stddev);
        let (issued, _) = replay(Calibrator::new(horizon(), true), &panel, issues(0, 70), &raw, GuaranteeRate::GFS);
        prop_assert_ne!(&issued[60].forecasts, &raw[60]);
        for step in issued[40..].iter().flat_map(|one| &one.forecasts).flat_map(DemandForecast::steps) {
            prop_assert!(step.mean_gpus >= 0.0 && step.quantiles_gpus[0] >= 0.0);
            prop_assert!(step.quantiles_gpus.is_sorted());
        }
    }

    #[test]
    fn what_is_issued_at_an_hour_does_not_depend_on_it_or_any_later_one(
        past in prop::collection::vec(0.0..60.0_f64, 60),
        future in prop::collection::vec(0.0..600.0_f64, 8),
        other in prop::collection::vec(0.0..600.0_f64, 8),
    ) {
        let at = |future: &[f64]| {
            let demand = [&past[..], future].concat();
            let panel = panel(&[demand.clone(), demand.iter().map(|gpus| gpus.floor()).collect()]);
            let raw = always(&panel, issues(0, 61), 30.0, 5.0);
            replay(Calibrator::new(horizon(), true), &panel, issues(0, 61), &raw, GuaranteeRate::GFS).0.pop()
        };
        prop_assert_eq!(at(&future), at(&other));
    }

    #[test]
    fn hour_by_hour_is_the_same_as_all_at_once(hours in 1..120_usize) {
        let (panel, batch) = taught(hours);
        let raw = |at| vec![forecast_of("a", at, 22.0, 5.0), forecast_of("b", at, 3.2, 0.2)];
        let mut online = Online::new(Calibrator::new(horizon(), true));
        for at in (0..hours).map(hour) {
            let _ = online.issue(&panel, at, raw(at), GuaranteeRate::GFS);
        }
        let until = hour(hours + HOURS as usize - 1);
        prop_assert_eq!(online.finish(&panel, until).to_bytes(), batch.to_bytes());
    }
}
