//! Rules that need no training but a spread: what every model has to beat.

use crate::fit::{Fit, FitError};
use crate::gaussian::empirical_quantile;
use crate::predict::{Predict, PredictError};
use datasets::HourRange;
use datasets::window::{self, Window};
use std::collections::BTreeMap;
use vocab::{DemandForecast, ForecastOrigin, HorizonHours, QUANTILE_LEVELS, SeriesId, StepForecast};

/// A deviation below this is no deviation; the scorer floors at the same value.
const LEAST_STDDEV_GPUS: f64 = 1e-3;

/// How a baseline guesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The last value stays.
    LastValue,
    /// The value `period_hours` before the target (or the nearest multiple that is known at the issue time).
    Seasonal {
        /// Hours of the season: 24 or 168.
        period_hours: usize,
    },
    /// The largest of the last `hours` hours, as a point forecast: what the production cluster of GFS used before
    /// (§4.6.1).
    Peak {
        /// Hours whose highest value counts.
        hours: usize,
    },
}

impl Rule {
    /// Hours that the rule needs to see.
    #[must_use]
    pub const fn lookback_hours(self) -> usize {
        match self {
            Self::LastValue => 1,
            Self::Seasonal { period_hours } => period_hours,
            Self::Peak { hours } => hours,
        }
    }

    /// The guess for step `step` (0 is the hour that starts at the issue time), in GPUs.
    fn guess_gpus(self, seen: &[f64], step: usize) -> f64 {
        match self {
            Self::LastValue => seen[seen.len() - 1],
            Self::Seasonal { period_hours } => seen[seen.len() - period_hours + step % period_hours],
            Self::Peak { hours } => seen[seen.len() - hours..].iter().copied().fold(0.0, f64::max),
        }
    }
}

/// The spread of a rule's residuals at one step of one series, in GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Standard deviation of the differences, in GPUs.
    pub stddev_gpus: f64,
    /// The addition to the guess at each of [`QUANTILE_LEVELS`].
    pub quantiles_gpus: [f64; 3],
}

/// A rule with the spread of its residuals.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    rule: Rule,
    horizon: HorizonHours,
    lookback_hours: usize,
    spreads: BTreeMap<SeriesId, Vec<Spread>>,
}

impl Baseline {
    /// Measures the spread of the rule's residuals at the issue times `issues`, each series and step for itself. Issue
    /// times of which a target was not measured are left out.
    ///
    /// # Errors
    /// The lookback is shorter than the rule needs, or no issue time has all its targets measured.
    pub fn fit(rule: Rule, fit: &Fit<'_>, issues: HourRange) -> Result<Self, FitError> {
        let (lookback_hours, horizon) = (fit.spec.lookback_hours, fit.spec.horizon);
        if lookback_hours < rule.lookback_hours() {
            return Err(FitError::ShortLookback { have: lookback_hours, need: rule.lookback_hours() });
        }
        let mut spreads = BTreeMap::new();
        for (index, series) in fit.panel.series().iter().enumerate() {
            let residuals = residuals(rule, fit, index, issues);
            if !residuals[0].is_empty() {
                spreads.insert(series.id().clone(), residuals.into_iter().map(|r| spread(rule, r)).collect());
            }
        }
        if spreads.is_empty() {
            return Err(FitError::NothingMeasured { issues });
        }
        Ok(Self { rule, horizon, lookback_hours, spreads })
    }

    /// Puts a baseline together from its parts, as a checkpoint holds them.
    #[must_use]
    pub fn from_parts(
        rule: Rule,
        horizon: HorizonHours,
        lookback_hours: usize,
        spreads: BTreeMap<SeriesId, Vec<Spread>>,
    ) -> Self {
        Self { rule, horizon, lookback_hours, spreads }
    }

    /// The spread of each series and step.
    #[must_use]
    pub const fn spreads(&self) -> &BTreeMap<SeriesId, Vec<Spread>> {
        &self.spreads
    }
}

