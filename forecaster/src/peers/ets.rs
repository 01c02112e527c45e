//! Exponential smoothing chosen by itself (Hyndman et al. 2002), season of a day, from the crate `anofox-forecast`.
//!
//! Each series for itself: of the models with additive or multiplicative error, no, additive or damped trend, and no or
//! additive season, the one with the least corrected information criterion of Akaike is kept (multiplicative season is left
//! out, since its variance has no closed form). Parameters are those of the whole history before; at an issue time the
//! state at its end is rolled through the hours of the window that came after it. Hours in between that the window does not
//! show are skipped with their place in the day. An hour that was not measured counts as forecast. The forecast is the
//! model's own Gaussian.

use super::network::gaussian_step;
use crate::fit::{Fit, FitError};
use crate::gaussian;
use crate::orglinear::learned_series;
use crate::predict::{Predict, PredictError};
use anofox_forecast::core::TimeSeries;
use anofox_forecast::error::ForecastError;
use anofox_forecast::models::Forecaster;
use anofox_forecast::models::exponential::{
    AutoETS, AutoETSConfig, ETS, ETSSeasonalType, ETSSpec, ErrorType, TrendType,
};
use anofox_forecast::models::incremental::{EtsState, IncrementalForecaster, ModelState};
use chrono::DateTime;
use datasets::window::Window;
use std::collections::BTreeMap;
use vocab::{DemandForecast, ForecastOrigin, HorizonHours, HourStart, SeriesId, StepForecast};

const SEASON_HOURS: usize = 24;
/// Share of the interval that is asked for; its upper end is the quantile 0.9.
const INTERVAL: f64 = 0.8;
const LEAST_STDDEV_GPUS: f64 = 1e-3;

/// A fitted series: what a checkpoint holds of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Smoothed(EtsState);

impl Smoothed {
    /// Numbers of [`Self::numbers`].
    pub const NUMBERS: usize = 13 + SEASON_HOURS;
    const ERRORS: [ErrorType; 2] = [ErrorType::Additive, ErrorType::Multiplicative];
    const TRENDS: [TrendType; 3] = [TrendType::None, TrendType::Additive, TrendType::AdditiveDamped];
    const SEASONS: [ETSSeasonalType; 2] = [ETSSeasonalType::None, ETSSeasonalType::Additive];

    /// Error, trend and season (places in the lists above), α, β, γ, φ, level, slope, hours, sum of squared residuals, the
    /// same of relative ones, sum of logarithms of forecasts, and the season from hour number 0. What a model lacks is 0.
    #[must_use]
    pub fn numbers(&self) -> Vec<f64> {
        let state = &self.0;
        let spec = state.spec;
        let place = |found: Option<usize>| found.unwrap_or(0) as f64;
        let mut numbers = vec![
            place(Self::ERRORS.iter().position(|one| *one == spec.error)),
            place(Self::TRENDS.iter().position(|one| *one == spec.trend)),
            place(Self::SEASONS.iter().position(|one| *one == spec.seasonal)),
            state.alpha,
            state.beta.unwrap_or(0.0),
            state.gamma.unwrap_or(0.0),
            state.phi.unwrap_or(0.0),
            state.level,
            state.trend,
            state.n as f64,
            state.sse,
            state.sse_lik,
            state.sum_log_fc,
        ];
        numbers.extend(&state.seasonals);
        numbers.resize(Self::NUMBERS, 0.0);
        numbers
    }

    /// `None` where these are not the numbers of a model.
    #[must_use]
    pub fn parse(numbers: &[f64]) -> Option<Self> {
        let (&[error, trend, season, alpha, beta, gamma, phi, level, slope, hours, sse, sse_lik, logs], seasonals) =
            numbers.split_first_chunk::<13>()?;
        let spec = ETSSpec::new(
            *Self::ERRORS.get(place(error)?)?,
            *Self::TRENDS.get(place(trend)?)?,
            *Self::SEASONS.get(place(season)?)?,
        );
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let is_known = seasonals.len() == SEASON_HOURS && [alpha, beta, gamma, phi].into_iter().all(is_share);
        let is_sum = sse >= 0.0 && sse_lik >= 0.0 && hours >= 1.0;
        (is_known && is_sum).then_some(Self(EtsState {
            spec,
            seasonal_period: if spec.has_seasonal() { SEASON_HOURS } else { 1 },
            alpha,
            beta: spec.has_trend().then_some(beta),
            gamma: spec.has_seasonal().then_some(gamma),
            phi: spec.is_damped().then_some(phi),
            level,
            trend: slope,
            seasonals: if spec.has_seasonal() { seasonals.to_vec() } else { Vec::new() },
            n: place(hours)?,
            sse,
            sse_lik,
            sum_log_fc: logs,
            optimize: false,
        }))
    }

    /// Fits the hours of a series, gaps filled.
    fn fit(demand_gpus: &[f64]) -> Result<Self, ForecastError> {
        // The crate wants timestamps and looks at their order alone.
        let hour = |hour: usize| DateTime::from_timestamp(hour as i64 * 3_600, 0).unwrap_or_default();
        let series = TimeSeries::univariate((0..demand_gpus.len()).map(hour).collect(), demand_gpus.to_vec())?;
        // The guard would cap what it takes for spikes: that is no longer the model of the literature.
        let config = AutoETSConfig {
            allow_multiplicative_seasonal: false,
            spike_trend_guard: false,
            ..AutoETSConfig::with_period(SEASON_HOURS)
        };
        let mut model = AutoETS::with_config(config);
        model.fit(&series)?;
        match model.state()? {
            ModelState::ETS(state) => Ok(Self(EtsState { optimize: false, ..state })),
            other => Err(ForecastError::InvalidParameter(format!("{} is no ETS", other.model_name()))),
        }
    }

