//! OrgLinear of our own: boosted trees and a small network over the same rows, averaged.
//!
//! Both say differences to the last value in deviations of the series, for all series at once, so that a model that has
//! learned nothing says "the last value stays", and large and small organizations teach each other. They err in different
//! ways: trees cut, the network bends; their mean is better than either (ARCHITECTURE.md has the figures).

mod explain;
mod fit;
#[cfg(test)]
mod tests;

pub use crate::rows::{FeatureGroup, StepGroups};
pub use explain::{Contribution, Explanation, StepExplanation};
pub use fit::{BadSetting, Settings};

use crate::network::{Network, Sizes};
use crate::predict::{Predict, PredictError};
use crate::rows::{Features, OUTPUTS, SPREAD, series_scale_gpus};
use crate::side_by_side::side_by_side;
use crate::trees::Forests;
use datasets::window::Window;
use std::collections::BTreeMap;
use vocab::{DemandForecast, ForecastOrigin, HorizonHours, SeriesId, StepForecast};

/// A deviation below this is no deviation; the scorer floors at the same value.
const LEAST_STDDEV_GPUS: f64 = 1e-3;
/// Rows of targets that are answered at once, where steps are grouped: enough to be quick, few enough for small memory.
const TARGETS_AT_ONCE: usize = 8_192;

/// Which parts a blend has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recipe {
    /// The mean of both.
    Both,
    /// The forests alone.
    Trees,
    /// The network alone.
    Network,
}

/// A fitted model.
#[derive(Debug, Clone)]
pub struct Blend {
    horizon: HorizonHours,
    lookback_hours: usize,
    /// Of rows of windows.
    features: Features,
    /// Of the rows that trees and network answer; where each step stands alone, the same.
    answered: Features,
    /// Place by size and deviation in GPUs of each series.
    series: BTreeMap<SeriesId, (usize, f64)>,
    /// The deviations alone, by place.
    scales_gpus: Vec<f64>,
    forests: Option<Forests>,
    network: Option<Network>,
    /// The network's share in each output; the forests have the rest.
    network_share: [f64; OUTPUTS],
}

/// A model in parts, as a checkpoint holds it.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Hours of a forecast.
    pub horizon: HorizonHours,
    /// Hours of a window.
    pub lookback_hours: usize,
    /// The steps that share a forest and a head.
    pub step_groups: StepGroups,
    /// Features that were left out.
    pub without: Option<FeatureGroup>,
    /// By size, with their deviations in GPUs.
    pub series: Vec<(SeriesId, f64)>,
    /// `None` where the recipe has none.
    pub forests: Option<Forests>,
    /// `None` where the recipe has none.
    pub network: Option<Network>,
    /// Ignored where there is only one part.
    pub network_share: [f64; OUTPUTS],
}

impl Blend {
    /// Hours of history that a series needs.
    pub const HISTORY_HOURS_LEAST: usize = Features::HISTORY_HOURS_LEAST;

    /// How many features the rows have that trees split by.
    #[must_use]
    pub fn features_of(lookback_hours: usize, horizon: HorizonHours, step_groups: &StepGroups) -> usize {
        Features::new(lookback_hours, horizon, step_groups.clone()).of_one_target().count()
    }

    /// Sizes of the networks of such a model.
    #[must_use]
    pub fn sizes_of(lookback_hours: usize, horizon: HorizonHours, step_groups: &StepGroups, series: usize) -> Sizes {
        let features = Features::new(lookback_hours, horizon, step_groups.clone()).of_one_target();
        Network::sizes(&features, series, step_groups.parts(horizon))
    }

    /// The model of these parts.
    #[must_use]
    pub fn from_parts(parts: Parts) -> Self {
        let Parts { horizon, lookback_hours, step_groups, without, series, forests, network, network_share } = parts;
        let scales_gpus = series.iter().map(|(_, scale)| *scale).collect();
        let series = series.into_iter().enumerate().map(|(place, (id, scale))| (id, (place, scale))).collect();
        let features = Features::new(lookback_hours, horizon, step_groups).without(without);
        let answered = features.of_one_target();
        Self { horizon, lookback_hours, features, answered, series, scales_gpus, forests, network, network_share }
    }

    /// Copies of the parts, to be saved.
    #[must_use]
    pub fn parts(&self) -> Parts {
        let mut series: Vec<_> = self.series.iter().map(|(id, (place, scale))| (*place, id.clone(), *scale)).collect();
        series.sort_by_key(|(place, ..)| *place);
        Parts {
            horizon: self.horizon,
            lookback_hours: self.lookback_hours,
            step_groups: self.features.step_groups().clone(),
            without: self.features.left_out(),
            series: series.into_iter().map(|(_, id, scale)| (id, scale)).collect(),
            forests: self.forests.clone(),
            network: self.network.clone(),
            network_share: self.network_share,
        }
    }

    /// Place and deviation for a series that is new: its deviation is that of its window, as if that had been its
    /// training, and it stands where a series of that size does.
    fn stand_in(&self, window: &Window<'_>) -> (usize, f64) {
        let seen = window.demand_gpus.iter().zip(window.measured).filter(|(_, measured)| **measured);
        let scale_gpus = series_scale_gpus(seen.map(|(gpus, _)| *gpus));
        let place = self.scales_gpus.partition_point(|known| *known < scale_gpus);
        (place.min(self.scales_gpus.len().saturating_sub(1)), scale_gpus)
    }

