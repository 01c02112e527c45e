//! Losses kept apart by issue time and step, so that two runs can be compared on the rows that both have.

use super::series::pinball;
use datasets::{HourRange, Panel, window};
use vocab::{DemandForecast, HorizonHours, HourStart};

/// Of the quantile that is compared.
const LEVEL: f64 = 0.9;
const PLACE: usize = 1;

/// The losses of one step of the forecasts of all series.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StepLoss {
    /// Series that were measured.
    pub rows: u32,
    /// Sum of their pinball losses at 0.9, in GPUs.
    pub loss_gpus: f64,
}

/// The losses of one issue time, step by step.
#[derive(Debug, Clone, PartialEq)]
pub struct IssueLosses {
    /// The issue hour.
    pub issue: HourStart,
    /// Loss of each step.
    pub steps: Vec<StepLoss>,
}

/// The losses of forecasts `[issue time][series]` over the first steps of each.
#[must_use]
pub fn losses(
    panel: &Panel,
    issues: HourRange,
    rolled: &[Vec<DemandForecast>],
    horizon: HorizonHours,
) -> Vec<IssueLosses> {
    let of_issue = |(issue, forecasts): (HourStart, &Vec<DemandForecast>)| {
        let mut steps = vec![StepLoss::default(); horizon.steps()];
        for (series, forecast) in forecasts.iter().enumerate() {
            let Some(came) = window::outcome(panel, series, issue, horizon) else { continue };
            for (index, (sum, step)) in steps.iter_mut().zip(forecast.steps()).enumerate() {
                if came.measured[index] {
                    sum.rows += 1;
                    sum.loss_gpus += pinball(came.demand_gpus[index], step.quantiles_gpus[PLACE], LEVEL);
                }
            }
        }
        IssueLosses { issue, steps }
    };
    issues.iter().zip(rolled).map(of_issue).collect()
}
