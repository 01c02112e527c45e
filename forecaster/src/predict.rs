//! The one trait behind which every model answers.

use crate::cold_start::cold_start;
use crate::left::{Leaving, left};
use datasets::window::{self, Window};
use datasets::{HourRange, Panel};
use vocab::{DemandForecast, ForecastError, HorizonHours, HourStart, SeriesId};

/// Why a model could not predict.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The forecast is no distribution.
    #[error("the model rejected itself: {0}")]
    Rejected(#[from] ForecastError),
    /// The model has no such series.
    #[error("the model knows no series {series}")]
    UnknownSeries {
        /// The series that training did not know.
        series: SeriesId,
    },
    /// The window has another length than the model sees.
    #[error("a window of {have} h was given to a model that looks back {need} h")]
    OtherLookback {
        /// Hours of the window.
        have: usize,
        /// Hours that the model needs.
        need: usize,
    },
    /// Exponential smoothing failed for a series.
    #[error("exponential smoothing of {series} failed: {fault}")]
    Smoothing {
        /// The series.
        series: SeriesId,
        /// The fault of the library.
        fault: String,
    },
    /// The bound failed.
    #[error(transparent)]
    Bound(crate::bound::BoundError),
    /// The arithmetic failed.
    #[error("the arithmetic of the model failed: {0}")]
    Arithmetic(#[from] candle_core::Error),
}

/// A fitted model.
pub trait Predict: Send + Sync {
    /// Hours before the issue time that a window must hold.
    fn lookback_hours(&self) -> usize;

    /// Hours that a window must hold at least, where the history is shorter than the lookback.
    fn least_hours(&self) -> usize {
        self.lookback_hours()
    }

    /// Steps of every forecast.
    fn horizon(&self) -> HorizonHours;

    /// Whether a series that has left is forecast by the rule for it, and no longer by the model. Peers and baselines show
    /// what they are.
    fn notices_leaving(&self) -> bool {
        false
    }

    /// Whether the series came back after a pause in the history that the model learned from: then it has left later.
    fn has_returned(&self, _series: &SeriesId) -> bool {
        false
    }

    /// Whether it can forecast the series; one that it cannot is forecast by the cold-start rule.
    fn knows(&self, series: &SeriesId) -> bool;

    /// One forecast for each window, in their order.
    ///
    /// # Errors
    /// A window is of another length, its series unknown, or a result is no distribution.
    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError>;
}

/// Forecasts every series of the panel at one issue time, in the panel's order: by the model where it knows the series
/// and the history is long enough, else by the cold-start rule, and nothing for one that has left (see
/// [`vocab::ForecastOrigin`]).
///
/// # Errors
/// As [`Predict::predict`].
///
/// # Panics
/// When `issue` is past the panel's end.
pub fn forecast(model: &dyn Predict, panel: &Panel, issue: HourStart) -> Result<Vec<DemandForecast>, PredictError> {
    let mut windows = Vec::with_capacity(panel.series().len());
    let mut ruled = Vec::new();
    let mut leaving = Leaving::at(panel, issue);
    for (index, series) in panel.series().iter().enumerate() {
        if model.notices_leaving() && leaving.has_left(index, model.has_returned(series.id())) {
            ruled.push((index, left(panel, index, issue, model.horizon())?));
            continue;
        }
        match window::at_least(panel, index, issue, model.lookback_hours(), model.least_hours(), model.horizon()) {
            Ok(window) if model.knows(series.id()) => windows.push(window),
            _ => ruled.push((index, cold_start(panel, index, issue, model.horizon())?)),
        }
    }
    // Where every organization has left, or there is none, no model has to be asked.
    let warm = if windows.is_empty() { Vec::new() } else { model.predict(&windows)? };
    let mut warm = warm.into_iter();
    let mut ruled = ruled.into_iter().peekable();
    let one = |index| match ruled.next_if(|(place, _)| *place == index) {
        Some((_, forecast)) => forecast,
        None => warm.next().expect("one forecast for each window"),
    };
    Ok((0..panel.series().len()).map(one).collect())
}

/// Forecasts at every issue time of a range, as the service would have issued them: `[issue time][series]`.
///
/// # Errors
/// As [`Predict::predict`].
pub fn roll(model: &dyn Predict, panel: &Panel, issues: HourRange) -> Result<Vec<Vec<DemandForecast>>, PredictError> {
    issues.iter().map(|issue| forecast(model, panel, issue)).collect()
}