/// Residuals of one series: `[step][issue time]`, in GPUs.
fn residuals(rule: Rule, fit: &Fit<'_>, series: usize, issues: HourRange) -> Vec<Vec<f64>> {
    let mut residuals = vec![Vec::new(); fit.spec.horizon.steps()];
    for issue in issues.iter() {
        let seen = window::at(fit.panel, series, issue, fit.spec.lookback_hours, fit.spec.horizon);
        let came = window::outcome(fit.panel, series, issue, fit.spec.horizon);
        if let (Ok(seen), Some(came)) = (seen, came)
            && came.measured.iter().all(|&measured| measured)
        {
            for (step, actual) in came.demand_gpus.iter().enumerate() {
                residuals[step].push(actual - rule.guess_gpus(&seen.demand_gpus, step));
            }
        }
    }
    residuals
}

fn spread(rule: Rule, mut residuals: Vec<f64>) -> Spread {
    if matches!(rule, Rule::Peak { .. }) {
        return Spread { stddev_gpus: 0.0, quantiles_gpus: [0.0; 3] };
    }
    residuals.sort_by(f64::total_cmp);
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let [_, q90, q95] = QUANTILE_LEVELS.map(|level| empirical_quantile(&residuals, level).unwrap_or(0.0).max(0.0));
    // The guess itself is the median: what a rule says is what it is measured by.
    Spread {
        stddev_gpus: (squares / residuals.len() as f64).sqrt().max(LEAST_STDDEV_GPUS),
        quantiles_gpus: [0.0, q90, q95],
    }
}

impl Predict for Baseline {
    fn lookback_hours(&self) -> usize {
        self.lookback_hours
    }

    fn horizon(&self) -> HorizonHours {
        self.horizon
    }

    fn knows(&self, series: &SeriesId) -> bool {
        self.spreads.contains_key(series)
    }

    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        windows.iter().map(|window| self.predict_one(window)).collect()
    }
}

impl Baseline {
    fn predict_one(&self, window: &Window<'_>) -> Result<DemandForecast, PredictError> {
        let unknown = || PredictError::UnknownSeries { series: window.series.clone() };
        let spreads = self.spreads.get(window.series).ok_or_else(unknown)?;
        if window.demand_gpus.len() != self.lookback_hours {
            return Err(PredictError::OtherLookback { have: window.demand_gpus.len(), need: self.lookback_hours });
        }
        let step = |(step, spread): (usize, &Spread)| {
            let mean_gpus = self.rule.guess_gpus(&window.demand_gpus, step);
            let quantiles_gpus = spread.quantiles_gpus.map(|quantile| mean_gpus + quantile);
            StepForecast { mean_gpus, stddev_gpus: spread.stddev_gpus, quantiles_gpus }
        };
        let steps = spreads.iter().enumerate().map(step).collect();
        Ok(DemandForecast::new(window.series.clone(), window.issue, ForecastOrigin::Model, steps)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_looks_where_it_says() {
        let seen: Vec<f64> = (0..48).map(f64::from).collect();
        assert_eq!(Rule::LastValue.guess_gpus(&seen, 3), 47.0);
        assert_eq!(Rule::Seasonal { period_hours: 24 }.guess_gpus(&seen, 3), 27.0);
        assert_eq!(Rule::Seasonal { period_hours: 24 }.guess_gpus(&seen, 27), 27.0, "the day after next");
        assert_eq!(Rule::Peak { hours: 10 }.guess_gpus(&seen, 0), 47.0);
    }

    #[test]
    fn the_spread_is_that_of_the_residuals() {
        let spread = spread(Rule::LastValue, vec![-1.0, 0.0, 1.0, 2.0, 4.0]);
        assert!((spread.stddev_gpus - 4.4_f64.sqrt()).abs() < 1e-12);
        assert!((spread.quantiles_gpus[1] - 3.2).abs() < 1e-12);
        assert_eq!(spread.quantiles_gpus[0], 0.0);
    }
}
