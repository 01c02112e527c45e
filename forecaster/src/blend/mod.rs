//! OrgLinear of our own: boosted trees and a small network over the same rows, averaged.
//!
//! Both say differences to the last value in deviations of the series, for all series at once, so that a model that has
//! learned nothing says "the last value stays", and large and small organizations teach each other. They err in different
//! ways: trees cut, the network bends; their mean is better than either (ARCHITECTURE.md has the figures), but where one of
//! them lost clearly more on validation.

mod answers;
mod curve;
mod explain;
mod fit;
mod share;
#[cfg(test)]
mod tests;

pub use crate::rows::{FeatureGroup, StepGroups};
pub use explain::{Contribution, Explanation, StepExplanation};
pub use fit::{BadSetting, Settings};

use crate::network::{Network, Sizes};
use crate::predict::{Predict, PredictError};
use crate::rows::{Features, OUTPUTS, SPREAD, series_scale_gpus};
use crate::side_by_side::side_by_side;
use crate::trees::{Forests, TargetColumns};
use datasets::window::Window;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Bound;
use vocab::{DemandForecast, ForecastOrigin, HorizonHours, SeriesId, StepForecast};

/// A deviation below this is no deviation; the scorer floors at the same value.
const LEAST_STDDEV_GPUS: f64 = 1e-3;
/// Windows that are answered at once: enough to be quick, few enough for small memory.
const WINDOWS_AT_ONCE: usize = 512;

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
    /// Place by size and deviation in GPUs of each series.
    series: BTreeMap<SeriesId, (usize, f64)>,
    /// The deviations alone, by place.
    scales_gpus: Vec<f64>,
    forests: Option<Forests>,
    network: Option<Network>,
    /// The network's share in each output; the forests have the rest.
    network_share: [f64; OUTPUTS],
    /// Series that came back after a pause.
    returned: BTreeSet<SeriesId>,
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
    /// Whether days that depart from the week, such as holidays, have features.
    pub days_off: bool,
    /// By size, with their deviations in GPUs.
    pub series: Vec<(SeriesId, f64)>,
    /// `None` where the recipe has none.
    pub forests: Option<Forests>,
    /// `None` where the recipe has none.
    pub network: Option<Network>,
    /// Ignored where there is only one part.
    pub network_share: [f64; OUTPUTS],
    /// Those of `series` that came back after a pause ([`left`](crate::left)).
    pub returned: BTreeSet<SeriesId>,
}

impl Blend {
    /// Hours of history that a series needs.
    pub const HISTORY_HOURS_LEAST: usize = Features::HISTORY_HOURS_LEAST;

    /// The features that trees split by, and the sizes of the networks, of a model of so many series.
    #[must_use]
    pub fn shape_of(
        (lookback_hours, horizon): (usize, HorizonHours),
        step_groups: &StepGroups,
        days_off: bool,
        series: usize,
    ) -> (TargetColumns, Sizes) {
        let features = Features::new(lookback_hours, horizon, step_groups.clone()).with_days_off(days_off);
        let sizes = Network::sizes(&features.of_one_target(), series, step_groups.parts(horizon));
        (features.target_columns(), sizes)
    }

