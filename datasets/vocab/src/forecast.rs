//! Demand forecasts: a distribution per hour, checked to be one.

use crate::{HourStart, SeriesId};

/// The quantiles that every forecast exports, in this order.
pub const QUANTILE_LEVELS: [f64; 3] = [0.5, 0.9, 0.95];

/// Above any amount of GPUs that the rest of the system can hold: a model that says so has exploded.
const LIMIT_GPUS: f64 = crate::MilliGpus::MAX_GPUS as f64;

/// Why a forecast was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ForecastError {
    #[error("{series}, issued {issue}, step {step}: {name} is {value}, not a finite number below a billion GPUs")]
    NotFinite { series: SeriesId, issue: HourStart, step: usize, name: &'static str, value: f64 },
    #[error("{series}, issued {issue}, step {step}: the standard deviation {stddev_gpus} is negative")]
    NegativeDeviation { series: SeriesId, issue: HourStart, step: usize, stddev_gpus: f64 },
    #[error("{series}, issued {issue}, step {step}: quantiles cross ({quantiles_gpus:?})")]
    Crossing { series: SeriesId, issue: HourStart, step: usize, quantiles_gpus: [f64; 3] },
    #[error("{series}, issued {issue}: a forecast needs at least one step")]
    NoSteps { series: SeriesId, issue: HourStart },
}

/// Where a forecast comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForecastOrigin {
    /// The trained model.
    Model,
    /// The conservative rule for a series without enough history or unknown to the model.
    ColdStart,
    /// The rule for a series without demand, or without rows, for so long that it counts as gone: nothing.
    Left,
}

/// The distribution of one hour's demand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepForecast {
    /// Mean of the demand.
    pub mean_gpus: f64,
    /// Of the Gaussian with `mean_gpus`; zero for a point forecast.
    pub stddev_gpus: f64,
    /// At [`QUANTILE_LEVELS`], non-decreasing.
    pub quantiles_gpus: [f64; 3],
}

/// Forecast demand of one series, for each of the next hours.
#[derive(Debug, Clone, PartialEq)]
pub struct DemandForecast {
    series: SeriesId,
    issue: HourStart,
    origin: ForecastOrigin,
    steps: Vec<StepForecast>,
    /// By which the means were lowered, step by step, in GPUs; empty where they were not.
    lowered_gpus: Vec<f64>,
}

impl DemandForecast {
    /// `steps[k]` is the hour that starts `k` hours after `issue`, the first instant that the model has not seen.
    ///
    /// # Errors
    /// A value is not finite or absurdly large, a deviation is negative, or quantiles cross.
    pub fn new(
        series: SeriesId,
        issue: HourStart,
        origin: ForecastOrigin,
        steps: Vec<StepForecast>,
    ) -> Result<Self, ForecastError> {
        if steps.is_empty() {
            return Err(ForecastError::NoSteps { series, issue });
        }
        if let Some(index) = steps.iter().position(|step| !step.is_distribution()) {
            steps[index].check(&series, issue, index + 1)?;
        }
        Ok(Self { series, issue, origin, steps, lowered_gpus: Vec::new() })
    }

    /// Series of the forecast.
    #[must_use]
    pub const fn series(&self) -> &SeriesId {
        &self.series
    }

    /// Issue time: the start of the first forecast hour.
    #[must_use]
    pub const fn issue(&self) -> HourStart {
        self.issue
    }

    /// Model or rule behind the forecast.
    #[must_use]
    pub const fn origin(&self) -> ForecastOrigin {
        self.origin
    }

    /// Notes by how many GPUs the mean of each step was lowered, while its upper quantiles stayed: bounds take the means of before.
    #[must_use]
    pub fn with_lowered_means(self, lowered_gpus: Vec<f64>) -> Self {
        Self { lowered_gpus, ..self }
    }

    /// The mean of a step, counted from 0, before it was lowered, in GPUs: what bounds rest on.
    ///
    /// # Panics
    /// There is no such step.
    #[must_use]
    pub fn mean_for_bounds_gpus(&self, step: usize) -> f64 {
        self.steps[step].mean_gpus + self.lowered_gpus.get(step).copied().unwrap_or(0.0)
    }

    /// One entry for each hour, in order.
    #[must_use]
    pub fn steps(&self) -> &[StepForecast] {
        &self.steps
    }
}

