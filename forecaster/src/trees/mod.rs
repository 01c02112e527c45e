//! Boosted trees: a forest for the mean, each exported quantile and the spread of each step.
//!
//! All series share them. Targets are differences to the last value in deviations of their series, so that forests without
//! trees say "the last value stays", and large and small organizations teach each other.

mod binned;
mod booster;
mod features;
mod fit;
mod forest;
mod samples;
#[cfg(test)]
mod tests;

pub use booster::Growth;
pub use forest::{Forest, Node};

use crate::predict::{Predict, PredictError};
use datasets::window::Window;
use features::Features;
use std::collections::BTreeMap;
use vocab::{DemandForecast, ForecastOrigin, HorizonHours, SeriesId, StepForecast};

/// Forests of a step, in the order mean, quantiles 0.5, 0.9 and 0.95, spread.
pub const FORESTS_PER_STEP: usize = 5;
/// A deviation below this is no deviation; the scorer floors at the same value.
const LEAST_STDDEV_GPUS: f64 = 1e-3;

/// A fitted model of trees.
#[derive(Debug, Clone)]
pub struct Trees {
    horizon: HorizonHours,
    lookback_hours: usize,
    features: Features,
    /// Place by size and deviation in GPUs of each series.
    series: BTreeMap<SeriesId, (usize, f64)>,
    /// What the forests say of the spread is multiplied by this to make a deviation.
    spread_factor: f64,
    /// `[step][FORESTS_PER_STEP]`.
    forests: Vec<Vec<Forest>>,
}

/// A model in parts, as a checkpoint holds it.
#[derive(Debug, Clone)]
pub struct Parts {
    pub horizon: HorizonHours,
    pub lookback_hours: usize,
    /// By size, with their deviations in GPUs.
    pub series: Vec<(SeriesId, f64)>,
    pub spread_factor: f64,
    /// `[step][FORESTS_PER_STEP]`.
    pub forests: Vec<Vec<Forest>>,
}

impl Trees {
    /// How many features a window of this length has.
    #[must_use]
    pub fn features_of(lookback_hours: usize, horizon: HorizonHours) -> usize {
        Features::new(lookback_hours, horizon).count()
    }

    #[must_use]
    pub fn from_parts(parts: Parts) -> Self {
        let Parts { horizon, lookback_hours, series, spread_factor, forests } = parts;
        let series = series.into_iter().enumerate().map(|(place, (id, scale))| (id, (place, scale))).collect();
        let features = Features::new(lookback_hours, horizon);
        Self { horizon, lookback_hours, features, series, spread_factor, forests }
    }

    #[must_use]
    pub fn parts(&self) -> Parts {
        let mut series: Vec<_> = self.series.iter().map(|(id, (place, scale))| (*place, id.clone(), *scale)).collect();
        series.sort_by_key(|(place, ..)| *place);
        Parts {
            horizon: self.horizon,
            lookback_hours: self.lookback_hours,
            series: series.into_iter().map(|(_, id, scale)| (id, scale)).collect(),
            spread_factor: self.spread_factor,
            forests: self.forests.clone(),
        }
    }

    /// Features of all windows, row by row, and what turns the forests' answers into GPUs.
    fn rows<'a>(&self, windows: &[Window<'a>]) -> Result<(Vec<f32>, Vec<Scale<'a>>), PredictError> {
        let mut rows = Vec::with_capacity(windows.len() * self.features.count());
        let mut scales = Vec::with_capacity(windows.len());
        for window in windows {
            let unknown = || PredictError::UnknownSeries { series: window.series.clone() };
            let &(place, scale_gpus) = self.series.get(window.series).ok_or_else(unknown)?;
            if window.demand_gpus.len() != self.lookback_hours {
                return Err(PredictError::OtherLookback { have: window.demand_gpus.len(), need: self.lookback_hours });
            }
            self.features.append(window, scale_gpus, place, &mut rows);
            scales.push(Scale { window: *window, scale_gpus });
        }
        Ok((rows, scales))
    }

    /// What the forests of a step say of one row: mean, quantiles, spread.
    fn step(&self, scale: &Scale<'_>, said: [f64; FORESTS_PER_STEP]) -> StepForecast {
        let last = scale.window.last_gpus();
        let gpus = |number: usize| (last + said[number] * scale.scale_gpus).max(0.0);
        let median = gpus(1);
        let q90 = gpus(2).max(median);
        let spread = said[4].max(0.0) * scale.scale_gpus * self.spread_factor;
        StepForecast {
            mean_gpus: gpus(0),
            stddev_gpus: spread.max(LEAST_STDDEV_GPUS),
            quantiles_gpus: [median, q90, gpus(3).max(q90)],
        }
    }
}

/// A window and the deviation of its series.
struct Scale<'a> {
    window: Window<'a>,
    scale_gpus: f64,
}

impl Predict for Trees {
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
        let (rows, scales) = self.rows(windows)?;
        let mut steps: Vec<Vec<StepForecast>> = vec![Vec::with_capacity(self.forests.len()); windows.len()];
        for forests in &self.forests {
            let said: Vec<Vec<f64>> =
                forests.iter().map(|forest| forest.predict_all(&rows, self.features.count())).collect();
            for (place, (steps, scale)) in steps.iter_mut().zip(&scales).enumerate() {
                steps.push(self.step(scale, std::array::from_fn(|number| said[number][place])));
            }
        }
        let forecast = |(steps, scale): (Vec<StepForecast>, &Scale<'_>)| {
            let window = &scale.window;
            Ok(DemandForecast::new(window.series.clone(), window.issue, ForecastOrigin::Model, steps)?)
        };
        steps.into_iter().zip(&scales).map(forecast).collect()
    }
}