    /// The model of these parts.
    #[must_use]
    pub fn from_parts(parts: Parts) -> Self {
        let Parts { horizon, lookback_hours, step_groups, without, days_off, series, .. } = parts;
        let Parts { forests, network, network_share, returned, .. } = parts;
        let scales_gpus = series.iter().map(|(_, scale)| *scale).collect();
        let series = series.into_iter().enumerate().map(|(place, (id, scale))| (id, (place, scale))).collect();
        let features = Features::new(lookback_hours, horizon, step_groups).with_days_off(days_off).without(without);
        Self { horizon, lookback_hours, features, series, scales_gpus, forests, network, network_share, returned }
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
            days_off: self.features.days_off(),
            series: series.into_iter().map(|(_, id, scale)| (id, scale)).collect(),
            forests: self.forests.clone(),
            network: self.network.clone(),
            network_share: self.network_share,
            returned: self.returned.clone(),
        }
    }

    /// Place and deviation for a series that is new: its deviation is that of its window, as if that had been its
    /// training, and it stands where a series of that size does.
    fn stand_in(&self, window: &Window<'_>) -> (usize, f64) {
        let seen = window.demand_gpus.iter().zip(window.measured.iter()).filter(|(_, measured)| **measured);
        let scale_gpus = series_scale_gpus(seen.map(|(gpus, _)| *gpus));
        let place = self.scales_gpus.partition_point(|known| *known < scale_gpus);
        (place.min(self.scales_gpus.len().saturating_sub(1)), scale_gpus)
    }

    /// Features of all windows, row by row, and what turns answers into GPUs.
    fn rows<'a>(&self, windows: &'a [Window<'a>]) -> Result<(Vec<f32>, Vec<Anchor<'a>>), PredictError> {
        let mut rows = Vec::with_capacity(windows.len() * self.features.count());
        let mut anchors = Vec::with_capacity(windows.len());
        let mut known = Known { series: &self.series, rest: None };
        for window in windows {
            let (place, scale_gpus) = known.find(window.series).unwrap_or_else(|| self.stand_in(window));
            let have = window.demand_gpus.len();
            if !(self.least_hours()..=self.lookback_hours).contains(&have) {
                return Err(PredictError::OtherLookback { have, need: self.lookback_hours });
            }
            self.features.append(window, scale_gpus, place, &mut rows);
            anchors.push(Anchor { window, last_gpus: window.last_gpus(), scale_gpus });
        }
        Ok((rows, anchors))
    }
}

/// Finds series one after the other: mostly it is the one after the last.
struct Known<'a> {
    series: &'a BTreeMap<SeriesId, (usize, f64)>,
    rest: Option<btree_map::Range<'a, SeriesId, (usize, f64)>>,
}

impl Known<'_> {
    fn find(&mut self, id: &SeriesId) -> Option<(usize, f64)> {
        if let Some((_, known)) = self.rest.as_mut().and_then(Iterator::next).filter(|(next, _)| *next == id) {
            return Some(*known);
        }
        let mut rest = self.series.range::<SeriesId, _>((Bound::Included(id), Bound::Unbounded));
        let found = rest.next().filter(|(next, _)| *next == id).map(|(_, known)| *known);
        self.rest = found.map(|_| rest);
        found
    }
}

/// A window with its newest value, and the deviation of its series.
struct Anchor<'a> {
    window: &'a Window<'a>,
    last_gpus: f64,
    scale_gpus: f64,
}

impl Anchor<'_> {
    /// A step in GPUs; quantiles that cross are drawn together.
    fn step(&self, predicted: [f64; OUTPUTS]) -> StepForecast {
        let gpus = |number: usize| (self.last_gpus + predicted[number] * self.scale_gpus).max(0.0);
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

    fn has_returned(&self, series: &SeriesId) -> bool {
        self.returned.contains(series)
    }

    /// Every series: what was learned is about all of them at once, and one that is new needs no more than a window.
    fn knows(&self, _series: &SeriesId) -> bool {
        true
    }

    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        let blocks: Vec<_> = windows.chunks(WINDOWS_AT_ONCE).collect();
        let forecasts = side_by_side(blocks.len(), |block| self.of_block(blocks[block]));
        Ok(forecasts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
}

impl Blend {
    /// The forecasts of a few windows.
    fn of_block(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        let (rows, anchors) = self.rows(windows)?;
        let mut forecasts = Vec::with_capacity(windows.len());
        self.say(&rows).each_row(|row, steps| {
            let Anchor { window, .. } = &anchors[row];
            let steps = steps.iter().map(|step| anchors[row].step(*step)).collect();
            forecasts.push(DemandForecast::new(window.series.clone(), window.issue, ForecastOrigin::Model, steps));
        });
        Ok(forecasts.into_iter().collect::<Result<_, _>>()?)
    }
}