    /// Features of all windows, row by row, and what turns answers into GPUs.
    fn rows<'a>(&self, windows: &[Window<'a>]) -> Result<(Vec<f32>, Vec<Scale<'a>>), PredictError> {
        let mut rows = Vec::with_capacity(windows.len() * self.features.count());
        let mut scales = Vec::with_capacity(windows.len());
        for window in windows {
            let known = self.series.get(window.series).copied();
            let (place, scale_gpus) = known.unwrap_or_else(|| self.stand_in(window));
            let have = window.demand_gpus.len();
            if !(self.least_hours()..=self.lookback_hours).contains(&have) {
                return Err(PredictError::OtherLookback { have, need: self.lookback_hours });
            }
            self.features.append(window, scale_gpus, place, &mut rows);
            scales.push(Scale { window: *window, scale_gpus });
        }
        Ok((rows, scales))
    }

    /// The joint prediction of the parts: `[step × OUTPUTS][row]`.
    fn say(&self, rows: &[f32]) -> Result<Vec<Vec<f64>>, PredictError> {
        if !self.features.step_groups().is_empty() {
            return self.say_by_groups(rows);
        }
        let trees = self.forests.as_ref().map(|forests| forests.say(rows, self.features.count()));
        let network = self.network.as_ref().map(|network| network.say(rows, &self.features)).transpose()?;
        Ok(self.mixed(trees, network, self.horizon.steps() * OUTPUTS))
    }

    /// The same where steps are grouped: rows of targets, a block of windows and a group at a time.
    fn say_by_groups(&self, rows: &[f32]) -> Result<Vec<Vec<f64>>, PredictError> {
        let (width, count) = (self.features.count(), rows.len() / self.features.count());
        let mut jobs = Vec::new();
        for (group, steps) in self.features.step_groups().ranges().iter().enumerate() {
            let block = (TARGETS_AT_ONCE / steps.len()).max(1);
            jobs.extend((0..count).step_by(block).map(|from| (group, steps, from..(from + block).min(count))));
        }
        let answers = side_by_side(jobs.len(), |job| {
            let (group, steps, windows) = &jobs[job];
            let mut targets = Vec::with_capacity(windows.len() * steps.len() * self.answered.count());
            for step in (*steps).clone() {
                let rows = rows[windows.start * width..windows.end * width].chunks_exact(width);
                rows.for_each(|row| self.features.pick(row, step, &mut targets));
            }
            let trees = self.forests.as_ref();
            let trees = trees.map(|forests| forests.say_of_group(*group, &targets, self.answered.count()));
            let network = self.network.as_ref();
            let network = network.map(|network| network.say_of_group(*group, &targets, &self.answered)).transpose()?;
            Ok::<_, PredictError>(self.mixed(trees, network, OUTPUTS))
        });
        let mut all = vec![vec![0.0; count]; self.horizon.steps() * OUTPUTS];
        for ((_, steps, windows), answers) in jobs.iter().zip(answers) {
            for (output, answers) in answers?.into_iter().enumerate() {
                for (step, answers) in (*steps).clone().zip(answers.chunks_exact(windows.len())) {
                    all[step * OUTPUTS + output][windows.clone()].copy_from_slice(answers);
                }
            }
        }
        Ok(all)
    }

    /// The weighted mean of both parts, `[output][row]`; the network answers row by row.
    fn mixed(&self, trees: Option<Vec<Vec<f64>>>, network: Option<Vec<f32>>, outputs: usize) -> Vec<Vec<f64>> {
        let Some(network) = network else { return trees.unwrap_or_default() };
        let mixed = |output: usize| {
            let of_network = network.iter().skip(output).step_by(outputs).copied().map(f64::from);
            let share = self.network_share[output % OUTPUTS];
            match &trees {
                None => of_network.collect(),
                Some(trees) => {
                    of_network.zip(&trees[output]).map(|(one, other)| share * one + (1.0 - share) * other).collect()
                }
            }
        };
        (0..outputs).map(mixed).collect()
    }
}

/// A window and the deviation of its series.
struct Scale<'a> {
    window: Window<'a>,
    scale_gpus: f64,
}

impl Scale<'_> {
    /// A step in GPUs; quantiles that cross are drawn together.
    fn step(&self, predicted: [f64; OUTPUTS]) -> StepForecast {
        let last = self.window.last_gpus();
        let gpus = |number: usize| (last + predicted[number] * self.scale_gpus).max(0.0);
        let median = gpus(1);
        let q90 = gpus(2).max(median);
        StepForecast {
            mean_gpus: gpus(0),
            stddev_gpus: (predicted[SPREAD] * self.scale_gpus).max(LEAST_STDDEV_GPUS),
            quantiles_gpus: [median, q90, gpus(3).max(q90)],
        }
    }
}

impl Predict for Blend {
    fn lookback_hours(&self) -> usize {
        self.lookback_hours
    }

    fn least_hours(&self) -> usize {
        Features::HISTORY_HOURS_LEAST.min(self.lookback_hours)
    }

    fn horizon(&self) -> HorizonHours {
        self.horizon
    }

    fn notices_leaving(&self) -> bool {
        true
    }

    /// Every series: what was learned is about all of them at once, and one that is new needs no more than a window.
    fn knows(&self, _series: &SeriesId) -> bool {
        true
    }

    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        let (rows, scales) = self.rows(windows)?;
        let predicted = self.say(&rows)?;
        let forecast = |(row, scale): (usize, &Scale<'_>)| {
            let step = |step: &[Vec<f64>]| scale.step(std::array::from_fn(|output| step[output][row]));
            let steps = predicted.chunks_exact(OUTPUTS).map(step).collect();
            let window = &scale.window;
            Ok(DemandForecast::new(window.series.clone(), window.issue, ForecastOrigin::Model, steps)?)
        };
        scales.iter().enumerate().map(forecast).collect()
    }
}