impl StepForecast {
    /// Whether [`check`](Self::check) finds no fault: a few comparisons, where that names what it compares.
    fn is_distribution(&self) -> bool {
        let [q50, q90, q95] = self.quantiles_gpus;
        // NaN is not below the limit.
        let is_finite = [self.mean_gpus, self.stddev_gpus, q50, q90, q95].iter().all(|value| value.abs() < LIMIT_GPUS);
        is_finite && self.stddev_gpus >= 0.0 && q50 <= q90 && q90 <= q95
    }

    fn check(&self, series: &SeriesId, issue: HourStart, step: usize) -> Result<(), ForecastError> {
        let [q50, q90, q95] = self.quantiles_gpus;
        let named =
            [("mean", self.mean_gpus), ("stddev", self.stddev_gpus), ("q0.5", q50), ("q0.9", q90), ("q0.95", q95)];
        if let Some(&(name, value)) = named.iter().find(|(_, value)| !(value.is_finite() && value.abs() < LIMIT_GPUS)) {
            return Err(ForecastError::NotFinite { series: series.clone(), issue, step, name, value });
        }
        if self.stddev_gpus < 0.0 {
            let stddev_gpus = self.stddev_gpus;
            return Err(ForecastError::NegativeDeviation { series: series.clone(), issue, step, stddev_gpus });
        }
        if q50 > q90 || q90 > q95 {
            let quantiles_gpus = self.quantiles_gpus;
            return Err(ForecastError::Crossing { series: series.clone(), issue, step, quantiles_gpus });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Organization, PoolId};

    fn forecast(step: StepForecast) -> Result<DemandForecast, ForecastError> {
        forecast_of(vec![step])
    }

    fn forecast_of(steps: Vec<StepForecast>) -> Result<DemandForecast, ForecastError> {
        let pool = PoolId::parse("earth:V100").expect("a pool");
        let series = SeriesId { pool, organization: Organization::parse("vc1").expect("a name") };
        let issue = HourStart::from_unix_s(0).expect("on the grid");
        DemandForecast::new(series, issue, ForecastOrigin::Model, steps)
    }

    const GOOD: StepForecast = StepForecast { mean_gpus: 5.0, stddev_gpus: 1.0, quantiles_gpus: [5.0, 6.3, 6.6] };

    #[test]
    fn a_forecast_that_is_no_distribution_is_refused_with_its_place() {
        assert!(forecast(GOOD).is_ok());
        let fault = forecast(StepForecast { mean_gpus: f64::NAN, ..GOOD }).expect_err("NaN is no demand");
        assert_eq!(
            fault.to_string(),
            "earth:V100:vc1, issued 1970-01-01T00:00:00Z, step 1: mean is NaN, not a finite number below a billion GPUs"
        );
        assert!(matches!(
            forecast(StepForecast { mean_gpus: 1e12, ..GOOD }),
            Err(ForecastError::NotFinite { name: "mean", .. })
        ));
        assert!(matches!(
            forecast(StepForecast { stddev_gpus: -1.0, ..GOOD }),
            Err(ForecastError::NegativeDeviation { .. })
        ));
        assert!(matches!(
            forecast(StepForecast { quantiles_gpus: [5.0, 4.0, 6.0], ..GOOD }),
            Err(ForecastError::Crossing { .. })
        ));
    }

    #[test]
    fn every_step_is_checked_and_the_first_fault_is_named() {
        let limit = StepForecast { mean_gpus: -(1e9 - 1.0), stddev_gpus: 0.0, quantiles_gpus: [-3.0, -3.0, 1e9 - 1.0] };
        assert!(forecast_of(vec![GOOD, limit, GOOD]).is_ok());
        let negative = StepForecast { stddev_gpus: -1e-9, ..GOOD };
        let unknown = StepForecast { quantiles_gpus: [5.0, 6.3, f64::NAN], ..GOOD };
        let step_of = |steps| forecast_of(steps).expect_err("no distribution").to_string();
        assert!(step_of(vec![GOOD, GOOD, negative, unknown]).contains("step 3: the standard deviation"));
        assert!(step_of(vec![GOOD, unknown, negative]).contains("step 2: q0.95 is NaN"));
    }
}
