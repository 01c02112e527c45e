//! The scale in which the model works.

use super::config::InputScaling;
use datasets::{Panel, TimeSplit};

/// Below this a series hardly moves, and dividing by its deviation would blow up noise. In GPUs.
const LEAST_DEVIATION_GPUS: f64 = 1.0;

/// `(value − centre) / deviation`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Centre of the window, in GPUs.
    pub centre_gpus: f64,
    /// Deviation of the window, in GPUs.
    pub deviation_gpus: f64,
}

impl Scale {
    pub(crate) const IDENTITY: Self = Self { centre_gpus: 0.0, deviation_gpus: 1.0 };

    pub(crate) fn scale_into(self, demand_gpus: &[f64], into: &mut Vec<f32>) {
        into.extend(demand_gpus.iter().map(|gpus| self.to(*gpus)));
    }

    pub(super) fn to(self, gpus: f64) -> f32 {
        ((gpus - self.centre_gpus) / self.deviation_gpus) as f32
    }

    pub(crate) fn back(self, scaled: f64) -> f64 {
        self.centre_gpus + self.deviation_gpus * scaled
    }
}

/// The scale of each series of the panel, from the hours before the validation part alone.
pub fn scales(panel: &Panel, split: &TimeSplit, scaling: InputScaling) -> Vec<Scale> {
    if scaling == InputScaling::None {
        return vec![Scale::IDENTITY; panel.series().len()];
    }
    let end = panel.index_of(split.validation.from).unwrap_or(0);
    let scale = |series: &datasets::Series| {
        let learned = series.demand_gpus()[..end].iter().zip(&series.measured()[..end]);
        moments(learned.filter(|(_, measured)| **measured).map(|(gpus, _)| *gpus))
    };
    panel.series().iter().map(scale).collect()
}

fn moments(values: impl Iterator<Item = f64> + Clone) -> Scale {
    let count = values.clone().count();
    if count == 0 {
        return Scale::IDENTITY;
    }
    let centre_gpus = values.clone().sum::<f64>() / count as f64;
    let variance = values.map(|gpus| (gpus - centre_gpus).powi(2)).sum::<f64>() / count as f64;
    Scale { centre_gpus, deviation_gpus: variance.sqrt().max(LEAST_DEVIATION_GPUS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_hardly_moves_is_not_blown_up() {
        assert_eq!(moments([5.0, 5.5].into_iter()).deviation_gpus, 1.0);
        let scale = moments([0.0, 8.0].into_iter());
        assert_eq!((scale.to(8.0), scale.back(1.0)), (1.0, 8.0));
    }
}
