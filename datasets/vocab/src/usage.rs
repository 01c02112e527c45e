use crate::{HourStart, MilliGpus, SeriesId};
use std::fmt;

/// The demand of one series in one hour: HP GPUs running + pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// Series of the row.
    pub series: SeriesId,
    /// Start of the hour.
    pub hour: HourStart,
    /// Peak demand within the hour.
    pub demand: MilliGpus,
    /// Demand at the end of the hour, at most the peak; `None` where it is not known.
    pub at_end: Option<MilliGpus>,
}

impl UsageRow {
    /// Peak and end of the hour.
    #[must_use]
    pub const fn hour_demand(&self) -> HourDemand {
        HourDemand { peak: self.demand, at_end: self.at_end }
    }
}

/// Demand within an hour: its peak and, where it is known, its level at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourDemand {
    /// Largest demand of the hour.
    pub peak: MilliGpus,
    /// Demand at the end of the hour, at most the peak; `None` where it is not known.
    pub at_end: Option<MilliGpus>,
}

impl HourDemand {
    /// Demand of an hour of which the peak alone is known.
    #[must_use]
    pub const fn of_peak(peak: MilliGpus) -> Self {
        Self { peak, at_end: None }
    }

    /// The row of a series.
    #[must_use]
    pub const fn row(self, series: SeriesId, hour: HourStart) -> UsageRow {
        UsageRow { series, hour, demand: self.peak, at_end: self.at_end }
    }

    /// How far the end lies below the peak, in GPUs; zero where it is not known.
    #[must_use]
    pub fn fallen_gpus(self) -> f64 {
        self.at_end.map_or(0.0, |at_end| (self.peak.as_gpus() - at_end.as_gpus()).max(0.0))
    }

    /// Two statements of one hour together: the same peak, and the end that one of them knows. `None` where they contradict each other.
    #[must_use]
    pub fn joined(self, other: Self) -> Option<Self> {
        let both = Self { at_end: self.at_end.or(other.at_end), ..self };
        let agree = self.peak == other.peak && other.at_end.is_none_or(|at_end| both.at_end == Some(at_end));
        agree.then_some(both)
    }
}

impl fmt::Display for HourDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at_end {
            Some(at_end) => write!(f, "{} GPUs with {at_end} at the end", self.peak),
            None => write!(f, "{} GPUs", self.peak),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(peak: u32, at_end: Option<u32>) -> HourDemand {
        HourDemand { peak: MilliGpus::from_gpus(peak), at_end: at_end.map(MilliGpus::from_gpus) }
    }

    #[test]
    fn demand_has_fallen_where_the_end_is_known_and_below_the_peak() {
        let fallen = [demand(9, Some(4)), demand(9, Some(9)), demand(9, None)].map(HourDemand::fallen_gpus);
        assert_eq!(fallen, [5.0, 0.0, 0.0]);
    }

    #[test]
    fn statements_of_one_hour_join_or_contradict_each_other() {
        assert_eq!(demand(9, None).joined(demand(9, Some(4))), Some(demand(9, Some(4))));
        assert_eq!(demand(9, Some(4)).joined(demand(9, None)), Some(demand(9, Some(4))));
        assert_eq!(demand(9, Some(4)).joined(demand(8, None)), None);
        assert_eq!(demand(9, Some(4)).joined(demand(9, Some(3))), None);
    }
}
