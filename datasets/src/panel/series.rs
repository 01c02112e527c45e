//! One series of a panel.

use vocab::{HourDemand, SeriesId};

/// One series, hour by hour. Gaps are filled forward from the last measured hour, which uses the past only; before the
/// first measured hour the fill is zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub(super) id: SeriesId,
    pub(super) demand_gpus: Vec<f64>,
    pub(super) measured: Vec<bool>,
    pub(super) first_measured: Option<usize>,
    /// Hours, by index, at whose end demand was known to be below the peak, and by how many GPUs; rising.
    pub(super) falls: Falls,
}

/// Indices of hours, rising, at whose end demand lay below the peak, and by how many GPUs.
pub type Falls = Vec<(u32, f32)>;

impl Series {
    /// Id of the series.
    #[must_use]
    pub const fn id(&self) -> &SeriesId {
        &self.id
    }

    /// GPUs in each hour of the panel, gaps filled.
    #[must_use]
    pub fn demand_gpus(&self) -> &[f64] {
        &self.demand_gpus
    }

    /// Whether each hour was measured: it has a row, be it of zero.
    #[must_use]
    pub fn measured(&self) -> &[bool] {
        &self.measured
    }

    /// Index of the first measured hour.
    #[must_use]
    pub const fn first_measured(&self) -> Option<usize> {
        self.first_measured
    }

    /// How far demand had fallen below the peak of an hour by the end of it, in GPUs; zero where it is not known.
    #[must_use]
    pub fn fallen_gpus(&self, hour: usize) -> f64 {
        let place = self.falls.binary_search_by_key(&hour, |(index, _)| *index as usize);
        place.map_or(0.0, |place| self.falls[place].1.into())
    }

    /// The hours at whose end demand is known to lie below the peak.
    #[must_use]
    pub const fn falls(&self) -> &Falls {
        &self.falls
    }

    pub(super) fn empty(id: SeriesId, hours: usize) -> Self {
        let (demand_gpus, measured) = (vec![0.0; hours], vec![false; hours]);
        Self { id, demand_gpus, measured, first_measured: None, falls: Falls::new() }
    }

    pub(super) fn falls_by(&mut self, hour: usize, gpus: f64) {
        if gpus > 0.0 {
            // Hours mostly come in their order.
            let place =
                self.falls.iter().rposition(|(index, _)| (*index as usize) < hour).map_or(0, |before| before + 1);
            self.falls.insert(place, (hour as u32, gpus as f32));
        }
    }

    /// Adds an hour, which continues the one before it where it has no row.
    pub(super) fn push(&mut self, demand: Option<HourDemand>) {
        if let Some(demand) = demand {
            self.first_measured.get_or_insert(self.demand_gpus.len());
            self.falls_by(self.demand_gpus.len(), demand.fallen_gpus());
        }
        let demand_gpus = demand.map(|demand| demand.peak.as_gpus());
        let before = self.demand_gpus.last().copied().filter(|_| self.first_measured.is_some());
        self.demand_gpus.push(demand_gpus.or(before).unwrap_or(0.0));
        self.measured.push(demand_gpus.is_some());
    }

    /// Fills the gaps forward.
    pub(super) fn seal(&mut self) {
        self.first_measured = self.measured.iter().position(|&measured| measured);
        let mut last = 0.0;
        for (demand_gpus, measured) in self.demand_gpus.iter_mut().zip(&self.measured) {
            if *measured {
                last = *demand_gpus;
            } else {
                *demand_gpus = last;
            }
        }
    }
}
