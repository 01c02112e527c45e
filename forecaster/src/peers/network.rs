//! Common parts of the networks among the peers.

use super::{deepar, linear, transformer};
use crate::baseline::Spread;
use crate::gaussian;
use crate::orglinear::{Begin, Scale, Weights};
use crate::predict::{Predict, PredictError};
use candle_core::{Device, Tensor};
use datasets::HourFeatures;
use datasets::window::Window;
use std::collections::BTreeMap;
use vocab::{DemandForecast, ForecastOrigin, HorizonHours, QUANTILE_LEVELS, SeriesId, StepForecast};

/// Result of tensor arithmetic.
pub type Result<T> = std::result::Result<T, candle_core::Error>;

/// Which network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkKind {
    /// Linear heads for trend and season (Zeng et al. 2023).
    DLinear,
    /// One linear head on differences to the last value (Zeng et al. 2023).
    NLinear,
    /// A recurrent network whose paths are drawn (Salinas et al. 2020).
    DeepAr,
    /// An encoder over patches of the window (Vaswani et al. 2017, Nie et al. 2023).
    Transformer,
}

impl NetworkKind {
    /// Whether the network says a point, to which the spread of its residuals is added.
    #[must_use]
    pub const fn is_point(self) -> bool {
        matches!(self, Self::DLinear | Self::NLinear)
    }

    /// Hours that a window must show.
    #[must_use]
    pub const fn lookback_hours_least(self) -> usize {
        match self {
            Self::DLinear | Self::NLinear => 1,
            Self::DeepAr => deepar::SEEN_HOURS,
            Self::Transformer => transformer::PATCH_HOURS,
        }
    }
}

/// Sizes of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Kind of the network.
    pub kind: NetworkKind,
    /// Hours that it sees.
    pub lookback_hours: usize,
    /// Steps of a forecast.
    pub steps: usize,
    /// How many series the network tells apart.
    pub series: usize,
}

impl Shape {
    /// Name, shape and beginning of every parameter, in the order in which they are drawn.
    #[must_use]
    pub fn parameters(&self) -> Vec<(String, Vec<usize>, Begin)> {
        match self.kind {
            NetworkKind::DLinear | NetworkKind::NLinear => linear::parameters(self),
            NetworkKind::DeepAr => deepar::parameters(self),
            NetworkKind::Transformer => transformer::parameters(self),
        }
    }
}

/// A network in parts, as a checkpoint holds it.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Kind of the network.
    pub kind: NetworkKind,
    /// Steps of a forecast, in hours.
    pub horizon: HorizonHours,
    /// Hours that it sees.
    pub lookback_hours: usize,
    /// The distribution that paths are drawn from.
    pub seed: u64,
    /// In the order of the embedding.
    pub series: Vec<SeriesId>,
    /// In that order.
    pub scales: Vec<Scale>,
    /// Weights of the network.
    pub weights: Weights,
    /// Of each series and step, in that order; empty for a network that says a distribution itself.
    pub spreads: Vec<Vec<Spread>>,
}

/// A trained network.
#[derive(Debug, Clone)]
pub struct Network {
    parts: Parts,
    index: BTreeMap<SeriesId, usize>,
    /// The matrix that predicts in place of a point network's weights: trend and season in one.
    folded: Option<linear::Folded>,
}

impl Network {
    /// # Errors
    /// The shapes of the weights do not fit together.
    pub fn from_parts(parts: Parts) -> Result<Self> {
        let index = parts.series.iter().cloned().enumerate().map(|(place, id)| (id, place)).collect();
        let mut network = Self { parts, index, folded: None };
        if network.parts.kind.is_point() {
            let shape = network.shape();
            let average = linear::average(&shape)?;
            network.folded = Some(linear::Folded::of(&network.parts.weights, &shape, average.as_ref())?);
        }
        Ok(network)
    }

