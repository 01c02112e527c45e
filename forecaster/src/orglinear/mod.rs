//! OrgLinear (GFS §3.2): a linear model of the decomposed window with the organization's and the calendar's context,
//! whose heads give the mean and the deviation of a Gaussian for each step.

mod config;
mod decompose;
mod forward;
#[cfg(test)]
mod golden;
mod init;
mod samples;
mod scaling;
mod train;
mod weights;

pub(crate) use decompose::transposed as moving_average_transposed;
pub(crate) use init::{draw, normal};
pub(crate) use samples::{Batch, Source, learned_series};
pub(crate) use scaling::scales;
pub(crate) use weights::Begin;

pub use config::{AttentionScaling, CalendarInput, Config, EpochChoice, InputScaling, Padding, ZeroTargets};
pub use scaling::Scale;
pub use weights::{Shape, Weights};

use crate::gaussian;
use crate::predict::{Predict, PredictError};
use candle_core::{Device, Tensor};
use datasets::window::Window;
use forward::Folded;
use std::collections::BTreeMap;
use vocab::{DemandForecast, ForecastOrigin, HorizonHours, QUANTILE_LEVELS, SeriesId, StepForecast};

/// A trained OrgLinear.
#[derive(Debug, Clone)]
pub struct OrgLinear {
    config: Config,
    horizon: HorizonHours,
    lookback_hours: usize,
    /// In the order of the organization embedding.
    series: Vec<SeriesId>,
    index: BTreeMap<SeriesId, usize>,
    scales: Vec<Scale>,
    weights: Weights,
    folded: Folded,
}

impl OrgLinear {
    /// Puts a model together from its parts, as training or a checkpoint holds them.
    ///
    /// # Errors
    /// The shapes of the weights do not fit together.
    pub fn from_parts(
        config: Config,
        horizon: HorizonHours,
        lookback_hours: usize,
        series: Vec<SeriesId>,
        scales: Vec<Scale>,
        weights: Weights,
    ) -> Result<Self, candle_core::Error> {
        let shape = Shape::new(&config, horizon, lookback_hours, &series);
        let folded = Folded::new(&weights, &shape, &config)?;
        let index = series.iter().cloned().enumerate().map(|(place, id)| (id, place)).collect();
        Ok(Self { config, horizon, lookback_hours, series, index, scales, weights, folded })
    }

    /// Sizes and variant.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The series that it was trained on, in the order of their weights.
    #[must_use]
    pub fn series(&self) -> &[SeriesId] {
        &self.series
    }

    /// Scale of each series, `[series]`.
    #[must_use]
    pub fn scales(&self) -> &[Scale] {
        &self.scales
    }

    /// All weights.
    #[must_use]
    pub const fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Where each window's series stands in the embedding.
    fn places(&self, windows: &[Window<'_>]) -> Result<Vec<usize>, PredictError> {
        let place = |window: &Window<'_>| {
            if window.demand_gpus.len() != self.lookback_hours {
                let (have, need) = (window.demand_gpus.len(), self.lookback_hours);
                return Err(PredictError::OtherLookback { have, need });
            }
            let unknown = || PredictError::UnknownSeries { series: window.series.clone() };
            self.index.get(window.series).copied().ok_or_else(unknown)
        };
        windows.iter().map(place).collect()
    }

    /// Mean and deviation in the model's scale, each `[windows, steps]`.
    fn heads(&self, windows: &[Window<'_>], places: &[usize]) -> Result<(Tensor, Tensor), candle_core::Error> {
        let mut inputs = Vec::with_capacity(windows.len() * self.lookback_hours);
        for (window, place) in windows.iter().zip(places) {
            self.scales[*place].scale_into(&window.demand_gpus, &mut inputs);
        }
        let inputs = Tensor::from_vec(inputs, (windows.len(), self.lookback_hours), &Device::Cpu)?;
        let targets: Vec<_> = windows.iter().map(|window| window.targets).collect();
        self.folded.heads(&inputs, places, &targets)
    }
}

impl Predict for OrgLinear {
    fn lookback_hours(&self) -> usize {
        self.lookback_hours
    }

    fn horizon(&self) -> HorizonHours {
        self.horizon
    }

    fn knows(&self, series: &SeriesId) -> bool {
        self.index.contains_key(series)
    }

    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        if windows.is_empty() {
            return Ok(Vec::new());
        }
        let places = self.places(windows)?;
        let (mean, stddev) = self.heads(windows, &places)?;
        let (mean, stddev) = (mean.to_vec2::<f32>()?, stddev.to_vec2::<f32>()?);
        let levels = QUANTILE_LEVELS.map(gaussian::quantile);
        let mut forecasts = Vec::with_capacity(windows.len());
        for (row, (window, place)) in windows.iter().zip(&places).enumerate() {
            let scale = self.scales[*place];
            let step = |(mean, stddev): (&f32, &f32)| step(scale, f64::from(*mean), f64::from(*stddev), levels);
            let steps = mean[row].iter().zip(&stddev[row]).map(step).collect();
            let forecast = DemandForecast::new(window.series.clone(), window.issue, ForecastOrigin::Model, steps)?;
            forecasts.push(forecast);
        }
        Ok(forecasts)
    }
}

/// Demand is never negative: what the Gaussian puts below zero counts as zero.
fn step(scale: Scale, mean: f64, stddev: f64, levels: [f64; 3]) -> StepForecast {
    let (mean_gpus, stddev_gpus) = (scale.back(mean), stddev * scale.deviation_gpus);
    let quantiles_gpus = levels.map(|level| (mean_gpus + stddev_gpus * level).max(0.0));
    StepForecast { mean_gpus: mean_gpus.max(0.0), stddev_gpus, quantiles_gpus }
}
