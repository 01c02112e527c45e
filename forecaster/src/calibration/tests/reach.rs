//! Corrections of organizations, by how far forecasts reach.

use super::super::residual::{code, value};
use super::*;

fn over(hours: u64) -> HorizonHours {
    HorizonHours::new(hours).unwrap()
}

/// The same step at every hour of the horizon.
fn level(issue: HourStart, hours: u64, mean_gpus: f64, stddev_gpus: f64) -> Vec<DemandForecast> {
    let steps = vec![gaussian_step(mean_gpus, stddev_gpus); hours as usize];
    vec![DemandForecast::new(id("a"), issue, ForecastOrigin::Model, steps).unwrap()]
}

#[test]
fn over_a_day_a_level_that_the_forecasts_have_followed_moves_them_no_further() {
    let demand = noise(400, 10, |hour| if hour < 300 { 10.0 } else { 40.0 }, 0.5);
    let panel = panel(std::slice::from_ref(&demand));
    let mut calibrator = Calibrator::new(over(24), true);
    for at in 100..304 {
        calibrator.observe(&panel, hour(at), &level(hour(at), 24, demand[at - 1], 3.0));
    }
    // Most of the hours after the last twelve of these were above the 0.9 quantile: their forecasts were issued before the jump.
    let raw = level(hour(328), 24, demand[327], 3.0);
    let step = |forecasts: &[DemandForecast]| forecasts[0].steps()[5];
    let [issued, raw] = [step(&calibrator.apply(&panel, &raw)), step(&raw)];
    assert!((issued.quantiles_gpus[1] - raw.quantiles_gpus[1]).abs() < 6.0, "{issued:?}, {raw:?}");
}

#[test]
fn over_a_day_the_order_statistics_of_a_week_correct_by_half() {
    // Between the median and the 0.9 quantile of the model.
    let panel = panel(&[vec![24.2; 400]]);
    for (hours, part) in [(4, 1.0), (24, 0.5)] {
        let mut calibrator = Calibrator::new(over(hours), true);
        (180..300).map(hour).for_each(|at| calibrator.observe(&panel, at, &level(at, hours, 20.0, 5.0)));
        let raw = level(hour(330), hours, 20.0, 5.0);
        let issued = calibrator.apply(&panel, &raw);
        let stated = raw[0].steps()[0].quantiles_gpus[1];
        let corrected = stated + part * 5.0 * value(code((24.2 - stated) / 5.0));
        let seasonal = if hours > 4 { 24.2 } else { f64::NAN };
        let mut shares = calibrator.series[0].quantiles.shares();
        let mixed = shares[0].mix(&[corrected, stated, 24.2, seasonal, seasonal]);
        let [_, q90, _] = issued[0].steps()[0].quantiles_gpus;
        // The residuals are those of numbers of 32 bits.
        assert!((q90 - mixed).abs() < 1e-3, "{hours} h: {q90}, {mixed}");
    }
}

#[test]
fn before_any_outcome_three_experts_on_quantiles_of_a_day_have_equal_weights_and_earlier_days_a_little() {
    let panel = panel(&[vec![10.5; 400]]);
    let mut calibrator = Calibrator::new(over(24), true);
    calibrator.observe(&panel, hour(100), &level(hour(100), 24, 20.0, 5.0));
    let mixed = calibrator.series[0].quantiles.shares()[0].mix(&[3.0, 6.0, 9.0, 16.0, 26.0]);
    assert!((mixed - (6.0 * 0.94 + 42.0 * 0.03)).abs() < 1e-9, "{mixed}");
    let restored = Calibrator::from_bytes(&calibrator.to_bytes()).unwrap();
    assert_eq!(restored.to_bytes(), calibrator.to_bytes());
}

#[test]
fn the_mean_follows_its_errors_by_a_quarter_of_its_deviation_at_most() {
    // Eight GPUs fewer than forecast for a week, where the model expects next to no change, and where it expects some.
    let panel = panel(&[vec![32.0; 400]]);
    for (stddev_gpus, expected_gpus, within) in [(0.2, 39.95, 1e-9), (0.01, 39.9875, 1e-9), (50.0, 38.1, 0.1)] {
        let mut calibrator = Calibrator::new(over(4), true);
        (100..300).map(hour).for_each(|at| calibrator.observe(&panel, at, &level(at, 4, 40.0, stddev_gpus)));
        let issued = calibrator.apply(&panel, &level(hour(304), 4, 40.0, stddev_gpus));
        let mean_gpus = issued[0].steps()[3].mean_gpus;
        assert!((mean_gpus - expected_gpus).abs() < within, "{stddev_gpus}: {mean_gpus}");
    }
}