    /// Parts that a checkpoint keeps.
    #[must_use]
    pub const fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Shape of the network.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let Parts { kind, horizon, lookback_hours, ref series, .. } = self.parts;
        Shape { kind, lookback_hours, steps: horizon.steps(), series: series.len() }
    }

    /// The same network with other spreads.
    #[must_use]
    pub(super) fn with_spreads(self, spreads: Vec<Vec<Spread>>) -> Self {
        Self { parts: Parts { spreads, ..self.parts }, ..self }
    }

    /// Where each window's series stands in the embedding.
    fn places(&self, windows: &[Window<'_>]) -> std::result::Result<Vec<usize>, PredictError> {
        let place = |window: &Window<'_>| {
            let (have, need) = (window.demand_gpus.len(), self.parts.lookback_hours);
            if have != need {
                return Err(PredictError::OtherLookback { have, need });
            }
            let unknown = || PredictError::UnknownSeries { series: window.series.clone() };
            self.index.get(window.series).copied().ok_or_else(unknown)
        };
        windows.iter().map(place).collect()
    }

    /// The steps of every window.
    fn steps(&self, windows: &[Window<'_>], places: &[usize]) -> Result<Vec<Vec<StepForecast>>> {
        let Parts { kind, lookback_hours, ref scales, ref weights, seed, .. } = self.parts;
        let mut inputs = Vec::with_capacity(windows.len() * lookback_hours);
        for (window, place) in windows.iter().zip(places) {
            scales[*place].scale_into(&window.demand_gpus, &mut inputs);
        }
        let inputs = Tensor::from_vec(inputs, (windows.len(), lookback_hours), &Device::Cpu)?;
        let calendars: Vec<&[HourFeatures]> = windows.iter().map(|window| window.targets).collect();
        let seen = Seen { inputs: &inputs, places, calendars: &calendars };
        if let Some(folded) = &self.folded {
            let points = folded.points(&inputs)?.to_vec2::<f32>()?;
            return Ok(points.iter().zip(places).map(|(points, place)| self.spread_out(points, *place)).collect());
        }
        if kind == NetworkKind::DeepAr {
            let draws = windows.iter().map(|window| deepar::draws(seed, window));
            return deepar::sample(weights, &self.shape(), &seen, draws.collect());
        }
        let (mean, stddev) = transformer::heads(weights, &self.shape(), &seen)?;
        let (mean, stddev) = (mean.to_vec2::<f32>()?, stddev.to_vec2::<f32>()?);
        let gaussian = |((mean, stddev), place): ((&Vec<f32>, &Vec<f32>), &usize)| {
            let scale = scales[*place];
            let step = |(mean, stddev): (&f32, &f32)| {
                gaussian_step(scale.back(f64::from(*mean)), f64::from(*stddev) * scale.deviation_gpus)
            };
            mean.iter().zip(stddev).map(step).collect()
        };
        Ok(mean.iter().zip(&stddev).zip(places).map(gaussian).collect())
    }

    /// The outputs of a point network, `[windows, steps]`, in its scale.
    pub(super) fn points(&self, inputs: &Tensor) -> Result<Tensor> {
        let none = || candle_core::Error::Msg("this network says no points".to_owned());
        self.folded.as_ref().ok_or_else(none)?.points(inputs)
    }

    /// Points with the spread of their residuals.
    fn spread_out(&self, points: &[f32], place: usize) -> Vec<StepForecast> {
        let scale = self.parts.scales[place];
        let step = |(point, spread): (&f32, &Spread)| {
            let point_gpus = scale.back(f64::from(*point));
            StepForecast {
                mean_gpus: point_gpus.max(0.0),
                stddev_gpus: spread.stddev_gpus,
                quantiles_gpus: spread.quantiles_gpus.map(|quantile| (point_gpus + quantile).max(0.0)),
            }
        };
        points.iter().zip(&self.parts.spreads[place]).map(step).collect()
    }
}

/// The inputs of a network for several windows.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// `[windows, lookback]`, in the network's scale.
    pub inputs: &'a Tensor,
    /// The series of each window.
    pub places: &'a [usize],
    /// Of the targets of each window.
    pub calendars: &'a [&'a [HourFeatures]],
}

/// Demand is never negative: what the Gaussian puts below zero counts as zero.
pub fn gaussian_step(mean_gpus: f64, stddev_gpus: f64) -> StepForecast {
    let quantiles_gpus = QUANTILE_LEVELS.map(|level| (mean_gpus + stddev_gpus * gaussian::quantile(level)).max(0.0));
    StepForecast { mean_gpus: mean_gpus.max(0.0), stddev_gpus, quantiles_gpus }
}

impl Predict for Network {
    fn lookback_hours(&self) -> usize {
        self.parts.lookback_hours
    }

    fn horizon(&self) -> HorizonHours {
        self.parts.horizon
    }

    fn knows(&self, series: &SeriesId) -> bool {
        self.index.contains_key(series)
    }

    fn predict(&self, windows: &[Window<'_>]) -> std::result::Result<Vec<DemandForecast>, PredictError> {
        let places = self.places(windows)?;
        let mut forecasts = Vec::with_capacity(windows.len());
        // Drawn paths need memory for each: some hundred windows at a time.
        for (windows, places) in windows.chunks(WINDOWS_AT_ONCE).zip(places.chunks(WINDOWS_AT_ONCE)) {
            for (window, steps) in windows.iter().zip(self.steps(windows, places)?) {
                let series = window.series.clone();
                forecasts.push(DemandForecast::new(series, window.issue, ForecastOrigin::Model, steps)?);
            }
        }
        Ok(forecasts)
    }
}

const WINDOWS_AT_ONCE: usize = 128;
