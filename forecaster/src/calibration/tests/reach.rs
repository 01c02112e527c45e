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
        let shares = calibrator.series[0].quantiles.shares();
        let mixed = shares[0].mix(&[Some(corrected), Some(stated), Some(24.2)]);
        let [_, q90, _] = issued[0].steps()[0].quantiles_gpus;
        // The residuals are those of numbers of 32 bits.
        assert!((q90 - mixed).abs() < 1e-3, "{hours} h: {q90}, {mixed}");
    }
}

#[test]
fn before_any_outcome_the_experts_on_quantiles_of_a_day_have_equal_weights() {
    let panel = panel(&[vec![10.5; 400]]);
    let mut calibrator = Calibrator::new(over(24), true);
    calibrator.observe(&panel, hour(100), &level(hour(100), 24, 20.0, 5.0));
    let mixed = calibrator.series[0].quantiles.shares()[0].mix(&[Some(3.0), Some(6.0), Some(9.0)]);
    assert!((mixed - 6.0).abs() < 1e-9, "{mixed}");
    let restored = Calibrator::from_bytes(&calibrator.to_bytes()).unwrap();
    assert_eq!(restored.to_bytes(), calibrator.to_bytes());
}
