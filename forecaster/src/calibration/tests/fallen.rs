//! Means and medians follow the level at the end of an hour.

use super::*;
use vocab::{HourDemand, MilliGpus};

const TOP_GPUS: u32 = 62;
const BASE_GPUS: u32 = 50;

/// Two organizations at 50 GPUs, with peaks of 62 in two of five hours, at random, over by the end of them.
fn rows(hours: usize) -> Vec<Vec<u32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut draw = || if rng.random_bool(0.4) { TOP_GPUS } else { BASE_GPUS };
    (0..2).map(|_| (0..hours).map(|_| draw()).collect()).collect()
}

fn panel_of(rows: &[Vec<u32>], is_end_known: impl Fn(usize) -> bool) -> Panel {
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let mut builder = PanelBuilder::new(ClusterName::parse("earth").unwrap(), calendar, hour(0), hour(rows[0].len()));
    for (place, values) in rows.iter().enumerate() {
        for (number, gpus) in values.iter().enumerate() {
            let at_end = is_end_known(number).then(|| MilliGpus::from_gpus(BASE_GPUS));
            let demand = HourDemand { peak: MilliGpus::from_gpus(*gpus), at_end };
            builder.push_demand(&id(name(place)), hour(number), demand).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// A model that expects the peak of the last hour.
fn last_peaks(rows: &[Vec<u32>], issues: HourRange) -> Vec<Vec<DemandForecast>> {
    let of = |issue: HourStart, (place, values): (usize, &Vec<u32>)| {
        let last = values[(issue.hours_since(hour(0)) - 1) as usize];
        forecast_of(name(place), issue, f64::from(last), 6.0)
    };
    issues.iter().map(|issue| rows.iter().enumerate().map(|one| of(issue, one)).collect()).collect()
}

fn replayed(rows: &[Vec<u32>], panel: &Panel, issues: HourRange) -> (Vec<Issued>, Calibrator) {
    let raw = last_peaks(rows, issues);
    replay(Calibrator::new(horizon(), true), panel, issues, &raw, GuaranteeRate::GFS)
}

/// Mean absolute error of the medians, and mean squared error of the means, from an issue time on.
fn errors(panel: &Panel, issues: HourRange, issued: &[Issued], from: usize) -> [f64; 2] {
    let mut sums = [0.0; 3];
    for (issue, issued) in issues.iter().zip(issued).skip(from) {
        for forecast in &issued.forecasts {
            let place = panel.series().iter().position(|one| one.id() == forecast.series()).unwrap();
            for (ahead, step) in forecast.steps().iter().enumerate() {
                let actual = panel.series()[place].demand_gpus()[panel.index_of(issue).unwrap() + ahead];
                sums[0] += (actual - step.quantiles_gpus[0]).abs();
                sums[1] += (actual - step.mean_gpus).powi(2);
                sums[2] += 1.0;
            }
        }
    }
    [sums[0] / sums[2], sums[1] / sums[2]]
}

/// B_H under p and another rate, which no forecast exports a quantile at.
fn bounds_of(issued: &Issued, aggregation: Aggregation) -> Vec<f64> {
    let members: Vec<_> = issued.forecasts.iter().collect();
    let conformal = issued.conformal.values().next();
    let at = |rate| bounds(&members, aggregation, None, conformal, rate, &[HorizonHours::ONE, horizon()]).unwrap();
    let rates = [GuaranteeRate::GFS, GuaranteeRate::new(0.8).unwrap()];
    rates.into_iter().flat_map(at).map(|bound| bound.bound_gpus).collect()
}

fn is_same(one: &[f64], other: &[f64]) -> bool {
    // A mean that was lowered and raised again may differ in its last bit.
    one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-9)
}

#[test]
fn means_and_medians_follow_the_end_of_an_hour_and_upper_quantiles_and_bounds_stay() {
    let (rows, issues) = (rows(600), issues(1, 596));
    let (blind, seeing) = (panel_of(&rows, |_| false), panel_of(&rows, |_| true));
    let ((before, _), (after, calibrator)) = (replayed(&rows, &blind, issues), replayed(&rows, &seeing, issues));
    let ([mae, mse], [mae_seeing, mse_seeing]) =
        (errors(&blind, issues, &before, 200), errors(&seeing, issues, &after, 200));
    assert!(mae_seeing < 0.9 * mae && mse_seeing < 0.75 * mse, "{mae_seeing} of {mae}, {mse_seeing} of {mse}");
    for (one, other) in before.iter().zip(&after) {
        assert_eq!(one.conformal, other.conformal);
        for aggregation in [Aggregation::Independent, Aggregation::SumOfBounds, Aggregation::Mixture] {
            assert!(is_same(&bounds_of(one, aggregation), &bounds_of(other, aggregation)), "{aggregation}");
        }
        for (one, other) in one.forecasts.iter().zip(&other.forecasts) {
            let upper = |forecast: &DemandForecast| {
                let of = |step: &StepForecast| [step.quantiles_gpus[1], step.quantiles_gpus[2]];
                forecast.steps().iter().map(of).collect::<Vec<_>>()
            };
            assert_eq!(upper(one), upper(other));
        }
    }
    let restored = Calibrator::from_bytes(&calibrator.to_bytes()).unwrap();
    let raw = last_peaks(&rows, self::issues(599, 600));
    assert_eq!(restored.apply(&seeing, &raw[0]), calibrator.apply(&seeing, &raw[0]));
}

#[test]
fn an_hour_that_is_not_over_tells_nothing_of_its_end() {
    let (rows, issues) = (rows(300), issues(1, 290));
    let (seeing, until) = (panel_of(&rows, |_| true), panel_of(&rows, |hour| hour < 290));
    let ((all, _), (known, _)) = (replayed(&rows, &seeing, issues), replayed(&rows, &until, issues));
    assert_eq!(all, known);
}

#[test]
fn a_state_without_falls_is_the_one_of_before_and_its_sums_are_checked() {
    let (rows, issues) = (rows(100), issues(1, 90));
    let bytes = |is_end_known: bool| {
        let panel = panel_of(&rows, |_| is_end_known);
        replayed(&rows, &panel, issues).1.to_bytes()
    };
    assert_eq!((bytes(false)[5], bytes(true)[5]), (5, 6));
    let mut damaged = bytes(true);
    let squares = damaged.len() - 4 * 3 * size_of::<f64>();
    damaged[squares..squares + 8].copy_from_slice(&(-1.0_f64).to_le_bytes());
    let fault = Calibrator::from_bytes(&damaged).unwrap_err().to_string();
    assert!(fault.ends_with("sums of falls that are none"), "{fault}");
    damaged.truncate(squares);
    assert!(matches!(Calibrator::from_bytes(&damaged), Err(CalibratorError::CutOff { .. })));
}
