//! Bounds of each aggregation, against the reference and at their edges.

use super::*;
use vocab::{ForecastOrigin, HourStart, PoolId, QUANTILE_LEVELS, SeriesId, StepForecast};

/// The pool of golden/bound.py: two organizations, two steps.
fn forecasts() -> Vec<DemandForecast> {
    let pool = PoolId::parse("earth:V100").unwrap();
    let forecast = |name: &str, steps: [(f64, f64); 2]| {
        let series = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
        let step = |(mean_gpus, stddev_gpus)| StepForecast {
            mean_gpus,
            stddev_gpus,
            quantiles_gpus: QUANTILE_LEVELS.map(|p| mean_gpus + stddev_gpus * gaussian::quantile(p)),
        };
        let issue = HourStart::from_unix_s(0).unwrap();
        DemandForecast::new(series, issue, ForecastOrigin::Model, steps.map(step).to_vec()).unwrap()
    };
    vec![forecast("a", [(10.0, 1.0), (12.0, 2.0)]), forecast("b", [(20.0, 3.0), (19.0, 3.0)])]
}

fn calibration() -> PoolCalibration {
    PoolCalibration {
        pool: PoolId::parse("earth:V100").unwrap(),
        organizations: ["a", "b"].map(|name| Organization::parse(name).unwrap()).to_vec(),
        correlation: vec![1.0, 0.5, 0.5, 1.0],
        mean_correlation: 0.5,
        step_correlation: 0.6,
        scores: Vec::new(),
        chosen: Aggregation::Pooled,
    }
}

fn bound_gpus(aggregation: Aggregation) -> Vec<f64> {
    let all = forecasts();
    let offered = [1, 2].map(|hours| HorizonHours::new(hours).unwrap());
    let refs: Vec<_> = all.iter().collect();
    let bounds = bounds(&refs, aggregation, Some(&calibration()), None, GuaranteeRate::GFS, &offered).unwrap();
    assert!(bounds.iter().all(|bound| bound.bound.as_gpus() >= bound.bound_gpus));
    bounds.iter().map(|bound| bound.bound_gpus).collect()
}

#[test]
fn each_aggregation_agrees_with_the_reference() {
    for (aggregation, expected) in [
        (Aggregation::SumOfBounds, [35.126_206_262_178_4, 38.407_757_827_723]),
        (Aggregation::Independent, [34.052_621_886_075_5, 35.620_699_881_722_2]),
        (Aggregation::Pooled, [34.620_699_881_722_2, 37.782_633_540_921_65]),
    ] {
        for (ours, expected) in bound_gpus(aggregation).into_iter().zip(expected) {
            assert!((ours - expected).abs() < 1e-4, "{aggregation}: {ours} against {expected}");
        }
    }
}

#[test]
fn a_new_organization_is_taken_to_correlate_as_the_others_do_on_average() {
    let known = calibration();
    let (a, new) = (Organization::parse("a").unwrap(), Organization::parse("new").unwrap());
    assert_eq!(known.among(&[&a, &new]).variance(&[2.0, 4.0]), 4.0 + 16.0 + 2.0 * 0.5 * 2.0 * 4.0);
    assert_eq!((known.between(&a, &new), known.between(&new, &new)), (0.5, 1.0));
}

#[test]
fn organizations_that_training_did_not_know_cost_no_matrix() {
    let known = calibration();
    let names: Vec<_> = (0..6).map(|n| Organization::parse(["x", "b", "y", "a", "z", "w"][n]).unwrap()).collect();
    let names: Vec<&Organization> = names.iter().collect();
    let stddevs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let pairs = names.iter().zip(stddevs);
    let of_all: f64 = pairs
        .clone()
        .flat_map(|one| pairs.clone().map(move |other| (one, other)))
        .map(|((a, x), (b, y))| known.between(a, b) * x * y)
        .sum();
    assert!((known.among(&names).variance(&stddevs) - of_all).abs() < 1e-9);
}

#[test]
fn a_bound_over_more_hours_is_never_lower() {
    let all = forecasts();
    let falling: Vec<_> = all[1..].iter().collect();
    let offered = [1, 2].map(|hours| HorizonHours::new(hours).unwrap());
    let bounds = bounds(&falling, Aggregation::Independent, None, None, GuaranteeRate::GFS, &offered).unwrap();
    assert_eq!(bounds[1].bound, bounds[0].bound);
    assert_eq!(bounds[1].step, Some(1), "the first hour decides");
}

#[test]
fn a_pool_without_organizations_needs_nothing_and_a_short_forecast_is_refused() {
    let four = [HorizonHours::new(4).unwrap()];
    let none = bounds(&[], Aggregation::Pooled, None, None, GuaranteeRate::GFS, &four).unwrap();
    assert_eq!(none[0].bound, MilliGpus::ZERO);
    let all = forecasts();
    let refs: Vec<_> = all.iter().collect();
    let fault = bounds(&refs, Aggregation::SumOfBounds, None, None, GuaranteeRate::GFS, &four).unwrap_err();
    assert_eq!(fault.to_string(), "a bound over 4h needs 4h of forecast, and there are 2 h");
}