    /// The model at the end of a window; the state is that at `until`.
    fn rolled(&self, until: HourStart, window: &Window<'_>) -> Result<ETS, ForecastError> {
        let hours = window.demand_gpus.len();
        let after = usize::try_from(window.issue.hours_since(until)).map_or(hours, |after| after.min(hours));
        let skipped = window.issue.plus_hours(-(after as i64)).hours_since(until);
        let mut state = self.0.clone();
        if !state.seasonals.is_empty() {
            state.seasonals.rotate_left(skipped.rem_euclid(SEASON_HOURS as i64) as usize);
        }
        let mut model = ETS::from_state(ModelState::ETS(state))?;
        for (gpus, measured) in window.demand_gpus.iter().zip(window.measured.iter()).skip(hours - after) {
            let expected = if *measured { *gpus } else { model.predict(1)?.primary()[0] };
            model.update(&[expected])?;
        }
        Ok(model)
    }
}

/// A whole number that counts or points.
fn place(number: f64) -> Option<usize> {
    (number >= 0.0 && number.fract() == 0.0 && number < 1e9).then_some(number as usize)
}

/// Exponential smoothing of every series.
#[derive(Debug, Clone)]
pub struct AutoEts {
    horizon: HorizonHours,
    lookback_hours: usize,
    /// The first hour after those that the states have seen.
    until: HourStart,
    series: BTreeMap<SeriesId, Smoothed>,
}

impl AutoEts {
    /// Fits the hours before `until`.
    ///
    /// # Errors
    /// Nothing was measured, or no model fits a series.
    pub fn fit(what: &Fit<'_>, until: HourStart) -> Result<Self, FitError> {
        let learned = learned_series(what.panel, what.split.train, &what.spec);
        if learned.is_empty() {
            return Err(FitError::NothingMeasured { issues: what.split.train });
        }
        let end = what.panel.index_of(until).unwrap_or(0).min(what.panel.hours());
        let fitted = |place: &usize| {
            let one = &what.panel.series()[*place];
            let start = one.first_measured().unwrap_or(end);
            let smoothed = Smoothed::fit(&one.demand_gpus()[start..end]);
            let fault =
                |fault: ForecastError| FitError::Smoothing { series: one.id().clone(), fault: fault.to_string() };
            Ok((one.id().clone(), smoothed.map_err(fault)?))
        };
        let series = learned.iter().map(fitted).collect::<Result<_, FitError>>()?;
        Ok(Self::from_parts(what.spec.horizon, what.spec.lookback_hours, until, series))
    }

    /// Puts a model together from its parts, as a checkpoint holds them.
    #[must_use]
    pub const fn from_parts(
        horizon: HorizonHours,
        lookback_hours: usize,
        until: HourStart,
        series: BTreeMap<SeriesId, Smoothed>,
    ) -> Self {
        Self { horizon, lookback_hours, until, series }
    }

    /// First hour that the states have not seen.
    #[must_use]
    pub const fn until(&self) -> HourStart {
        self.until
    }

    /// State of each series.
    #[must_use]
    pub const fn series(&self) -> &BTreeMap<SeriesId, Smoothed> {
        &self.series
    }

    fn predict_one(&self, window: &Window<'_>) -> Result<DemandForecast, PredictError> {
        let unknown = || PredictError::UnknownSeries { series: window.series.clone() };
        let smoothed = self.series.get(window.series).ok_or_else(unknown)?;
        if window.demand_gpus.len() != self.lookback_hours {
            return Err(PredictError::OtherLookback { have: window.demand_gpus.len(), need: self.lookback_hours });
        }
        let fault =
            |fault: ForecastError| PredictError::Smoothing { series: window.series.clone(), fault: fault.to_string() };
        let steps = self.steps(smoothed, window).map_err(fault)?;
        Ok(DemandForecast::new(window.series.clone(), window.issue, ForecastOrigin::Model, steps)?)
    }

    fn steps(&self, smoothed: &Smoothed, window: &Window<'_>) -> Result<Vec<StepForecast>, ForecastError> {
        let model = smoothed.rolled(self.until, window)?;
        let forecast = model.predict_with_intervals(self.horizon.steps(), INTERVAL)?;
        let deviations = gaussian::quantile(0.5 + INTERVAL / 2.0);
        let step =
            |(mean, upper): (&f64, &f64)| gaussian_step(*mean, ((upper - mean) / deviations).max(LEAST_STDDEV_GPUS));
        Ok(forecast.primary().iter().zip(forecast.upper_series(0)?).map(step).collect())
    }
}

impl Predict for AutoEts {
    fn lookback_hours(&self) -> usize {
        self.lookback_hours
    }

    fn horizon(&self) -> HorizonHours {
        self.horizon
    }

    fn knows(&self, series: &SeriesId) -> bool {
        self.series.contains_key(series)
    }

    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        windows.iter().map(|window| self.predict_one(window)).collect()
    }
}
